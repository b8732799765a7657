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
#include <limits>
#include <type_traits>

#ifdef KS_HAVE_TARGET_CLONES  // found out by CMake
#define KS_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KS_CLONES
#endif

#if defined(__GNUC__)
#define KS_INLINE inline __attribute__((always_inline))
#define KS_LAMBDA __attribute__((always_inline))
#define KS_RESTRICT __restrict__
#define KS_UNROLL _Pragma("GCC unroll 64")  // unrolled completely, small arrays become registers
#else
#define KS_INLINE inline
#define KS_LAMBDA
#define KS_RESTRICT __restrict
#define KS_UNROLL
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
template <> struct Bits<float> { using UInt = std::uint32_t; };
template <> struct Bits<double> { using UInt = std::uint64_t; };

// ---- Vectors -------------------------------------------------------------------------------------------------------

// work(bytes), compiled for each x86 level as by KS_CLONES, with the bytes of a register there as a constant: vectors that are wider than
// registers go through memory, five to ten times slower. `work` is a KS_LAMBDA, which follows the level that it is compiled for.
template <std::size_t n> using Bytes = std::integral_constant<std::size_t, n>;
#ifdef KS_HAVE_TARGET_CLONES
template <class Work> __attribute__((target("arch=x86-64-v4"))) auto on_v4(const Work& work) { return work(Bytes<64>()); }
template <class Work> __attribute__((target("arch=x86-64-v3"))) auto on_v3(const Work& work) { return work(Bytes<32>()); }
template <class Work>
inline auto at_level(const Work& work) {
    if (__builtin_cpu_supports("x86-64-v4")) return on_v4(work);
    if (__builtin_cpu_supports("x86-64-v3")) return on_v3(work);
    return work(Bytes<16>());
}
#else
template <class Work>
inline auto at_level(const Work& work) { return work(Bytes<16>()); }
#endif

// n numbers side by side, in registers; left to itself, GCC 12 takes sums of 32 doubles one by one.
#if defined(__GNUC__)
template <class T, std::size_t n>
struct Line {
    typedef T type __attribute__((vector_size(n * sizeof(T))));
};
#else
template <class T, std::size_t n>
struct Line {
    struct type {
        T at[n];
#define KS_EACH(op)                                                                          \
    friend type operator op(type a, const type& b) {                                          \
        for (std::size_t c = 0; c < n; ++c) a.at[c] = a.at[c] op b.at[c];                     \
        return a;                                                                             \
    }
        KS_EACH(+) KS_EACH(-) KS_EACH(*) KS_EACH(/)
#undef KS_EACH
        type& operator+=(const type& other) { return *this = *this + other; }
        friend type operator*(T v, type part) {
            for (std::size_t c = 0; c < n; ++c) part.at[c] *= v;
            return part;
        }
    };
};
#endif

// ---- Constants -----------------------------------------------------------------------------------------------------
// round: adding it rounds to the nearest integer and leaves that integer in the low bits of the sum.
// pi and ln 2 are cut into parts (Cody and Waite): the leading ones have so few bits that n * part is exact for every n
// that occurs, so the reductions lose nothing, with or without fused multiply-adds.
// The polynomials are minimax fits (Remez) on |r| <= pi/2 and |r| <= ln(2)/2.
template <class T> struct Math;

template <> struct Math<float> {
    static constexpr float round = 12582912.0f;  // 1.5 * 2^23
    static constexpr float trig_limit = 1e4f;    // up to here n has 12 bits and n * pi_2 is exact
    static constexpr float inverse_pi = 0.318309886183790672f;
    static constexpr float pi_high = 3.1415927410125732f, pi_low = -8.742277657347586e-8f;
    static constexpr float pi_1 = 3.140625f, pi_2 = 9.675025939941406e-4f, pi_3 = 1.5099580252808664e-7f;
    static constexpr float log2_e = 1.44269504088896341f;
    static constexpr float ln2_1 = 0.693145751953125f, ln2_2 = 1.428606765330187e-6f;
    static constexpr float exp_low = -87.5f, exp_high = 89.0f;  // n = -126 gives 0, n = 128 may give inf
    static constexpr int mantissa = 23, bias = 127;
    // sin(r) / r and cos(r) as polynomials in r^2, highest power first; (e^r - 1 - r) / r^2
    static constexpr int sin_n = 5;
    static constexpr float sin_c[] = {
        2.599903382360935e-06f, -0.00019806547788903117f, 0.008333016186952591f, -0.16666656732559204f, 1.0f};
    static constexpr int cos_n = 6;
    static constexpr float cos_c[] = {
        -2.619248391511064e-07f, 2.4769240553723648e-05f, -0.0013888567918911576f, 0.041666656732559204f, -0.5f,
        1.0f};
    static KS_INLINE float exp_tail(float r) {
        return 0.5f + r * (0.166665181517601f + r * (0.04166620597243309f
             + r * (0.008368953131139278f + r * 0.0013950596330687404f)));
    }
};

template <> struct Math<double> {
    static constexpr double round = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double trig_limit = 1e5;
    static constexpr double inverse_pi = 0.318309886183790672;
    static constexpr double pi_high = 3.141592653589793116, pi_low = 1.2246467991473532e-16;
    static constexpr double pi_1 = 3.1415926534682512, pi_2 = 1.2154201012607932e-10, pi_3 = 4.044532497591901e-21;
    static constexpr double log2_e = 1.44269504088896341;
    static constexpr double ln2_1 = 0.6931471805592082, ln2_2 = 7.371002565167799e-13;
    static constexpr double exp_low = -708.5, exp_high = 710.0;
    static constexpr int mantissa = 52, bias = 1023;
    static constexpr int sin_n = 9;
    static constexpr double sin_c[] = {
        2.7184052001898015e-15, -7.642704149741901e-13, 1.605892749234264e-10, -2.5052106599590065e-08,
        2.7557319207706627e-06, -0.0001984126984118546, 0.008333333333333113, -0.16666666666666666, 1.0};
    static constexpr int cos_n = 9;
    static constexpr double cos_c[] = {
        4.6159742767174284e-14, -1.1463621357618167e-11, 2.0876592102678798e-09, -2.7557317059931793e-07,
        2.4801587285705197e-05, -0.0013888888888829698, 0.041666666666665825, -0.5, 1.0};
    static KS_INLINE double exp_tail(double r) {
        return 0.5000000000000013 + r * (0.166666666666667 + r * (0.04166666666651433 + r * (0.00833333333330703
             + r * (0.0013888888947330548 + r * (0.0001984126991776926 + r * (2.4801489591056036e-05
             + r * (2.755721594928865e-06 + r * (2.7631413666881514e-07 + r * 2.5117974596107363e-08))))))));
    }
};

// Elements handled together in a long chain of operations. Written out, a group becomes several interleaved vectors:
// a core that can look only a few instructions ahead is busy with one while it waits for another.
template <class T> constexpr std::size_t group = 64 / sizeof(T);

// ---- Elementwise functions -----------------------------------------------------------------------------------------

// s = scale sin x and c = scale cos x for |x| <= trig_limit. With x = n pi + r both change sign with n, so there is
// nothing to select; the price is a polynomial that reaches pi/2.
template <class T>
KS_INLINE void sincos(T x, T scale, T& s, T& c) {
    using M = Math<T>;
    using U = typename Bits<T>::UInt;
    const T shifted = x * M::inverse_pi + M::round;
    const T n = shifted - M::round;
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
    const T r = std::fma(-n, M::pi_low, std::fma(-n, M::pi_high, x));  // exact products: two parts do
#else
    const T r = ((x - n * M::pi_1) - n * M::pi_2) - n * M::pi_3;
#endif
    const T z = r * r;
    const T signed_scale = bit_cast<T>(bit_cast<U>(scale) ^ (bit_cast<U>(shifted) << (8 * sizeof(T) - 1)));
    T sine = M::sin_c[0], cosine = M::cos_c[0];
    KS_UNROLL for (int k = 1; k < M::sin_n; ++k) sine = z * sine + M::sin_c[k];
    KS_UNROLL for (int k = 1; k < M::cos_n; ++k) cosine = z * cosine + M::cos_c[k];
    s = (signed_scale * r) * sine;
    c = signed_scale * cosine;
}

// Numbers handled together there: what ARM's registers of 16 bytes need to be busy, and x86 does better with less.
#if defined(__aarch64__)
template <class T> constexpr std::size_t trig_group = 2 * group<T>;
#else
template <class T> constexpr std::size_t trig_group = group<T>;
#endif

// Whether the range reduction would lose digits of one of n angles.
template <class T>
KS_INLINE bool any_large(std::size_t n, const T* p) {
    int large = 0;
#pragma omp simd reduction(| : large)
    for (std::size_t j = 0; j < n; ++j) large |= std::abs(p[j]) > Math<T>::trig_limit;
    return large != 0;
}

// zc + i zs = scale e^(i p) for n numbers; the libm takes over for large ones.
template <class T>
KS_INLINE void cos_sin(std::size_t n, const T* KS_RESTRICT p, T scale, T* KS_RESTRICT zc, T* KS_RESTRICT zs) {
    const bool large = any_large(n, p);
    constexpr std::size_t G = trig_group<T>;
    const std::size_t few = n < G ? n : 0;
    for (std::size_t j = 0; j < few; ++j) sincos(p[j], scale, zs[j], zc[j]);
    for (std::size_t j = few; j < n; j += G) {
        const std::size_t at = j + G <= n ? j : n - G;  // the last group may overlap the one before: same values
        KS_UNROLL
        for (std::size_t k = at; k < at + G; ++k) sincos(p[k], scale, zs[k], zc[k]);
    }
    if (!large) return;
    for (std::size_t j = 0; j < n; ++j) {
        if (!(std::abs(p[j]) > Math<T>::trig_limit)) continue;
        zc[j] = T(scale * std::cos(double(p[j])));
        zs[j] = T(scale * std::sin(double(p[j])));
    }
}

// Larger and smaller of two numbers in one instruction: what the compilers make of a comparison is that on x86, and of fmax on ARM.
#if defined(__aarch64__)
KS_INLINE float larger(float a, float b) { return __builtin_fmaxf(a, b); }
KS_INLINE double larger(double a, double b) { return __builtin_fmax(a, b); }
KS_INLINE float lesser(float a, float b) { return __builtin_fminf(a, b); }
KS_INLINE double lesser(double a, double b) { return __builtin_fmin(a, b); }
#else
template <class T> KS_INLINE T larger(T a, T b) { return a > b ? a : b; }
template <class T> KS_INLINE T lesser(T a, T b) { return a < b ? a : b; }
#endif

// e^x for exp_low <= x <= exp_high (or NaN). Below 2^-125.5 (double: 2^-1021.5) the result is 0, so that 2^(n-1) needs one shift and
// is a number up to where e^x overflows.
template <class T>
KS_INLINE T exp_between(T x) {
    using M = Math<T>;
    using U = typename Bits<T>::UInt;
    constexpr T shift = M::round + (M::bias - 1);
    const T shifted = x * M::log2_e + shift;
    const T n = shifted - shift;
    const T r = (x - n * M::ln2_1) - n * M::ln2_2;
    const T half = bit_cast<T>(bit_cast<U>(shifted) << M::mantissa);
    return T(2) * (half + half * (r + r * r * M::exp_tail(r)));
}

template <class T>
KS_INLINE T exp(T x) {
    x = x < Math<T>::exp_low ? Math<T>::exp_low : x;
    return exp_between(x > Math<T>::exp_high ? Math<T>::exp_high : x);
}

// Z (m, 2 D) = scale * [cos P, sin P], P (m, D).
template <class T>
KS_CLONES void trig(std::size_t m, std::size_t D, const T* P, T scale, T* Z) {
    for (std::size_t i = 0; i < m; ++i) cos_sin(D, P + i * D, scale, Z + 2 * i * D, Z + (2 * i + 1) * D);
}

// x <- exp(-c x) in place, c >= 0: Gaussian kernel values from squared distances. `clip` reads negative distances,
// which rounding produces, as 0. Doubles below the smallest normal number come from the C library, because the sign of a
// sum of them still decides a label; floats that small are 0.
template <class T>
KS_INLINE void exp_scaled_chunk(std::size_t n, T* x, T c, bool clip) {
    constexpr std::size_t longest = 512, G = group<T>;
    constexpr T normal = T(708.0), last = T(745.14);  // e^-x is subnormal between them
    const T low = clip ? T(0) : -Math<T>::exp_high / c, high = -Math<T>::exp_low / c;
    const auto power = [=](T t) {
        const T found = exp_between(-c * lesser(larger(t, low), high));
        return t == t ? found : t;  // larger and lesser do not know NaN
    };
    for (; n > 0; n -= n < longest ? n : longest, x += longest) {
        const std::size_t m = n < longest ? n : longest, whole = m - m % G;
        T before[sizeof(T) == 8 ? longest : 1];
        bool subnormal = false;  // whether there may be any
        if (sizeof(T) == 8) {
            const T limit = normal / c;
            std::int64_t large = 0;  // as wide as a double, so that a vector holds as many
#pragma omp simd reduction(| : large)
            for (std::size_t i = 0; i < m; ++i) large |= x[i] > limit ? 1 : 0;
            subnormal = large != 0;
            if (subnormal) std::memcpy(before, x, m * sizeof(T));
        }
        for (std::size_t i = 0; i < whole; i += G) {
#pragma omp simd
            for (std::size_t k = i; k < i + G; ++k) x[k] = power(x[k]);
        }
        for (std::size_t i = whole; i < m; ++i) x[i] = power(x[i]);
        for (std::size_t i = 0; i < m && subnormal; ++i)
            if (c * before[i] > normal && c * before[i] < last) x[i] = std::exp(-c * before[i]);
    }
}

template <class T>
KS_CLONES void exp_scaled(std::size_t n, T* x, T c, bool clip) {
    exp_scaled_chunk(n, x, c, clip);
}

// Whether all |x| < 2^exponent. So many units are added to the exponent that one that large is carried into the sign bit; inf
// and NaN have the largest of all. Integer operations only, because every instruction set has them in vectors.
template <class T>
KS_CLONES bool all_below(std::size_t n, const T* x, int exponent) {
    using U = typename Bits<T>::UInt;
    constexpr U sign = U(1) << (8 * sizeof(T) - 1);
    const U one = U(std::numeric_limits<T>::max_exponent - exponent + 1) << Math<T>::mantissa;
    U seen[group<T>] = {};
    const std::size_t whole = n - n % group<T>;
    for (std::size_t i = 0; i < whole; i += group<T>) {
        KS_UNROLL
        for (std::size_t k = 0; k < group<T>; ++k) seen[k] |= (bit_cast<U>(x[i + k]) & ~sign) + one;
    }
    for (std::size_t i = whole; i < n; ++i) seen[0] |= (bit_cast<U>(x[i]) & ~sign) + one;
    for (std::size_t k = 1; k < group<T>; ++k) seen[0] |= seen[k];
    return !(seen[0] & sign);
}

template <class T>
bool all_finite(std::size_t n, const T* x) { return all_below(n, x, std::numeric_limits<T>::max_exponent); }

// ---- Dense vectors: building blocks of the passes ------------------------------------------------------------------

template <class T> constexpr std::size_t lanes = 128 / sizeof(T);

// The running sums added pairwise.
template <class T>
KS_INLINE T fold(T* acc) {
    for (std::size_t half = lanes<T> / 2; half > 0; half /= 2)
        for (std::size_t k = 0; k < half; ++k) acc[k] += acc[k + half];
    return acc[0];
}

// a'b in `lanes` running sums, added pairwise at the end. It is a function of its own: inside a large one compilers for x86 do not always
// keep the sums in vectors.
#ifdef KS_HAVE_TARGET_CLONES
#define KS_APART KS_CLONES
#else
#define KS_APART KS_INLINE
#endif
template <class T>
KS_APART T dot(std::size_t n, const T* KS_RESTRICT a, const T* KS_RESTRICT b) {
    constexpr std::size_t L = lanes<T>;
    T acc[L] = {};
    std::size_t i = 0;
    for (; i + L <= n; i += L) {
        KS_UNROLL
        for (std::size_t k = 0; k < L; ++k) acc[k] += a[i + k] * b[i + k];
    }
    for (std::size_t k = 0; i < n; ++i, ++k) acc[k] += a[i] * b[i];
    return fold(acc);
}

// The sum of n numbers, in `lanes` running sums.
template <class T>
KS_INLINE T sum(std::size_t n, const T* KS_RESTRICT x) {
    constexpr std::size_t L = lanes<T>;
    T acc[L] = {};
    std::size_t i = 0;
    for (; i + L <= n; i += L) {
        KS_UNROLL
        for (std::size_t k = 0; k < L; ++k) acc[k] += x[i + k];
    }
    for (std::size_t k = 0; i < n; ++i, ++k) acc[k] += x[i];
    return fold(acc);
}

// y += a x
template <class T>
KS_INLINE void axpy(std::size_t n, T a, const T* KS_RESTRICT x, T* KS_RESTRICT y) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

// out (width) = sum_k v_k row(k) of n rows, read once from front to back, four at a time, which is what a prefetcher likes.
template <class T, class Row>
KS_INLINE void combine_rows(std::size_t n, const T* KS_RESTRICT v, Row row, std::size_t width, T* KS_RESTRICT out) {
    for (std::size_t j = 0; j < width; ++j) out[j] = T(0);
    std::size_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const T *KS_RESTRICT e0 = row(k), *KS_RESTRICT e1 = row(k + 1), *KS_RESTRICT e2 = row(k + 2), *KS_RESTRICT e3 = row(k + 3);
        const T v0 = v[k], v1 = v[k + 1], v2 = v[k + 2], v3 = v[k + 3];
#pragma omp simd
        for (std::size_t j = 0; j < width; ++j) out[j] += (v0 * e0[j] + v1 * e1[j]) + (v2 * e2[j] + v3 * e3[j]);
    }
    for (; k < n; ++k) axpy(width, v[k], row(k), out);
}

// Least of n numbers.
template <class T>
KS_INLINE T least(std::size_t n, const T* x) {
    constexpr std::size_t L = lanes<T>;
    T low[L];
    for (std::size_t k = 0; k < L; ++k) low[k] = std::numeric_limits<T>::infinity();
    std::size_t i = 0;
    for (; i + L <= n; i += L) {
        KS_UNROLL
        for (std::size_t k = 0; k < L; ++k) low[k] = lesser(low[k], x[i + k]);
    }
    for (; i < n; ++i) low[0] = lesser(low[0], x[i]);
    for (std::size_t k = 1; k < L; ++k) low[0] = lesser(low[0], low[k]);
    return low[0];
}

// x *= a
template <class T>
KS_INLINE void scale(std::size_t n, T a, T* x) {
#pragma omp simd
    for (std::size_t i = 0; i < n; ++i) x[i] *= a;
}

// `count` numbers that are soon read or written are asked for, when they are not where a processor looks by itself.
template <std::size_t count, class T>
KS_INLINE void fetch(const T* at) {
    KS_UNROLL
    for (std::size_t l = 0; l < count; l += 64 / sizeof(T)) __builtin_prefetch(at + l);
}

// Rows of results that are written a tile of columns at a time lie far apart: the tile of the row that comes so much later is fetched.
constexpr std::size_t rows_ahead = 4;

// ---- CSR times dense -----------------------------------------------------------------------------------------------

// Rows [start, stop) of one tile of columns of out, whose rows lie D apart and those of W `stride` apart. The sums stay
// in registers while the entries of a row are added; at every row, `soon` lines of the tile that comes next are fetched.
template <std::size_t bytes, std::size_t tile, class T, class I>
KS_INLINE void csr_tile(std::size_t start, std::size_t stop, std::size_t D, const T* KS_RESTRICT data,
                        const I* KS_RESTRICT indices, const I* KS_RESTRICT indptr, const T* KS_RESTRICT W,
                        std::size_t stride, T* KS_RESTRICT out, std::size_t soon = 0, const T* next = nullptr) {
    constexpr std::size_t wide = bytes / sizeof(T), width = tile < wide ? tile : wide, lines = tile / width;
    using Numbers = typename Line<T, width>::type;
    for (std::size_t i = start; i < stop; ++i) {
        Numbers acc[lines] = {};
        if (i + rows_ahead < stop) fetch<tile>(out + (i + rows_ahead) * D);
        for (std::size_t line = 0; line < soon; ++line, next += 64 / sizeof(T)) __builtin_prefetch(next, 0, 2);
        for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
            const T v = data[k];
            const T* KS_RESTRICT w = W + std::size_t(indices[k]) * stride;
            KS_UNROLL
            for (std::size_t l = 0; l < lines; ++l) {
                Numbers part;
                std::memcpy(&part, w + l * width, sizeof part);
                acc[l] += v * part;
            }
        }
        std::memcpy(out + i * D, acc, sizeof acc);
    }
}

template <class T> constexpr std::size_t csr_tile_width = 256 / sizeof(T);

// out (m, D) = A W, A (m, d) in CSR, W (d, D) and out row-major, a tile of columns at a time. `tiles`, when given, are the whole tiles of W
// one after the other, (D / tile, d, tile): in a row, they are fetched in time, stay in the first-level cache and its address cache for a
// block of rows, and rows of W a power of two apart do not evict each other.
template <std::size_t bytes, class T, class I>
KS_INLINE void csr_matmul_in(std::size_t m, std::size_t d, std::size_t D, const T* data, const I* indices,
                             const I* indptr, const T* W, const T* tiles, T* out) {
    constexpr std::size_t tile = csr_tile_width<T>, block = 1024;
    for (std::size_t start = 0; start < m; start += block) {
        const std::size_t stop = start + block < m ? start + block : m, soon = tiles ? (4 * d - 1) / (stop - start) + 1 : 0;
        std::size_t j = 0;
        for (; j + tile <= D; j += tile) {
            const T* at = tiles ? tiles + j * d : W + j;
            csr_tile<bytes, tile>(start, stop, D, data, indices, indptr, at, tiles ? tile : D, out + j, soon, at + d * tile);
        }
        // what is left, in narrower tiles: 40 columns are one of 32 and one of 8
        for (; j + tile / 2 <= D; j += tile / 2)
            csr_tile<bytes, tile / 2>(start, stop, D, data, indices, indptr, W + j, D, out + j);
        for (; j + tile / 8 <= D; j += tile / 8)
            csr_tile<bytes, tile / 8>(start, stop, D, data, indices, indptr, W + j, D, out + j);
        for (; j < D; ++j) csr_tile<bytes, 1>(start, stop, D, data, indices, indptr, W + j, D, out + j);
    }
}
template <class T, class I>
void csr_matmul(std::size_t m, std::size_t d, std::size_t D, const T* data, const I* indices, const I* indptr, const T* W,
                const T* tiles, T* out) {
    at_level([=](auto bytes) KS_LAMBDA { csr_matmul_in<bytes()>(m, d, D, data, indices, indptr, W, tiles, out); });
}

}  // namespace ks
