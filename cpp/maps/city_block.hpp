// Distances of many rows with many others, sums of |x_j - z_j| or roots of sums of squares, and exponentials of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "base/lines.hpp"
#include "base/vecmath.hpp"

namespace ks {

template <class T>
constexpr std::size_t tile_width = 64 / sizeof(T);

// Numbers of Q rows and a tile of others; the first of `width` others go out, rows `ldo` apart.
template <class T, std::size_t Q>
struct TileValues {
    static constexpr std::size_t P = tile_width<T>;
    T at[Q * P];
    KS_INLINE void put(std::size_t width, T* out, std::size_t ldo, std::size_t height = Q) const {
        for (std::size_t q = 0; q < height; ++q)
            if (width == P) std::memcpy(out + q * ldo, at + q * P, sizeof(T) * P);  // a copy of unknown length takes longer than the sums
            else std::copy_n(at + q * P, width, out + q * ldo);
    }
};

// Q rows X (Q, d) with P others, which stand side by side in `tile` (d, P): sums of |x_j - z_j| (Norm 1) or their roots of sums of
// squares (Norm 2). Every sum runs in the order of the columns.
template <class T, int Norm, std::size_t Q>
KS_INLINE TileValues<T, Q> distances(std::size_t d, const T* KS_RESTRICT X, const T* KS_RESTRICT tile) {
    constexpr std::size_t P = tile_width<T>;
    TileValues<T, Q> sums;
    T acc[Q][P] = {};
    for (std::size_t j = 0; j < d; ++j) {
        const T* KS_RESTRICT z = tile + j * P;
        KS_UNROLL
        for (std::size_t q = 0; q < Q; ++q) {
            const T x = X[q * d + j];
#pragma omp simd
            for (std::size_t k = 0; k < P; ++k) {
                const T t = x - z[k];
                acc[q][k] += Norm == 1 ? std::abs(t) : t * t;
            }
        }
    }
    std::memcpy(sums.at, acc, sizeof acc);
    if (Norm == 2)
#pragma omp simd
        for (std::size_t k = 0; k < Q * P; ++k) sums.at[k] = std::sqrt(sums.at[k]);
    return sums;
}

// exp(-c |x - z|) of the same.
template <class T, int Norm, std::size_t Q>
KS_INLINE TileValues<T, Q> exponentials(std::size_t d, const T* X, const T* tile, T c) {
    TileValues<T, Q> values = distances<T, Norm, Q>(d, X, tile);
    exp_scaled_chunk(Q * tile_width<T>, values.at, c, false);
    return values;
}

// out (Q, m) for Q rows and m others in tiles (tiles, d, P), the last of which may have places to spare.
template <class T, int Norm, std::size_t Q>
KS_INLINE void exponential_rows(std::size_t m, std::size_t d, const T* X, const T* tiles, T c, T* out) {
    constexpr std::size_t P = tile_width<T>;
    for (std::size_t t = 0; t < m; t += P) exponentials<T, Norm, Q>(d, X, tiles + t * d, c).put(std::min(P, m - t), out + t, m);
}

// The same of rows by both kinds: share exp(-|x - z|_2) + (1 - share) exp(-|u - v|_1), for X and U (Q, d).
template <class T, std::size_t Q>
KS_INLINE void mixture_rows(std::size_t m, std::size_t d, const T* X, const T* U, const T* near, const T* apart, T share, T* out) {
    constexpr std::size_t P = tile_width<T>;
    for (std::size_t t = 0; t < m; t += P) {
        TileValues<T, Q> both = exponentials<T, 2, Q>(d, X, near + t * d, T(1));
        const TileValues<T, Q> second = exponentials<T, 1, Q>(d, U, apart + t * d, T(1));
#pragma omp simd
        for (std::size_t k = 0; k < Q * P; ++k) both.at[k] = share * both.at[k] + (1 - share) * second.at[k];
        both.put(std::min(P, m - t), out + t, m);
    }
}

// out (n, m) for rows X and U (n, d).
template <class T>
KS_CLONES void exponential_mixture(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* U, const T* near, const T* apart,
                                   T share, T* out) {
    constexpr std::size_t Q = 4;
    std::size_t i = 0;
    for (; i + Q <= n; i += Q) mixture_rows<T, Q>(m, d, X + i * d, U + i * d, near, apart, share, out + i * m);
    for (; i < n; ++i) mixture_rows<T, 1>(m, d, X + i * d, U + i * d, near, apart, share, out + i * m);
}

// A square of tile_width rows: its halves are shuffled into each other until every number is in its column's place.
template <class T>
KS_INLINE void transpose(T* KS_RESTRICT square) {
    constexpr std::size_t P = tile_width<T>;
    T shuffled[P * P];
    for (std::size_t times = 1; times < P; times *= 2) {
#pragma omp simd
        for (std::size_t k = 0; k < P * P / 2; ++k) {
            shuffled[2 * k] = square[k];
            shuffled[2 * k + 1] = square[P * P / 2 + k];
        }
        std::memcpy(square, shuffled, sizeof shuffled);
    }
}

// m rows of a symmetric K (n, n) from row `first` on, up to the diagonal, and the same of its columns: the mixture of X and U (m, d) with
// all n rows in tiles, of which X is the first row of one. A square of tile_width rows at a time, from whole lines to whole lines: rows of
// K may all lie in the same places of a cache.
template <class T>
KS_CLONES void exponential_square(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* U, const T* near, const T* apart,
                                  T share, std::size_t first, T* K) {
    constexpr std::size_t P = tile_width<T>, Q = 4;
    TileValues<T, P> square;
    for (std::size_t i = first; i < first + m; i += P) {
        const std::size_t height = std::min(P, first + m - i);
        const T *x = X + (i - first) * d, *u = U + (i - first) * d;
        for (std::size_t t = 0; t <= i; t += P) {
            const std::size_t width = std::min(P, n - t);
            const T *tile = near + t * d, *other = apart + t * d;
            std::size_t q = 0;
            for (; q + Q <= height; q += Q)
                mixture_rows<T, Q>(P, d, x + q * d, u + q * d, tile, other, share, square.at + q * P);
            for (; q < height; ++q) mixture_rows<T, 1>(P, d, x + q * d, u + q * d, tile, other, share, square.at + q * P);
            square.put(width, K + i * n + t, n, height);
            if (t == i) continue;
            transpose<T>(square.at);
            square.put(height, K + t * n + i, n);
        }
    }
}

// out (C, n) <- V (C, n) times a symmetric matrix, which is K (n, n) below the diagonal, in double.
template <class T>
KS_CLONES void symmetric_product(std::size_t n, std::size_t C, const T* K, const double* diagonal, const double* V, double* out) {
    constexpr std::size_t Q = 4, part = 1024;  // so many columns of V and out stay in the cache
    for (std::size_t c = 0; c < C; ++c)
        for (std::size_t i = 0; i < n; ++i) out[c * n + i] = diagonal[i] * V[c * n + i];
    for (std::size_t start = 0; start < n; start += part)
        for (std::size_t i = start; i < n; i += Q) {
            const std::size_t rows = std::min(Q, n - i), width = rows < Q ? 0 : std::min(part, i - start);
            for (std::size_t c = 0; c < C; ++c) {
                const double *KS_RESTRICT v = V + c * n, *KS_RESTRICT at = v + i, *KS_RESTRICT along = v + start;
                double *KS_RESTRICT o = out + c * n, *KS_RESTRICT to = o + start;
                if (width) {
                    const T *KS_RESTRICT k0 = K + i * n + start, *KS_RESTRICT k1 = k0 + n, *KS_RESTRICT k2 = k1 + n, *KS_RESTRICT k3 = k2 + n;
                    const double a0 = at[0], a1 = at[1], a2 = at[2], a3 = at[3];
                    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
                    for (std::size_t j = 0; j < width; ++j) {
                        const double x = along[j];
                        to[j] += k0[j] * a0 + k1[j] * a1 + k2[j] * a2 + k3[j] * a3;
                        s0 += k0[j] * x, s1 += k1[j] * x, s2 += k2[j] * x, s3 += k3[j] * x;
                    }
                    o[i] += s0, o[i + 1] += s1, o[i + 2] += s2, o[i + 3] += s3;
                }
                for (std::size_t q = 0; q < rows; ++q)  // what is left of each row: up to the diagonal, or of the last rows
                    for (std::size_t j = start + width; j < std::min(i + q, start + part); ++j) {
                        o[j] += K[(i + q) * n + j] * at[q];
                        o[i + q] += K[(i + q) * n + j] * v[j];
                    }
            }
        }
}

// out (n, m) <- exp(-c |x - z|) for X (n, d) and others in tiles.
template <class T, int Norm>
KS_CLONES void exponential(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* tiles, T c, T* out) {
    constexpr std::size_t Q = 4;
    std::size_t i = 0;
    for (; i + Q <= n; i += Q) exponential_rows<T, Norm, Q>(m, d, X + i * d, tiles, c, out + i * m);
    for (; i < n; ++i) exponential_rows<T, Norm, 1>(m, d, X + i * d, tiles, c, out + i * m);
}

// out (Q, C) += exp(-c |x - z|) A' for Q rows X (Q, d), others in tiles and coefficients A (C, m), in double; a part of the
// others at a time, K (Q, part), stays in the cache.
template <class T, int Norm, std::size_t Q>
KS_INLINE void add_exponential_sums(std::size_t m, std::size_t d, const T* X, const T* tiles, T c, std::size_t C, const double* A,
                                    double* out, std::size_t part, T* K) {
    for (std::size_t start = 0; start < m; start += part) {
        const std::size_t width = std::min(part, m - start);
        exponential_rows<T, Norm, Q>(width, d, X, tiles + start * d, c, K);
        for (std::size_t q = 0; q < Q; ++q)
            for (std::size_t o = 0; o < C; ++o) {
                const T* KS_RESTRICT k = K + q * width;
                const double* KS_RESTRICT a = A + o * m + start;
                double sum = 0;
#pragma omp simd reduction(+ : sum)
                for (std::size_t j = 0; j < width; ++j) sum += double(k[j]) * a[j];
                out[q * C + o] += sum;
            }
    }
}

// out (n, C) <- exp(-c |x - z|) A' for X (n, d), others in tiles and coefficients A (C, m), in double. A row's sums do not depend
// on its neighbours.
template <class T, int Norm>
KS_CLONES void exponential_sums(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* tiles, T c, std::size_t C,
                                const double* A, double* out) {
    constexpr std::size_t Q = 4, part = 64 * tile_width<T>;
    std::vector<T> K(Q * std::min(part, m));
    std::fill_n(out, n * C, 0.0);
    std::size_t i = 0;
    for (; i + Q <= n; i += Q)
        add_exponential_sums<T, Norm, Q>(m, d, X + i * d, tiles, c, C, A, out + i * C, part, K.data());
    for (; i < n; ++i) add_exponential_sums<T, Norm, 1>(m, d, X + i * d, tiles, c, C, A, out + i * C, part, K.data());
}

// out (Q, d)[:, :J] += A V' for A (Q, m) and V (J, m), rows `lda` and m apart: whole tiles, whose sums stay in registers.
template <class T, std::size_t Q, std::size_t J>
KS_INLINE void add_products(std::size_t m, std::size_t d, const T* A, std::size_t lda, const T* V, double* out) {
    constexpr std::size_t P = tile_width<T>;
    T acc[Q][J][P] = {};
    for (std::size_t t = 0; t < m; t += P) {
        KS_UNROLL
        for (std::size_t q = 0; q < Q; ++q) {
            KS_UNROLL
            for (std::size_t j = 0; j < J; ++j)
#pragma omp simd
                for (std::size_t k = 0; k < P; ++k) acc[q][j][k] += A[q * lda + t + k] * V[j * m + t + k];
        }
    }
    for (std::size_t q = 0; q < Q; ++q)
        for (std::size_t j = 0; j < J; ++j) {
            double sum = 0;
            for (std::size_t k = 0; k < P; ++k) sum += double(acc[q][j][k]);
            out[q * d + j] += sum;
        }
}

// The same for V (d, m).
template <class T, std::size_t Q>
KS_INLINE void add_all_products(std::size_t m, std::size_t d, const T* A, std::size_t lda, const T* V, double* out) {
    constexpr std::size_t J = 5;  // 4 by 5 sums are the most for which there are registers
    std::size_t j = 0;
    for (; j + J <= d; j += J) add_products<T, Q, J>(m, d, A, lda, V + j * m, out + j);
    for (; j < d; ++j) add_products<T, Q, 1>(m, d, A, lda, V + j * m, out + j);
}

// slopes (d, m) of exp(-|x - z|) along x, but for the sign: exp(-r) (x - z) / r with r = |x - z|, 0 where r is at most `near` (Norm 2), or
// exp(-r) times the signs of x - z (Norm 1); of m others z, whole tiles.
template <class T, int Norm>
KS_INLINE void slopes_along(std::size_t m, std::size_t d, const T* x, const T* tiles, T near, T* slopes) {
    constexpr std::size_t P = tile_width<T>;
    for (std::size_t t = 0; t < m; t += P, tiles += P * d) {
        const TileValues<T, 1> r = distances<T, Norm, 1>(d, x, tiles);
        TileValues<T, 1> value = r;
        exp_scaled_chunk(P, value.at, T(1), false);
        if (Norm == 2)
#pragma omp simd
            for (std::size_t k = 0; k < P; ++k) value.at[k] = r.at[k] > near ? value.at[k] / r.at[k] : T(0);
        for (std::size_t j = 0; j < d; ++j)
#pragma omp simd
            for (std::size_t k = 0; k < P; ++k) {
                const T away = x[j] - tiles[j * P + k];
                slopes[j * m + t + k] = value.at[k] * (Norm == 2 ? away : away > T(0) ? T(1) : away < T(0) ? T(-1) : T(0));
            }
    }
}

// out (n, C, d) <- slopes of exp(-|x - z|) A', but for their sign, for X (n, d), m others in tiles and A (C, m); the slopes of a part of
// the others at a time stay in the cache.
template <class T, int Norm>
KS_CLONES void exponential_slopes(std::size_t n, std::size_t m, std::size_t d, const T* X, const T* tiles, T near, std::size_t C,
                                  const T* A, double* out) {
    constexpr std::size_t P = tile_width<T>, Q = 4, cached = 1 << 16;
    const std::size_t padded = (m + P - 1) / P * P, part = std::max(P, std::min(padded, cached / d / P * P));
    std::vector<T> held_slopes, held_rows;
    T *slopes = on_line(held_slopes, d * part), *rows = on_line(held_rows, C * padded);  // zeros at first
    for (std::size_t c = 0; c < C; ++c) std::copy_n(A + c * m, m, rows + c * padded);
    std::fill_n(out, n * C * d, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t start = 0; start < padded; start += part) {
            const std::size_t width = std::min(part, padded - start);
            slopes_along<T, Norm>(width, d, X + i * d, tiles + start * d, near, slopes);
            const T* a = rows + start;
            double* sums = out + i * C * d;
            std::size_t c = 0;
            for (; c + Q <= C; c += Q) add_all_products<T, Q>(width, d, a + c * padded, padded, slopes, sums + c * d);
            for (; c < C; ++c) add_all_products<T, 1>(width, d, a + c * padded, padded, slopes, sums + c * d);
        }
}

}  // namespace ks
