// Inner products of many vectors with many others, in tiles that stay in registers.
//
// Every product is one sum, in W lanes that are added up at the end, whatever tile it belongs to: its bits depend on the two vectors
// and on nothing else. A library's matrix product is no faster here, and its bits depend on the shapes of the matrices.
#pragma once

#include <algorithm>

#include "base/vecmath.hpp"

namespace ks {

// W numbers to a register of so many bytes; P times Q sums at once, as many as there are registers for: 32 where they are widest, and on ARM.
template <std::size_t bytes>
struct Shape {
#if defined(__aarch64__)
    static constexpr int W = 2, P = 4, Q = 5;
#elif defined(__GNUC__)
    static constexpr int W = bytes / sizeof(double), P = 4, Q = bytes == 64 ? 4 : 2;
#else
    static constexpr int W = 1, P = 4, Q = 2;
#endif
};

// x with all but its last `count` lanes set to 0.
template <int W, class V>
KS_INLINE V last_lanes(const V& x, std::size_t count) {
    std::int64_t keep[W];
    for (std::size_t l = 0; l < W; ++l) keep[l] = l + count < W ? 0 : -1;
    std::int64_t bits[W];
    std::memcpy(bits, &x, sizeof(V));
    for (std::size_t l = 0; l < W; ++l) bits[l] &= keep[l];
    V out;
    std::memcpy(&out, bits, sizeof(V));
    return out;
}

#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define KS_FOLDS
// The lanes of x and y stand in groups of G: the halves of every group are added, those of x before those of y.
template <int G, class V>
KS_INLINE V fold(V x, V y) {
    if constexpr (sizeof(V) == 64 && G == 8)
        return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11) + __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);
    else if constexpr (sizeof(V) == 64 && G == 4)
        return __builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13) + __builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15);
    else if constexpr (sizeof(V) == 64)
        return __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14) + __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15);
    else if constexpr (sizeof(V) == 32 && G == 4)
        return __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);
    else if constexpr (sizeof(V) == 32)
        return __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7);
    else
        return __builtin_shufflevector(x, y, 0, 2) + __builtin_shufflevector(x, y, 1, 3);
}

// Sums of the lanes of four vectors, W lanes each, as `lane_sum` has them.
template <int W, class V>
KS_INLINE void four_sums(V a, V b, V c, V d, double* out) {
    if constexpr (W == 8) {
        const V pairs = fold<4>(fold<8>(a, b), fold<8>(c, d)), sums = fold<2>(pairs, pairs);
        std::memcpy(out, &sums, 4 * sizeof(double));
    } else if constexpr (W == 4) {
        const V sums = fold<2>(fold<4>(a, b), fold<4>(c, d));
        std::memcpy(out, &sums, sizeof sums);
    } else {
        const V first = fold<2>(a, b), last = fold<2>(c, d);
        std::memcpy(out, &first, sizeof first);
        std::memcpy(out + 2, &last, sizeof last);
    }
}
#endif

// The halves are added until there is one number.
template <int W, class V>
KS_INLINE double lane_sum(const V& x) {
    double lane[W];
    std::memcpy(lane, &x, sizeof(V));
    for (std::size_t half = W / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

// What is multiplied, and where it goes: p vectors `a`, `lda` apart, and q vectors `b`, `ldb` apart, of n numbers; out[t, i] = a_i'b_t,
// or that is subtracted there, rows `ldo` apart.
struct Products {
    std::size_t p, q, n;
    const double* a;
    std::size_t lda;
    const double* b;
    std::size_t ldb;
    double* out;
    std::size_t ldo;
    bool subtract;
};

template <class S, int P, int Q>
KS_INLINE void dot_tile(const Products& x, std::size_t i0, std::size_t t0) {
    constexpr std::size_t W = S::W;
    using V = typename Line<double, S::W>::type;
    const double *A = x.a + i0 * x.lda, *B = x.b + t0 * x.ldb;
    V acc[P][Q];
    KS_UNROLL
    for (int i = 0; i < P; ++i) {
        KS_UNROLL
        for (int t = 0; t < Q; ++t) acc[i][t] = V{};
    }
    std::size_t k = 0;
    for (; k + W <= x.n; k += W) {
        V a[P], b[Q];
        KS_UNROLL
        for (int i = 0; i < P; ++i) std::memcpy(&a[i], A + i * x.lda + k, sizeof(V));
        KS_UNROLL
        for (int t = 0; t < Q; ++t) std::memcpy(&b[t], B + t * x.ldb + k, sizeof(V));
        KS_UNROLL
        for (int i = 0; i < P; ++i) {
            KS_UNROLL
            for (int t = 0; t < Q; ++t) acc[i][t] += a[i] * b[t];
        }
    }
    // What is left are some of the last W numbers.
    if (W > 1 && k < x.n && x.n >= W) {
        V a[P];
        KS_UNROLL
        for (int i = 0; i < P; ++i) {
            std::memcpy(&a[i], A + i * x.lda + x.n - W, sizeof(V));
            a[i] = last_lanes<S::W>(a[i], x.n - k);
        }
        KS_UNROLL
        for (int t = 0; t < Q; ++t) {
            V b;
            std::memcpy(&b, B + t * x.ldb + x.n - W, sizeof(V));
            KS_UNROLL
            for (int i = 0; i < P; ++i) acc[i][t] += a[i] * b;
        }
        k = x.n;
    }
    for (int t = 0; t < Q; ++t) {
        double sums[P];
#if defined(KS_FOLDS)
        if constexpr (P == 4) four_sums<S::W>(acc[0][t], acc[1][t], acc[2][t], acc[3][t], sums);
        else
#endif
            for (int i = 0; i < P; ++i) sums[i] = lane_sum<S::W>(acc[i][t]);
        double* out = x.out + (t0 + t) * x.ldo + i0;
        for (int i = 0; i < P; ++i) {
            for (std::size_t l = k; l < x.n; ++l) sums[i] += A[i * x.lda + l] * B[t * x.ldb + l];
            out[i] = x.subtract ? out[i] - sums[i] : sums[i];
        }
    }
}

// Q vectors b from t on with the vectors a of [first, last).
template <class S, int Q>
KS_INLINE void dot_columns(const Products& x, std::size_t first, std::size_t last, std::size_t t) {
    std::size_t i = first;
    for (; i + S::P <= last; i += S::P) dot_tile<S, S::P, Q>(x, i, t);
    for (; i < last; ++i) dot_tile<S, 1, Q>(x, i, t);
}

// The vectors b of [first, last) at most Q at a time.
template <class S, int Q>
KS_INLINE void dot_block(const Products& x, std::size_t i, std::size_t end, std::size_t first, std::size_t last) {
    std::size_t t = first;
    for (; t + Q <= last; t += Q) dot_columns<S, Q>(x, i, end, t);
    if constexpr (Q > 1)
        if (t < last) dot_block<S, Q - 1>(x, i, end, t, last);
}

// out[t, i] = a_i'b_t, in blocks of vectors that stay in the second-level cache.
inline void dots(const Products& x) {
    constexpr std::size_t rows = 32, columns = 64;
    at_level([&x](auto bytes) KS_LAMBDA {
        using S = Shape<bytes()>;
        for (std::size_t t = 0; t < x.q; t += columns)
            for (std::size_t i = 0; i < x.p; i += rows)
                dot_block<S, S::Q>(x, i, std::min(i + rows, x.p), t, std::min(t + columns, x.q));
    });
}

}  // namespace ks
