// Bindings of random binning: cells of rows, and products with the matrix they make.
#include "bind/group.hpp"
#include "bind/rows.hpp"
#include "passes/binning_cells.hpp"
#include "passes/binning_product.hpp"

using namespace ks;
using namespace nb::literals;

namespace {

template <class T>
using GridArrays = std::tuple<Matrix<const T>, Matrix<const T>, Vector<const T>, Matrix<const std::uint32_t>>;

// inverse, offset (R, d), limit (d,) and multipliers (2, d)
template <class T>
Grids<T> grids_of(std::size_t d, const GridArrays<T>& arrays) {
    const auto& [inverse, offset, limit, multipliers] = arrays;
    require(inverse.shape(1) == d && offset.shape(0) == inverse.shape(0) && offset.shape(1) == d && limit.shape(0) == d &&
                multipliers.shape(0) == 2 && multipliers.shape(1) == d,
            "the grids do not fit the width of the rows");
    return {d, inverse.shape(0), inverse.data(), offset.data(), limit.data(), multipliers.data(), multipliers.data() + d};
}

template <class A>
A owned(std::size_t size, typename A::Scalar*& data) {
    using S = typename A::Scalar;
    data = new S[size];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<S*>(p); });
    return A(data, {size}, owner);
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

template <class T, class Rows>
void hashes(const Rows& rows, const Grids<T>& grids, Matrix<std::uint64_t> out, int threads) {
    require(out.shape(0) == grids.R && out.shape(1) == rows.n, "out must be (grids, rows)");
    WriteHashes sink{rows.n, out.data()};
    nb::gil_scoped_release release;
    hash_cells<T>(rows, grids, sink, threads);
}

template <class T, class Rows>
void buckets(const Rows& rows, const Grids<T>& grids, std::uint32_t width, Matrix<std::int32_t> out, int threads) {
    require(out.shape(0) == grids.R && out.shape(1) == rows.n, "out must be (grids, rows)");
    WriteBuckets sink{rows.n, width, out.data()};
    nb::gil_scoped_release release;
    hash_cells<T>(rows, grids, sink, threads);
}

template <class T, class Rows>
std::tuple<Keys, Counts> number(const Rows& rows, const Grids<T>& grids, Matrix<std::int32_t> out, int threads) {
    require(out.shape(0) == grids.R && out.shape(1) == rows.n, "out must be (grids, rows)");
    std::vector<GrowingTable> tables(grids.R);
    std::atomic<bool> full{false};
    NumberCells sink{rows.n, tables, out.data(), full};
    {
        nb::gil_scoped_release release;
        hash_cells<T>(rows, grids, sink, threads);
    }
    require(!full, "a grid has more than 2^24 cells: set n_columns to hash them");
    std::size_t total = 0;
    for (const auto& grid : tables) total += grid.keys.size();
    std::uint64_t* keys;
    std::int64_t* starts;
    Keys all = owned<Keys>(total, keys);
    Counts counts = owned<Counts>(grids.R + 1, starts);
    starts[0] = 0;
    for (std::size_t r = 0; r < grids.R; ++r) {
        std::copy(tables[r].keys.begin(), tables[r].keys.end(), keys + starts[r]);
        starts[r + 1] = starts[r] + std::int64_t(tables[r].keys.size());
    }
    return {all, counts};
}

template <class T, class Rows>
void find(const Rows& rows, const Grids<T>& grids, Vector<std::uint64_t> slots, Vector<const std::int64_t> starts,
          Matrix<std::int32_t> out, int threads) {
    require(out.shape(0) == grids.R && out.shape(1) == rows.n, "out must be (grids, rows)");
    require(starts.shape(0) == grids.R + 1 && rises(starts, slots.shape(0), 4 * (Table::max_cells + 2)), "the table does not fit the grids");
    std::vector<Table> tables(grids.R);
    for (std::size_t r = 0; r < grids.R; ++r) {
        const std::size_t size = starts.data()[r + 1] - starts.data()[r];
        tables[r].slots = slots.data() + starts.data()[r];
        while (tables[r].size() < size) ++tables[r].bits;
        require(tables[r].size() == size && tables[r].bits > 0, "the table does not fit the grids");
    }
    FindCells sink{rows.n, tables, out.data()};
    nb::gil_scoped_release release;
    hash_cells<T>(rows, grids, sink, threads);
}

// Slots of the tables of all grids, and where each begins, for the cells' hashes in the order of their columns.
std::tuple<Keys, Counts> slots(Vector<const std::uint64_t> keys, Vector<const std::int64_t> starts) {
    require(rises(starts, keys.shape(0), Table::max_cells), "the cells do not fit the grids");
    const std::size_t R = starts.shape(0) - 1;
    std::vector<Table> tables(R);
    std::int64_t* places;
    Counts begins = owned<Counts>(R + 1, places);
    places[0] = 0;
    for (std::size_t r = 0; r < R; ++r) {
        tables[r].bits = Table::bits_for(starts.data()[r + 1] - starts.data()[r]);
        places[r + 1] = places[r] + std::int64_t(tables[r].size());
    }
    std::uint64_t* all;
    Keys out = owned<Keys>(places[R], all);
    nb::gil_scoped_release release;
    std::fill_n(all, places[R], 0);
    for (std::size_t r = 0; r < R; ++r) {
        tables[r].slots = all + places[r];
        tables[r].fill(keys.data() + starts.data()[r], starts.data()[r + 1] - starts.data()[r]);
    }
    return {out, begins};
}

template <class> auto as_is() { return plain; }

// name(X, grids, rest) for dense rows X (n, d), or CSR rows (data, indices, indptr).
template <class T, class... Rest, class F>
void over_rows(nb::module_& m, const char* name, F f) {
    using Given = GridArrays<T>;
    m.def(name, [f](Matrix<const T> X, Given grids, Rest... rest) {
        const DenseRows<T> rows{X.shape(0), X.shape(1), X.data()};
        return f(rows, grids_of<T>(rows.d, grids), rest...);
    }, plain, plain, as_is<Rest>()...);
    const auto sparse = [&](auto integer) {
        using I = decltype(integer);
        m.def(name, [f](CsrArrays<T, I> X, Given grids, Rest... rest) {
            const std::size_t d = std::get<2>(grids).shape(0), n = csr_rows(X, d);
            const SparseRows<T, I> rows{n, d, std::get<0>(X).data(), std::get<1>(X).data(), std::get<2>(X).data()};
            return f(rows, grids_of<T>(d, grids), rest...);
        }, plain, plain, as_is<Rest>()...);
    };
    sparse(std::int32_t());
    sparse(std::int64_t());
}

template <class T>
void bind_cells(nb::module_& m) {
    using Columns = Matrix<std::int32_t>;
    over_rows<T, Matrix<std::uint64_t>, int>(m, "bin_hashes", [](const auto& rows, const Grids<T>& grids, auto out, int threads) {
        hashes<T>(rows, grids, out, threads);
    });
    over_rows<T, std::uint32_t, Columns, int>(m, "bin_buckets", [](const auto& rows, const Grids<T>& grids, std::uint32_t width, auto out, int threads) {
        buckets<T>(rows, grids, width, out, threads);
    });
    over_rows<T, Columns, int>(m, "bin_number", [](const auto& rows, const Grids<T>& grids, auto out, int threads) {
        return number<T>(rows, grids, out, threads);
    });
    over_rows<T, Vector<std::uint64_t>, Vector<const std::int64_t>, Columns, int>(
        m, "bin_find", [](const auto& rows, const Grids<T>& grids, auto slots, auto starts, auto out, int threads) {
            find<T>(rows, grids, slots, starts, out, threads);
        });
}

CellMatrix matrix_of(const Matrix<const std::int32_t>& cells, const Vector<const std::int64_t>& starts, std::size_t columns) {
    require(starts.shape(0) == cells.shape(0) + 1 && rises(starts, columns), "starts do not fit the columns");
    return {cells.shape(1), cells.shape(0), cells.data(), starts.data()};
}

template <class T>
void times(Matrix<const std::int32_t> cells, Vector<const std::int64_t> starts, Matrix<const T> V, Matrix<double> out,
           bool missing, int threads) {
    const CellMatrix Z = matrix_of(cells, starts, V.shape(0));
    const std::size_t C = V.shape(1);
    require(out.shape(0) == Z.n && out.shape(1) == C, "shapes do not agree");
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
    require(U.shape(0) == Z.n && out.shape(1) == C, "shapes do not agree");
    const double scale = 1.0 / std::sqrt(double(Z.R));
    nb::gil_scoped_release release;
    if (Z.n * Z.R * C < 50000) threads = 1;
    parallel(threads, [&](int t) {
        const Share share(Z.R, t, threads);
        cells_transposed_times<T>(Z, C, U.data(), scale, out.data(), share.begin, share.end);
    });
}

template <class T>
void bind_products(nb::module_& m) {
    m.def("bin_times", &times<T>, "cells"_a.noconvert(), "starts"_a.noconvert(), "V"_a.noconvert(), "out"_a.noconvert(),
          "missing"_a, "threads"_a);
    m.def("bin_transposed_times", &transposed_times<T>, "cells"_a.noconvert(), "starts"_a.noconvert(),
          "U"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
}

const Group group([](nb::module_& m) {
    bind_cells<float>(m);
    bind_cells<double>(m);
    m.def("bin_slots", &slots, "keys"_a.noconvert(), "starts"_a.noconvert());
    bind_products<float>(m);
    bind_products<double>(m);
});

}  // namespace
