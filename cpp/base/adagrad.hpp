// AdaGrad on one output: the gradient is g z.   G <- fade G + (g z)^2;  w -= eta g z / sqrt(G + 1e-12)
#pragma once

#include "base/vecmath.hpp"

namespace ks {

// 1 / sqrt(x) of positive numbers. Square roots and divisions of doubles hardly pipeline. Halving the exponent gives 1/sqrt to 3 %, and
// each step of Newton's method doubles the digits.
KS_INLINE float inverse_root(float x) { return 1.0f / std::sqrt(x); }
KS_INLINE double inverse_root(double x) {
    double y = bit_cast<double>(0x5FE6EB50C7B537A9u - (bit_cast<std::uint64_t>(x) >> 1));
    const double half = 0.5 * x;
    KS_UNROLL
    for (int step = 0; step < 4; ++step) y *= 1.5 - half * y * y;
    return y;
}

template <class T>
KS_INLINE void adagrad_number(T g, T rate, T fade, T z, T& G, T& w) {
    const T gradient = g * z;
    G = fade * G + gradient * gradient;
    w -= rate * z * inverse_root(G + T(1e-12));
}

template <class T>
KS_INLINE void adagrad_step(std::size_t n, T g, T eta, T fade, const T* KS_RESTRICT z, T* KS_RESTRICT G, T* KS_RESTRICT w) {
    const T rate = eta * g;
    constexpr std::size_t at_once = trig_group<T>;  // a chain of operations as long as that of a sine
    const std::size_t whole = n - n % at_once;
    for (std::size_t i = 0; i < whole; i += at_once) {
        KS_UNROLL
        for (std::size_t k = i; k < i + at_once; ++k) adagrad_number(g, rate, fade, z[k], G[k], w[k]);
    }
    for (std::size_t k = whole; k < n; ++k) adagrad_number(g, rate, fade, z[k], G[k], w[k]);
}

}  // namespace ks
