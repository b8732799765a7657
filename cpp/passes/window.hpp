// Smoothing over the last rows: weights exp(-|x - x_i|^2/h^2) of those within 2 h, h the distance to the k-th nearest; the twin of
// kernelstream/passes/window/python.py.
#pragma once

#include <algorithm>
#include <cmath>
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

constexpr std::size_t ROWS = 4;    // of the stream that are compared with the window at once
constexpr std::size_t STRETCH = 32;  // places of the window that have a least distance of their own
constexpr std::size_t SIDE = 8;    // running sums

// Squared distances of Q rows X (Q, d) to P places of the window, far (Q, W). Every distance is one sum in the order of the columns.
template <std::size_t Q, std::size_t P>
KS_INLINE void distances_at(const Model& M, std::size_t place, const double* KS_RESTRICT X, double* KS_RESTRICT far) {
    double acc[Q][P] = {};
    for (std::size_t j = 0; j < M.d; ++j) {
        const double* KS_RESTRICT row = M.rows + j * M.W + place;
#if defined(__GNUC__)
        __builtin_prefetch(row + 2 * P);  // more runs side by side than processors follow by themselves
#endif
        KS_UNROLL
        for (std::size_t q = 0; q < Q; ++q) {
            const double x = X[q * M.d + j];
            KS_UNROLL
            for (std::size_t i = 0; i < P; ++i) {
                const double apart = x - row[i];
                acc[q][i] += apart * apart;
            }
        }
    }
    for (std::size_t q = 0; q < Q; ++q) std::copy_n(acc[q], P, far + q * M.W + place);
}

template <std::size_t Q, std::size_t P>
KS_INLINE void distances(const Model& M, std::size_t m, const double* X, double* far) {
    std::size_t i = 0;
    for (; i + P <= m; i += P) distances_at<Q, P>(M, i, X, far);
    for (; i < m; ++i) distances_at<Q, 1>(M, i, X, far);
}

// The same of two rows of the stream.
KS_INLINE double distance(std::size_t d, const double* a, const double* b) {
    double sum = 0.0;
    for (std::size_t j = 0; j < d; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
    return sum;
}

KS_INLINE double least_of_stretch(const double* far) {
    double low[STRETCH / 2];
    KS_UNROLL
    for (std::size_t k = 0; k < STRETCH / 2; ++k) low[k] = lesser(far[k], far[k + STRETCH / 2]);
    KS_UNROLL
    for (std::size_t half = STRETCH / 4; half > 0; half /= 2) {
        KS_UNROLL
        for (std::size_t k = 0; k < half; ++k) low[k] = lesser(low[k], low[k + half]);
    }
    return low[0];
}

// Those of n distances that are at most `bound` join the first `count`.
KS_INLINE std::size_t pick(std::size_t n, const double* far, double bound, std::size_t count, double* picked) {
    for (std::size_t i = 0; i < n; ++i) {
        picked[count] = far[i];
        count += far[i] <= bound;
    }
    return count;
}

// The k-th least of m distances. If k stretches have a distance that is at most some bound, then so have k distances: most of them
// need not be looked at. few (W + 1) and lows (W / STRETCH) are scratch.
KS_INLINE double kth_least(std::size_t m, std::size_t k, const double* far, double* few, double* lows) {
    const std::size_t stretches = m / STRETCH, whole = stretches * STRETCH;
    std::size_t count = m;
    k = std::min(k, m);
    if (stretches < k + 2) {
        std::copy_n(far, m, few);
    } else {
        for (std::size_t s = 0; s < stretches; ++s) few[s] = lows[s] = least_of_stretch(far + s * STRETCH);
        std::nth_element(few, few + (k - 1), few + stretches);
        const double bound = few[k - 1];
        count = 0;
        for (std::size_t s = 0; s < stretches; ++s)
            if (lows[s] <= bound) count = pick(STRETCH, far + s * STRETCH, bound, count, few);
        count = pick(m - whole, far + whole, bound, count, few);
    }
    std::nth_element(few, few + (k - 1), few + count);
    return few[k - 1];
}

// Weights v exp(-far/h^2) of the rows of the window within 2 h, else 0, in place of their distances (m). A product does what a choice
// would do, which would be a branch.
KS_INLINE void weights_of(std::size_t m, double h2, const double* KS_RESTRICT weight, double* KS_RESTRICT far) {
    const double limit = 4.0 * h2, c = -1.0 / h2;
#pragma omp simd
    for (std::size_t i = 0; i < m; ++i) {
        const double within = far[i] <= limit ? 1.0 : 0.0;
        far[i] = within * weight[i] * exp_between(c * lesser(far[i], limit));
    }
}

// Sums of weights w (m): times the values, times one minus the values (labels 1 and 0), and of all; in SIDE parts.
struct Sums {
    double with = 0.0, without = 0.0, all = 0.0;

    KS_INLINE Sums(std::size_t m, const double* KS_RESTRICT w, const double* KS_RESTRICT value) {
        double part[3][SIDE] = {};
        std::size_t i = 0;
        for (; i + SIDE <= m; i += SIDE) {
#pragma omp simd
            for (std::size_t k = 0; k < SIDE; ++k) {
                const double own = w[i + k], v = value[i + k];
                part[0][k] += own * v;
                part[1][k] += own * (1.0 - v);
                part[2][k] += own;
            }
        }
        for (; i < m; ++i) part[0][0] += w[i] * value[i], part[1][0] += w[i] * (1.0 - value[i]), part[2][0] += w[i];
        with = total(part[0]), without = total(part[1]), all = total(part[2]);
    }
    KS_INLINE static double total(const double* part) {
        return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
};

// Room for the work on ROWS rows.
struct Scratch {
    std::vector<double> far, few, lows, share;  // (ROWS, W), (W + 1), (W / STRETCH), (C)
    explicit Scratch(const Model& M) : far(ROWS * M.W), few(M.W + 1), lows(M.W / STRETCH + 1), share(M.C) {}
};

// Scores (C) from the distances (m), which are lost.
KS_INLINE void forecast(const Rule& rule, const Model& M, std::size_t m, double* far, Scratch& work, double* out) {
    const std::size_t C = M.C;
    if (!m) {
        std::fill_n(out, C, 0.0);
        return;
    }
    const double h2 = kth_least(m, rule.neighbours, far, work.few.data(), work.lows.data()) + 1e-12;
    weights_of(m, h2, M.weight, far);
    if (rule.kind < 2) {
        const Sums sums(m, far, M.value);
        if (rule.kind == 0) out[0] = sums.all > 0 ? sums.with / sums.all : M.numbers[1];
        else out[0] = std::log((sums.with + doubt) / (sums.without + doubt));
        return;
    }
    std::fill(work.share.begin(), work.share.end(), 0.0);
    for (std::size_t i = 0; i < m; ++i) work.share[std::size_t(M.value[i])] += far[i];
    double mean = 0.0;
    for (std::size_t c = 0; c < C; ++c) mean += out[c] = std::log(work.share[c] + 0.5 / double(C));
    for (std::size_t c = 0; c < C; ++c) out[c] -= mean / double(C);
}

// y (n): targets or codes of labels; null to learn nothing. scores (n, C) before each row.
KS_CLONES inline void pass(std::size_t n, const double* X, const double* y, const double* weight, const Rule& rule, Model& M,
                           double* scores) {
    Scratch work(M);
    const std::size_t d = M.d, W = M.W;
    for (std::size_t t = 0; t < n; t += ROWS) {
        const std::size_t count = std::min(ROWS, n - t), seen = std::size_t(M.numbers[0]), held = std::min(seen, W);
        double* far = work.far.data();
        if (count == ROWS) distances<ROWS, 8>(M, held, X + t * d, far);
        else
            for (std::size_t q = 0; q < count; ++q) distances<1, 32>(M, held, X + (t + q) * d, far + q * W);
        std::size_t joined = 0;
        for (std::size_t q = 0; q < count; ++q) {
            const double* x = X + (t + q) * d;
            forecast(rule, M, std::min(seen + joined, W), far + q * W, work, scores + (t + q) * M.C);
            const double importance = weight ? weight[t + q] : 1.0;
            if (!y || importance == 0.0) continue;
            const std::size_t place = (seen + joined++) % W;
            for (std::size_t later = q + 1; later < count; ++later) far[later * W + place] = distance(d, X + (t + later) * d, x);
            for (std::size_t j = 0; j < d; ++j) M.rows[j * W + place] = x[j];
            M.value[place] = y[t + q];
            M.weight[place] = importance;
            M.numbers[0] += 1.0;
            M.numbers[2] += importance;
            if (rule.kind == 0) M.numbers[1] += importance / M.numbers[2] * (y[t + q] - M.numbers[1]);
        }
    }
}

}  // namespace ks::window
