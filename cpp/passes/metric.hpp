// Kernel functions at some rows in a learned metric, shrunk by how well they have predicted lately; the twin of
// kernelstream/passes/metric/python.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/ranges.hpp"
#include "maps/city_block.hpp"

namespace ks::metric {

constexpr double fade = 0.99;     // of what is known of the forecasts, with every row
constexpr double lately = 1000;   // rows that mean and variance of the target are of, at most
constexpr double below = 0.03;    // what is left of a probability below 0
constexpr double farthest = 1e30;  // deviations from the mean that a value may have
constexpr double squashed = 3.0;  // deviations from which it counts by its logarithm
constexpr std::size_t AT_ONCE = 256, FOLLOWED = 5;

// Rows that a function is made of. Kernel values are of type K, their sums double.
template <class K>
struct Leaf {
    std::size_t m;
    const K *near, *apart;  // m centres in tiles, by either kind
    const double *A, *B;    // (C, m): their coefficients
};

template <class K>
struct Model {
    std::size_t d, C;
    bool full, labels;              // whether root is (d, d) or (d); whether targets are labels
    const double *middle, *unit;    // (d): of the columns
    const double *root, *scales;    // M^{1/2} / L and the factors of single columns (d)
    const double *directions, *thresholds;  // (cuts, d), (cuts): of a full tree, by levels
    std::vector<Leaf<K>> leaves;    // cuts + 1
    const double* offset;           // (C)
    double* follow;                 // (5): sums of products with the targets and of squares; rows, mean and variance of the target
};

template <class K>
struct Scratch {
    std::vector<double> x, z;             // (d) each
    std::vector<K> Z, U, near, apart;     // (AT_ONCE, d) each: rows in the metric, and those of a leaf
    std::vector<double> F, G;             // (AT_ONCE, C)
    std::vector<std::size_t> leaf, which;  // (AT_ONCE): of each row, and the rows of a leaf
    Scratch(const Model<K>& M, std::size_t n)
        : x(M.d), z(M.d), Z(n * M.d), U(n * M.d), near(n * M.d), apart(n * M.d), F(n * M.C), G(n * M.C), leaf(n), which(n) {}
};

// A row in the metric: Z and U (d), and its leaf. Every sum is in the order of the columns.
template <class K>
KS_INLINE std::size_t place(const Model<K>& M, const double* row, Scratch<K>& work, K* KS_RESTRICT Z, K* KS_RESTRICT U) {
    const std::size_t d = M.d, cuts = M.leaves.size() - 1;
    double *KS_RESTRICT x = work.x.data(), *KS_RESTRICT z = work.z.data();
    for (std::size_t j = 0; j < d; ++j)
        x[j] = std::min(std::max((row[j] - M.middle[j]) / M.unit[j], -farthest), farthest);
    squash(d, x, squashed);
    for (std::size_t j = 0; j < d; ++j) U[j] = K(x[j] * M.scales[j]);
    for (std::size_t j = 0; j < d; ++j) z[j] = M.full ? 0.0 : x[j] * M.root[j];
    for (std::size_t j = 0; j < d && M.full; ++j) {
        const double* KS_RESTRICT r = M.root + j * d;
#pragma omp simd
        for (std::size_t k = 0; k < d; ++k) z[k] += x[j] * r[k];
    }
    for (std::size_t j = 0; j < d; ++j) Z[j] = K(z[j]);
    std::size_t node = 0;
    while (node < cuts) {
        double along = 0;
        for (std::size_t j = 0; j < d; ++j) along += z[j] * M.directions[node * d + j];
        node = 2 * node + 1 + (along > M.thresholds[node]);
    }
    return node - cuts;
}

// f (n, C) of at most AT_ONCE rows, a leaf at a time.
template <class K>
KS_CLONES void functions(const Model<K>& M, std::size_t n, const double* X, Scratch<K>& work, double* f) {
    const std::size_t d = M.d, C = M.C;
    for (std::size_t i = 0; i < n; ++i) work.leaf[i] = place(M, X + i * d, work, work.Z.data() + i * d, work.U.data() + i * d);
    for (std::size_t l = 0; l < M.leaves.size(); ++l) {
        const Leaf<K>& leaf = M.leaves[l];
        std::size_t count = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (work.leaf[i] != l) continue;
            std::copy_n(work.Z.data() + i * d, d, work.near.data() + count * d);
            std::copy_n(work.U.data() + i * d, d, work.apart.data() + count * d);
            work.which[count++] = i;
        }
        if (count == 0) continue;
        exponential_sums<K, 2>(count, leaf.m, d, work.near.data(), leaf.near, K(1), C, leaf.A, work.F.data());
        exponential_sums<K, 1>(count, leaf.m, d, work.apart.data(), leaf.apart, K(1), C, leaf.B, work.G.data());
        for (std::size_t k = 0; k < count; ++k)
            for (std::size_t c = 0; c < C; ++c) f[work.which[k] * C + c] = work.F[k * C + c] + work.G[k * C + c] + M.offset[c];
    }
}

inline double logarithm(double q) { return std::log((q + std::sqrt(q * q + 4 * below * below)) / 2); }

// The forecast from f (C), in place; with a target it is followed.
template <class K>
void forecast(const Model<K>& M, const double* y, double importance, double* f) {
    double* s = M.follow;
    const double mean = M.labels ? 0.0 : s[3], b = std::min(std::max(s[0] / s[1], 0.0), 1.0);
    double with = 0.0, squares = 0.0;
    for (std::size_t c = 0; c < M.C; ++c) {
        const double away = f[c] - mean;
        if (y) {
            const double target = !M.labels ? *y : (M.C == 1 ? *y > 0.5 : double(c) == *y) ? 1.0 : -1.0;
            with += away * (target - mean);
            squares += away * away;
        }
        f[c] = mean + b * away;
    }
    if (M.labels) {
        if (M.C == 1) f[0] = logarithm((1 + f[0]) / 2) - logarithm((1 - f[0]) / 2);
        else
            for (std::size_t c = 0; c < M.C; ++c) f[c] = logarithm((1 + f[c]) / 2);
    }
    if (!y || importance == 0.0) return;
    const double unit = M.labels ? double(M.C) : s[4] > 0 ? s[4] : 1.0;
    s[0] = fade * s[0] + importance * (with / unit);
    s[1] = fade * s[1] + importance * (squares / unit);
    s[2] = std::min(s[2] + 1, lately);
    if (M.labels) return;
    s[3] += (*y - s[3]) / s[2];
    s[4] += ((*y - s[3]) * (*y - s[3]) - s[4]) / s[2];
}

// y (n): targets or codes of labels; null to learn nothing. scores (n, C) before each row.
template <class K>
void pass(const Model<K>& M, std::size_t n, const double* X, const double* y, const double* weight, Scratch<K>& work, double* scores) {
    for (std::size_t start = 0; start < n; start += AT_ONCE) {
        const std::size_t stop = std::min(n, start + AT_ONCE);
        functions(M, stop - start, X + start * M.d, work, scores + start * M.C);
        for (std::size_t i = start; i < stop; ++i) forecast(M, y ? y + i : nullptr, weight ? weight[i] : 1.0, scores + i * M.C);
    }
}

}  // namespace ks::metric
