// Budget strategies that remove a vector when the set is full: the twins of kernelstream/budgets/removal.py.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "parts/support.hpp"

namespace ks {

template <class T>
struct RemoveRandom : Budget<T> {
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        S.place(S.full() ? std::size_t(row.u * double(S.capacity)) : S.n, row, row.tau);
    }
};

// Place of the largest |a_j|, n numbers.
template <class T>
KS_CLONES std::size_t largest_at(std::size_t n, const T* a) {
    T top = 0;
#pragma omp simd reduction(max : top)
    for (std::size_t j = 0; j < n; ++j) {
        const T size = std::abs(a[j]);
        top = top > size ? top : size;
    }
    std::size_t j = 0;
    while (j + 1 < n && std::abs(a[j]) < top) ++j;
    return j;
}

template <class T>
struct BOGD : Budget<T> {
    double limit;
    bool oldest;
    BOGD(double l, bool o) : limit(l), oldest(o) { this->least = 2, this->n_memory = 1; }
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        if (!S.full()) return S.place(S.n, row, row.tau);
        if (oldest) {
            double& turn = S.memory[0];
            const std::size_t r = turn >= 0 && turn < double(S.capacity) ? std::size_t(turn) : 0;
            turn = double((r + 1) % S.capacity);
            return S.place(r, row, row.tau);
        }
        std::vector<std::size_t>& largest = S.slots;  // of every output: where its largest coefficient is
        const bool fresh = largest.empty();
        if (fresh) largest.resize(S.C);
        const std::size_t slot = std::size_t(row.u * double(S.capacity));
        S.shrink(double(S.capacity) / double(S.capacity - 1));
        S.place(slot, row, row.tau);
        double top = 0.0;
        for (int c = 0; c < S.C; ++c) {  // a common factor changes no order: one coefficient is new
            const T* a = S.alpha_of(c);
            if (fresh || largest[c] == slot) largest[c] = largest_at(S.n, a);
            else if (std::abs(a[slot]) > std::abs(a[largest[c]])) largest[c] = slot;
            top = std::max(top, std::abs(double(a[largest[c]])) * S.scale[c]);
        }
        if (top > limit) S.shrink(limit / top);
    }
};

template <class T>
struct Forgetron : Budget<T> {
    Forgetron() { this->n_memory = 3, this->gram = true; }
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        double &Q = S.memory[0], &M = S.memory[1], &oldest = S.memory[2];
        M += 1.0;
        if (!S.full()) return S.place(S.n, row, row.tau);
        const std::size_t r = oldest >= 0 && oldest < double(S.capacity) ? std::size_t(oldest) : 0;
        int y = 0;  // class of the oldest vector: the only one that was moved up
        for (int c = 1; c < S.C; ++c)
            if (S.coefficient(c, r) > S.coefficient(y, r)) y = c;
        const double a_r = S.coefficient(y, r), delta = std::abs(a_r);
        const double f_r = double(dot(S.n, S.alpha_of(y), S.gram + r * S.capacity)) * S.scale[y] + row.tau[y] * double(row.k[r]);
        const double mu = row.kind == Kind::binary ? sign(a_r) * f_r : row.kind == Kind::regression ? std::abs(f_r) : f_r;
        const double a = delta * delta - 2 * delta * mu, b = 2 * delta, c = Q - 15.0 / 32.0 * M;
        const double phi = a + b + c <= 0 ? 1.0 : -2 * c / (b + std::sqrt(b * b - 4 * a * c));
        Q += delta * phi * delta * phi + 2 * delta * phi * (1 - phi * mu);
        oldest = double((r + 1) % S.capacity);
        S.place(r, row, row.tau);
        S.shrink(phi);
    }
};

template <class T>
struct RemoveSmallest : Budget<T> {
    RemoveSmallest() { this->n_memory = 1; }
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        if (!S.full()) return S.place(S.n, row, row.tau);
        double& turn = S.memory[0];
        const std::size_t r = S.smallest(row, turn >= 0 && turn < double(S.capacity) ? std::size_t(turn) : 0);
        if (r >= S.capacity) return;
        turn = double((r + 1) % S.capacity);
        S.place(r, row, row.tau);
    }
};

template <class T>
struct RemoveRedundant : Budget<T> {
    RemoveRedundant() { this->gram = true, this->scores = true; }
    static double margin(const Support<T>& S, std::size_t j) {  // of support vector j without its own term
        auto rest = [&](int c) {
            return (S.scores[c * S.capacity + j] - double(S.alpha[c * S.capacity + j]) * double(S.diag[j])) * S.scale[c];
        };
        if (S.C == 1) return sign(S.coefficient(0, j)) * rest(0);
        int y = 0;
        for (int c = 1; c < S.C; ++c)
            if (S.coefficient(c, j) > S.coefficient(y, j)) y = c;
        double rival = -std::numeric_limits<double>::infinity();
        for (int c = 0; c < S.C; ++c)
            if (c != y) rival = std::max(rival, rest(c));
        return rest(y) - rival;
    }
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        std::size_t slot = S.n;
        for (int c = 0; c < S.C; ++c)
            for (std::size_t j = 0; j < S.n; ++j) S.scores[c * S.capacity + j] += row.tau[c] / S.scale[c] * double(row.k[j]);
        double* own = S.buffer.data();
        for (int c = 0; c < S.C; ++c) own[c] = row.f[c] + row.tau[c] * row.k_xx;
        if (S.full()) {
            slot = 0;
            double best = margin(S, 0);
            for (std::size_t j = 1; j < S.n; ++j) {
                const double here = margin(S, j);
                if (here > best) best = here, slot = j;
            }
            const T* g = S.gram + slot * S.capacity;
            for (int c = 0; c < S.C; ++c) {
                const double removed = double(S.alpha[c * S.capacity + slot]);
                own[c] -= removed * S.scale[c] * double(row.k[slot]);
                for (std::size_t j = 0; j < S.n; ++j) S.scores[c * S.capacity + j] -= removed * double(g[j]);
            }
        }
        S.place(slot, row, row.tau);
        for (int c = 0; c < S.C; ++c) S.scores[c * S.capacity + slot] = own[c] / S.scale[c];
    }
};

}  // namespace ks
