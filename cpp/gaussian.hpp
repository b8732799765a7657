// Gaussian kernel values k(x, s) = exp(-gamma ||x - s||^2) between a block of rows and a support set, from one product.
//
// ||x - s||^2 = ||x||^2 + ||s||^2 - 2 x's cancels where rows are close and far from the origin. Its rounding error is about
// 4 eps (||x||^2 + ||s||^2); pairs for which that would move the kernel by more than `Tolerance` get their distance
// from the differences.
//
// For sparse rows the support set is kept in tiles of `csr_tile_width` vectors, (tiles, d, width): the sums of a row with a tile stay in
// registers, and a tile stays in the first-level cache while the rows of a block pass by.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "vecmath.hpp"

namespace ks {

template <class T> struct Tolerance;
template <> struct Tolerance<float> { static constexpr double value = 1e-5; };
template <> struct Tolerance<double> { static constexpr double value = 1e-14; };

template <class T>
struct Gaussian {
    double gamma;
    // error of a kernel value near 1 per unit of squared norm, in tolerances
    double error() const { return 4.0 * std::numeric_limits<T>::epsilon() * gamma / Tolerance<T>::value; }
};

template <class T, class I>
struct Csr {  // rows start, ..., of a CSR matrix: indptr points at the first of them
    const T* data;
    const I* indices;
    const I* indptr;
};

// ||x||^2 of CSR rows, in the order in which the products are summed, so that a row is at distance 0 from itself.
template <class T, class I>
KS_CLONES void csr_norms(std::size_t m, const Csr<T, I>& X, T* norms) {
    for (std::size_t i = 0; i < m; ++i) {
        T sum = 0;
        for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) sum += X.data[k] * X.data[k];
        norms[i] = sum;
    }
}

template <class T>
KS_INLINE double squared_difference(std::size_t d, const T* x, const T* s, std::size_t stride) {
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) {
        const double gap = double(x[j]) - double(s[j * stride]);
        sum += gap * gap;
    }
    return sum;
}

// Distances of one row, corrected where they are too rough; `distance(j)` computes one of them anew.
template <class T, class F>
KS_INLINE void refine(std::size_t n, double error, double gamma, T xn, const T* sn, T* D2, F distance) {
    for (std::size_t j = 0; j < n; ++j) {
        const double rough = error * (double(xn) + double(sn[j]));
        if (rough > 1.0 && double(D2[j]) * gamma < std::log(rough)) D2[j] = T(distance(j));
    }
}

// K (m, n), rows `stride` apart: on entry the products x's, on return kernel values. X (m, d), S (n, d) are consulted for close pairs.
template <class T>
KS_CLONES void gaussian_dense(std::size_t m, std::size_t n, std::size_t d, const T* X, const T* xn, const T* S, const T* sn,
                              const Gaussian<T>& kernel, T* K, std::size_t stride) {
    T largest = 0;
    for (std::size_t j = 0; j < n; ++j) largest = std::max(largest, sn[j]);
    const double error = kernel.error();
    for (std::size_t i = 0; i < m; ++i) {
        T* KS_RESTRICT k = K + i * stride;
        const T a = xn[i];
#pragma omp simd
        for (std::size_t j = 0; j < n; ++j) k[j] = (a + sn[j]) - 2 * k[j];
        if (!(error * (double(a) + double(largest)) <= 1.0))
            refine(n, error, kernel.gamma, a, sn, k, [&](std::size_t j) { return squared_difference(d, X + i * d, S + j * d, 1); });
        exp_scaled_chunk(n, k, T(kernel.gamma), true);
    }
}

// Squared distances of row i from the vectors of one tile, into D2 (width).
template <class T, class I>
KS_INLINE void tile_distances(const Csr<T, I>& X, std::size_t i, T xn, const T* KS_RESTRICT tile, const T* KS_RESTRICT sn,
                              T* KS_RESTRICT D2) {
    constexpr std::size_t width = csr_tile_width<T>;
    T acc[width];
    KS_UNROLL
    for (std::size_t c = 0; c < width; ++c) acc[c] = 0;
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) {
        const T v = X.data[k];
        const T* KS_RESTRICT s = tile + std::size_t(X.indices[k]) * width;
        KS_UNROLL
        for (std::size_t c = 0; c < width; ++c) acc[c] += v * s[c];
    }
    KS_UNROLL
    for (std::size_t c = 0; c < width; ++c) D2[c] = (xn + sn[c]) - 2 * acc[c];
}

// Calls consume(i, first, count, values) for every row and tile: values (count) are the kernel values of row i with the vectors
// first, ..., first + count - 1. norms sn are padded to whole tiles. `dense` has room for d numbers.
template <class T, class I, class F>
KS_INLINE void gaussian_tiles(std::size_t m, std::size_t n, std::size_t d, const Csr<T, I>& X, const T* xn, const T* tiles,
                              const T* sn, const Gaussian<T>& kernel, T* dense, F consume) {
    constexpr std::size_t width = csr_tile_width<T>;
    const double error = kernel.error();
    T largest = 0;
    for (std::size_t j = 0; j < n; ++j) largest = std::max(largest, sn[j]);
    for (std::size_t first = 0; first < n; first += width) {
        const T* tile = tiles + first * d;
        const std::size_t count = std::min(width, n - first);
        for (std::size_t i = 0; i < m; ++i) {
            T values[width];
            tile_distances(X, i, xn[i], tile, sn + first, values);
            if (!(error * (double(xn[i]) + double(largest)) <= 1.0)) {
                std::fill_n(dense, d, T(0));
                for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) dense[X.indices[k]] = X.data[k];
                refine(count, error, kernel.gamma, xn[i], sn + first, values,
                       [&](std::size_t j) { return squared_difference(d, dense, tile + j, width); });
            }
            exp_scaled_chunk(width, values, T(kernel.gamma), true);
            consume(i, first, count, values);
        }
    }
}

// K (m, n) with rows `stride` apart.
template <class T, class I>
KS_CLONES void gaussian_csr(std::size_t m, std::size_t n, std::size_t d, const Csr<T, I>& X, const T* xn, const T* tiles,
                            const T* sn, const Gaussian<T>& kernel, T* dense, T* K, std::size_t stride) {
    gaussian_tiles(m, n, d, X, xn, tiles, sn, kernel, dense, [&](std::size_t i, std::size_t first, std::size_t count, const T* values) {
        std::memcpy(K + i * stride + first, values, count * sizeof(T));
    });
}

// F (m, C) += K alpha', alpha (C, n) with rows `stride` apart, without storing K.
template <class T, class I>
KS_CLONES void gaussian_csr_scores(std::size_t m, std::size_t n, std::size_t d, const Csr<T, I>& X, const T* xn,
                                   const T* tiles, const T* sn, const Gaussian<T>& kernel, T* dense, int C, const T* alpha,
                                   std::size_t stride, double* F) {
    gaussian_tiles(m, n, d, X, xn, tiles, sn, kernel, dense, [&](std::size_t i, std::size_t first, std::size_t count, const T* values) {
        for (int c = 0; c < C; ++c) F[i * C + c] += double(dot(count, values, alpha + c * stride + first));
    });
}

// Copies row i of a CSR block into slot j of the tiles.
template <class T, class I>
void csr_to_tile(const Csr<T, I>& X, std::size_t i, std::size_t d, T* tiles, std::size_t j) {
    constexpr std::size_t width = csr_tile_width<T>;
    T* column = tiles + (j / width) * d * width + j % width;
    for (std::size_t r = 0; r < d; ++r) column[r * width] = 0;
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) column[std::size_t(X.indices[k]) * width] = X.data[k];
}

}  // namespace ks
