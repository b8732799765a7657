// Corrupt cells and gaps, before columns are scaled: the twin of core/corrupt.py, which explains the rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ranges.hpp"

namespace ks::corrupt {

constexpr std::size_t recent = 2000;   // rows that tell what is usual
constexpr double spreads = 20.0, tails = 0.02, normal_tails = 4.1, normal_half = 1.349, widths = 50.0;
constexpr double absurd = 1000.0;
constexpr std::size_t repeats = 3;
inline const double none = std::ldexp(1.0, 501);  // in place of a number that is not known

// What is usual in d columns: seven numbers of each, in the rows of an array (7, d).
struct Usual {
    std::size_t d;
    double* at;
    double &median(std::size_t j) const { return at[j]; }
    double &spread(std::size_t j) const { return at[d + j]; }
    double &low(std::size_t j) const { return at[2 * d + j]; }
    double &high(std::size_t j) const { return at[3 * d + j]; }
    double &outside(std::size_t j) const { return at[6 * d + j]; }

    bool is_gap(std::size_t j, double x) const { return std::isnan(x) || x == at[4 * d + j] || x == at[5 * d + j]; }
    bool is_outside(std::size_t j, double x) const { return spread(j) > 0.0 && (x < low(j) || x > high(j)); }

    double cleaned(std::size_t j, double x) const {
        if (is_gap(j, x)) x = median(j);
        if (!is_outside(j, x)) return x;
        const double s = spread(j), end = x < low(j) ? low(j) : high(j);
        const double away = std::abs(x - end) / s;
        return away > absurd ? median(j) : end + std::copysign(s * std::log1p(away), x - end);
    }
};

// Rows in place.
template <class T>
void clean(std::size_t m, T* X, const Usual& usual) {
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < usual.d; ++j) X[i * usual.d + j] = T(usual.cleaned(j, double(X[i * usual.d + j])));
}

// The place of a row after `count` others among those kept, or `places` where it is not kept.
inline std::size_t place_of(std::size_t count, std::size_t places) {
    const std::size_t stride = (recent + places - 1) / places;
    if (count < places) return count;
    return count % stride ? places : count / stride % places;
}

// What is needed of a row, after `count` others: its cells, if it is kept (places, d), and which of them were outside.
template <class T>
void remember(const T* x, std::size_t count, const Usual& usual, double* kept, std::size_t places) {
    const std::size_t place = place_of(count, places);
    for (std::size_t j = 0; j < usual.d; ++j) {
        const double v = double(x[j]);
        if (usual.is_outside(j, v) && !usual.is_gap(j, v)) usual.outside(j) += 1.0;
        if (place < places) kept[place * usual.d + j] = std::isnan(v) ? none : v;
    }
}

// Whether a number comes often among those (sorted in the end) for which far(v).
template <class Far>
bool comes_often(std::vector<double>& v, Far far) {
    v.erase(std::partition(v.begin(), v.end(), far), v.end());
    std::sort(v.begin(), v.end());
    for (std::size_t i = repeats - 1; i < v.size(); ++i)
        if (v[i] == v[i + 1 - repeats]) return true;
    return false;
}

// Known cells, median, spread and whether one may be a code (4), of the numbers v of a column; v is used up.
inline void measure(std::vector<double>& v, double* found, std::size_t step) {
    const std::size_t n = v.size();
    const auto at = [&](std::size_t k, std::size_t first, std::size_t end) {  // those from first to end - 1 are in their places as a whole
        const auto start = v.begin();
        std::nth_element(start + std::ptrdiff_t(first), start + std::ptrdiff_t(k), start + std::ptrdiff_t(end));
        return v[k];
    };
    const std::size_t middle = n ? (n - 1) / 2 : 0;
    const double median = n ? at(middle, 0, n) : 0.0;
    double spread = 0.0, all = 0.0, odd = 0.0;
    if (double(n) >= few) {
        const auto cut = std::size_t(std::ceil(tails * double(n)));
        const std::size_t quarter = n / 4;
        spread = (at(n - 1 - quarter, middle, n) - at(quarter, 0, middle + 1)) / normal_half;
        all = (at(n - 1 - cut, n - 1 - quarter, n) - at(cut, 0, quarter + 1)) / normal_tails;
        double near = spreads * spread;
        if (spread == 0.0) {
            std::vector<double> away;
            for (const double x : v)
                if (x != median) away.push_back(std::abs(x - median));
            near = INFINITY;
            if (double(away.size()) >= few) {
                std::nth_element(away.begin(), away.begin() + std::ptrdiff_t(away.size() / 2), away.end());
                spread = away[away.size() / 2];
                near = widths * *std::min_element(away.begin(), away.end());
            }
        }
        all = std::max(spread, all);
        odd = comes_often(v, [&](double x) { return std::abs(x - median) > near; });
    }
    const double values[4] = {double(n), median, all, odd};
    for (std::size_t k = 0; k < 4; ++k) found[k * step] = values[k];
}

}  // namespace ks::corrupt
