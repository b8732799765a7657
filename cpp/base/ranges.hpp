// Numbers far outside the range of all before them are taken for glitches (a -9999 that stands for "missing"): the twin of
// core/ranges.py, which explains the rule.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/vecmath.hpp"

namespace ks {

constexpr double few = 8.0;            // numbers before there is a range to speak of
constexpr double far_widths = 5.0;     // a number this many widths outside the range is far
constexpr double enough = 12.0;        // far numbers that are believed, if they come so often that
constexpr double forgiven = 1.0 / 64;  // what every other number takes away from their count does not make up for them

// Whether x lies more than some widths of the range outside of it.
KS_INLINE bool lies_outside(double x, double low, double high, double widths) {
    const double outside = std::max(low - x, x - high), width = high - low;
    return (outside > widths * width) & (width > 0.0);
}

KS_INLINE bool is_far(double x, double count, double low, double high) {
    return (count >= few) & lies_outside(x, low, high, far_widths);
}

// Numbers beyond `most` are drawn in, by their logarithms: the twin of kernelstream.core.arrays.squashed.
template <class T>
inline void squash(std::size_t n, T* x, T most) {
    for (std::size_t i = 0; i < n; ++i) {
        const T far = std::abs(x[i]);
        if (far > most) x[i] = std::copysign(most + std::log1p(far - most), x[i]);
    }
}

constexpr double look = 128.0;                  // rows after which columns are looked at, and whenever their number has doubled
constexpr double shift = 0.25, stretch = 1.5;   // deviations and factor by which a column that stays may differ
constexpr double tails_stretch = 8.0;           // the factor of one with long tails
constexpr double span = 1.5;                    // deviations that the range of n rows may have beyond log2(n)

// Moments and ranges of d columns, by which those are scaled that stay where they are, and which have long tails, each (d); see
// core/ranges.py.
struct Columns {
    double *mean, *m2, *low, *high, *doubt, *since, *middle, *unit, *tailed;
    const double* usual;  // null where far numbers may be glitches; or else (7, d), of rows that base/corrupt.hpp has cleaned
    std::array<double*, 9> all() const { return {mean, m2, low, high, doubt, since, middle, unit, tailed}; }
};

constexpr double squares = 1e100;  // numbers up to which squares and their sums are finite

// A number scaled by the moments of the rows before it, of which there are `count`, as if it were one of them. What is far counts as the
// end of the range next to it, where columns are judged.
KS_INLINE double scaled(double x, double count, bool judges, double mean, double m2, double low, double high, double since, double middle,
                        double unit) {
    if (judges && is_far(x, count, low, high)) x = x < low ? low : high;
    const bool stays = since > 0.0;
    const double deviation = stays ? unit : std::sqrt(m2 / std::max(count, 1.0));
    if (stays) mean = middle;
    if (!(deviation > 0.0)) return x == mean || count >= few ? 0.0 : std::copysign(std::sqrt(count), x - mean);
    const double u = std::min(std::max((x - mean) / deviation, -squares), squares);
    return stays ? u : u / std::sqrt(1.0 + (1.0 + u * u) / count);
}

// A row x (d), scaled.
template <class T>
KS_CLONES void scale_row(std::size_t d, const T* KS_RESTRICT x, double count, const Columns& c, T* KS_RESTRICT out) {
    const bool judges = !c.usual;
    for (std::size_t j = 0; j < d; ++j)
        out[j] = T(scaled(double(x[j]), count, judges, c.mean[j], c.m2[j], c.low[j], c.high[j], c.since[j], c.middle[j], c.unit[j]));
}

// Which columns stay where they are, since the last look or since their scale was taken.
inline void look_at(std::size_t d, double count, const Columns& c) {
    for (std::size_t j = 0; j < d; ++j) {
        const bool tailed = c.tailed[j] > 0.0;
        const double deviation = std::sqrt(c.m2[j] / count), most = tailed ? tails_stretch : stretch;
        const bool moves = std::abs(c.mean[j] - c.middle[j]) > shift * std::max(c.unit[j], deviation) ||
                           deviation > most * c.unit[j] || c.unit[j] > most * deviation;
        if (!moves && c.since[j] > 0.0) continue;
        const bool known = deviation > 0.0 && (tailed || c.high[j] - c.low[j] <= (std::log2(count) + span) * deviation);
        c.since[j] = !moves && known ? count : 0.0;
        c.middle[j] = c.mean[j];
        c.unit[j] = deviation;
    }
}

// Rows scaled in place, each by what is known of the rows before it, which it then joins (Welford); a glitch counts as the end of the
// range next to it. Returns the new count.
template <class T>
KS_CLONES double standardize(std::size_t m, std::size_t d, T* X, const double* weight, double count, const Columns& c) {
    double *KS_RESTRICT mean = c.mean, *KS_RESTRICT m2 = c.m2, *KS_RESTRICT low = c.low, *KS_RESTRICT high = c.high,
           *KS_RESTRICT doubt = c.doubt;
    const double *since = c.since, *middle = c.middle, *unit = c.unit;
    const double* usual = c.usual;
    const bool judges = !usual;
    for (std::size_t i = 0; i < m; ++i) {
        T* KS_RESTRICT x = X + i * d;
        const bool counts = !weight || weight[i] > 0;
        const double before = count;
        if (counts) count += 1.0;
        if (counts && before == 0.0)
            for (std::size_t j = 0; j < d; ++j) low[j] = high[j] = double(x[j]);
        for (std::size_t j = 0; j < d; ++j) {
            double v = double(x[j]);
            x[j] = T(scaled(v, before, judges, mean[j], m2[j], low[j], high[j], since[j], middle[j], unit[j]));
            if (!counts) continue;
            const bool far = judges ? is_far(v, before, low[j], high[j])
                                    : usual[d + j] > 0.0 && (v < usual[2 * d + j] || v > usual[3 * d + j]);
            const bool glitch = far && (!judges || doubt[j] < enough);
            if (glitch) v = v < low[j] ? low[j] : high[j];
            doubt[j] = glitch ? doubt[j] + 1.0 : far ? 0.0 : std::max(doubt[j] - forgiven, 0.0);
            low[j] = std::min(low[j], v);
            high[j] = std::max(high[j], v);
            const double delta = v - mean[j];
            mean[j] += delta / count;
            m2[j] += delta * (v - mean[j]);
        }
        const auto rows = std::uint64_t(count);
        if (counts && count >= look && (rows & (rows - 1)) == 0) look_at(d, count, c);
    }
    return count;
}

}  // namespace ks
