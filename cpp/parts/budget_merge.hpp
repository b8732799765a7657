// Two vectors become one: the twin of kernelstream/budgets/merge.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "parts/support.hpp"

namespace ks {

// Gaussian kernel only: kernel values with z = h a + (1 - h) b follow from those with a and b.
template <class T>
struct Merge : Budget<T> {
    Merge() { this->gram = true, this->least = 2; }
    static constexpr int steps = 30;
    static constexpr double golden = 0.6180339887498949, same = 1e-10;

    static double log_of(double k) { return k > 0 ? std::max(std::log(k), -1e4) : -1e4; }
    // log of a kernel value that may have been rounded to 0
    static double log_floor(T k) { return k > 0 ? std::log(double(k)) : double(Math<T>::exp_low); }

    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        if (!S.full()) {
            S.blends.insert(S.blends.end(), {double(S.n), -1.0 - double(row.i), -1.0 - double(row.i), 1.0});
            return S.place(S.n, row, row.tau);
        }
        const std::size_t n = S.n, N = S.capacity, a = S.smallest(row);
        double *h = S.buffer.data(), *cost = h + N + 1, *logs = cost + N + 1;
        auto alpha_at = [&](int c, std::size_t j) { return j < n ? S.coefficient(c, j) : row.tau[c]; };
        auto kernel = [&](std::size_t i, std::size_t j) {  // n stands for the new row
            return double(i == j ? T(1) : i == n ? row.k[j] : j == n ? row.k[i] : S.gram[i * N + j]);
        };
        double aa = 0.0;
        for (int c = 0; c < S.C; ++c) aa += alpha_at(c, a) * alpha_at(c, a);
        for (std::size_t j = 0; j <= n; ++j) {
            double bb = 0.0, ab = 0.0;
            for (int c = 0; c < S.C; ++c) bb += alpha_at(c, j) * alpha_at(c, j), ab += alpha_at(c, a) * alpha_at(c, j);
            const double k = kernel(a, j), log_k = logs[j] = log_of(k);
            auto kept = [&](double g) {  // squared norm of the merged term
                const double k_a = exp((1 - g) * (1 - g) * log_k), k_b = exp(g * g * log_k);
                return aa * k_a * k_a + bb * k_b * k_b + 2 * ab * k_a * k_b;
            };
            double low = 0.0, high = 1.0;
            for (int step = 0; step < steps && j != a; ++step) {
                const double width = golden * (high - low), left = high - width, right = low + width;
                if (kept(left) > kept(right) * (1.0 + same)) high = right;
                else low = left;
            }
            h[j] = 0.5 * (low + high);
            cost[j] = j == a ? std::numeric_limits<double>::infinity() : aa + bb + 2 * ab * k - kept(h[j]);
        }
        const double limit = least(n + 1, cost) + same * aa;
        std::size_t b = 0;
        while (b < n && cost[b] > limit) ++b;
        if (b == a) b = a == 0 ? 1 : 0;  // no cost is a number
        const double g = h[b], log_ab = logs[b], k_a = exp((1 - g) * (1 - g) * log_ab), k_b = exp(g * g * log_ab);
        const std::size_t slot = std::min(a, b), free = std::max(a, b);
        double* coefficient = h;
        for (int c = 0; c < S.C; ++c) coefficient[c] = alpha_at(c, a) * k_a + alpha_at(c, b) * k_b;
        auto with_z = [&](T x_a, T x_b) { return T(exp(g * log_floor(x_a) + (1 - g) * log_floor(x_b) - g * (1 - g) * log_ab)); };
        auto source = [&](std::size_t j) { return j < n ? double(j) : -1.0 - double(row.i); };
        S.blends.insert(S.blends.end(), {double(slot), source(a), source(b), g});
        for (std::size_t s = row.i + 1; s < S.m; ++s) {
            T* later = S.K + s * N;
            const T fresh = S.G[row.i * S.m + s];
            later[slot] = with_z(a < n ? later[a] : fresh, b < n ? later[b] : fresh);
        }
        std::vector<T> column(n + 1);
        for (std::size_t j = 0; j <= n; ++j) column[j] = with_z(T(kernel(a, j)), T(kernel(b, j)));
        const T new_z = column[n];
        S.set(slot, coefficient);
        S.diag[slot] = T(1);
        S.owner[slot] = -1;
        S.enter(slot, column.data(), 1.0);
        if (free == n) return;
        std::copy_n(row.k, n, column.data());
        column[slot] = new_z;
        S.blends.insert(S.blends.end(), {double(free), source(n), source(n), 1.0});
        Newcomer<T> same = row;
        same.k = column.data();
        S.place(free, same, row.tau);
    }
};

}  // namespace ks
