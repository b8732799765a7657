// Learners in the kernel expansion over the same block of rows, with kernel values from one pool of vectors. Either each learner
// takes all rows in turn, on threads of their own; or all learners take a row, and their weights decide which of them learn it.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "passes/budget.hpp"
#include "passes/expansion.hpp"
#include "parts/hedge.hpp"
#include "base/parallel.hpp"
#include "passes/pool.hpp"

namespace ks {

// What the passes over rows need of a learner. Its arrays are those of its state.
template <class T>
struct PoolMember {
    PoolKernel kernel;
    const Loss* loss;
    const Update* update;
    const Budget<T>* budget;  // or, where it is null,
    const Growing* growing;
    Support<T> S;
    std::int32_t* index;   // (capacity)
    const double* born;    // (capacity) or null: predict with the mean of all functions
    double *memory, *center;
    const double* u;       // random numbers of the rows of positive weight from `first` on, or null
    std::int64_t first, t;
    double* F;             // (rows, C)
    Members joining;       // of a growing set
    RowNumbers numbers;

    // of the block
    std::vector<T> k;
    T k_xx = 0;
    std::vector<double> M, scratch;
    std::vector<std::int64_t> owner;

    // Before the rows from `start` on: a set that only grows starts with the scores of all of them.
    void begin(const PoolBlock<T>& block, std::size_t start, std::size_t rows) {
        const std::size_t C = S.C;
        k.resize(std::max(S.capacity, block.m));
        if (budget) return;
        std::fill_n(F, rows * C, 0.0);
        if (born) M.assign(rows * C, 0.0);
        std::vector<T> aged(born ? C * S.n : 0);
        for (std::size_t c = 0; c < C && born; ++c)
            for (std::size_t j = 0; j < S.n; ++j) aged[c * S.n + j] = S.alpha[c * S.capacity + j] * T(born[j]);
        for (std::size_t r = 0; r < rows; ++r) {
            pool_scores(block, kernel, start + r, S.n, index, int(C), S.alpha, S.capacity, F + r * C);
            if (born) pool_scores(block, kernel, start + r, S.n, index, int(C), aged.data(), S.n, M.data() + r * C);
            for (std::size_t c = 0; c < C; ++c) {
                F[r * C + c] *= S.scale[c];
                if (born) M[r * C + c] *= S.scale[c];
            }
        }
        scratch.resize(4 * C);
        std::fill_n(joining.decay, C, 1.0);
    }

    // Row r of those from `start` on.
    void learn(const PoolBlock<T>& block, std::size_t start, std::size_t rows, std::size_t r, const double* y, double importance) {
        const std::size_t i = start + r;
        k_xx = T(kernel.self(double(block.norms[i])));
        if (budget) {  // a block of one row: what is in the set later does not concern it
            pool_values(block, kernel, i, S.n, index, k.data());
            S.m = 1, S.K = k.data(), S.G = &k_xx, S.newcomer = std::int32_t(block.size + i);
            budget_row(S, *budget, 0, y[r], importance, u && importance != 0.0 ? u[t - first] : 0.0, memory, center, *loss, *update, t,
                       numbers, F + r * S.C);
            return;
        }
        const Block b{rows, S.C, F, born ? M.data() : nullptr, y, nullptr, u};
        const auto later = [&] {  // kernel values with the rows that come after
            pool_among(block, kernel, i, i + 1, rows - r - 1, k.data() + r + 1);
            return static_cast<const T*>(k.data());
        };
        expansion_row(b, r, importance, double(k_xx), later, *loss, *update, growing, memory, center, first, t, joining, scratch.data());
    }
};

// Every learner learns the rows from `start` on; weights (learners, rows) or null.
template <class T>
void pool_pass(const PoolBlock<T>& block, std::size_t start, std::size_t rows, const double* y, const double* weights,
               std::vector<PoolMember<T>>& members, int threads) {
    std::atomic<std::size_t> next{0};
    parallel(threads, [&](int) {
        for (std::size_t k; (k = next.fetch_add(1)) < members.size();) {
            members[k].begin(block, start, rows);
            for (std::size_t r = 0; r < rows; ++r) members[k].learn(block, start, rows, r, y, weights ? weights[k * rows + r] : 1.0);
        }
    });
}

// Stochastic updates: learner k is drawn if its chance (rows, learners) is below (1 - smoothing) theta_k / max theta + smoothing, and then
// learns the row if it is able (learners) to. With only_drawn the row counts for the weights of those drawn alone.
// F (learners, rows, C) has room for the scores of the learners; scores (rows, C) are those of the whole. Returns t.
template <class T>
std::int64_t pool_hedge_pass(const PoolBlock<T>& block, std::size_t start, std::size_t rows, int C, const double* y, const double* weight,
                             const double* chances, const bool* able, double smoothing, bool only_drawn,
                             std::vector<PoolMember<T>>& members, int threads, const double* F, Hedge& hedge, std::int64_t t,
                             History& history, double* range, double* scores) {
    const std::size_t m = members.size();
    const auto drawn = std::make_unique<bool[]>(m);
    std::atomic<std::size_t> next{0};
    parallel(threads, [&](int) {
        for (std::size_t k; (k = next.fetch_add(1)) < m;) members[k].begin(block, start, rows);
    });
    for (std::size_t r = 0; r < rows; ++r) {
        const double importance = weight ? weight[r] : 1.0;
        for (std::size_t k = 0; k < m; ++k) {
            drawn[k] = chances[r * m + k] < (1 - smoothing) * hedge.relative(k) + smoothing;
            members[k].learn(block, start, rows, r, y, drawn[k] && able[k] ? importance : 0.0);
        }
        t = hedge_row(F, rows, r, C, y[r], importance, only_drawn ? drawn.get() : nullptr, hedge, t, history, range, scores + r * C);
    }
    return t;
}

}  // namespace ks
