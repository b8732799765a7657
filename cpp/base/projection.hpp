// Products of rows with a matrix, for dense rows and for sparse ones.
#pragma once

#include <cstring>
#include <vector>

#include "base/blas.hpp"
#include "base/csr.hpp"
#include "base/lines.hpp"
#include "base/vecmath.hpp"

namespace ks {

// What multiplies some of the rows with W (d, D): times(...)(first, m, out) makes the products of rows first ... first + m - 1, out (m, D).
template <class T>
auto times(const Dense<T>& rows, const T* W, std::size_t D, const Blas* blas) {
    return [=](std::size_t first, std::size_t m, T* out) {
        blas->gemm(D, m, rows.d, T(1), W, D, rows.X + first * rows.d, rows.d, T(0), out, D);
    };
}

template <class T, class I>
auto times(const Csr<T, I>& rows, const T* W, std::size_t D, const Blas*) {
    // Tiles pay when they are used several times and fit the second-level cache: up to 1.7 times the speed where D is a power of two.
    constexpr std::size_t tile = csr_tile_width<T>;
    const std::size_t d = rows.d, whole = D / tile;
    thread_local std::vector<T> held;  // memory that is new to the process costs as much as what is done with it
    T* tiles = nullptr;
    if (whole && std::size_t(rows.indptr[rows.n] - rows.indptr[0]) >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) {
        tiles = on_line(held, whole * d * tile);
        for (std::size_t r = 0; r < d; ++r)
            for (std::size_t t = 0; t < whole; ++t) std::memcpy(tiles + (t * d + r) * tile, W + r * D + t * tile, tile * sizeof(T));
    }
    return [=](std::size_t first, std::size_t m, T* out) {
        csr_matmul<T, I>(m, d, D, rows.data, rows.indices, rows.indptr + first, W, tiles, out);
    };
}

}  // namespace ks
