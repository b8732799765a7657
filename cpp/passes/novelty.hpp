// How unusual rows are: the leverage of their features, the surprise of their cells, and the shares of rows that were less unusual; the
// twin of kernelstream/passes/novelty/python.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::novelty {

constexpr std::size_t MEMBERS = 4, FOUND = MEMBERS + 2, NODES = 1025;
constexpr double reach = 2.0236, unseen = 0.5, unseen_cells = 10, step = 1.0 / 64, bend = 0.9, squares = 1e100;
constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;

struct Tables {
    std::size_t d, K, R, k, D, cells;           // columns, projections, grids, columns of a grid, frequencies
    const double *scale, *projections;          // (2, d), (d, K)
    const std::int32_t* columns;                // (R, k): -1 for none
    const double *offset, *density;             // (R, k)
    const std::uint64_t* salt;                  // (R)
    const std::int32_t* ends;                   // (3): of the grids of a member
    const double* counts;                       // (cells)
    double mass;
    const double *frequencies, *factor;         // (d, D), (2 D, 2 D) upper triangular
    const double *shares, *tails;               // (5, NODES), (5, 2)
};

struct Row {
    std::vector<double> v, angles, z, projected;  // scaled columns and projections (d + K), (D), (2 D) each
    std::vector<std::size_t> cell;                // (R)
    explicit Row(const Tables& T) : v(T.d + T.K), angles(T.D), z(2 * T.D), projected(2 * T.D), cell(T.R) {}
};

// out (m) = x (n)' A (n, m), of an upper triangular matrix where `upper`.
KS_INLINE void product(std::size_t n, std::size_t m, const double* x, const double* A, bool upper, double* KS_RESTRICT out) {
    std::fill_n(out, m, 0.0);
    for (std::size_t i = 0; i < n; ++i) axpy(upper ? m - i : m, x[i], A + i * m + (upper ? i : 0), out + (upper ? i : 0));
}

// The scaled columns of a row, its projections and cells.
KS_INLINE void place(const Tables& T, const double* x, Row& row) {
    double* v = row.v.data();
    for (std::size_t j = 0; j < T.d; ++j) {
        const double u = std::min(std::max((x[j] - T.scale[j]) / T.scale[T.d + j], -squares), squares), far = std::abs(u);
        v[j] = std::isnan(x[j]) ? 0.0 : far > reach ? std::copysign(reach + std::log1p(far - reach), u) : u;
    }
    product(T.d, T.K, v, T.projections, false, v + T.d);
    for (std::size_t r = 0; r < T.R; ++r) {
        std::uint64_t h = T.salt[r];
        for (std::size_t at = r * T.k; at < (r + 1) * T.k && T.columns[at] >= 0; ++at) {
            const double bin = std::floor((v[T.columns[at]] + T.offset[at]) * T.density[at]);
            const auto number = std::uint64_t(std::int64_t(std::min(std::max(bin, -1e15), 1e15)) + 12345);
            h = (h ^ number) * golden;
            h ^= h >> 31;
        }
        row.cell[r] = std::size_t(h >> 7) & (T.cells - 1);
    }
}

KS_INLINE void features(const Tables& T, Row& row, double* z) {
    product(T.d, T.D, row.v.data(), T.frequencies, false, row.angles.data());
    cos_sin(T.D, row.angles.data(), 1.0 / std::sqrt(double(T.D)), z, z + T.D);
}

// The share of rows with less than a surprise, by the table of a member.
inline double share(double v, const double* shares, const double* tail) {
    if (v > tail[0]) return 1.0 - (1.0 - bend) * std::exp(-(v - tail[0]) / tail[1]);
    const double at = std::min(std::max(v, 0.0), step * (NODES - 1)) / step;
    const std::size_t k = std::min(std::size_t(at), NODES - 2);
    return shares[k] + (at - double(k)) * (shares[k + 1] - shares[k]);
}

// Surprises and scores (n, 6) of rows X (n, d).
KS_CLONES void surprises(std::size_t n, const double* X, const Tables& T, double* out) {
    Row row(T);
    const double whole = T.mass + unseen * unseen_cells;
    for (std::size_t i = 0; i < n; ++i, out += FOUND) {
        place(T, X + i * T.d, row);
        features(T, row, row.z.data());
        product(2 * T.D, 2 * T.D, row.z.data(), T.factor, true, row.projected.data());
        double length = 0.0, mean = 0.0;
        for (double p : row.projected) length += p * p;
        out[0] = std::log(length);
        std::size_t r = 0;
        for (std::size_t m = 1; m < MEMBERS; ++m) {
            const std::size_t start = r, end = std::size_t(T.ends[m - 1]);
            double sum = 0.0;
            for (; r < end; ++r) sum -= std::log((T.counts[row.cell[r]] + unseen) / whole);
            out[m] = sum / double(end - start);
        }
        for (std::size_t m = 0; m < MEMBERS; ++m) mean += share(out[m], T.shares + m * NODES, T.tails + 2 * m);
        out[MEMBERS] = -std::log(std::max(1.0 - mean / MEMBERS, std::exp(-step * (NODES - 1))));
        out[MEMBERS + 1] = share(out[MEMBERS], T.shares + MEMBERS * NODES, T.tails + 2 * MEMBERS);
    }
}

// Counts (cells) of rows X (n, d) with weights (n), added in place; their features Z (n, 2 D).
KS_CLONES void join(std::size_t n, const double* X, const double* weight, const Tables& T, double* counts, double* Z) {
    Row row(T);
    for (std::size_t i = 0; i < n; ++i) {
        place(T, X + i * T.d, row);
        for (std::size_t cell : row.cell) counts[cell] += weight[i];
        features(T, row, Z + 2 * i * T.D);
    }
}

}  // namespace ks::novelty
