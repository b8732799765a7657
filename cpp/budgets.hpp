// Budget strategies: the twins of kernelstream/budgets, found by name. Each absorbs one row into the support set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "losses.hpp"
#include "vecmath.hpp"

namespace ks {

constexpr double novelty = 1e-10;  // share of k(x, x) below which a residual counts as 0
constexpr double tie = 1e-9;       // costs this close are equal
constexpr double equal = 1e-5;     // relative difference up to which two terms are of the same size

// The row being learned.
template <class T>
struct Newcomer {
    std::size_t i;      // position in the block
    const T* k;         // (n) kernel values with the support vectors
    double k_xx;
    const double* f;    // (C) score before the update, after the decay
    const double* tau;  // (C) coefficients the update gives the row
    double u;           // its uniform random number
    Kind kind;
    double value;            // loss and
    const double* gradient;  // (C) its derivative, for restless strategies
};

// out_j += s a_j^2
template <class T>
KS_CLONES void add_squares(std::size_t n, double s, const T* KS_RESTRICT a, double* KS_RESTRICT out) {
#pragma omp simd
    for (std::size_t j = 0; j < n; ++j) out[j] += s * double(a[j]) * double(a[j]);
}

// The support vectors while a block is learned: f = sum_j scale alpha_j k(s_j, .), slots 0 to n - 1 in use.
template <class T>
struct Support {
    std::size_t m, capacity, n;
    int C;
    T* K;              // (m, capacity): a slot that changes gets its new column for the later rows
    const T* G;        // (m, m)
    T* alpha;          // (C, capacity)
    double* scale;     // (C)
    T* diag;           // (capacity)
    double* memory;    // numbers of the strategy
    T* gram;           // (capacity, capacity) or null
    double* inverse;   // (capacity, capacity) inverse Gram matrix, or null
    double* factor;    // (capacity, capacity) lower Cholesky factor of the Gram matrix, or null
    const double* fixed;    // (capacity, capacity) inverse Gram matrix that will not change any more, or null
    const double* solved;   // (rows, capacity) K^-1 k of the block's rows that were expected to act
    const std::int64_t* solution;  // (m) which of them is a row's, -1 for none
    double* scores;    // (C, capacity) scores of the support vectors without `scale`, or null
    const T* Z;        // (m, P) random features of the block, or null
    std::size_t P;
    T* w;              // (C, P) without `scale`
    T* z;              // (capacity, P) features of the support vectors
    std::int64_t* owner;  // (capacity) block row that took the slot, -1 for none
    std::vector<double> blends;  // vectors made by merging, in order: slot, a, b, h; a block row i counts as -1 - i
    std::vector<double> buffer;  // 4 (capacity + 1) numbers
    std::int32_t* places = nullptr;  // (capacity) where a pool of vectors has those of the slots, and
    std::int32_t newcomer = -1;      // where it has the row being learned

    bool full() const { return n == capacity; }
    T* alpha_of(int c) const { return alpha + c * capacity; }
    double coefficient(int c, std::size_t j) const { return double(alpha[c * capacity + j]) * scale[c]; }

    void shrink(int c, double factor) {
        scale[c] *= factor;
        if (scale[c] > 1e-6 && scale[c] < 1e6) return;
        ks::scale(capacity, T(scale[c]), alpha_of(c));
        if (scores) ks::scale(capacity, scale[c], scores + c * capacity);
        if (w) ks::scale(P, T(scale[c]), w + c * P);
        scale[c] = 1.0;
    }
    void shrink(double factor) {
        for (int c = 0; c < C; ++c) shrink(c, factor);
    }

    void set(std::size_t slot, const double* coefficient) {
        for (int c = 0; c < C; ++c) alpha[c * capacity + slot] = T(coefficient[c] / scale[c]);
    }

    void place(std::size_t slot, const Newcomer<T>& row, const double* coefficient) {
        if (slot == n) ++n;
        set(slot, coefficient);
        diag[slot] = T(row.k_xx);
        for (std::size_t s = row.i + 1; s < m; ++s) K[s * capacity + slot] = G[row.i * m + s];
        owner[slot] = std::int64_t(row.i);
        if (places) places[slot] = newcomer;
        if (gram) enter(slot, row.k, row.k_xx);
    }

    // Row and column `slot` of the Gram matrix: k (n) with the others, k_xx with itself.
    void enter(std::size_t slot, const T* k, double k_xx) {
        std::memcpy(gram + slot * capacity, k, n * sizeof(T));
        for (std::size_t j = 0; j < n; ++j) gram[j * capacity + slot] = k[j];
        gram[slot * capacity + slot] = T(k_xx);
    }

    // ||alpha_j||^2 of every slot into out (n).
    void squares(double* out) const {
        std::fill_n(out, n, 0.0);
        for (int c = 0; c < C; ++c) add_squares(n, scale[c] * scale[c], alpha_of(c), out);
    }

    // Slot of the smallest term of f; n when that is the new row itself.
    std::size_t smallest(const Newcomer<T>& row) {
        squares(buffer.data());
        for (std::size_t j = 0; j < n; ++j) buffer[j] *= double(diag[j]);
        const double limit = least(n, buffer.data()) * (1.0 + equal);
        std::size_t r = 0;
        while (buffer[r] > limit) ++r;
        double own = 0.0;
        for (int c = 0; c < C; ++c) own += row.tau[c] * row.tau[c];
        return buffer[r] <= own * row.k_xx * (1.0 + equal) ? r : n;
    }
};

// v <- L^-1 v and v <- L'^-1 v, L (n, n) lower triangular, rows N apart.
inline void forward_substitute(std::size_t n, std::size_t N, const double* L, double* v) {
    for (std::size_t i = 0; i < n; ++i) v[i] = (v[i] - dot(i, L + i * N, v)) / L[i * N + i];
}
inline void back_substitute(std::size_t n, std::size_t N, const double* L, double* v) {
    for (std::size_t i = n; i-- > 0;) {
        v[i] /= L[i * N + i];
        axpy(i, -v[i], L + i * N, v);
    }
}

// y = A x for a symmetric A (n, n), of which the lower triangle is read: every number once, and used twice, four rows at a time.
KS_CLONES inline void symmetric_product(std::size_t n, const double* A, const double* KS_RESTRICT x, double* KS_RESTRICT y) {
    std::fill_n(y, n, 0.0);
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double* KS_RESTRICT a = A + i * n;
        const double* KS_RESTRICT b = a + n;
        const double* KS_RESTRICT c = b + n;
        const double* KS_RESTRICT d = c + n;
        const double xa = x[i], xb = x[i + 1], xc = x[i + 2], xd = x[i + 3];
        double sa = 0.0, sb = 0.0, sc = 0.0, sd = 0.0;
#pragma omp simd reduction(+ : sa, sb, sc, sd)
        for (std::size_t j = 0; j < i; ++j) {
            sa += a[j] * x[j];
            sb += b[j] * x[j];
            sc += c[j] * x[j];
            sd += d[j] * x[j];
            y[j] += (a[j] * xa + b[j] * xb) + (c[j] * xc + d[j] * xd);
        }
        y[i] += sa + a[i] * xa + b[i] * xb + c[i] * xc + d[i] * xd;
        y[i + 1] += sb + b[i] * xa + b[i + 1] * xb + c[i + 1] * xc + d[i + 1] * xd;
        y[i + 2] += sc + c[i] * xa + c[i + 1] * xb + c[i + 2] * xc + d[i + 2] * xd;
        y[i + 3] += sd + d[i] * xa + d[i + 1] * xb + d[i + 2] * xc + d[i + 3] * xd;
    }
    for (; i < n; ++i) {
        const double* a = A + i * n;
        for (std::size_t j = 0; j < i; ++j) {
            y[i] += a[j] * x[j];
            y[j] += a[j] * x[i];
        }
        y[i] += a[i] * x[i];
    }
}

// Size of Projectron++'s step on a margin error; 0 where it does not pay.
inline double margin_step(double loss, double p, double k_xx, double budget) {
    if (p <= novelty * k_xx) return 0.0;
    const double U = 0.25 * std::sqrt((budget + 1) / std::log(budget + 1)), tau = std::min(loss / p, 1.0);
    return tau * (2 * loss - tau * p - 2 * U * std::sqrt(std::max(0.0, k_xx - p))) >= 0 ? tau : 0.0;
}

template <class T>
struct Budget {
    bool restless = false;  // wants to see rows that the update leaves alone
    bool stop = false;  // set when the caller must look after the strategy's arrays before the next row
    virtual ~Budget() = default;
    virtual void absorb(Support<T>& S, const Newcomer<T>& row) = 0;
};

template <class T>
struct RemoveRandom : Budget<T> {
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
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
    std::vector<std::size_t> largest;  // slot of the largest coefficient of every output; kept while a block lasts
    explicit BOGD(double l) : limit(l) {}
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        if (!S.full()) return S.place(S.n, row, row.tau);
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
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        double &Q = S.memory[0], &M = S.memory[1], &oldest = S.memory[2];
        M += 1.0;
        if (!S.full()) return S.place(S.n, row, row.tau);
        const std::size_t r = std::size_t(oldest);
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
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        const std::size_t r = S.full() ? S.smallest(row) : S.n;
        if (r < S.capacity) S.place(r, row, row.tau);
    }
};

template <class T>
struct RemoveRedundant : Budget<T> {
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
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
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

// cost_j *= (diag_j - k_j^2 / k_xx)+ / 2, the part of vector j that the new row cannot take over; returns the first slot within
// `tie` of the least.
template <class T>
KS_CLONES std::size_t cheapest(std::size_t n, const T* KS_RESTRICT k, const T* KS_RESTRICT diag, double k_xx, double* KS_RESTRICT cost) {
    const double inverse = 1.0 / k_xx;
#pragma omp simd
    for (std::size_t j = 0; j < n; ++j) {
        const double left = double(diag[j]) - double(k[j]) * (double(k[j]) * inverse);
        cost[j] *= 0.5 * (left > 0.0 ? left : 0.0);
    }
    const double limit = least(n, cost) + tie;
    std::size_t r = 0;
    while (cost[r] > limit) ++r;
    return r;
}

template <class T>
struct Replace : Budget<T> {
    bool neighbour;
    std::vector<std::size_t> nearest;  // of every slot; kept while a block lasts
    explicit Replace(bool n) : neighbour(n) {}

    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        if (!S.full()) return S.place(S.n, row, row.tau);
        double *cost = S.buffer.data(), *on_new = cost + S.n, *on_nearest = on_new + S.n, *coefficient = on_nearest + S.n;
        S.squares(cost);
        std::size_t r = 0;
        if (neighbour) {
            if (nearest.empty()) find_all(S);
            for (std::size_t j = 0; j < S.n; ++j) cost[j] *= 0.5 * std::max(0.0, project(S, row, j, on_new[j], on_nearest[j]));
            const double limit = *std::min_element(cost, cost + S.n) + tie;
            while (cost[r] > limit) ++r;
        } else {
            r = cheapest(S.n, row.k, S.diag, row.k_xx, cost);
            on_new[r] = double(row.k[r]) / row.k_xx;
        }
        for (int c = 0; c < S.C; ++c) {
            coefficient[c] = S.coefficient(c, r) * on_new[r] + row.tau[c];
            if (neighbour) S.alpha[c * S.capacity + nearest[r]] += T(double(S.alpha[c * S.capacity + r]) * on_nearest[r]);
        }
        S.place(r, row, coefficient);
        if (neighbour) changed(S, r);
    }

    // Weights of the projection of slot j on the new row and on j's neighbour; returns the residual.
    double project(const Support<T>& S, const Newcomer<T>& row, std::size_t j, double& on_new, double& on_nearest) const {
        const std::size_t n = nearest[j];
        const double k_t = double(row.k[j]), k_n = double(S.gram[j * S.capacity + n]), nn = double(S.diag[n]), tn = double(row.k[n]);
        const double det = row.k_xx * nn - tn * tn;
        if (det > novelty * row.k_xx * nn) {
            on_new = (k_t * nn - k_n * tn) / det;
            on_nearest = (k_n * row.k_xx - k_t * tn) / det;
        } else {
            on_new = k_t / row.k_xx;
            on_nearest = 0.0;
        }
        return double(S.diag[j]) - k_t * on_new - k_n * on_nearest;
    }

    static T distance(const Support<T>& S, std::size_t i, std::size_t j) {
        return S.diag[i] + S.diag[j] - 2 * S.gram[i * S.capacity + j];
    }
    void find(const Support<T>& S, std::size_t j) {
        std::size_t best = j == 0 ? 1 : 0;
        for (std::size_t i = best + 1; i < S.n; ++i)
            if (i != j && distance(S, j, i) < distance(S, j, best)) best = i;
        nearest[j] = best;
    }
    void find_all(const Support<T>& S) {
        nearest.resize(S.n);
        for (std::size_t j = 0; j < S.n; ++j) find(S, j);
    }
    void changed(const Support<T>& S, std::size_t r) {  // slot r holds another vector
        for (std::size_t j = 0; j < S.n; ++j) {
            if (j == r || nearest[j] == r) {
                find(S, j);
            } else {
                const T now = distance(S, j, r), before = distance(S, j, nearest[j]);
                if (now < before || (now == before && r < nearest[j])) nearest[j] = r;
            }
        }
    }
};

template <class T>
struct Projectron : Budget<T> {
    bool margins;  // Projectron++
    explicit Projectron(bool m) : margins(m) { this->restless = m; }

    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        const std::size_t n = S.n, N = S.capacity;
        double *v = S.buffer.data(), *product = v + N, *step = product + N;
        const double* d = product;
        const bool acts = std::any_of(row.tau, row.tau + S.C, [](double x) { return x != 0.0; });
        if (!acts && (!margins || !(row.value > 0 && row.value < 1) || n == 0)) return;
        for (std::size_t j = 0; j < n; ++j) v[j] = double(row.k[j]);
        const bool solved = S.full() && S.fixed;
        if (!solved) forward_substitute(n, N, S.factor, v);
        else if (S.solution && S.solution[row.i] >= 0) d = S.solved + std::size_t(S.solution[row.i]) * N;
        else symmetric_product(n, S.fixed, v, product);
        const double p = solved ? dot(n, d, v) : dot(n, v, v), residual = row.k_xx - p;
        if (acts && !S.full() && residual > novelty * row.k_xx) {
            std::copy_n(v, n, S.factor + n * N);
            S.factor[n * N + n] = std::sqrt(residual);
            return S.place(n, row, row.tau);
        }
        const double size = acts ? 1.0 : margin_step(row.value, p, row.k_xx, double(N));
        if (size == 0.0) return;
        for (int c = 0; c < S.C; ++c) step[c] = acts ? row.tau[c] : -size * row.gradient[c];
        if (!solved) back_substitute(n, N, S.factor, v), d = v;
        for (int c = 0; c < S.C; ++c)
            for (std::size_t j = 0; j < n && step[c] != 0.0; ++j) S.alpha[c * N + j] += T(step[c] * d[j] / S.scale[c]);
    }
};

template <class T>
struct Project : Budget<T> {
    static constexpr double refresh = 100;
    bool take_smallest;
    explicit Project(bool s) : take_smallest(s) {}

    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        const std::size_t n = S.n, N = S.capacity;
        double* A = S.inverse;
        const std::size_t r0 = S.full() && take_smallest ? S.smallest(row) : n;
        double *d = S.buffer.data(), *a = d + N + 1, *k = a + N + 1;
        for (std::size_t j = 0; j < n; ++j) k[j] = double(row.k[j]);
        for (std::size_t j = 0; j < n; ++j) d[j] = dot(n, A + j * N, k);
        const double residual = row.k_xx - dot(n, d, k);
        if (residual <= novelty * row.k_xx || (S.full() && take_smallest && r0 == n)) {
            for (int c = 0; c < S.C; ++c)
                for (std::size_t j = 0; j < n; ++j) S.alpha[c * N + j] += T(row.tau[c] * d[j] / S.scale[c]);
            return;
        }
        if (!S.full()) {
            for (std::size_t j = 0; j < n; ++j) axpy(n, d[j] / residual, d, A + j * N);
            for (std::size_t j = 0; j < n; ++j) A[n * N + j] = A[j * N + n] = -d[j] / residual;
            A[n * N + n] = 1.0 / residual;
            S.place(n, row, row.tau);
        } else {
            std::size_t r = r0;
            if (!take_smallest) {
                double* cost = k;  // the kernel values have served
                S.squares(cost);
                for (std::size_t j = 0; j < n; ++j) cost[j] /= A[j * N + j] + d[j] * d[j] / residual;
                r = std::min_element(cost, cost + n) - cost;
            }
            // column r of the inverse of support set and new row together; its last entry belongs to the new row
            for (std::size_t j = 0; j < n; ++j) a[j] = A[r * N + j] + d[j] * (d[r] / residual);
            const double a_new = -d[r] / residual, a_r = a[r];
            double* coefficient = k;
            for (int c = 0; c < S.C; ++c) {
                const double alpha_r = S.coefficient(c, r), share = alpha_r / a_r;
                for (std::size_t j = 0; j < n; ++j) S.alpha[c * N + j] -= T(share * a[j] / S.scale[c]);
                coefficient[c] = row.tau[c] - share * a_new;
            }
            for (std::size_t j = 0; j < n; ++j) {
                const double x = d[j] / residual, y = a[j] / a_r;
                double* KS_RESTRICT row_j = A + j * N;
#pragma omp simd
                for (std::size_t i = 0; i < n; ++i) row_j[i] += x * d[i] - y * a[i];
            }
            for (std::size_t j = 0; j < n; ++j) A[r * N + j] = A[j * N + r] = -d[j] / residual - a[j] * (a_new / a_r);
            A[r * N + r] = 1.0 / residual - a_new * (a_new / a_r);
            S.place(r, row, coefficient);
        }
        S.memory[0] += 1.0;
        this->stop = S.memory[0] >= refresh;
    }
};

// Gaussian kernel only: kernel values with z = h a + (1 - h) b follow from those with a and b.
template <class T>
struct Merge : Budget<T> {
    static constexpr int steps = 30;
    static constexpr double golden = 0.6180339887498949, same = 1e-10;

    static double log_of(double k) { return k > 0 ? std::max(std::log(k), -1e4) : -1e4; }
    // log of a kernel value that may have been rounded to 0
    static double log_floor(T k) { return k > 0 ? std::log(double(k)) : double(Math<T>::exp_low); }

    void absorb(Support<T>& S, const Newcomer<T>& row) override {
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
        while (cost[b] > limit) ++b;
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

template <class T>
struct Transfer : Budget<T> {
    void absorb(Support<T>& S, const Newcomer<T>& row) override {
        const std::size_t r = S.full() ? S.smallest(row) : S.n;
        const T* features = S.Z + row.i * S.P;
        for (int c = 0; c < S.C && S.full(); ++c) {
            const double share = r < S.n ? double(S.alpha[c * S.capacity + r]) : row.tau[c] / S.scale[c];
            axpy(S.P, T(share), r < S.n ? S.z + r * S.P : features, S.w + c * S.P);
        }
        if (r == S.capacity) return;
        std::memcpy(S.z + r * S.P, features, S.P * sizeof(T));
        S.place(r, row, row.tau);
    }
};

template <class T>
std::unique_ptr<Budget<T>> make_budget(const std::string& name, const std::vector<double>& p) {
    if (name == "remove_random") return std::make_unique<RemoveRandom<T>>();
    if (name == "bogd") return std::make_unique<BOGD<T>>(p.at(0));
    if (name == "forgetron") return std::make_unique<Forgetron<T>>();
    if (name == "remove_smallest") return std::make_unique<RemoveSmallest<T>>();
    if (name == "remove_redundant") return std::make_unique<RemoveRedundant<T>>();
    if (name == "replace") return std::make_unique<Replace<T>>(p.at(0) != 0.0);
    if (name == "projectron") return std::make_unique<Projectron<T>>(false);
    if (name == "projectron_pp") return std::make_unique<Projectron<T>>(true);
    if (name == "project") return std::make_unique<Project<T>>(p.at(0) != 0.0);
    if (name == "merge") return std::make_unique<Merge<T>>();
    if (name == "transfer") return std::make_unique<Transfer<T>>();
    return nullptr;
}

// ---- Support sets that only grow: with which coefficient does a row join? ---------------------------------------------

struct Growing {
    virtual ~Growing() = default;
    // Changes tau (C) in place; all zero when the row stays out.
    virtual void admit(int C, double* tau, double value, const double* gradient, double k_xx, double u) const = 0;
};

inline double largest_of(int C, const double* x) {
    double top = 0.0;
    for (int c = 0; c < C; ++c) top = std::max(top, std::abs(x[c]));
    return top;
}

struct Stop : Growing {
    void admit(int, double*, double, const double*, double, double) const override {}
};

struct OSKL : Growing {
    double G;
    explicit OSKL(double g) : G(g) {}
    void admit(int C, double* tau, double, const double* gradient, double, double u) const override {
        const double size = largest_of(C, gradient), factor = u * G < size ? G / size : 0.0;
        for (int c = 0; c < C; ++c) tau[c] *= factor;
    }
};

struct SPA : Growing {
    double alpha, beta;
    SPA(double a, double b) : alpha(a), beta(b) {}
    void admit(int C, double* tau, double value, const double*, double k_xx, double u) const override {
        const double rho = std::min(alpha, value) / beta, eta = largest_of(C, tau);
        double norm = 0.0, size = 0.0;
        if (u < rho) {
            for (int c = 0; c < C; ++c) norm += tau[c] / eta * (tau[c] / eta);
            size = std::min(eta / rho, value / (norm * k_xx));
        }
        for (int c = 0; c < C; ++c) tau[c] = tau[c] / eta * size;
    }
};

inline std::unique_ptr<Growing> make_growing(const std::string& name, const std::vector<double>& p) {
    if (name == "stop") return std::make_unique<Stop>();
    if (name == "oskl") return std::make_unique<OSKL>(p.at(0));
    if (name == "spa") return std::make_unique<SPA>(p.at(0), p.at(1));
    throw std::invalid_argument("the native engine has no growing strategy '" + name + "': use engine='python'");
}

}  // namespace ks
