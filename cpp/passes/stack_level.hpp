// Combination of learners by second-order recursions on their forecasts; the twin of kernelstream/passes/stack/python.py, which has
// the formulas.
//
// A Level turns N inputs into one forecast: a weight vector for each of G memories (factors by which the past fades), mixed by how
// well each has predicted. The first level has the members' forecasts as inputs, the second one the first level's forecast and what
// happened in the last rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/center.hpp"
#include "base/four.hpp"
#include "base/vecmath.hpp"

namespace ks::stack {

constexpr std::size_t G = 3;  // and one lane for the function of a batch alone, where there is one
constexpr double memory[4] = {1.0, 0.9995, 0.995, 1.0};

// The matrices A (G, N, N) of the memories, by their lower triangles, side by side.
class Curvature {
  public:
    explicit Curvature(std::size_t n) : N_(n), A_(2 * n * (n + 1)), L_(2 * n * (n + 1)), x_(4 * n) {}

    void load(const double* A) {
        for (std::size_t i = 0, at = 0; i < N_; ++i)
            for (std::size_t j = 0; j <= i; ++j, at += 4) {
                for (std::size_t k = 0; k < G; ++k) A_[at + k] = A[(k * N_ + i) * N_ + j];
                A_[at + G] = 0.0;
            }
    }
    void store(double* A) const {
        for (std::size_t i = 0, at = 0; i < N_; ++i)
            for (std::size_t j = 0; j <= i; ++j, at += 4)
                for (std::size_t k = 0; k < G; ++k) A[(k * N_ + i) * N_ + j] = A_[at + k];
    }

    KS_INLINE void fade() {
        const Four part = load_four(memory);
        for (std::size_t at = 0; at < A_.size(); at += 4) store_four(&A_[at], part * load_four(&A_[at]));
    }
    // A <- A + h z z', z (N) the same for all memories.
    KS_INLINE void add(const Four& h, const double* z) {
        for (std::size_t i = 0, at = 0; i < N_; ++i) {
            const Four hz = h * four(z[i]);
            for (std::size_t j = 0; j <= i; ++j, at += 4) store_four(&A_[at], load_four(&A_[at]) + hz * four(z[j]));
        }
    }
    // A <- A + h v v', v (N, 4).
    KS_INLINE void add_lanes(const Four& h, const double* v) {
        for (std::size_t i = 0, at = 0; i < N_; ++i) {
            const Four hv = h * load_four(v + 4 * i);
            for (std::size_t j = 0; j <= i; ++j, at += 4) store_four(&A_[at], load_four(&A_[at]) + hv * load_four(v + 4 * j));
        }
    }

    // x = (A + diag(ridge))^-1 b for all memories, b (N, 4), by Cholesky; `fine` says which have such an inverse.
    KS_INLINE const double* solve(const double* ridge, const double* b, bool* fine) {
        for (int k = 0; k < 4; ++k) fine[k] = true;
        std::size_t row = 0;  // of the triangle L, whose diagonal holds inverses
        for (std::size_t i = 0; i < N_; row += 4 * ++i) {
            double *Li = &L_[row], *other = L_.data();
            Four y = load_four(b + 4 * i), pivot = load_four(&A_[row + 4 * i]) + four(ridge[i]);
            for (std::size_t j = 0; j < i; other += 4 * ++j) {
                Four s = load_four(&A_[row + 4 * j]);
                for (std::size_t k = 0; k < j; ++k) s = s - load_four(Li + 4 * k) * load_four(other + 4 * k);
                s = s * load_four(other + 4 * j);
                store_four(Li + 4 * j, s);
                pivot = pivot - s * s;
                y = y - s * load_four(&x_[4 * j]);
            }
            double pivots[4];
            store_four(pivots, pivot);
            for (int k = 0; k < 4; ++k)
                if (!(pivots[k] > 0.0)) fine[k] = false, pivots[k] = 1.0;
            const Four inverse = inverse_root(load_four(pivots));
            store_four(Li + 4 * i, inverse);
            store_four(&x_[4 * i], y * inverse);
        }
        for (std::size_t i = N_; i-- > 0;) {
            row -= 4 * (i + 1);
            const Four x = load_four(&x_[4 * i]) * load_four(&L_[row + 4 * i]);
            store_four(&x_[4 * i], x);
            for (std::size_t j = 0; j < i; ++j) store_four(&x_[4 * j], load_four(&x_[4 * j]) - x * load_four(&L_[row + 4 * j]));
        }
        return x_.data();
    }

  private:
    std::size_t N_;
    std::vector<double> A_, L_, x_;  // (N (N + 1) / 2, 4) twice, (N, 4)
};

// Shares of M forecasters with the given log weights: (1 - share) of what they have earned, the rest spread evenly.
KS_INLINE void shares(std::size_t M, const double* logs, double share, double* out) {
    const double top = *std::max_element(logs, logs + M);
    double total = 0.0;
    for (std::size_t k = 0; k < M; ++k) total += out[k] = std::exp(logs[k] - top);
    for (std::size_t k = 0; k < M; ++k) out[k] = (1.0 - share) * out[k] / total + share / double(M);
}

// The same where the weights are likelihoods. Between the rows of a pass they are kept as they are, and their logarithms, which are
// what a state has, only at its end.
struct Earned {
    double* logs;  // (M)
    std::size_t M;
    double weight[4] = {};
    bool current = true;  // whether the logarithms are those of the weights

    Earned(double* l, std::size_t m) : logs(l), M(m) {}

    void load() {
        const double top = *std::max_element(logs, logs + M);
        for (std::size_t k = 0; k < M; ++k) weight[k] = std::exp(logs[k] - top);
        current = true;
    }
    void store() {
        for (std::size_t k = 0; k < M && !current; ++k) logs[k] = std::log(weight[k]);
        current = true;
    }
    KS_INLINE void parts(double share, double* out) const {
        double total = 0.0;
        for (std::size_t k = 0; k < M; ++k) total += weight[k];
        const double factor = (1.0 - share) / total;
        for (std::size_t k = 0; k < M; ++k) out[k] = factor * weight[k] + share / double(M);
    }
    // After a row to which they gave these likelihoods.
    KS_INLINE void learn(const double* part, const double* likelihood, double importance) {
        if (importance == 1.0) {
            for (std::size_t k = 0; k < M; ++k) weight[k] = part[k] * likelihood[k];
            current = false;
            return;
        }
        for (std::size_t k = 0; k < M; ++k) logs[k] = std::log(part[k]) + importance * std::log(likelihood[k]);
        load();
    }
};

// Weights w (G, N) of the memories, side by side, (N, 4).
inline void load_lanes(std::size_t N, const double* w, double* lanes) {
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < G; ++k) lanes[4 * i + k] = w[k * N + i];
        lanes[4 * i + G] = 0.0;
    }
}
// The same of K memories: the fourth is the last input but the constant.
inline void load_weights(std::size_t K, std::size_t N, const double* w, double* lanes) {
    load_lanes(N, w, lanes);
    if (K > G) lanes[4 * (N - 2) + G] = 1.0;
}
inline void store_lanes(std::size_t N, const double* lanes, double* w) {
    for (std::size_t i = 0; i < N; ++i)
        for (std::size_t k = 0; k < G; ++k) w[k * N + i] = lanes[4 * i + k];
}

// The weights of the inputs after every `stride` rows that count, of which there were t.
struct Notes {
    std::int64_t t = 0, stride = 0;
    double* out = nullptr;  // (notes, inputs), or nobody asks

    template <class Level> KS_INLINE void after(Level& level, std::size_t inputs) {
        if (!out || ++t % stride) return;
        level.tell_weights();
        level.mean_weights(out);
        out += inputs;
    }
};

}  // namespace ks::stack
