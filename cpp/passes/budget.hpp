// Kernel expansion under a budget over one block, rows in order:
//   f_t = sum_j alpha_j k(s_j, x_t);  (decay, tau) = step(loss, y_t, f_t, k(x_t, x_t), t);  f <- decay f;  absorb (x_t, tau).
// In:  K (m, capacity) = k(X, S), G (m, m) = k(X, X), y (m), u (m) uniform numbers for the rows of positive weight.
// Out: F (m, C) scores before each update; owner and blends say which slots hold other vectors now.
#pragma once

#include "parts/budgets.hpp"
#include "base/center.hpp"
#include "parts/updates.hpp"

namespace ks {

struct Position {
    std::size_t row;  // next row of the block
    std::int64_t t;   // rows of positive weight so far
};

template <class T>
KS_CLONES void scores_of(const Support<T>& S, std::size_t i, double* f) {
    for (int c = 0; c < S.C; ++c) {
        double sum = double(dot(S.n, S.alpha_of(c), S.K + i * S.capacity));
        if (!S.pending.empty()) sum += dot(S.n, S.pending.data() + c * S.capacity, S.solution_of(i));
        if (S.Z) sum += double(dot(S.P, S.w + c * S.P, S.Z + i * S.P));
        f[c] = sum * S.scale[c];
    }
}

// Numbers (C) of the row being learned.
struct RowNumbers {
    std::vector<double> f, decay, tau, gradient;
    explicit RowNumbers(int C) : f(C), decay(C), tau(C), gradient(C) {}
};

// Row i of the block: its scores, and unless its importance is 0, what it does to the support set. `u` is its random number.
template <class T>
void budget_row(Support<T>& S, const Budget<T>& budget, std::size_t i, double y, double importance, double u, double* memory, double* center,
                const Loss& loss, const Update& update, std::int64_t& t, RowNumbers& row, double* F) {
    const int C = S.C;
    double *f = row.f.data(), *decay = row.decay.data(), *tau = row.tau.data();
    const double offset = offset_of(center);
    if (!S.pending.empty()) solve_lower(S, i, S.known, S.solution_of(i));
    scores_of(S, i, f);
    for (int c = 0; c < C; ++c) F[c] = f[c] + offset;
    if (importance == 0.0) return;
    const double k_xx = double(S.G[i * S.m + i]);
    const double target = loss.kind == Kind::multiclass ? y : y - offset;
    update.step(loss, Row{target, f, C, k_xx, t + 1}, memory, decay, tau);
    double value = 0.0;
    if (budget.restless) {
        value = loss.value(target, f, C);
        loss.gradient(target, f, C, row.gradient.data());
    }
    bool acts = budget.restless;
    for (int c = 0; c < C; ++c) {
        if (decay[c] != 1.0) {
            S.shrink(c, decay[c]);
            f[c] *= decay[c];
        }
        acts |= (tau[c] *= importance) != 0.0;
    }
    if (acts) budget.absorb(S, Newcomer<T>{i, S.K + i * S.capacity, k_xx, f, tau, u, loss.kind, value, row.gradient.data()});
    ++t;
    follow(center, y, importance);
}

// `first` is t at the start of the block, where u starts. Stops early when the strategy asks for it.
template <class T>
void budget_pass(Support<T>& S, const Budget<T>& budget, const double* y, const double* weight, const double* u, double* memory,
                 double* center, const Loss& loss, const Update& update, std::int64_t first, Position& at, double* F) {
    RowNumbers numbers(S.C);
    for (; at.row < S.m && !S.stop; ++at.row) {
        const std::size_t i = at.row;
        const double importance = weight ? weight[i] : 1.0;
        budget_row(S, budget, i, y[i], importance, u && importance != 0.0 ? u[at.t - first] : 0.0, memory, center, loss, update, at.t,
                   numbers, F + i * S.C);
    }
    if (!S.pending.empty()) settle(S);
}

}  // namespace ks
