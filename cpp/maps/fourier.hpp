// Fourier features of a single row: z (2 D) = scale * [cos(W'x), sin(W'x)], W (d, D). Blocks of rows use a matrix product
// and vecmath's trig instead; for one row their calls cost more than their work.
#pragma once

#include "base/vecmath.hpp"

namespace ks {

template <class T>
KS_CLONES void fourier_row(std::size_t d, std::size_t D, const T* KS_RESTRICT x, const T* KS_RESTRICT W, T scale,
                           T* KS_RESTRICT p, T* KS_RESTRICT z) {
    combine_rows(d, x, [&](std::size_t k) { return W + k * D; }, D, p);
    cos_sin(D, p, scale, z, z + D);
}

}  // namespace ks
