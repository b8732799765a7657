// Smoothing over the last rows: weights exp(-|x - x_i|^2/h^2) of those within 2 h, h the distance to the k-th nearest; the twin of
// kernelstream/passes/window/python.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::window {

struct Rule {
    int kind;  // 0: numbers, 1: two labels, 2: more
    std::size_t neighbours;
};

struct Model {
    std::size_t d, W, C;  // columns, room for rows, outputs
    double* rows;         // (d, W): a column of it is a row of the stream
    double* value;        // (W): targets, or codes of labels
    double* weight;       // (W)
    double* numbers;      // (3): rows so far; sums for the mean of the target
};

constexpr double doubt = 0.3;  // weight that each of two labels has beforehand

// Squared distances of x to the first m places, and h^2.
KS_INLINE double distances(const Model& M, std::size_t m, std::size_t k, const double* x, double* far, double* nearest) {
    std::fill_n(far, m, 0.0);
    std::size_t j = 0;
    for (; j + 4 <= M.d; j += 4) {  // four columns at once: the sums are read and written less often
        const double *KS_RESTRICT r0 = M.rows + j * M.W, *KS_RESTRICT r1 = r0 + M.W, *KS_RESTRICT r2 = r1 + M.W, *KS_RESTRICT r3 = r2 + M.W;
        const double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
#pragma omp simd
        for (std::size_t i = 0; i < m; ++i) {
            const double a = x0 - r0[i], b = x1 - r1[i], c = x2 - r2[i], e = x3 - r3[i];
            far[i] += (a * a + b * b) + (c * c + e * e);
        }
    }
    for (; j < M.d; ++j) {
        const double* KS_RESTRICT row = M.rows + j * M.W;
        const double at = x[j];
#pragma omp simd
        for (std::size_t i = 0; i < m; ++i) far[i] += (at - row[i]) * (at - row[i]);
    }
    k = std::min(k, m);  // a heap of the k least, the largest of them in front
    std::copy_n(far, k, nearest);
    std::make_heap(nearest, nearest + k);
    for (std::size_t i = k; i < m; ++i)
        if (far[i] < nearest[0]) {
            std::pop_heap(nearest, nearest + k);
            nearest[k - 1] = far[i];
            std::push_heap(nearest, nearest + k);
        }
    return nearest[0] + 1e-12;
}

KS_INLINE void forecast(const Rule& rule, const Model& M, std::size_t m, const double* x, std::vector<double>& work, double* out) {
    const std::size_t C = M.C;
    if (!m) {
        std::fill_n(out, C, 0.0);
        return;
    }
    double *far = work.data(), *nearest = far + M.W, *share = nearest + rule.neighbours;
    const double h2 = distances(M, m, rule.neighbours, x, far, nearest);
    const std::size_t labels = rule.kind == 1 ? 2 : C;
    std::fill_n(share, labels + 1, 0.0);
    // those within 2 h side by side, then all exponentials at once
    std::int32_t* who = reinterpret_cast<std::int32_t*>(share + labels + 1);
    std::size_t near = 0;
    for (std::size_t i = 0; i < m; ++i) {
        who[near] = std::int32_t(i);
        far[near] = far[i];
        near += far[i] <= 4.0 * h2;
    }
    exp_scaled(near, far, 1.0 / h2, false);
    for (std::size_t k = 0; k < near; ++k) {
        const std::int32_t i = who[k];
        const double w = M.weight[i] * far[k];
        if (rule.kind == 0) share[0] += w * M.value[i], share[1] += w;
        else share[std::size_t(M.value[i])] += w;
    }
    if (rule.kind == 0) {
        out[0] = share[1] > 0 ? share[0] / share[1] : M.numbers[1];
    } else if (rule.kind == 1) {
        out[0] = std::log((share[1] + doubt) / (share[0] + doubt));
    } else {
        double mean = 0.0;
        for (std::size_t c = 0; c < C; ++c) mean += out[c] = std::log(share[c] + 0.5 / double(C));
        for (std::size_t c = 0; c < C; ++c) out[c] -= mean / double(C);
    }
}

// y (n): targets or codes of labels; null to learn nothing. scores (n, C) before each row.
KS_CLONES inline void pass(std::size_t n, const double* X, const double* y, const double* weight, const Rule& rule, Model& M,
                           double* scores) {
    std::vector<double> work(M.W + rule.neighbours + M.C + 3 + M.W / 2 + 2);
    for (std::size_t t = 0; t < n; ++t) {
        const std::size_t seen = std::size_t(M.numbers[0]), m = std::min(seen, M.W);
        forecast(rule, M, m, X + t * M.d, work, scores + t * M.C);
        const double importance = weight ? weight[t] : 1.0;
        if (!y || importance == 0.0) continue;
        const std::size_t place = seen % M.W;
        for (std::size_t j = 0; j < M.d; ++j) M.rows[j * M.W + place] = X[t * M.d + j];
        M.value[place] = y[t];
        M.weight[place] = importance;
        M.numbers[0] += 1.0;
        M.numbers[2] += importance;
        if (rule.kind == 0) M.numbers[1] += importance / M.numbers[2] * (y[t] - M.numbers[1]);
    }
}

}  // namespace ks::window
