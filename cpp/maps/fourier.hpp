// Fourier features of a single row: z (2 D) = scale * [cos(W'x), sin(W'x)], W (d, D). Blocks of rows use a matrix product
// and vecmath's trig instead; for one row their calls cost more than their work.
#pragma once

#include <algorithm>

#include "base/vecmath.hpp"

namespace ks {

// One row: W is read once, front to back, four of its rows at a time, which is what a prefetcher likes.
template <class T>
KS_CLONES void fourier_row(std::size_t d, std::size_t D, const T* KS_RESTRICT x, const T* KS_RESTRICT W, T scale,
                           T* KS_RESTRICT p, T* KS_RESTRICT z) {
    std::fill_n(p, D, T(0));
    std::size_t k = 0;
    for (; k + 4 <= d; k += 4) {
        const T a = x[k], b = x[k + 1], c = x[k + 2], e = x[k + 3];
        const T *KS_RESTRICT w0 = W + k * D, *KS_RESTRICT w1 = w0 + D, *KS_RESTRICT w2 = w1 + D, *KS_RESTRICT w3 = w2 + D;
#pragma omp simd
        for (std::size_t j = 0; j < D; ++j) p[j] += (a * w0[j] + b * w1[j]) + (c * w2[j] + e * w3[j]);
    }
    for (; k < d; ++k) axpy(D, x[k], W + k * D, p);
    cos_sin(D, p, scale, z, z + D);
}

}  // namespace ks
