// AdaGrad on one output: the gradient is g z.   G <- fade G + (g z)^2;  w -= eta g z / sqrt(G + 1e-12)
//
// Square roots and divisions hardly pipeline; the estimate of 1/sqrt that ARM and AVX-512 have, and steps of Newton's method, do. Every
// number is treated alike wherever it stands, so the result does not depend on how the weights are cut into parts.
#pragma once

#include "base/vecmath.hpp"

#if defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#elif defined(KS_HAVE_TARGET_CLONES) && defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ks {

#if defined(__ARM_NEON) && defined(__aarch64__)
struct VectorOf {
    static float32x4_t load(const float* p) { return vld1q_f32(p); }
    static float64x2_t load(const double* p) { return vld1q_f64(p); }
    static void store(float* p, float32x4_t x) { vst1q_f32(p, x); }
    static void store(double* p, float64x2_t x) { vst1q_f64(p, x); }
    static float32x4_t all(float x) { return vdupq_n_f32(x); }
    static float64x2_t all(double x) { return vdupq_n_f64(x); }
    static float32x4_t add(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmaq_f32(a, b, c); }  // a + b c
    static float64x2_t add(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmaq_f64(a, b, c); }
    static float32x4_t subtract(float32x4_t a, float32x4_t b, float32x4_t c) { return vfmsq_f32(a, b, c); }  // a - b c
    static float64x2_t subtract(float64x2_t a, float64x2_t b, float64x2_t c) { return vfmsq_f64(a, b, c); }
    static float32x4_t estimate(float32x4_t x) { return vrsqrteq_f32(x); }  // of 1/sqrt(x), 8 bits
    static float64x2_t estimate(float64x2_t x) { return vrsqrteq_f64(x); }
    static float32x4_t newton(float32x4_t x, float32x4_t y) { return vrsqrtsq_f32(x * y, y); }  // y newton(x, y): twice the bits
    static float64x2_t newton(float64x2_t x, float64x2_t y) { return vrsqrtsq_f64(x * y, y); }
};

// `count` vectors of weights from i on. `one` says that g is 1 or -1, which saves a product and changes nothing.
template <std::size_t count, bool one, class T>
KS_INLINE void adagrad_vectors(std::size_t i, T g, T rate, T fade, const T* z, T* G, T* w) {
    constexpr std::size_t lane = 16 / sizeof(T);
    constexpr int steps = sizeof(T) == 4 ? 2 : 3;  // 8 bits, 16, 32, 64
    KS_UNROLL
    for (std::size_t at = i; at < i + count * lane; at += lane) {
        const auto feature = VectorOf::load(z + at), gradient = one ? feature : VectorOf::all(g) * feature;
        const auto squares = VectorOf::add(VectorOf::all(fade) * VectorOf::load(G + at), gradient, gradient);
        VectorOf::store(G + at, squares);
        const auto x = squares + VectorOf::all(T(1e-12));
        auto y = VectorOf::estimate(x);
        for (int step = 1; step < steps; ++step) y = y * VectorOf::newton(x, y);
        const auto most = VectorOf::all(rate) * feature * y;  // the last step of Newton's is made where w is
        VectorOf::store(w + at, VectorOf::subtract(VectorOf::load(w + at), most, VectorOf::newton(x, y)));
    }
}

template <bool one, class T>
KS_INLINE std::size_t adagrad_neon(std::size_t n, T g, T rate, T fade, const T* KS_RESTRICT z, T* KS_RESTRICT G, T* KS_RESTRICT w) {
    constexpr std::size_t lane = 16 / sizeof(T);
    std::size_t i = 0;
    for (; i + 8 * lane <= n; i += 8 * lane) adagrad_vectors<8, one>(i, g, rate, fade, z, G, w);
    for (; i + lane <= n; i += lane) adagrad_vectors<1, one>(i, g, rate, fade, z, G, w);
    return i;
}
#elif defined(KS_HAVE_TARGET_CLONES) && defined(__x86_64__)
#define KS_ADAGRAD_AVX512
#define KS_AVX512 __attribute__((target("avx512f")))

// Sixteen floats or eight doubles, the first of them where fewer are left.
KS_AVX512 inline void adagrad_avx512(std::size_t n, float g, float rate, float fade, const float* z, float* G, float* w) {
    const __m512 factor = _mm512_set1_ps(g), step = _mm512_set1_ps(rate), kept = _mm512_set1_ps(fade), tiny = _mm512_set1_ps(1e-12f);
    const __m512 half = _mm512_set1_ps(-0.5f), three = _mm512_set1_ps(1.5f);
    for (std::size_t i = 0; i < n; i += 16) {
        const __mmask16 here = n - i >= 16 ? __mmask16(0xffff) : __mmask16((1u << (n - i)) - 1);
        const __m512 feature = _mm512_maskz_loadu_ps(here, z + i), gradient = _mm512_mul_ps(factor, feature);
        const __m512 squares = _mm512_fmadd_ps(gradient, gradient, _mm512_mul_ps(kept, _mm512_maskz_loadu_ps(here, G + i)));
        _mm512_mask_storeu_ps(G + i, here, squares);
        const __m512 x = _mm512_add_ps(squares, tiny), y = _mm512_maskz_rsqrt14_ps(here, x);
        const __m512 newton = _mm512_fmadd_ps(_mm512_mul_ps(half, _mm512_mul_ps(x, y)), y, three);  // 14 bits, 28
        const __m512 change = _mm512_mul_ps(_mm512_mul_ps(step, feature), y);
        _mm512_mask_storeu_ps(w + i, here, _mm512_fnmadd_ps(change, newton, _mm512_maskz_loadu_ps(here, w + i)));
    }
}

KS_AVX512 inline void adagrad_avx512(std::size_t n, double g, double rate, double fade, const double* z, double* G, double* w) {
    const __m512d factor = _mm512_set1_pd(g), step = _mm512_set1_pd(rate), kept = _mm512_set1_pd(fade), tiny = _mm512_set1_pd(1e-12);
    const __m512d half = _mm512_set1_pd(-0.5), three = _mm512_set1_pd(1.5);
    for (std::size_t i = 0; i < n; i += 8) {
        const __mmask8 here = n - i >= 8 ? __mmask8(0xff) : __mmask8((1u << (n - i)) - 1);
        const __m512d feature = _mm512_maskz_loadu_pd(here, z + i), gradient = _mm512_mul_pd(factor, feature);
        const __m512d squares = _mm512_fmadd_pd(gradient, gradient, _mm512_mul_pd(kept, _mm512_maskz_loadu_pd(here, G + i)));
        _mm512_mask_storeu_pd(G + i, here, squares);
        const __m512d x = _mm512_add_pd(squares, tiny), estimate = _mm512_maskz_rsqrt14_pd(here, x);
        const __m512d y = _mm512_mul_pd(estimate, _mm512_fmadd_pd(_mm512_mul_pd(half, _mm512_mul_pd(x, estimate)), estimate, three));
        const __m512d newton = _mm512_fmadd_pd(_mm512_mul_pd(half, _mm512_mul_pd(x, y)), y, three);  // 14 bits, 28, 56
        const __m512d change = _mm512_mul_pd(_mm512_mul_pd(step, feature), y);
        _mm512_mask_storeu_pd(w + i, here, _mm512_fnmadd_pd(change, newton, _mm512_maskz_loadu_pd(here, w + i)));
    }
}

inline bool has_avx512() {
    static const bool has = (__builtin_cpu_init(), __builtin_cpu_supports("avx512f"));
    return has;
}
#endif

template <class T>
KS_INLINE void adagrad_step(std::size_t n, T g, T eta, T fade, const T* KS_RESTRICT z, T* KS_RESTRICT G, T* KS_RESTRICT w) {
    const T rate = eta * g;
    std::size_t done = 0;
#if defined(__ARM_NEON) && defined(__aarch64__)
    done = std::abs(g) == T(1) ? adagrad_neon<true>(n, g, rate, fade, z, G, w) : adagrad_neon<false>(n, g, rate, fade, z, G, w);
#elif defined(KS_ADAGRAD_AVX512)
    if (has_avx512()) return adagrad_avx512(n, g, rate, fade, z, G, w);
#endif
#pragma omp simd
    for (std::size_t k = done; k < n; ++k) {
        const T gradient = g * z[k];
        G[k] = fade * G[k] + gradient * gradient;
        w[k] -= rate * z[k] / std::sqrt(G[k] + T(1e-12));
    }
}

}  // namespace ks
