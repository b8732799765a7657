// Taylor features: all monomials of a row up to degree M, each degree made from the one before.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/vecmath.hpp"

namespace ks {

// In:  X (m, d);  begin (M, d), end (M): x_i multiplies the features begin[n, i] .. end[n] to make those of degree n + 1;
//      coef (r).   Out: Z (m, r) = coef * monomials, times exp(-|x|^2 / 2) when `gaussian`.
template <class T>
KS_CLONES void taylor(std::size_t m, std::size_t d, std::size_t M, std::size_t r, const T* X, const std::int64_t* begin,
                      const std::int64_t* end, const T* coef, bool gaussian, T* Z) {
    for (std::size_t t = 0; t < m; ++t) {
        const T* x = X + t * d;
        T* z = Z + t * r;
        T norm = 0;
        for (std::size_t i = 0; i < d; ++i) norm += x[i] * x[i];
        z[0] = gaussian ? T(std::exp(-0.5 * double(norm))) : T(1);
        T* out = z + 1;
        for (std::size_t n = 0; n < M; ++n) {
            for (std::size_t i = 0; i < d; ++i) {
                const T* from = z + begin[n * d + i];
                const std::size_t size = end[n] - begin[n * d + i];
                const T a = x[i];
#pragma omp simd
                for (std::size_t j = 0; j < size; ++j) out[j] = a * from[j];
                out += size;
            }
        }
#pragma omp simd
        for (std::size_t j = 0; j < r; ++j) z[j] *= coef[j];
    }
}

}  // namespace ks
