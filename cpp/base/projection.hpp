// Products of some rows with some columns of a matrix, for dense rows and for sparse ones.
#pragma once

#include <memory>

#include "base/blas.hpp"
#include "base/vecmath.hpp"

namespace ks {

// out (m, count): products of rows first ... first + m - 1 with columns begin ... begin + count - 1 of W (d, D).
template <class T>
struct DenseProjection {
    const Blas& blas;
    const T *X, *W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, std::size_t begin, std::size_t count, T* out) const {
        blas.gemm(false, false, count, m, d, T(1), W + begin, D, X + first * d, d, T(0), out, count);
    }
};

template <class T, class I>
struct CsrProjection {
    const T* data;
    const I *indices, *indptr;
    const T* W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, std::size_t begin, std::size_t count, T* out) const {
        // see the binding of csr_matmul for when a copy of tiles pays
        constexpr std::size_t tile = csr_tile_width<T>;
        const std::size_t stored = std::size_t(indptr[first + m] - indptr[first]);
        std::unique_ptr<T[]> buffer;
        if (count >= tile && stored >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) buffer.reset(new T[d * tile]);
        csr_matmul<T, I>(m, d, count, data, indices, indptr + first, W + begin, D, buffer.get(), out);
    }
};

}  // namespace ks
