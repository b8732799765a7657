// Bindings of random binning: cells of rows, and products with the matrix they make.
#include "bind/group.hpp"
#include "bind/rows.hpp"
#include "passes/binning_cells.hpp"
#include "passes/binning_product.hpp"

using namespace ks;

namespace {

template <class T>
using GridArrays = std::tuple<Matrix<const T>, Matrix<const T>, Vector<const T>, Matrix<const std::uint32_t>>;

// inverse, offset (R, d), limit (d,) and multipliers (2, d)
template <class T>
Grids<T> grids_of(const GridArrays<T>& arrays) {
    const auto& [inverse, offset, limit, multipliers] = arrays;
    const std::size_t d = limit.shape(0);
    require(inverse.shape(1) == d && fits(offset, inverse.shape(0), d) && fits(multipliers, 2, d), "the arrays of the grids differ");
    return {d, inverse.shape(0), inverse.data(), offset.data(), limit.data(), multipliers.data(), multipliers.data() + d};
}

// Whether `starts` leads from 0 to `total`, by no more than `most` from one grid to the next.
bool rises(const Vector<const std::int64_t>& starts, std::size_t total, std::size_t most = std::size_t(-1)) {
    const std::size_t R = starts.shape(0) - 1;
    if (starts.shape(0) == 0 || starts.data()[0] != 0 || starts.data()[R] < 0 || std::size_t(starts.data()[R]) != total) return false;
    for (std::size_t r = 0; r < R; ++r) {
        const std::int64_t from = starts.data()[r], to = starts.data()[r + 1];
        if (to < from || std::size_t(to - from) > most) return false;
    }
    return true;
}

using Keys = nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>, nb::c_contig>;
using Counts = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>, nb::c_contig>;

// Slots of the tables of all grids, and where each begins, for the cells' hashes in the order of their columns.
std::tuple<Keys, Counts> slots(Vector<const std::uint64_t> keys, Vector<const std::int64_t> starts) {
    require(rises(starts, keys.shape(0), Table::max_cells), "the cells do not fit the grids");
    const std::size_t R = starts.shape(0) - 1;
    std::vector<Table> tables(R);
    std::vector<std::int64_t> places(R + 1, 0);
    for (std::size_t r = 0; r < R; ++r) {
        tables[r].bits = Table::bits_for(starts.data()[r + 1] - starts.data()[r]);
        places[r + 1] = places[r] + std::int64_t(tables[r].size());
    }
    std::vector<std::uint64_t> all(places[R], 0);
    {
        nb::gil_scoped_release release;
        for (std::size_t r = 0; r < R; ++r) {
            tables[r].slots = all.data() + places[r];
            tables[r].fill(keys.data() + starts.data()[r], starts.data()[r + 1] - starts.data()[r]);
        }
    }
    return {own(std::move(all)), own(std::move(places))};
}

template <class> auto as_is() { return plain; }

// name(X, grids, rest, out, threads) for dense rows X (n, d), or CSR rows (data, indices, indptr), is f(number of grids, hash, rest):
// hash(sink) hands the hashes of all rows, some of a grid at a time, to sink(grid, rows, a, b, their place in out (grids, rows)).
template <class T, class Out, class... Rest, class F>
void over_rows(nb::module_& m, const char* name, F f) {
    m.def(name, [f](AnyRows<T> X, GridArrays<T> arrays, Rest... rest, Matrix<Out> out, int threads) {
        const Grids<T> grids = grids_of<T>(arrays);
        return std::visit([&](const auto& given) {
            const auto rows = rows_of(given, grids.d);
            require(fits(out, grids.R, rows.n), "out must be (grids, rows)");
            return f(grids.R, [&](auto sink) {
                nb::gil_scoped_release release;
                hash_cells<T>(rows, grids, threads, [&](std::size_t r, std::size_t row, std::size_t count, const std::uint32_t* a, const std::uint32_t* b) {
                    sink(r, count, a, b, out.data() + r * rows.n + row);
                });
            }, rest...);
        }, X);
    }, plain, plain, as_is<Rest>()..., plain, value);
}

using Words = const std::uint32_t*;

template <class T>
void bind_cells(nb::module_& m) {
    over_rows<T, std::uint64_t>(m, "bin_hashes", [](std::size_t, auto hash) {
        hash([](std::size_t, std::size_t count, Words a, Words b, std::uint64_t* to) {
            for (std::size_t i = 0; i < count; ++i) to[i] = std::uint64_t(a[i]) << 32 | b[i];
        });
    });
    over_rows<T, std::int32_t, std::uint32_t>(m, "bin_buckets", [](std::size_t, auto hash, std::uint32_t width) {
        hash([width](std::size_t, std::size_t count, Words a, Words, std::int32_t* to) {
            for (std::size_t i = 0; i < count; ++i) to[i] = std::int32_t(std::uint64_t(a[i]) * width >> 32);
        });
    });
    over_rows<T, std::int32_t>(m, "bin_number", [](std::size_t R, auto hash) -> std::tuple<Keys, Counts> {
        std::vector<GrowingTable> tables(R);
        std::atomic<bool> full{false};
        hash([&](std::size_t r, std::size_t count, Words a, Words b, std::int32_t* to) {
            if (!number_cells(tables[r], count, a, b, to)) full = true;
        });
        require(!full, "a grid has more than 2^24 cells: set n_columns to hash them");
        std::vector<std::uint64_t> keys;
        std::vector<std::int64_t> starts{0};
        for (const auto& grid : tables) {
            keys.insert(keys.end(), grid.keys.begin(), grid.keys.end());
            starts.push_back(std::int64_t(keys.size()));
        }
        return {own(std::move(keys)), own(std::move(starts))};
    });
    using Starts = Vector<const std::int64_t>;
    over_rows<T, std::int32_t, Vector<std::uint64_t>, Starts>(m, "bin_find", [](std::size_t R, auto hash, auto slots, Starts starts) {
        require(fits(starts, R + 1) && rises(starts, slots.shape(0), 4 * (Table::max_cells + 2)), "the table does not fit the grids");
        std::vector<Table> tables(R);
        for (std::size_t r = 0; r < R; ++r) {
            const std::size_t size = starts.data()[r + 1] - starts.data()[r];
            tables[r].slots = slots.data() + starts.data()[r];
            while (tables[r].size() < size) ++tables[r].bits;
            require(tables[r].size() == size && tables[r].bits > 0, "the table does not fit the grids");
        }
        hash([&](std::size_t r, std::size_t count, Words a, Words b, std::int32_t* to) { find_cells(tables[r], count, a, b, to); });
    });
}

CellMatrix matrix_of(const Matrix<const std::int32_t>& cells, const Vector<const std::int64_t>& starts, std::size_t columns) {
    require(fits(starts, cells.shape(0) + 1) && rises(starts, columns), "starts do not fit the columns");
    return {cells.shape(1), cells.shape(0), cells.data(), starts.data()};
}

template <class T>
void times(Matrix<const std::int32_t> cells, Vector<const std::int64_t> starts, Matrix<const T> V, Matrix<double> out,
           bool missing, int threads) {
    const CellMatrix Z = matrix_of(cells, starts, V.shape(0));
    const std::size_t C = V.shape(1);
    require(fits(out, Z.n, C), "shapes do not agree");
    const double scale = 1.0 / std::sqrt(double(Z.R));
    nb::gil_scoped_release release;
    if (Z.n * Z.R * C < 50000) threads = 1;
    parallel(threads, [&](int t) {
        const Share share(Z.n, t, threads);
        (missing ? cells_times<T, true> : cells_times<T, false>)(Z, C, V.data(), scale, out.data(), share.begin, share.end);
    });
}

template <class T>
void transposed_times(Matrix<const std::int32_t> cells, Vector<const std::int64_t> starts, Matrix<const T> U,
                      Matrix<T> out, int threads) {
    const CellMatrix Z = matrix_of(cells, starts, out.shape(0));
    const std::size_t C = U.shape(1);
    require(fits(U, Z.n) && out.shape(1) == C, "shapes do not agree");
    const double scale = 1.0 / std::sqrt(double(Z.R));
    nb::gil_scoped_release release;
    if (Z.n * Z.R * C < 50000) threads = 1;
    parallel(threads, [&](int t) {
        const Share share(Z.R, t, threads);
        cells_transposed_times<T>(Z, C, U.data(), scale, out.data(), share.begin, share.end);
    });
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    bind_cells<T>(m);
    m.def("bin_times", &times<T>, plain, plain, plain, plain, value, value);
    m.def("bin_transposed_times", &transposed_times<T>, plain, plain, plain, plain, value);
});

const Group group([](nb::module_& m) { m.def("bin_slots", &slots, plain, plain); });

}  // namespace
