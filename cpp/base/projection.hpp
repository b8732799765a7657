// Products of some rows with a matrix, for dense rows and for sparse ones.
#pragma once

#include "base/blas.hpp"
#include "base/csr.hpp"
#include "base/lines.hpp"
#include "base/vecmath.hpp"

namespace ks {

// out (m, D): products of rows first ... first + m - 1 with W (d, D), by the library where they are dense.
template <class T>
void project(const Blas* blas, const Dense<T>& rows, const T* W, std::size_t D, std::size_t first, std::size_t m, T* out) {
    blas->gemm(D, m, rows.d, T(1), W, D, rows.X + first * rows.d, rows.d, T(0), out, D);
}

template <class T, class I>
void project(const Blas*, const Csr<T, I>& rows, const T* W, std::size_t D, std::size_t first, std::size_t m, T* out) {
    // A copy of each tile of W pays when its rows are used several times and it fits the second-level cache: up to 1.7 times the
    // speed where D is a power of two, nothing lost elsewhere.
    constexpr std::size_t tile = csr_tile_width<T>;
    const std::size_t d = rows.d, stored = std::size_t(rows.indptr[first + m] - rows.indptr[first]);
    const bool copied = D >= tile && stored >= 6 * d && d * tile * sizeof(T) <= 256 * 1024;
    std::vector<T> held;
    csr_matmul<T, I>(m, d, D, rows.data, rows.indices, rows.indptr + first, W, D, copied ? on_line(held, d * tile) : nullptr, out);
}

}  // namespace ks
