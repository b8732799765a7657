// Binding of how unusual rows are.
#include "passes/novelty.hpp"

#include <nanobind/stl/tuple.h>

#include "base/arrays.hpp"
#include "bind/group.hpp"

using namespace ks;

namespace {

// The fields of Tables in kernelstream/passes/novelty/python.py.
using Arrays = std::tuple<Matrix<const double>, Matrix<const double>, Matrix<const std::int32_t>, Matrix<const double>, Matrix<const double>,
                          Vector<const std::uint64_t>, Vector<const std::int32_t>, Vector<const double>, double, Matrix<const double>,
                          Matrix<const double>, Matrix<const double>, Matrix<const double>>;

novelty::Tables tables_of(const Arrays& arrays, const Matrix<const double>& X) {
    const auto& [scale, projections, columns, offset, density, salt, ends, counts, mass, frequencies, factor, shares, tails] = arrays;
    const std::size_t d = X.shape(1), K = projections.shape(1), R = columns.shape(0), k = columns.shape(1), D = frequencies.shape(1);
    const std::size_t cells = counts.shape(0);
    require(fits(scale, 2, d) && fits(projections, d) && fits(frequencies, d) && fits(factor, 2 * D, 2 * D), "the rows do not fit the tables");
    require(fits(offset, R, k) && fits(density, R, k) && fits(salt, R) && fits(ends, novelty::MEMBERS - 1), "the grids do not fit each other");
    require(cells > 0 && (cells & (cells - 1)) == 0, "the number of cells must be a power of two");
    require(fits(shares, novelty::MEMBERS + 1, novelty::NODES) && fits(tails, novelty::MEMBERS + 1, 2), "the shares have the wrong size");
    for (std::size_t i = 0; i < R * k; ++i) require(columns.data()[i] < std::int64_t(d + K), "a grid has a column that there is not");
    std::size_t last = 0;
    for (std::size_t m = 0; m + 1 < novelty::MEMBERS; ++m) {
        const std::int64_t end = ends.data()[m];
        require(end > std::int64_t(last) && std::size_t(end) <= R, "the grids do not fit the members");
        last = std::size_t(end);
    }
    return {d, K, R, k, D, cells, scale.data(), projections.data(), columns.data(), offset.data(), density.data(), salt.data(), ends.data(),
            counts.data(), mass, frequencies.data(), factor.data(), shares.data(), tails.data()};
}

void bound_surprises(Matrix<const double> X, const Arrays& arrays, Matrix<double> out) {
    const novelty::Tables tables = tables_of(arrays, X);
    require(fits(out, X.shape(0), novelty::FOUND), "there must be six numbers for every row");
    nb::gil_scoped_release release;
    novelty::surprises(X.shape(0), X.data(), tables, out.data());
}

void bound_join(Matrix<const double> X, Vector<const double> weight, const Arrays& arrays, Vector<double> counts, Matrix<double> Z) {
    const novelty::Tables tables = tables_of(arrays, X);
    const std::size_t n = X.shape(0);
    require(fits(weight, n) && fits(counts, tables.cells) && fits(Z, n, 2 * tables.D), "the rows do not fit weights, counts or features");
    nb::gil_scoped_release release;
    novelty::join(n, X.data(), weight.data(), tables, counts.data(), Z.data());
}

const Group group([](nb::module_& m) {
    m.def("surprises", &bound_surprises, plain, value, plain);
    m.def("join_cells", &bound_join, plain, plain, value, plain, plain);
});

}  // namespace
