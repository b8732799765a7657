// Sums of cosines: f_i += sum_j amplitude_j cos(p_ij - phase_j), what Fourier features add to a single score. With
// amplitude = |(a, b)| and phase = angle of (a, b), a cos p + b sin p = amplitude cos(p - phase): half the trigonometry of
// making the features first, and nothing is stored.
#pragma once

#include "base/vecmath.hpp"

namespace ks {

// cos x for |x| <= trig_limit, see sincos.
template <class T>
KS_INLINE T cosine(T x) {
    using M = Math<T>;
    using U = typename Bits<T>::UInt;
    const T shifted = x * M::inverse_pi + M::round;
    const T n = shifted - M::round;
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
    const T r = std::fma(-n, M::pi_low, std::fma(-n, M::pi_high, x));
#else
    const T r = ((x - n * M::pi_1) - n * M::pi_2) - n * M::pi_3;
#endif
    const T z = r * r;
    T c = M::cos_c[0];
    KS_UNROLL for (int k = 1; k < M::cos_n; ++k) c = z * c + M::cos_c[k];
    return bit_cast<T>(bit_cast<U>(c) ^ (bit_cast<U>(shifted) << (8 * sizeof(T) - 1)));
}

// F (m) += the sums, P (m, D), amplitude (D), phase (D). A row's sum is kept in a fixed number of lanes.
template <class T>
KS_CLONES void cosine_sums(std::size_t m, std::size_t D, const T* P, const T* KS_RESTRICT amplitude,
                           const T* KS_RESTRICT phase, double* F) {
    constexpr std::size_t L = group<T>;
    const std::size_t whole = D - D % L;
    for (std::size_t i = 0; i < m; ++i) {
        const T* KS_RESTRICT p = P + i * D;
        T total[L] = {};
        int large = 0;
#pragma omp simd reduction(| : large)
        for (std::size_t j = 0; j < D; ++j) large |= std::abs(p[j] - phase[j]) > Math<T>::trig_limit;
        double sum = 0;
        if (large) {
            for (std::size_t j = 0; j < D; ++j) sum += double(amplitude[j]) * std::cos(double(p[j]) - double(phase[j]));
        } else {
            for (std::size_t j = 0; j < whole; j += L) {
                KS_UNROLL
                for (std::size_t l = 0; l < L; ++l) total[l] += amplitude[j + l] * cosine<T>(p[j + l] - phase[j + l]);
            }
            for (std::size_t j = whole; j < D; ++j) total[j - whole] += amplitude[j] * cosine<T>(p[j] - phase[j]);
            for (std::size_t l = 0; l < L; ++l) sum += double(total[l]);
        }
        F[i] += sum;
    }
}

}  // namespace ks
