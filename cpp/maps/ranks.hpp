// Heights along straight lines between knots, as numpy.interp has them.
#pragma once

#include <algorithm>
#include <cstddef>

namespace ks {

// At x, for `knots` places that do not decrease and as many heights.
template <class T>
double height_at(T x, std::size_t knots, const float* places, const float* heights) {
    if (!(x > places[0])) return heights[0];
    if (!(x < places[knots - 1])) return heights[knots - 1];
    const std::size_t i = std::size_t(std::upper_bound(places, places + knots, x) - places);  // the first place beyond x
    const double left = places[i - 1], slope = (double(heights[i]) - heights[i - 1]) / (places[i] - left);
    return slope * (double(x) - left) + heights[i - 1];
}

}  // namespace ks
