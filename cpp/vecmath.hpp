// Vector arithmetic shared by every compiled loop: sincos and exp that vectorise, dot and axpy, CSR times dense.
//
// Portability: plain loops that the compiler turns into NEON, SSE, AVX2 or AVX-512. Functions marked KS_CLONES exist
// once per x86 level and are picked when the module loads; helpers marked KS_INLINE are compiled into their callers, so
// they follow the caller's level. Sums are kept in a fixed number of lanes, so their order is the same on every machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef KS_HAVE_TARGET_CLONES  // found out by CMake
#define KS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KS_CLONES
#endif

#if defined(__GNUC__)
#define KS_INLINE inline __attribute__((always_inline))
#define KS_RESTRICT __restrict__
#else
#define KS_INLINE inline
#define KS_RESTRICT __restrict
#endif

namespace ks {

template <class To, class From>
KS_INLINE To bit_cast(From x) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

template <class T> struct Bits;
template <> struct Bits<float> { using Int = std::int32_t; using UInt = std::uint32_t; };
template <> struct Bits<double> { using Int = std::int64_t; using UInt = std::uint64_t; };

// ---- Constants -----------------------------------------------------------------------------------------------------
// round: adding it rounds to the nearest integer and leaves that integer in the low bits of the sum.
// pi/2 and ln 2 are cut into parts (Cody and Waite): the leading ones have so few bits that n * part is exact for every
// n that occurs, so the reductions lose nothing, with or without fused multiply-adds.
// The polynomials are minimax fits (Remez) on |r| <= pi/4 and |r| <= ln(2)/2.
template <class T> struct Math;

template <> struct Math<float> {
    static constexpr float round = 12582912.0f;  // 1.5 * 2^23
    static constexpr float trig_limit = 1e4f;    // beyond, n * half_pi_1 is no longer exact
    static constexpr float two_over_pi = 0.636619772367581343f;
    static constexpr float half_pi_1 = 1.5703125f, half_pi_2 = 4.837512969970703e-4f, half_pi_3 = 7.549790126404332e-8f;
    static constexpr float log2_e = 1.44269504088896341f;
    static constexpr float ln2_1 = 0.693145751953125f, ln2_2 = 1.428606765330187e-6f;
    static constexpr float exp_low = -104.0f, exp_high = 89.0f;  // results are 0 and inf outside
    static constexpr int mantissa = 23, bias = 127;
    // (sin r - r) / r^3, (cos r - 1 + r^2/2) / r^4, (e^r - 1 - r) / r^2
    static KS_INLINE float sin_tail(float z) {
        return -0.16666650772094727f + z * (0.008331975899636745f + z * -0.0001949529250850901f);
    }
    static KS_INLINE float cos_tail(float z) {
        return 0.04166664555668831f + z * (-0.0013887364184483886f + z * 2.443809171381872e-05f);
    }
    static KS_INLINE float exp_tail(float r) {
        return 0.5f + r * (0.166665181517601f + r * (0.04166620597243309f
             + r * (0.008368953131139278f + r * 0.0013950596330687404f)));
    }
};

template <> struct Math<double> {
    static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double trig_limit = 1e5;
    static constexpr double two_over_pi = 0.636619772367581343;
    static constexpr double half_pi_1 = 1.5707963267341256, half_pi_2 = 6.077100506303966e-11,
                            half_pi_3 = 2.0222662487959506e-21;
    static constexpr double log2_e = 1.44269504088896341;
    static constexpr double ln2_1 = 0.6931471805592082, ln2_2 = 7.371002565167799e-13;
    static constexpr double exp_low = -746.0, exp_high = 710.0;
    static constexpr int mantissa = 52, bias = 1023;
    static KS_INLINE double sin_tail(double z) {
        return -0.166666666666666 + z * (0.008333333333316397 + z * (-0.0001984126982587304
             + z * (2.755731252483372e-06 + z * (-2.5050597239592164e-08 + z * 1.588841675862287e-10))));
    }
    static KS_INLINE double cos_tail(double z) {
        return 0.0416666666666666 + z * (-0.0013888888888874064 + z * (2.4801587289443543e-05
             + z * (-2.7557314340677814e-07 + z * (2.0875721626217756e-09 + z * -1.135955945633136e-11))));
    }
    static KS_INLINE double exp_tail(double r) {
        return 0.5000000000000013 + r * (0.166666666666667 + r * (0.04166666666651433 + r * (0.00833333333330703
             + r * (0.0013888888947330548 + r * (0.0001984126991776926 + r * (2.4801489591056036e-05
             + r * (2.755721594928865e-06 + r * (2.7631413666881514e-07 + r * 2.5117974596107363e-08))))))));
    }
};

// ---- Elementwise functions -----------------------------------------------------------------------------------------

// sin and cos for |x| <= Math<T>::trig_limit, without a branch.
template <class T>
KS_INLINE void sincos(T x, T& s, T& c) {
    using M = Math<T>;
    using U = typename Bits<T>::UInt;
    const T shifted = x * M::two_over_pi + M::round;
    const T n = shifted - M::round;
    const U quadrant = bit_cast<U>(shifted);  // n modulo 4 in the low bits
    const T r = ((x - n * M::half_pi_1) - n * M::half_pi_2) - n * M::half_pi_3;
    const T z = r * r;
    const T sin_r = r + r * z * M::sin_tail(z);
    const T cos_r = (T(1) - T(0.5) * z) + z * z * M::cos_tail(z);
    const bool odd = quadrant & 1;
    constexpr int to_sign = 8 * sizeof(T) - 2;  // bit 1 -> the sign bit
    const U flip_s = (quadrant & 2) << to_sign;
    const U flip_c = ((quadrant + 1) & 2) << to_sign;
    s = bit_cast<T>(bit_cast<U>(odd ? cos_r : sin_r) ^ flip_s);
    c = bit_cast<T>(bit_cast<U>(odd ? sin_r : cos_r) ^ flip_c);
}

// e^x over the whole range: subnormal results, 0, inf and NaN included.
template <class T>
KS_INLINE T exp(T x) {
    using M = Math<T>;
    using I = typename Bits<T>::Int;
    x = x < M::exp_low ? M::exp_low : x;
    x = x > M::exp_high ? M::exp_high : x;
    const T shifted = x * M::log2_e + M::round;
    const T n = shifted - M::round;
    const T r = (x - n * M::ln2_1) - n * M::ln2_2;
    const T p = T(1) + (r + r * r * M::exp_tail(r));
    // 2^n as a product of two powers, neither of which leaves the range of normal numbers.
    const I k = bit_cast<I>(shifted) - bit_cast<I>(M::round);
    const I half = k >> 1;
    const T a = bit_cast<T>(I(half + M::bias) << M::mantissa);
    const T b = bit_cast<T>(I(k - half + M::bias) << M::mantissa);
    return p * a * b;
}

// Z (m, 2 D) = scale * [cos P, sin P], P (m, D). An element's result depends on that element alone.
template <class T>
KS_CLONES void trig(std::size_t m, std::size_t D, const T* P, T scale, T* Z) {
    for (std::size_t i = 0; i < m; ++i) {
        const T* KS_RESTRICT p = P + i * D;
        T* KS_RESTRICT zc = Z + 2 * i * D;
        T* KS_RESTRICT zs = zc + D;
        int large = 0;
#pragma omp simd reduction(| : large)
        for (std::size_t j = 0; j < D; ++j) {
            T s, c;
            sincos(p[j], s, c);
            zc[j] = scale * c;
            zs[j] = scale * s;
            large |= std::abs(p[j]) > Math<T>::trig_limit;
        }
        if (!large) continue;
        for (std::size_t j = 0; j < D; ++j) {
            if (!(std::abs(p[j]) > Math<T>::trig_limit)) continue;
            zc[j] = T(scale * std::cos(double(p[j])));
            zs[j] = T(scale * std::sin(double(p[j])));
        }
    }
}

// x <- exp(-c x) in place: Gaussian kernel values from squared distances. `clip` reads negative distances, which
// rounding produces, as 0.
template <class T>
KS_CLONES void exp_scaled(std::size_t n, T* x, T c, bool clip) {
    if (clip) {
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) x[i] = exp(-c * (x[i] < T(0) ? T(0) : x[i]));
    } else {
#pragma omp simd
        for (std::size_t i = 0; i < n; ++i) x[i] = exp(-c * x[i]);
    }
}

// An exponent of all ones is inf or NaN; one more unit carries it into the sign bit. Integer operations only, because
// every instruction set has them in vectors.
template <class T>
KS_CLONES bool all_finite(std::size_t n, const T* x) {
    using U = typename Bits<T>::UInt;
    constexpr U sign = U(1) << (8 * sizeof(T) - 1), one = U(1) << Math<T>::mantissa;
    U seen = 0;
#pragma omp simd reduction(| : seen)
    for (std::size_t i = 0; i < n; ++i) seen |= (bit_cast<U>(x[i]) & ~sign) + one;
    return !(seen & sign);
}

// ---- Dense vectors: building blocks of the passes ------------------------------------------------------------------

template <class T> constexpr std::size_t lanes = 128 / sizeof(T);

// a'b in `lanes` running sums, added pairwise at the end.
template <class T>
KS_INLINE T dot(std::size_t n, const T* KS_RESTRICT a, const T* KS_RESTRICT b) {
    constexpr std::size_t L = lanes<T>;
    T acc[L] = {};
    std::size_t i = 0;
    for (; i + L <= n; i += L) {
#pragma omp simd
        for (std::size_t k = 0; k < L; ++k) acc[k] += a[i + k] * b[i + k];
    }
    for (std::size_t k = 0; i < n; ++i, ++k) acc[k] += a[i] * b[i];
    for (std::size_t half = L / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) acc[k] += acc[k + half];
    return acc[0];
}

// y += a x
template <class T>
KS_INLINE void axpy(std::size_t n, T a, const T* KS_RESTRICT x, T* KS_RESTRICT y) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// x *= a
template <class T>
KS_INLINE void scale(std::size_t n, T a, T* x) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) x[i] *= a;
}

// AdaGrad on one output: the gradient is g z.   G += (g z)^2;  w -= eta g z / sqrt(G + 1e-12)
template <class T>
KS_INLINE void adagrad_step(std::size_t n, T g, T eta, const T* KS_RESTRICT z, T* KS_RESTRICT G, T* KS_RESTRICT w) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) {
        const T gi = g * z[i];
        G[i] += gi * gi;
        w[i] -= eta * gi / std::sqrt(G[i] + T(1e-12));
    }
}

// ---- CSR times dense -----------------------------------------------------------------------------------------------

// True when the arrays describe a CSR matrix of m rows, d columns and nnz stored entries.
template <class I>
KS_CLONES bool csr_valid(std::size_t m, std::size_t d, std::size_t nnz, const I* indptr, const I* indices) {
    bool ok = indptr[0] >= 0 && std::size_t(indptr[m]) <= nnz;
    for (std::size_t i = 0; i < m; ++i) ok &= indptr[i] <= indptr[i + 1];
    if (!ok) return false;
    int bad = 0;
    const I width = I(d);
#pragma omp simd reduction(| : bad)
    for (std::size_t k = indptr[0]; k < std::size_t(indptr[m]); ++k) bad |= (indices[k] < 0) | (indices[k] >= width);
    return !bad;
}

// out (m, D) = A W, A (m, d) in CSR, W (d, D) and out row-major. A tile of columns stays in registers while a row's
// entries are added, and the tile of W stays in the first-level cache over a block of rows.
template <class T, class I>
KS_CLONES void csr_matmul(std::size_t m, std::size_t D, const T* data, const I* indices, const I* indptr, const T* W,
                          T* out) {
    constexpr std::size_t tile = 256 / sizeof(T), block = 256;
    for (std::size_t start = 0; start < m; start += block) {
        const std::size_t stop = start + block < m ? start + block : m;
        std::size_t j = 0;
        for (; j + tile <= D; j += tile) {
            for (std::size_t i = start; i < stop; ++i) {
                T acc[tile] = {};
                for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
                    const T v = data[k];
                    const T* KS_RESTRICT w = W + std::size_t(indices[k]) * D + j;
#pragma omp simd
                    for (std::size_t c = 0; c < tile; ++c) acc[c] += v * w[c];
                }
                std::memcpy(out + i * D + j, acc, sizeof acc);
            }
        }
        const std::size_t rest = D - j;
        if (!rest) continue;
        for (std::size_t i = start; i < stop; ++i) {
            T acc[tile] = {};
            for (I k = indptr[i]; k < indptr[i + 1]; ++k) axpy(rest, data[k], W + std::size_t(indices[k]) * D + j, acc);
            std::memcpy(out + i * D + j, acc, rest * sizeof(T));
        }
    }
}

}  // namespace ks
