// Arrays of kernel functions in a learned metric.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "base/arrays.hpp"
#include "base/states.hpp"
#include "passes/metric.hpp"

namespace ks {

// middle, unit, root, scales, centres by both kinds in tiles, coefficients of both, offset, whether targets are labels
using MetricFunctions = std::tuple<Vector<const double>, Vector<const double>, Array<const double>, Vector<const double>, Matrix<const double>,
                                   Matrix<const double>, Matrix<const double>, Matrix<const double>, Vector<const double>, bool>;

inline metric::Model metric_model(const MetricFunctions& functions, double* follow) {
    const auto& [middle, unit, root, scales, near, apart, A, B, offset, labels] = functions;
    constexpr std::size_t P = tile_width<double>;
    const std::size_t d = middle.shape(0), m = A.shape(1), C = A.shape(0);
    const bool full = root.ndim() == 2;
    require(unit.shape(0) == d && scales.shape(0) == d && root.size() == (full ? d * d : d), "the metric does not fit the columns");
    for (const auto& tiles : {near, apart})
        require(tiles.shape(0) == (m + P - 1) / P && (m == 0 || tiles.shape(1) == d * P), "the centres do not fit the columns");
    require(B.shape(0) == C && B.shape(1) == m && offset.shape(0) == C && (labels || C == 1), "the coefficients do not fit the centres");
    return {d, m, C, full, labels, middle.data(), unit.data(), root.data(), scales.data(), near.data(), apart.data(), A.data(), B.data(),
            offset.data(), follow};
}

}  // namespace ks
