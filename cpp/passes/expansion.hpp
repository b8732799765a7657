// Kernel expansion without removal over one block, rows in order:
//   f_t = sum_j alpha_j k(s_j, x_t);  (decay, tau) = step(loss, y_t, f_t, k(x_t, x_t), t);  tau != 0: x_t joins with tau.
// In:  F (m, C) scores at the start of the block, G (m, m) = k(X, X), y (m), room = rows that may join; for the mean of all
//      functions M (m, C) = sum_j alpha_j t_j k(s_j, x), t_j the row at which s_j joined.
// Out: F holds the scores before each update; joined (q) and coefficients (q, C) the new members, decay (C) for the old ones.
#pragma once

#include <algorithm>

#include "base/center.hpp"
#include "parts/growing.hpp"
#include "parts/updates.hpp"
#include "base/vecmath.hpp"

namespace ks {

struct Block {
    std::size_t m;
    int C;
    double* F;
    double* M;             // or null
    const double* y;
    const double* weight;  // or null
    const double* u;       // uniform numbers of the rows of positive weight, or null
};

struct Members {
    std::size_t room, q;
    std::int64_t* joined;
    double* coefficients;
    double* decay;
    double* born = nullptr;  // (room) t when each joined, or null
};

// Later rows get tau k(x_i, .): column c of F (or M); g (m) is row i of G.
template <class T>
KS_CLONES void spread(std::size_t i, const Block& b, const T* KS_RESTRICT g, double tau, int c, double* F) {
    if (b.C == 1) {
#pragma omp simd
        for (std::size_t s = i + 1; s < b.m; ++s) F[s] += tau * double(g[s]);
    } else {
        for (std::size_t s = i + 1; s < b.m; ++s) F[s * b.C + c] += tau * double(g[s]);
    }
}

// Row i, of the given importance; g() gives row i of G, of which what is right of the diagonal counts. `first` is t at the start
// of the block, where u starts.
template <class Row_>
void expansion_row(const Block& b, std::size_t i, double importance, double k_xx, Row_ g, const Loss& loss, const Update& update,
                   const Growing* growing, double* memory, double* center, std::int64_t first, std::int64_t& t, Members& out,
                   double* scratch) {
    const int C = b.C;
    double *f = scratch, *decay = f + C, *tau = decay + C, *gradient = tau + C;
    const double offset = offset_of(center), age = double(std::max<std::int64_t>(t, 1));
    for (int c = 0; c < C; ++c) {
        f[c] = b.F[i * C + c];
        b.F[i * C + c] = f[c] - (b.M ? b.M[i * C + c] / age : 0.0) + offset;
    }
    if (importance == 0.0) return;
    ++t;
    if (out.q == out.room) return;
    const Row row{loss.kind == Kind::multiclass ? b.y[i] : b.y[i] - offset, f, C, k_xx, t};
    update.step(loss, row, memory, decay, tau);
    if (growing && std::any_of(tau, tau + C, [](double x) { return x != 0.0; })) {
        loss.gradient(row.y, f, C, gradient);
        growing->admit(C, tau, loss.value(row.y, f, C), gradient, k_xx, b.u ? b.u[t - 1 - first] : 0.0);
    }
    follow(center, b.y[i], importance);
    bool joins = false;
    for (int c = 0; c < C; ++c) {
        joins |= (tau[c] *= importance) != 0.0;
        if (decay[c] == 1.0) continue;
        out.decay[c] *= decay[c];
        for (std::size_t s = i + 1; s < b.m; ++s) b.F[s * C + c] *= decay[c];
        for (std::size_t q = 0; q < out.q; ++q) out.coefficients[q * C + c] *= decay[c];
    }
    if (!joins) return;
    const auto* k = g();
    for (int c = 0; c < C; ++c) {
        out.coefficients[out.q * C + c] = tau[c];
        if (tau[c] == 0.0) continue;
        spread(i, b, k, tau[c], c, b.F);
        if (b.M) spread(i, b, k, tau[c] * double(t), c, b.M);
    }
    if (out.born) out.born[out.q] = double(t);
    out.joined[out.q++] = std::int64_t(i);
}

// Returns the number of rows handled: all of them, unless `stop` ends the pass with the row that fills the room.
template <class T>
std::size_t expansion_pass(const Block& b, const T* G, const Loss& loss, const Update& update, const Growing* growing,
                           double* memory, double* center, std::int64_t t, bool stop, Members& out, double* scratch) {
    const std::int64_t first = t;
    std::fill_n(out.decay, b.C, 1.0);
    for (std::size_t i = 0; i < b.m; ++i) {
        if (stop && out.q == out.room) return i;
        expansion_row(b, i, b.weight ? b.weight[i] : 1.0, double(G[i * b.m + i]), [&] { return G + i * b.m; }, loss, update, growing,
                      memory, center, first, t, out, scratch);
    }
    return b.m;
}

}  // namespace ks
