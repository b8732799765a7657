// Detectors of changes, a block of 32 rows at a time: the loops of passes/monitor/python.py, which explains them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::monitor {

constexpr std::size_t BLOCK = 32, FIRST = 4 * BLOCK, PER_SIZE = 5, BUCKETS = 256, LEAST = 16;
constexpr double RIDGE = 0.02;

struct Bucket {
    double rows, sum, squares;
};

// Join the two oldest of a size wherever there are too many; returns how many buckets are left.
inline std::size_t joined(Bucket* buckets, std::size_t used) {
    for (double size = BLOCK;; size *= 2) {
        std::size_t same = 0, at = 0;
        for (std::size_t i = used; i-- > 0;)
            if (buckets[i].rows == size) ++same, at = i;
        if (same <= PER_SIZE) return used;
        Bucket &a = buckets[at], &b = buckets[at + 1];
        a = {a.rows + b.rows, a.sum + b.sum, a.squares + b.squares};
        std::copy(buckets + at + 2, buckets + used, buckets + at + 1);
        --used;
    }
}

// Buckets to drop, 0 for none, negative when the mean has fallen; and the rows after the cut.
inline std::pair<std::ptrdiff_t, std::int64_t> cut(const Bucket* buckets, std::size_t used, double delta) {
    if (used < 2) return {0, 0};
    Bucket all{};
    for (std::size_t i = 0; i < used; ++i) all.rows += buckets[i].rows, all.sum += buckets[i].sum, all.squares += buckets[i].squares;
    const double n = all.rows, mean = all.sum / n, variance = std::max(all.squares / n - mean * mean, 0.0);
    const double log = std::log(2.0 * std::log(n) / delta);
    double old = 0.0, sum = 0.0, best = 0.0, rows = 0.0;
    std::ptrdiff_t dropped = 0;
    for (std::size_t i = 0; i + 1 < used; ++i) {
        old += buckets[i].rows, sum += buckets[i].sum;
        const double rest = n - old, rise = (all.sum - sum) / rest - sum / old, inverse = 1.0 / old + 1.0 / rest;
        const double excess = std::abs(rise) - std::sqrt(2.0 * inverse * variance * log) - 2.0 / 3.0 * inverse * log;
        if (excess > best) best = excess, rows = rest, dropped = std::ptrdiff_t(i + 1) * (rise > 0.0 ? 1 : -1);
    }
    return {dropped, std::int64_t(rows)};
}

// buckets (256), used, first (2), block (32): rows since the mean rose, or 0.
inline std::int64_t adwin(Bucket* buckets, std::int64_t& used, double* first, const double* block, double delta) {
    if (first[1] < double(FIRST)) {
        for (std::size_t i = 0; i < BLOCK; ++i) first[0] += block[i];
        first[1] += double(BLOCK);
        return 0;
    }
    const double usual = std::max(first[0] / first[1], 1e-300);
    Bucket fresh{double(BLOCK), 0.0, 0.0};
    for (std::size_t i = 0; i < BLOCK; ++i) {
        const double x = block[i] / (block[i] + usual);
        fresh.sum += x, fresh.squares += x * x;
    }
    std::size_t n = std::size_t(used);
    buckets[n] = fresh;
    n = joined(buckets, n + 1);
    const auto [dropped, rows] = cut(buckets, n, delta);
    if (dropped > 0) n = 0, first[0] = first[1] = 0.0;
    if (dropped < 0) {
        std::copy(buckets - dropped, buckets + n, buckets);
        n -= std::size_t(-dropped);
    }
    std::fill(buckets + n, buckets + BUCKETS, Bucket{});
    used = std::int64_t(n);
    return dropped > 0 ? rows : 0;
}

// v'S^-1 v of a symmetric positive S (k, k), given by its upper triangle: S = L D L', whose rows are taken off one by one.
KS_INLINE double whitened_square(std::size_t k, double* KS_RESTRICT S, double* KS_RESTRICT v) {
    double square = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
        const double *row = S + j * k, inverse = 1.0 / row[j];
        square += v[j] * v[j] * inverse;
        for (std::size_t i = j + 1; i < k; ++i) {
            const double part = row[i] * inverse;
            double* later = S + i * k;
#pragma omp simd
            for (std::size_t l = i / 8 * 8; l < k; ++l) later[l] -= part * row[l];  // what is left of the diagonal is not used
            v[i] -= part * v[j];
        }
    }
    return square;
}

// out (k, k) <- Z'Z of Z (32, k), the upper triangle and what is beside it in tiles of TILE columns; then the whole by symmetry.
KS_INLINE void products(std::size_t k, const double* KS_RESTRICT Z, double* KS_RESTRICT out) {
    constexpr std::size_t TILE = 16;
    for (std::size_t a = 0; a < k; ++a) {
        for (std::size_t start = a / TILE * TILE; start < k; start += TILE) {
            double acc[TILE] = {};
            const std::size_t count = std::min(TILE, k - start);
            if (count == TILE) {
                for (std::size_t i = 0; i < BLOCK; ++i) {
                    const double z = Z[i * k + a], *row = Z + i * k + start;
                    KS_UNROLL
                    for (std::size_t b = 0; b < TILE; ++b) acc[b] += z * row[b];
                }
            } else {
                for (std::size_t i = 0; i < BLOCK; ++i)
                    for (std::size_t b = 0; b < count; ++b) acc[b] += Z[i * k + a] * Z[i * k + start + b];
            }
            std::copy_n(acc, count, out + a * k + start);
        }
    }
    for (std::size_t a = 1; a < k; ++a)
        for (std::size_t b = 0; b < a; ++b) out[a * k + b] = out[b * k + a];
}

// W (d, h), reference (1 + k + k k), last (blocks, 1 + k + k k), k = 2 h; X (32, d): statistic and its second degrees of freedom.
// H is h where it is known beforehand, else 0.
template <class T, std::size_t H>
KS_CLONES std::array<double, 2> two_sample(std::size_t d, std::size_t given, std::size_t blocks, const double* KS_RESTRICT W,
                                           double* reference, double* last, const T* KS_RESTRICT X) {
    const std::size_t h = H ? H : given, k = 2 * h, size = 1 + k + k * k;
    std::vector<double> room(BLOCK * (h + k) + size + k * k + k);
    double *angles = room.data(), *Z = angles + BLOCK * h, *window = Z + BLOCK * k, *S = window + size, *v = S + k * k;
    for (std::size_t i = 0; i < BLOCK; ++i) {
        double* angle = angles + i * h;
        for (std::size_t j = 0; j < d; ++j) axpy(h, double(X[i * d + j]), W + j * h, angle);
        cos_sin(h, angle, 1.0, Z + i * k, Z + i * k + h);
    }
    axpy(size, 1.0, last, reference);
    std::copy(last + size, last + blocks * size, last);
    double* fresh = last + (blocks - 1) * size;
    fresh[0] = double(BLOCK);
    std::fill_n(fresh + 1, k, 0.0);
    for (std::size_t i = 0; i < BLOCK; ++i) axpy(k, 1.0, Z + i * k, fresh + 1);
    products(k, Z, fresh + 1 + k);
    if (last[0] == 0.0 || reference[0] < double(LEAST * BLOCK)) return {0.0, 0.0};
    for (std::size_t b = 0; b < blocks; ++b) axpy(size, 1.0, last + b * size, window);
    const double n = reference[0], m = window[0], scale = 1.0 / (n + m - 2.0);
    const double *r = reference + 1, *w = window + 1;
    for (std::size_t a = 0; a < k; ++a) {
        const double ra = r[a] / n, wa = w[a] / m, *rr = r + k + a * k, *ww = w + k + a * k;
        v[a] = ra - wa;
        double* row = S + a * k;
#pragma omp simd
        for (std::size_t b = 0; b < k; ++b) row[b] = scale * (rr[b] + ww[b] - ra * r[b] - wa * w[b]);
        row[a] += RIDGE;
    }
    const double rest = n + m - double(k) - 1.0;
    const double square = n * m / (n + m) * whitened_square(k, S, v);
    return {square * rest / (double(k) * (n + m - 2.0)), rest};
}

}  // namespace ks::monitor
