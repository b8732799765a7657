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

// w += step z, then z = scale [cos p, sin p] of the angles p (D), and w'z: one sweep over z and w (2 D), because reading them takes as
// long as their arithmetic. The sum of the squares tells whether an angle may be too large for `sincos`.
template <std::size_t bytes, class T>
KS_INLINE T fourier_step_in(std::size_t D, const T* KS_RESTRICT p, T scale, T step, T* KS_RESTRICT z, T* KS_RESTRICT w) {
    constexpr std::size_t L = lanes<T>, width = bytes / sizeof(T), lines = L / width, ahead = 16 * L;
    constexpr T limit = Math<T>::trig_limit;
    using Numbers = typename Line<T, width>::type;
    Numbers sums[lines] = {}, squares[lines] = {};
    std::size_t j = 0;
    for (; j + L <= D; j += L) {
        fetch<L>(p + j + ahead);
        T turned[2][L];
        for (std::size_t group = 0; group < L; group += trig_group<T>) {
            KS_UNROLL
            for (std::size_t k = group; k < group + trig_group<T>; ++k) sincos(p[j + k], scale, turned[1][k], turned[0][k]);
        }
        KS_UNROLL
        for (std::size_t l = 0; l < lines; ++l) {
            Numbers angles;
            std::memcpy(&angles, p + j + l * width, sizeof angles);
            squares[l] += angles * angles;
        }
        KS_UNROLL
        for (std::size_t half = 0; half < 2; ++half) {
            KS_UNROLL
            for (std::size_t l = 0; l < lines; ++l) {
                Numbers weights, before, now;
                const std::size_t at = half * D + j + l * width;
                std::memcpy(&weights, w + at, sizeof weights);
                std::memcpy(&before, z + at, sizeof before);
                std::memcpy(&now, turned[half] + l * width, sizeof now);
                weights += step * before;
                sums[l] += weights * now;
                std::memcpy(w + at, &weights, sizeof weights);
                std::memcpy(z + at, &now, sizeof now);
            }
        }
    }
    axpy(D - j, step, z + j, w + j);
    axpy(D - j, step, z + D + j, w + D + j);
    cos_sin(D - j, p + j, scale, z + j, z + D + j);
    T score[L], size[L];
    std::memcpy(score, sums, sizeof score);
    std::memcpy(size, squares, sizeof size);
    if (fold(size) < limit * limit) return fold(score) + dot(D - j, w + j, z + j) + dot(D - j, w + D + j, z + D + j);
    cos_sin(D, p, scale, z, z + D);
    return dot(2 * D, w, z);
}
template <class T>
T fourier_step(std::size_t D, const T* p, T scale, T step, T* z, T* w) {
    return at_level([=](auto bytes) KS_LAMBDA { return fourier_step_in<bytes()>(D, p, scale, step, z, w); });
}

}  // namespace ks
