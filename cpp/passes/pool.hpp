// Kernel values of many learners from the same products: learners that differ in their kernel have most of their support vectors in
// common, and a distance is much more work than an exponential.
//
// A pool holds every vector once. For a block of m rows, whose own places in the pool are `size`, ..., `size` + m - 1:
//   A (m, width) products x's,  D (m, width) squared distances,  width = size + m or more.
// A learner's support vectors are entries `index` of the pool.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "maps/gaussian.hpp"

namespace ks {

// D (m, n), rows `stride` apart, from the products A and squared norms xn (m), sn (n). The difference of the norms loses digits where
// x and s are close; there the coordinates are consulted. A rounding error e of a distance D moves k by gamma e exp(-gamma D), which
// is at most e / (2.7 D) whatever gamma is.
template <class T>
KS_CLONES void squared_distances(std::size_t m, std::size_t n, std::size_t d, const T* X, const T* xn, const T* S, const T* sn,
                                 const T* A, T* D, std::size_t stride) {
    constexpr T close = T(4.0 * std::numeric_limits<T>::epsilon() / (2.7 * Tolerance<T>::value));
    for (std::size_t i = 0; i < m; ++i) {
        T* KS_RESTRICT row = D + i * stride;
        const T* KS_RESTRICT products = A + i * stride;
        const T* KS_RESTRICT norms = sn;
        const T a = xn[i];
        for (std::size_t first = 0; first < n; first += 64) {
            const std::size_t last = std::min(n, first + 64);
            int any = 0;
#pragma omp simd reduction(| : any)
            for (std::size_t j = first; j < last; ++j) {
                const T sum = a + norms[j], distance = sum - 2 * products[j];
                row[j] = distance;
                any |= distance < close * sum;
            }
            for (std::size_t j = first; j < last && any; ++j)
                if (row[j] < close * (a + norms[j])) row[j] = T(squared_difference(d, X + i * d, S + j * d, 1));
        }
    }
}

template <class T>
struct PoolBlock {
    std::size_t m, size, width;
    const T *A, *D;   // (m, width); A or D may be null where no learner needs it
    const T* norms;   // (m) squared norms of the rows
    double reach;     // largest norm of a vector: no distance exceeds (|x| + reach)^2
};

// exp(-gamma |x - s|^2), or (gamma x's + c)^degree where the degree is positive.
struct PoolKernel {
    int degree;
    double gamma, c;

    double self(double norm) const { return degree == 0 ? 1.0 : power(gamma * norm + c); }

    template <class T> T power(T base) const {
        T value = base;
        for (int k = 1; k < degree; ++k) value *= base;
        return value;
    }
};

// to (n) <- from[index].
template <class T>
KS_INLINE void gather(std::size_t n, const T* KS_RESTRICT from, const std::int32_t* KS_RESTRICT index, T* KS_RESTRICT to) {
    for (std::size_t j = 0; j < n; ++j) to[j] = from[index[j]];
}

// Products or distances k (n) of row i -> kernel values, in place.
template <class T>
KS_INLINE void finish_values(const PoolBlock<T>& block, const PoolKernel& kernel, std::size_t i, std::size_t n, T* k) {
    if (kernel.degree > 0) {
        const T gamma = T(kernel.gamma), c = T(kernel.c);
        const int degree = kernel.degree;
        for (std::size_t j = 0; j < n; ++j) k[j] = gamma * k[j] + c;
        if (degree == 2) {
            for (std::size_t j = 0; j < n; ++j) k[j] *= k[j];
        } else if (degree == 3) {
            for (std::size_t j = 0; j < n; ++j) k[j] *= k[j] * k[j];
        } else if (degree > 3) {
            for (std::size_t j = 0; j < n; ++j) k[j] = kernel.power(k[j]);
        }
        return;
    }
    const double factor = Gaussian<T>{kernel.gamma}.factor(), far = std::sqrt(double(block.norms[i])) + block.reach;
    const T scale = T(factor);
    for (std::size_t j = 0; j < n; ++j) k[j] *= scale;
    exp2_all(n, k, !(factor * far * far * 1.001 > double(exp2_low<T>) + 1.0));
}

template <class T>
const T* pool_row(const PoolBlock<T>& block, const PoolKernel& kernel, std::size_t i) {
    return (kernel.degree > 0 ? block.A : block.D) + i * block.width;
}

// Kernel values k (n) of row i with the vectors at `index`.
template <class T>
KS_CLONES void pool_values(const PoolBlock<T>& block, const PoolKernel& kernel, std::size_t i, std::size_t n, const std::int32_t* index, T* k) {
    gather(n, pool_row(block, kernel, i), index, k);
    finish_values(block, kernel, i, n, k);
}

// Kernel values k (n) of row i with n rows of the block from `first` on.
template <class T>
KS_CLONES void pool_among(const PoolBlock<T>& block, const PoolKernel& kernel, std::size_t i, std::size_t first, std::size_t n, T* k) {
    std::memcpy(k, pool_row(block, kernel, i) + block.size + first, n * sizeof(T));
    finish_values(block, kernel, i, n, k);
}

// F (C) += sum_j alpha_cj k(x_i, s_j), alpha (C, n) with rows `stride` apart.
template <class T>
KS_CLONES void pool_scores(const PoolBlock<T>& block, const PoolKernel& kernel, std::size_t i, std::size_t n, const std::int32_t* index,
                           int C, const T* alpha, std::size_t stride, double* F) {
    constexpr std::size_t chunk = 1024;
    alignas(64) T k[chunk];
    for (std::size_t first = 0; first < n; first += chunk) {
        const std::size_t count = std::min(chunk, n - first);
        gather(count, pool_row(block, kernel, i), index + first, k);
        finish_values(block, kernel, i, count, k);
        for (int c = 0; c < C; ++c) F[c] += double(dot(count, k, alpha + c * stride + first));
    }
}

}  // namespace ks
