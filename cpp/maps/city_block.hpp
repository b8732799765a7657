// Sums of |x_j - z_j| over the columns, of many rows with many others: what a Laplacian kernel is a function of.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/vecmath.hpp"

namespace ks {

// Q rows X (Q, d), `d` apart, with P others, which stand side by side in `tile` (d, P); out (Q, P), rows `ldo` apart.
template <class T, std::size_t Q, std::size_t P>
KS_INLINE void city_block_tile(std::size_t d, const T* KS_RESTRICT X, const T* KS_RESTRICT tile, std::size_t width, T* out,
                               std::size_t ldo) {
    T acc[Q][P] = {};
    for (std::size_t j = 0; j < d; ++j) {
        const T* KS_RESTRICT z = tile + j * P;
        KS_UNROLL
        for (std::size_t q = 0; q < Q; ++q) {
            const T x = X[q * d + j];
            KS_UNROLL
            for (std::size_t k = 0; k < P; ++k) acc[q][k] += std::abs(x - z[k]);
        }
    }
    for (std::size_t q = 0; q < Q; ++q) std::copy_n(acc[q], width, out + q * ldo);
}

// out (n, m) for X (n, d) and Z (m, d). Every sum runs in the order of the columns.
template <class T>
KS_CLONES void city_block(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* Z, T* out) {
    constexpr std::size_t P = 64 / sizeof(T), Q = 4;
    const std::size_t tiles = (m + P - 1) / P;
    std::vector<T> packed(tiles * d * P);
    for (std::size_t k = 0; k < m; ++k)
        for (std::size_t j = 0; j < d; ++j) packed[(k / P * d + j) * P + k % P] = Z[k * d + j];
    std::size_t i = 0;
    for (; i + Q <= n; i += Q)
        for (std::size_t t = 0; t < tiles; ++t)
            city_block_tile<T, Q, P>(d, X + i * d, packed.data() + t * d * P, std::min(P, m - t * P), out + i * m + t * P, m);
    for (; i < n; ++i)
        for (std::size_t t = 0; t < tiles; ++t)
            city_block_tile<T, 1, P>(d, X + i * d, packed.data() + t * d * P, std::min(P, m - t * P), out + i * m + t * P, m);
}

}  // namespace ks
