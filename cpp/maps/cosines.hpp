// Sums of cosines: f_i += sum_j amplitude_j cos(p_ij - phase_j), what Fourier features add to a single score. With
// amplitude = |(a, b)| and phase = angle of (a, b), a cos p + b sin p = amplitude cos(p - phase): half the trigonometry of
// making the features first, and nothing is stored.
#pragma once

#include "base/vecmath.hpp"

namespace ks {

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
            const auto term = [&](std::size_t j) {
                T sine, cosine;
                sincos(p[j] - phase[j], amplitude[j], sine, cosine);
                return cosine;
            };
            for (std::size_t j = 0; j < whole; j += L) {
                KS_UNROLL
                for (std::size_t l = 0; l < L; ++l) total[l] += term(j + l);
            }
            for (std::size_t j = whole; j < D; ++j) total[j - whole] += term(j);
            for (std::size_t l = 0; l < L; ++l) sum += double(total[l]);
        }
        F[i] += sum;
    }
}

}  // namespace ks
