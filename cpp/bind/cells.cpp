// Bindings of learning on cells.
#include <nanobind/stl/tuple.h>

#include "base/arrays.hpp"
#include "passes/cell_grids.hpp"
#include "passes/cell_tables.hpp"
#include "base/states.hpp"

using namespace ks;

namespace {

using Index = Matrix<const std::int32_t>;

cells::Model model_of(nb::handle state, const Index& index, bool writes) {
    const auto tables = entry<nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>>(state, "tables");
    const std::size_t R = index.shape(1), width = tables.shape(2), C = entry<Matrix<const double>>(state, "bias").shape(1),
                      size = tables.shape(0);
    require(tables.shape(1) == 2 && C > 0 && (C == 1 ? width == 1 : width >= C), "tables do not fit the outputs");
    require(cells::inside(index.size(), index.data(), size), "a cell lies outside the table");
    return {R, C, width, numbers_of<float>(state, "tables", size * 2 * width, writes), numbers_of<double>(state, "bias", 2 * C, writes),
            numbers_of<double>(state, "target", 3, writes), numbers_of<double>(state, "use", R, writes)};
}

void bound_pass(nb::dict state, Index index, Vector<const double> y, Maybe<Vector<const double>> weight, nb::tuple spec,
                Matrix<double> scores, Matrix<double> downhill) {
    const std::size_t n = index.shape(0);
    cells::Model m = model_of(state, index, true);
    const cells::Rule rule{nb::cast<bool>(spec[0]), nb::cast<double>(spec[1]), nb::cast<double>(spec[2])};
    require(y.shape(0) == n && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    require(scores.shape(0) == n && scores.shape(1) == m.C, "scores must be (rows, outputs)");
    require(downhill.shape(0) == n && downhill.shape(1) == std::min(m.C, cells::kept), "what goes downhill does not fit the outputs");
    for (std::size_t i = 0; i < n && m.C > 1; ++i) require(y.data()[i] >= 0 && y.data()[i] < double(m.C), "class code out of range");
    {
        nb::gil_scoped_release release;
        cells::pass(n, index.data(), y.data(), data_or_null(weight), rule, m, scores.data(), downhill.data());
    }
    require_finite(scores.size(), scores.data());
    require_finite(2 * m.C, m.bias);
    require_finite(3, m.target);
}

// Grids over few columns: levels (d, L) and how many (d), columns (R, K), maps (R, K, L + 1), cells of a grid.
using Levels = std::tuple<Matrix<const double>, Vector<const std::int32_t>, Index,
                          nb::ndarray<const std::int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>, std::size_t>;

cells::ByLevels grids_of(const Levels& grids, std::size_t n, std::size_t d) {
    const auto& [levels, n_levels, columns, maps, cells] = grids;
    const std::size_t L = levels.shape(1), R = columns.shape(0), K = columns.shape(1);
    require(levels.shape(0) == d && n_levels.shape(0) == d, "levels do not fit the columns");
    require(maps.shape(0) == R && maps.shape(1) == K && maps.shape(2) == L + 1, "maps do not fit the grids");
    for (std::size_t j = 0; j < d; ++j) require(n_levels.data()[j] >= 0 && std::size_t(n_levels.data()[j]) <= L, "more levels than there is room for");
    for (std::size_t i = 0; i < R * K; ++i) require(columns.data()[i] >= 0 && std::size_t(columns.data()[i]) < d, "a grid has a column that there is not");
    return {n, d, L, levels.data(), n_levels.data(), R, K, columns.data(), maps.data(), cells};
}

// Grids over many columns: columns, offsets and densities (R, K), salts (R), bits of a cell's number.
using Hashes = std::tuple<Index, Matrix<const double>, Matrix<const double>, Vector<const std::uint64_t>, int>;

cells::ByHashing grids_of(const Hashes& grids, std::size_t, std::size_t d) {
    const auto& [columns, offset, density, salt, bits] = grids;
    const std::size_t R = columns.shape(0), K = columns.shape(1);
    require(offset.shape(0) == R && offset.shape(1) == K && density.shape(0) == R && density.shape(1) == K && salt.shape(0) == R, "the grids' arrays differ");
    require(bits >= 1 && bits <= 28, "cells do not fit the rows");
    for (std::size_t i = 0; i < R * K; ++i) require(columns.data()[i] >= -1 && columns.data()[i] < std::int64_t(d), "a grid has a column that there is not");
    return {d, R, K, columns.data(), offset.data(), density.data(), salt.data(), bits};
}

// Cells of rows, (n, R).
template <class Grids>
void bound_find(Matrix<const double> X, Grids arrays, int threads, Matrix<std::int32_t> out) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    const auto grids = grids_of(arrays, n, d);
    require(out.shape(0) == n && out.shape(1) == grids.grids(), "cells do not fit the rows");
    nb::gil_scoped_release release;
    cells::find_rows(n, X.data(), grids, threads, out.data());
}

void bound_score(nb::dict state, Index index, bool regression, Matrix<double> scores) {
    const cells::Model m = model_of(state, index, false);
    require(scores.shape(0) == index.shape(0) && scores.shape(1) == m.C, "scores must be (rows, outputs)");
    nb::gil_scoped_release release;
    cells::score(index.shape(0), index.data(), regression, m, scores.data());
}

void bound_grid_maps(Index columns, nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> edges, Index n_edges,
                     Matrix<const double> levels, Vector<const std::int32_t> n_levels,
                     nb::ndarray<std::int32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu> maps) {
    const std::size_t R = columns.shape(0), K = columns.shape(1), E = edges.shape(2), d = levels.shape(0), L = levels.shape(1);
    require(edges.shape(0) == R && edges.shape(1) == K && n_edges.shape(0) == R && n_edges.shape(1) == K, "the grids' arrays differ");
    require(n_levels.shape(0) == d && maps.size() == R * K * (L + 1), "maps do not fit the grids");
    for (std::size_t j = 0; j < d; ++j) require(n_levels.data()[j] >= 0 && std::size_t(n_levels.data()[j]) <= L, "more levels than there is room for");
    for (std::size_t i = 0; i < R * K; ++i) {
        require(columns.data()[i] >= 0 && std::size_t(columns.data()[i]) < d, "a grid has a column that there is not");
        require(n_edges.data()[i] >= 0 && std::size_t(n_edges.data()[i]) <= E, "more edges than there is room for");
    }
    cells::grid_maps(R, K, E, L, columns.data(), edges.data(), n_edges.data(), levels.data(), n_levels.data(), maps.data());
}

void bound_gains(Index index, Matrix<const double> v, std::size_t cells, int threads, Vector<double> out) {
    const std::size_t n = index.shape(0), R = index.shape(1);
    require(v.shape(0) == n && out.shape(0) == R, "gains need one vector per row");
    for (std::size_t t = 0; t < n; ++t)
        for (std::size_t r = 0; r < R; ++r) {
            const std::int64_t k = index.data()[t * R + r] - std::int64_t(r * cells);
            require(k >= 0 && k < std::int64_t(cells), "a cell lies outside its grid");
        }
    nb::gil_scoped_release release;
    cells::gains(n, R, v.shape(1), cells, index.data(), v.data(), threads, out.data());
}

}  // namespace

void bind_cells(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    const auto value = nb::arg();
    m.def("cells_pass", &bound_pass, value, plain, plain, maybe, value, plain, plain);
    m.def("cells_score", &bound_score, value, plain, value, plain);
    m.def("cells_find", &bound_find<Levels>, plain, plain, value, plain);
    m.def("cells_find", &bound_find<Hashes>, plain, plain, value, plain);
    m.def("grid_maps", &bound_grid_maps, plain, plain, plain, plain, plain, plain);
    m.def("cells_gains", &bound_gains, plain, plain, value, value, plain);
}
