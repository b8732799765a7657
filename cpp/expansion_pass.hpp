// Kernel expansion without removal over one block, rows in order:
//   f_t = sum_j alpha_j k(s_j, x_t);  (decay, tau) = step(loss, y_t, f_t, k(x_t, x_t), t);  tau != 0: x_t joins with tau.
// In:  F (m, C) scores at the start of the block, G (m, m) = k(X, X), y (m), room = rows that may join.
// Out: F holds the scores before each update; joined (q) and coefficients (q, C) the new members.
#pragma once

#include "updates.hpp"
#include "vecmath.hpp"

namespace ks {

struct Joined {
    std::size_t consumed, q;
    double decay;
};

template <class T>
KS_CLONES Joined expansion_pass(std::size_t m, int C, double* F, const T* G, const double* y, const double* weight,
                                const Loss& loss, const Update& update, double* memory, double* center,
                                std::int64_t t, std::size_t room, std::int64_t* joined, double* coefficients, double* scratch) {
    double *decay = scratch, *tau = scratch + C;
    Joined out{m, 0, 1.0};
    for (std::size_t i = 0; i < m; ++i) {
        if (out.q == room) {
            out.consumed = i;
            break;
        }
        const double importance = weight ? weight[i] : 1.0, offset = center ? center[1] : 0.0;
        if (importance == 0.0) {
            for (int c = 0; c < C; ++c) F[i * C + c] += offset;
            continue;
        }
        ++t;
        update.step(loss, Row{y[i] - offset, F + i * C, C, double(G[i * m + i]), t}, memory, decay, tau);
        for (int c = 0; c < C; ++c) F[i * C + c] += offset;
        if (center) {
            center[0] += importance;
            center[1] += importance * (y[i] - center[1]) / center[0];
        }
        if (decay[0] != 1.0) {
            out.decay *= decay[0];
            scale((m - i - 1) * C, decay[0], F + (i + 1) * C);
            scale(out.q * C, decay[0], coefficients);
        }
        bool joins = false;
        for (int c = 0; c < C; ++c) joins |= (tau[c] *= importance) != 0.0;
        if (!joins) continue;
        joined[out.q] = std::int64_t(i);
        for (int c = 0; c < C; ++c) {
            coefficients[out.q * C + c] = tau[c];
            if (tau[c] == 0.0) continue;
            for (std::size_t s = i + 1; s < m; ++s) F[s * C + c] += tau[c] * double(G[i * m + s]);
        }
        ++out.q;
    }
    return out;
}

}  // namespace ks
