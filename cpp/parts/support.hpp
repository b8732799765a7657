// The support set of a kernel expansion while a block is learned, and what absorbs rows into it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "parts/losses.hpp"
#include "base/vecmath.hpp"

namespace ks {

constexpr double novelty = 1e-10;  // share of k(x, x) below which a residual counts as 0
constexpr double nothing = 1e-300;  // k(x, x) up to which a row counts as 0
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
    double* memory;       // (numbers) of the strategy
    std::size_t numbers;
    T* gram;           // (capacity, capacity) or null
    double* basis;     // (capacity, capacity) coefficients of orthonormal functions, one in a row, or null
    double* factor;    // (capacity, capacity) lower Cholesky factor of the Gram matrix, or null
    const double* fixed;    // (capacity, capacity) inverse Gram matrix that will not change any more, or null
    double* solved;    // (rows, capacity) of the block's rows that were expected to act, K^-1 k, or where the inverse is not fixed, the
                       // first `known` numbers of L^-1 k; or null
    const std::int64_t* solution;  // (m) which of them is a row's, -1 for none
    std::size_t known;
    double* scores;    // (C, capacity) scores of the support vectors without `scale`, or null
    const T* Z;        // (m, P) random features of the block, or null
    std::size_t P;
    T* w;              // (C, P) without `scale`
    T* z;              // (capacity, P) features of the support vectors
    std::int64_t* owner;  // (capacity) block row that took the slot, -1 for none
    std::vector<double> blends;  // vectors made by merging, in order: slot, a, b, h; a block row i counts as -1 - i
    std::vector<double> buffer;  // 4 (capacity + 1) + C numbers
    std::vector<double> pending{};  // (C, capacity) where every row has its L^-1 k: what these functions add to f until the block ends
    std::int32_t* places = nullptr;  // (capacity) where a pool of vectors has those of the slots, and
    std::int32_t newcomer = -1;      // where it has the row being learned
    std::vector<std::size_t> slots{};  // what the strategy has found out about slots; kept while a block lasts
    bool stop = false;  // set when the caller must look after the strategy's arrays before the next row

    bool full() const { return n == capacity; }
    T* alpha_of(int c) const { return alpha + c * capacity; }
    double* solution_of(std::size_t i) const { return solution && solution[i] >= 0 ? solved + std::size_t(solution[i]) * capacity : nullptr; }
    double coefficient(int c, std::size_t j) const { return double(alpha[c * capacity + j]) * scale[c]; }

    void shrink(int c, double factor) {
        scale[c] *= factor;
        if (scale[c] > 1e-6 && scale[c] < 1e6) return;
        ks::scale(capacity, T(scale[c]), alpha_of(c));
        if (scores) ks::scale(capacity, scale[c], scores + c * capacity);
        if (w) ks::scale(P, T(scale[c]), w + c * P);
        if (!pending.empty()) ks::scale(capacity, scale[c], pending.data() + c * capacity);
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

    // Slot of the smallest term of f, of equal ones the first from `turn` on, else from 0 on; n when that is the new row.
    std::size_t smallest(const Newcomer<T>& row, std::size_t turn = 0) {
        squares(buffer.data());
        for (std::size_t j = 0; j < n; ++j) buffer[j] *= double(diag[j]);
        const double limit = least(n, buffer.data()) * (1.0 + equal);
        std::size_t r = turn;
        while (r < n && !(buffer[r] <= limit)) ++r;
        if (r >= n)
            for (r = 0; r + 1 < n && buffer[r] > limit;) ++r;
        double own = 0.0;
        for (int c = 0; c < C; ++c) own += row.tau[c] * row.tau[c];
        return buffer[r] <= own * row.k_xx * (1.0 + equal) ? r : n;
    }
};

// What happens to a row that the update moves; the twins of kernelstream/budgets.
template <class T>
struct Budget {
    int n_memory = 0;       // numbers that it keeps in S.memory, and
    bool gram = false, basis = false, factor = false, scores = false, features = false;  // arrays that it goes through
    std::size_t least = 1;  // smallest set that it can work on
    bool restless = false;  // must also see rows on which the update does nothing
    virtual ~Budget() = default;
    virtual void absorb(Support<T>& S, const Newcomer<T>& row) const = 0;
    // Whether the support set has what the strategy needs.
    bool fits(const Support<T>& S) const {
        return S.capacity >= least && S.numbers >= std::size_t(n_memory) && (!gram || S.gram) && (!basis || S.basis) &&
               (!factor || S.factor) && (!scores || S.scores) && (!features || (S.Z && S.w && S.z));
    }
};

}  // namespace ks
