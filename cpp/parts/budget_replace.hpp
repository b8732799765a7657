// A vector gives way to the row, which takes over its part: the twin of kernelstream/budgets/replace.py.
#pragma once

#include <algorithm>

#include "parts/support.hpp"

namespace ks {

// How much of a vector the new row takes over, k / k(x, x); nothing if it is 0, as all its kernel values are.
inline double share_of(double k, double k_xx) { return k_xx > nothing ? k / k_xx : 0.0; }

// cost_j *= (diag_j - k_j^2 / k_xx)+ / 2, the part of vector j that the new row cannot take over; returns the first slot within
// `tie` of the least.
template <class T>
KS_CLONES std::size_t cheapest(std::size_t n, const T* KS_RESTRICT k, const T* KS_RESTRICT diag, double k_xx, double* KS_RESTRICT cost) {
    const double inverse = share_of(1.0, k_xx);
#pragma omp simd
    for (std::size_t j = 0; j < n; ++j) {
        const double left = double(diag[j]) - double(k[j]) * (double(k[j]) * inverse);
        cost[j] *= 0.5 * (left > 0.0 ? left : 0.0);
    }
    const double limit = least(n, cost) + tie;
    std::size_t r = 0;
    while (r + 1 < n && cost[r] > limit) ++r;
    return r;
}

template <class T>
struct Replace : Budget<T> {
    bool neighbour;  // whether the nearest vector, of which S.slots has one for every slot, takes part
    explicit Replace(bool n) : neighbour(n) { this->gram = n, this->least = n ? 2 : 1; }

    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        if (!S.full()) return S.place(S.n, row, row.tau);
        double *cost = S.buffer.data(), *on_new = cost + S.n, *on_nearest = on_new + S.n, *coefficient = on_nearest + S.n;
        S.squares(cost);
        std::size_t r = 0;
        if (neighbour) {
            if (S.slots.empty()) find_all(S);
            for (std::size_t j = 0; j < S.n; ++j) cost[j] *= 0.5 * std::max(0.0, project(S, row, j, on_new[j], on_nearest[j]));
            const double limit = *std::min_element(cost, cost + S.n) + tie;
            while (r + 1 < S.n && cost[r] > limit) ++r;
        } else {
            r = cheapest(S.n, row.k, S.diag, row.k_xx, cost);
            on_new[r] = share_of(double(row.k[r]), row.k_xx);
        }
        for (int c = 0; c < S.C; ++c) {
            coefficient[c] = S.coefficient(c, r) * on_new[r] + row.tau[c];
            if (neighbour) S.alpha[c * S.capacity + S.slots[r]] += T(double(S.alpha[c * S.capacity + r]) * on_nearest[r]);
        }
        S.place(r, row, coefficient);
        if (neighbour) changed(S, r);
    }

    // Weights of the projection of slot j on the new row and on j's neighbour; returns the residual.
    double project(const Support<T>& S, const Newcomer<T>& row, std::size_t j, double& on_new, double& on_nearest) const {
        const std::size_t n = S.slots[j];
        const double k_t = double(row.k[j]), k_n = double(S.gram[j * S.capacity + n]), nn = double(S.diag[n]), tn = double(row.k[n]);
        const double det = row.k_xx * nn - tn * tn;
        if (det > novelty * row.k_xx * nn) {
            on_new = (k_t * nn - k_n * tn) / det;
            on_nearest = (k_n * row.k_xx - k_t * tn) / det;
        } else {
            on_new = share_of(k_t, row.k_xx);
            on_nearest = 0.0;
        }
        return double(S.diag[j]) - k_t * on_new - k_n * on_nearest;
    }

    static T distance(const Support<T>& S, std::size_t i, std::size_t j) {
        return S.diag[i] + S.diag[j] - 2 * S.gram[i * S.capacity + j];
    }
    static void find(Support<T>& S, std::size_t j) {
        std::size_t best = j == 0 ? 1 : 0;
        for (std::size_t i = best + 1; i < S.n; ++i)
            if (i != j && distance(S, j, i) < distance(S, j, best)) best = i;
        S.slots[j] = best;
    }
    static void find_all(Support<T>& S) {
        S.slots.resize(S.n);
        for (std::size_t j = 0; j < S.n; ++j) find(S, j);
    }
    static void changed(Support<T>& S, std::size_t r) {  // slot r holds another vector
        for (std::size_t j = 0; j < S.n; ++j) {
            if (j == r || S.slots[j] == r) {
                find(S, j);
            } else {
                const T now = distance(S, j, r), before = distance(S, j, S.slots[j]);
                if (now < before || (now == before && r < S.slots[j])) S.slots[j] = r;
            }
        }
    }
};

}  // namespace ks
