// Products of some rows with a matrix, for dense rows and for sparse ones.
#pragma once

#include <memory>

#include "base/blas.hpp"
#include "base/csr.hpp"
#include "base/vecmath.hpp"

namespace ks {

// out (m, D): products of rows first ... first + m - 1 with W (d, D).
template <class T>
struct DenseProjection {
    const Blas& blas;
    const T *X, *W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, T* out) const {
        blas.gemm(D, m, d, T(1), W, D, X + first * d, d, T(0), out, D);
    }
};

template <class T, class I>
struct CsrProjection {
    Csr<T, I> X;
    const T* W;
    std::size_t D;
    void operator()(std::size_t first, std::size_t m, T* out) const {
        // A copy of each tile of W pays when its rows are used several times and it fits the second-level cache: up to 1.7 times the
        // speed where D is a power of two, nothing lost elsewhere.
        constexpr std::size_t tile = csr_tile_width<T>;
        const std::size_t d = X.d, stored = std::size_t(X.indptr[first + m] - X.indptr[first]);
        std::unique_ptr<T[]> buffer;
        if (D >= tile && stored >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) buffer.reset(new T[d * tile]);
        csr_matmul<T, I>(m, d, D, X.data, X.indices, X.indptr + first, W, D, buffer.get(), out);
    }
};

}  // namespace ks
