// Bindings of learning on cells.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "passes/cell_grids.hpp"
#include "passes/cell_tables.hpp"

#include <nanobind/stl/tuple.h>

using namespace ks;

namespace {

using Index = Matrix<const std::int32_t>;

cells::Model model_of(nb::handle state, std::size_t R, bool writes) {
    const auto tables = entry<Cube<const float>>(state, "tables");
    const std::size_t width = tables.shape(2), C = entry<Matrix<const double>>(state, "bias").shape(1), size = tables.shape(0);
    require(tables.shape(1) == 2 && C > 0 && (C == 1 ? width == 1 : width >= C), "tables do not fit the outputs");
    return {R, C, width, size, numbers_of<float>(state, "tables", size * 2 * width, writes), numbers_of<double>(state, "bias", 2 * C, writes),
            numbers_of<double>(state, "target", 3, writes), numbers_of<double>(state, "use", R, writes)};
}

cells::Model model_of(nb::handle state, const Index& index, bool writes) {
    const cells::Model m = model_of(state, index.shape(1), writes);
    require(cells::inside(index.size(), index.data(), m.size), "a cell lies outside the table");
    return m;
}

cells::Rule rule_of(nb::tuple spec) { return {nb::cast<bool>(spec[0]), nb::cast<double>(spec[1]), nb::cast<double>(spec[2])}; }

void bound_pass(nb::dict state, Index index, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight, nb::tuple spec,
                Matrix<double> scores, Maybe<Matrix<double>> downhill) {
    const std::size_t n = index.shape(0);
    cells::Model m = model_of(state, index, y.has_value());
    const cells::Rule rule = rule_of(spec);
    require(fits(y, n) && fits(weight, n), "y and weight need one entry per row");
    require(fits(scores, n, m.C), "scores must be (rows, outputs)");
    require(!y == !downhill && fits(downhill, n, std::min(m.C, cells::kept)), "what goes downhill does not fit the outputs");
    if (y && m.C > 1) require_codes(n, m.C, y->data());
    {
        nb::gil_scoped_release release;
        cells::pass(n, index.data(), data_or_null(y), data_or_null(weight), rule, m, scores.data(), data_or_null(downhill));
    }
    if (!y) return;
    require_finite(scores.size(), scores.data(), 2 * m.C, m.bias, 3, m.target);
}

// Levels of d columns, n_levels (d) of at most L, which grids have that many places for.
void check_levels(std::size_t d, std::size_t L, const Vector<const std::int32_t>& n_levels, const Index& columns) {
    require(fits(n_levels, d), "levels do not fit the columns");
    for (std::size_t j = 0; j < d; ++j) require(n_levels.data()[j] >= 0 && std::size_t(n_levels.data()[j]) <= L, "more levels than there is room for");
    for (std::size_t i = 0; i < columns.size(); ++i)
        require(columns.data()[i] >= 0 && std::size_t(columns.data()[i]) < d, "a grid has a column that there is not");
}

// Grids over few columns: levels (d, L) and how many (d), columns (R, K), maps (R, K, L + 1), cells of a grid.
using Levels = std::tuple<Matrix<const double>, Vector<const std::int32_t>, Index,
                          Cube<const std::int32_t>, std::size_t>;

cells::ByLevels grids_of(const Levels& grids, std::size_t n, std::size_t d) {
    const auto& [levels, n_levels, columns, maps, cells] = grids;
    const std::size_t L = levels.shape(1), R = columns.shape(0), K = columns.shape(1);
    require(fits(levels, d), "levels do not fit the columns");
    require(fits(maps, R, K, L + 1), "maps do not fit the grids");
    check_levels(d, L, n_levels, columns);
    return {n, d, L, levels.data(), n_levels.data(), R, K, columns.data(), maps.data(), cells};
}

// Grids over many columns: columns, offsets and densities (R, K), salts (R), bits of a cell's number.
using Hashes = std::tuple<Index, Matrix<const double>, Matrix<const double>, Vector<const std::uint64_t>, int>;

cells::ByHashing grids_of(const Hashes& grids, std::size_t, std::size_t d) {
    const auto& [columns, offset, density, salt, bits] = grids;
    const std::size_t R = columns.shape(0), K = columns.shape(1);
    require(fits(offset, R, K) && fits(density, R, K) && fits(salt, R), "the grids' arrays differ");
    require(bits >= 1 && bits <= 28, "cells do not fit the rows");
    for (std::size_t i = 0; i < R * K; ++i) require(columns.data()[i] >= -1 && columns.data()[i] < std::int64_t(d), "a grid has a column that there is not");
    return {d, R, K, columns.data(), offset.data(), density.data(), salt.data(), bits};
}

// Cells of rows, (n, R).
template <class Grids>
void bound_find(Matrix<const double> X, Grids arrays, int threads, Matrix<std::int32_t> out) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    const auto grids = grids_of(arrays, n, d);
    require(fits(out, n, grids.grids()), "cells do not fit the rows");
    nb::gil_scoped_release release;
    cells::find_rows(n, X.data(), grids, threads, out.data());
}

void bound_grid_maps(Index columns, Cube<const double> edges, Index n_edges,
                     Matrix<const double> levels, Vector<const std::int32_t> n_levels,
                     Cube<std::int32_t> maps) {
    const std::size_t R = columns.shape(0), K = columns.shape(1), E = edges.shape(2), d = levels.shape(0), L = levels.shape(1);
    require(fits(edges, R, K) && fits(n_edges, R, K), "the grids' arrays differ");
    require(maps.size() == R * K * (L + 1), "maps do not fit the grids");
    check_levels(d, L, n_levels, columns);
    for (std::size_t i = 0; i < R * K; ++i)
        require(n_edges.data()[i] >= 0 && std::size_t(n_edges.data()[i]) <= E, "more edges than there is room for");
    cells::grid_maps(R, K, E, L, columns.data(), edges.data(), n_edges.data(), levels.data(), n_levels.data(), maps.data());
}

void bound_gains(Index index, Matrix<const double> v, std::size_t cells, int threads, Vector<double> out) {
    const std::size_t n = index.shape(0), R = index.shape(1);
    require(fits(v, n) && fits(out, R), "gains need one vector per row");
    for (std::size_t t = 0; t < n; ++t)
        for (std::size_t r = 0; r < R; ++r) {
            const std::int64_t k = index.data()[t * R + r] - std::int64_t(r * cells);
            require(k >= 0 && k < std::int64_t(cells), "a cell lies outside its grid");
        }
    nb::gil_scoped_release release;
    cells::gains(n, R, v.shape(1), cells, index.data(), v.data(), threads, out.data());
}

// ---- Single rows

template <class L, class T, class Grids>
std::unique_ptr<L> learner_of(rows::BoundLearner<T>& made, nb::tuple spec, const Grids& arrays, std::size_t R) {
    const cells::Model model = model_of(made.state, R, true);
    require(model.C == made.C, "tables do not fit the outputs");
    const std::int32_t* places = numbers_of<std::int32_t>(made.state, "places", made.C, false);
    for (std::size_t c = 0; c < made.C; ++c)
        require(places[c] >= 0 && std::size_t(places[c]) < model.C, "an output has a column that there is not");
    made.pin("tables", "bias", "target", "use", "unit", "places");
    made.held.keep(arrays);
    return std::make_unique<L>([&] { return grids_of(arrays, 1000, made.d); }, rule_of(spec), model, nb::cast<int>(made.state["unit"]),
                               made.C > 1 ? places : nullptr);
}

template <class T>
rows::LearnerPtr<T> hashed_cells(nb::dict state, nb::list others, nb::tuple spec, const Hashes& grids) {
    auto made = rows::begin<T>(state, others);
    made->learner = learner_of<rows::Cells<T, cells::ByHashing>>(*made, spec, grids, std::get<0>(grids).shape(0));
    return made;
}

// sample: (seed, slot, last rows that it is drawn from); looks: (first, period)
template <class T>
rows::LearnerPtr<T> column_cells(nb::dict state, nb::list others, nb::tuple spec, Cube<const std::int32_t> maps, std::size_t cells,
                                 std::tuple<std::uint64_t, std::uint64_t, std::int64_t> sample, std::pair<std::int64_t, std::int64_t> looks) {
    auto made = rows::begin<T>(state, others);
    const Levels grids{entry<Matrix<const double>>(state, "levels"), entry<Vector<const std::int32_t>>(state, "n_levels"),
                       entry<Index>(state, "columns"), maps, cells};
    made->pin("levels", "n_levels", "columns");
    const auto sampled = entry<Matrix<const double>>(state, "sample_rows");
    const std::size_t S = sampled.shape(0);
    require(sampled.shape(1) == made->d && looks.first > 0 && looks.second >= looks.first, "levels do not fit the columns");
    auto learner = learner_of<rows::ColumnCells<T>>(*made, spec, grids, std::get<2>(grids).shape(0));
    learner->sample_rows = made->template numbers<double>("sample_rows", S * made->d);
    learner->sample_down = made->template numbers<double>("sample_down", S * learner->down.size());
    learner->S = std::int64_t(S);
    std::tie(learner->seed, learner->slot, learner->last) = sample;
    std::tie(learner->first, learner->period) = looks;
    made->learner = std::move(learner);
    return made;
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def(rows::named<T>("row_hashed_cells").c_str(), &hashed_cells<T>, value, value, value, plain);
    m.def(rows::named<T>("row_column_cells").c_str(), &column_cells<T>, value, value, value, plain, value, value, value);
});

const Group group([](nb::module_& m) {
    m.def("cells_pass", &bound_pass, value, plain, maybe, maybe, value, plain, maybe);
    m.def("cells_find", &bound_find<Levels>, plain, plain, value, plain);
    m.def("cells_find", &bound_find<Hashes>, plain, plain, value, plain);
    m.def("grid_maps", &bound_grid_maps, plain, plain, plain, plain, plain, plain);
    m.def("cells_gains", &bound_gains, plain, plain, value, value, plain);
});

}  // namespace
