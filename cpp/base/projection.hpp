// Products of some rows with a matrix, for dense rows and for sparse ones.
#pragma once

#include <memory>

#include "base/blas.hpp"
#include "base/vecmath.hpp"

namespace ks {

// out (m, D): products of rows first ... first + m - 1 with W (d, D).
template <class T>
struct DenseProjection {
    const Blas& blas;
    const T *X, *W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, T* out) const {
        blas.gemm(false, false, D, m, d, T(1), W, D, X + first * d, d, T(0), out, D);
    }
};

template <class T, class I>
struct CsrProjection {
    const T* data;
    const I *indices, *indptr;
    const T* W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, T* out) const {
        // see the binding of csr_matmul for when a copy of tiles pays
        constexpr std::size_t tile = csr_tile_width<T>;
        const std::size_t stored = std::size_t(indptr[first + m] - indptr[first]);
        std::unique_ptr<T[]> buffer;
        if (D >= tile && stored >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) buffer.reset(new T[d * tile]);
        csr_matmul<T, I>(m, d, D, data, indices, indptr + first, W, D, buffer.get(), out);
    }
};

}  // namespace ks
