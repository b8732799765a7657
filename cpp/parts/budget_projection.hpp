// Rows or vectors are projected on the others: the twins of kernelstream/budgets/projection.py.
#pragma once

#include <algorithm>
#include <cmath>

#include "parts/support.hpp"

namespace ks {

// v <- L^-1 v, of which the first numbers are known, and v <- L'^-1 v, L (n, n) lower triangular, rows N apart.
inline void forward_substitute(std::size_t known, std::size_t n, std::size_t N, const double* L, double* v) {
    for (std::size_t i = known; i < n; ++i) v[i] = (v[i] - dot(i, L + i * N, v)) / L[i * N + i];
}
inline void back_substitute(std::size_t n, std::size_t N, const double* L, double* v) {
    for (std::size_t i = n; i-- > 0;) {
        v[i] /= L[i * N + i];
        axpy(i, -v[i], L + i * N, v);
    }
}

// out = A x for a symmetric A (n, n), rows N apart, of which half is read: a large one takes as long as the reading.
template <class T>
KS_CLONES inline void gram_product(std::size_t n, std::size_t N, const T* A, const double* KS_RESTRICT x, double* KS_RESTRICT out) {
    std::fill_n(out, n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        const T* KS_RESTRICT a = A + i * N;
        const double own = x[i];
        double sum = double(a[i]) * own;
#pragma omp simd reduction(+ : sum)
        for (std::size_t j = i + 1; j < n; ++j) {
            sum += double(a[j]) * x[j];
            out[j] += double(a[j]) * own;
        }
        out[i] += sum;
    }
}

// a += s d
template <class T>
KS_CLONES inline void add_multiple(std::size_t n, double s, const double* KS_RESTRICT d, T* KS_RESTRICT a) {
#pragma omp simd
    for (std::size_t j = 0; j < n; ++j) a[j] += T(s * d[j]);
}

// L^-1 k of row i into v, which may have the first numbers already.
template <class T>
void solve_lower(const Support<T>& S, std::size_t i, std::size_t known, double* v) {
    const T* k = S.K + i * S.capacity;
    std::copy(k + known, k + S.n, v + known);
    forward_substitute(known, S.n, S.capacity, S.factor, v);
}

// What is pending becomes coefficients of the support vectors.
template <class T>
void settle(Support<T>& S) {
    for (int c = 0; c < S.C; ++c) {
        double* pending = S.pending.data() + c * S.capacity;
        back_substitute(S.n, S.capacity, S.factor, pending);
        add_multiple(S.n, 1.0, pending, S.alpha_of(c));
    }
}

// Size of Projectron++'s step on a margin error; 0 where it does not pay.
inline double margin_step(double loss, double p, double k_xx, double budget) {
    if (p <= novelty * k_xx) return 0.0;
    const double U = 0.25 * std::sqrt((budget + 1) / std::log(budget + 1)), tau = std::min(loss / p, 1.0);
    return tau * (2 * loss - tau * p - 2 * U * std::sqrt(std::max(0.0, k_xx - p))) >= 0 ? tau : 0.0;
}

template <class T>
struct Projectron : Budget<T> {
    bool margins;   // Projectron++, with
    double budget;  // most vectors
    explicit Projectron(bool m, double b = 0.0) : margins(m), budget(b) { this->restless = m, this->factor = true; }

    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        const std::size_t n = S.n, N = S.capacity;
        double *buffer = S.buffer.data(), *product = buffer + N, *step = product + N, *own = S.solution_of(row.i);
        double *v = own && !S.fixed ? own : buffer, *d = !S.fixed ? v : own ? own : product;
        const bool acts = std::any_of(row.tau, row.tau + S.C, [](double x) { return x != 0.0; });
        if (!acts && (!margins || !(row.value > 0 && row.value < 1) || n == 0)) return;
        const bool waits = !S.pending.empty();
        if (S.fixed) std::copy_n(row.k, n, v);
        else if (!waits) solve_lower(S, row.i, own ? S.known : 0, v);
        if (d == product) gram_product(n, N, S.fixed, v, product);
        const double p = dot(n, d, v), residual = row.k_xx - p;
        if (acts && !S.full() && residual > novelty * row.k_xx) {
            std::copy_n(v, n, S.factor + n * N);
            S.factor[n * N + n] = std::sqrt(residual);
            return S.place(n, row, row.tau);
        }
        const double size = acts ? 1.0 : margin_step(row.value, p, row.k_xx, budget);
        if (size == 0.0) return;
        for (int c = 0; c < S.C; ++c) step[c] = acts ? row.tau[c] : -size * row.gradient[c];
        if (!S.fixed && !waits) back_substitute(n, N, S.factor, v);
        for (int c = 0; c < S.C; ++c) {
            const double multiple = step[c] / S.scale[c];
            if (multiple == 0.0) continue;
            if (waits) add_multiple(n, multiple, d, S.pending.data() + c * N);
            else add_multiple(n, multiple, d, S.alpha_of(c));
        }
    }
};

// w = Q k (n) and d += Q'w, one row of Q after the other.
KS_CLONES inline void through_basis(std::size_t n, std::size_t N, const double* Q, const double* k, double* w, double* d) {
    for (std::size_t i = 0; i < n; ++i) {
        w[i] = dot(n, Q + i * N, k);
        axpy(n, w[i], Q + i * N, d);
    }
}

template <class T>
struct Project : Budget<T> {
    static constexpr double refresh = 100, again = 0.5, distinct = 1e-6;
    bool take_smallest;
    explicit Project(bool s) : take_smallest(s) { this->n_memory = 1, this->gram = true, this->basis = true; }

    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        const std::size_t n = S.n, N = S.capacity;
        double* Q = S.basis;
        const std::size_t r0 = S.full() && take_smallest ? S.smallest(row) : n;
        double *d = S.buffer.data(), *a = d + N + 1, *k = a + N + 1, *w = k + N + 1;
        // coefficients d of the row's projection, and its squared distance
        for (std::size_t j = 0; j < n; ++j) k[j] = double(row.k[j]);
        std::fill_n(d, n, 0.0);
        through_basis(n, N, Q, k, w, d);
        double residual = row.k_xx - dot(n, w, w);
        if (residual < again * row.k_xx) {
            gram_product(n, N, S.gram, d, a);
            for (std::size_t j = 0; j < n; ++j) k[j] -= a[j];
            through_basis(n, N, Q, k, a, d);
            residual -= dot(n, w, a);
        }
        if (residual <= distinct * row.k_xx || (S.full() && take_smallest && r0 == n)) {
            for (int c = 0; c < S.C; ++c) add_multiple(n, row.tau[c] / S.scale[c], d, S.alpha_of(c));
            return;
        }
        // the new row's function in the basis: d turned into its coefficients, and `height` for the row itself
        const double height = 1.0 / std::sqrt(residual);
        double* own = d;
        for (std::size_t j = 0; j < n; ++j) own[j] *= -height;
        if (!S.full()) {
            std::copy_n(own, n, Q + n * N);
            Q[n * N + n] = height;
            S.place(n, row, row.tau);
        } else {
            drop(S, row, r0, own, height, a, k, w);
        }
        S.memory[0] += 1.0;
        S.stop = S.memory[0] >= refresh;
    }

    // The vector r, or the cheapest, leaves for the new row. a, k and w are scratch (N + 1).
    void drop(Support<T>& S, const Newcomer<T>& row, std::size_t r, const double* own, double height, double* a, double* k, double* w) const {
        const std::size_t n = S.n;
        double* Q = S.basis;
        if (!take_smallest) {
            double *cost = k, *diagonal = w;  // of the inverse Gram matrix
            S.squares(cost);
            for (std::size_t j = 0; j < n; ++j) diagonal[j] = own[j] * own[j];
            for (std::size_t i = 0; i < n; ++i) add_squares(n, 1.0, Q + i * n, diagonal);
            for (std::size_t j = 0; j < n; ++j) cost[j] /= diagonal[j];
            r = std::min_element(cost, cost + n) - cost;
        }
        double* g = w;  // what the functions have of r; its last number belongs to the new row's function
        for (std::size_t i = 0; i < n; ++i) g[i] = Q[i * n + r];
        g[n] = own[r];
        // column r of the inverse Gram matrix of support set and new row together
        for (std::size_t j = 0; j < n; ++j) a[j] = g[n] * own[j];
        for (std::size_t i = 0; i < n; ++i) axpy(n, g[i], Q + i * n, a);
        const double a_new = g[n] * height, a_r = a[r];
        double* coefficient = S.buffer.data() + 4 * (n + 1);
        for (int c = 0; c < S.C; ++c) {
            const double share = S.coefficient(c, r) / a_r;
            add_multiple(n, -share / S.scale[c], a, S.alpha_of(c));
            coefficient[c] = row.tau[c] - share * a_new;
        }
        // the reflection that turns g into the last unit vector: I - v v'/(v'v/2), v = g and at the end more
        const double size = std::copysign(std::sqrt(a_r), g[n]), half = a_r + size * g[n], last = a_new + size * height;
        for (std::size_t j = 0; j < n; ++j) a[j] += size * own[j];
        for (std::size_t i = 0; i < n; ++i) {
            const double share = g[i] / half;
            axpy(n, -share, a, Q + i * n);
            Q[i * n + r] = -share * last;
        }
        S.place(r, row, coefficient);
    }
};

}  // namespace ks
