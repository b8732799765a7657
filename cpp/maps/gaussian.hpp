// Gaussian kernel values k(x, s) = exp(-gamma ||x - s||^2) between a block of rows and a support set, from one product.
//
// Everything is done on t = log2 k = -gamma log2(e) (||x||^2 + ||s||^2 - 2 x's), the norms scaled beforehand: then k = 2^t takes one
// subtraction less than e^x, and no product.
//
// The difference cancels where rows are close and far from the origin. The rounding error of the distance is about
// 4 eps (||x||^2 + ||s||^2); pairs for which that would move the kernel by more than `Tolerance` get theirs from the
// differences of the coordinates.
//
// For sparse rows the support set is kept in tiles of `csr_tile_width` vectors, (tiles, d, width): the sums of a row with a tile
// stay in registers, and a tile stays in the first-level cache while the rows of a block pass by.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "base/csr.hpp"
#include "base/vecmath.hpp"

namespace ks {

// (2^r - 1)/r on |r| <= 1/2, minimax for the relative error of 2^r, in pairs of terms: they can be computed at once.
KS_INLINE float exp2_tail(float r) {
    const float z = r * r;
    return (0.6931472149680279f + r * 0.24022652782887737f)
         + z * ((0.05550310551013797f + r * 0.009617692972993062f)
         + z * (0.001340664390235176f + r * 0.00015594678161326619f));
}
KS_INLINE double exp2_tail(double r) {
    const double z = r * r;
    return (0.6931471805599516 + r * 0.24022650695910472)
         + z * ((0.055504108664346584 + r * 0.009618129107380714)
         + z * ((0.001333355824648072 + r * 0.00015403530800818256)
         + z * ((1.525264774769592e-5 + r * 1.321523563477604e-6)
         + z * (1.0210506458816145e-7 + r * 7.111758687557852e-9))));
}

template <class T> constexpr T exp2_low = T(2 - (1 << (sizeof(T) == 4 ? 7 : 10)));  // 2^t is normal down to here

// 2^t for exp2_low <= t <= 1/2.
template <class T>
KS_INLINE T exp2_between(T t) {
    using M = Math<T>;
    using U = typename Bits<T>::UInt;
    const T shifted = t + M::round, r = t - (shifted - M::round);
    return bit_cast<T>(bit_cast<U>(T(1) + r * exp2_tail(r)) + (bit_cast<U>(shifted) << M::mantissa));
}

// t <- 2^t in place, n numbers <= 0 up to rounding. The comparisons come after the exponential or in loops of their own: where
// a clamped argument is a constant, compilers branch around the arithmetic and nothing is vectorised.
template <class T>
KS_INLINE void exp2_shallow(std::size_t n, T* t) {  // all above exp2_low
    const std::size_t whole = n - n % group<T>;
    for (std::size_t i = 0; i < whole; i += group<T>) {
        KS_UNROLL
        for (std::size_t k = i; k < i + group<T>; ++k) t[k] = lesser(exp2_between(t[k]), T(1));
    }
    for (std::size_t i = whole; i < n; ++i) t[i] = lesser(exp2_between(t[i]), T(1));
}

// With `deep` some may be below exp2_low: floats that small become 0, doubles keep what the type can hold, because the sign of a
// sum of them still decides a label.
template <class T>
KS_INLINE void exp2_all(std::size_t n, T* t, bool deep) {
    if (!deep) return exp2_shallow(n, t);
    constexpr std::size_t most = 256 / sizeof(T);
    T exact[most];
    for (std::size_t start = 0; start < n; start += most) {
        const std::size_t count = std::min(most, n - start);
        T* KS_RESTRICT part = t + start;
        std::memcpy(exact, part, count * sizeof(T));
#pragma omp simd
        for (std::size_t i = 0; i < count; ++i) part[i] = larger(part[i], exp2_low<T>);
        exp2_shallow(count, part);
        for (std::size_t i = 0; i < count; ++i)
            if (exact[i] < exp2_low<T>) part[i] = sizeof(T) == 4 ? T(0) : T(std::exp2(exact[i]));
    }
}

template <class T> struct Tolerance;
template <> struct Tolerance<float> { static constexpr double value = 1e-5; };
template <> struct Tolerance<double> { static constexpr double value = 1e-14; };

template <class T>
struct Gaussian {
    double gamma;
    double factor() const { return -gamma * 1.4426950408889634; }  // t = factor ||x - s||^2
    // Error of a kernel value near 1, in tolerances, that the rounding of a distance may cause.
    double error(double norms) const { return 4.0 * std::numeric_limits<T>::epsilon() * gamma / Tolerance<T>::value * norms; }
};

// What the largest norm of a support set allows for a row.
template <class T>
struct Care {
    bool rough, deep;
    Care(const Gaussian<T>& kernel, double xn, double largest)
        : rough(!(kernel.error(xn + largest) <= 1.0)),
          deep(!(kernel.factor() * (xn + largest + 2.0 * std::sqrt(xn * largest)) * 1.0001 > double(exp2_low<T>) + 1.0)) {}
};

template <class T>
T largest_norm(std::size_t n, const T* norms) {
    T top = 0;
    for (std::size_t j = 0; j < n; ++j) top = std::max(top, norms[j]);
    return top;
}

// Exponents of one row, corrected where they are too rough; `distance(j)` computes a squared distance directly.
template <class T, class F>
void refine(std::size_t n, const Gaussian<T>& kernel, T xn, const T* sn, T* t, F distance) {
    for (std::size_t j = 0; j < n; ++j) {
        const double error = kernel.error(double(xn) + double(sn[j]));
        if (error > 1.0 && double(t[j]) > -std::log2(error)) t[j] = T(kernel.factor() * distance(j));
    }
}

template <class T>
double squared_difference(std::size_t d, const T* x, const T* s, std::size_t stride) {
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) {
        const double gap = double(x[j]) - double(s[j * stride]);
        sum += gap * gap;
    }
    return sum;
}

// K (m, n), rows `stride` apart: on entry the products x's, on return kernel values. X (m, d), S (n, d) are consulted for close pairs.
template <class T>
KS_CLONES void gaussian_dense(std::size_t m, std::size_t n, std::size_t d, const T* X, const T* xn, const T* S, const T* sn,
                              const Gaussian<T>& kernel, T* scaled, T* K, std::size_t stride) {
    const T factor = T(kernel.factor()), twice = -2 * factor;
    const double largest = double(largest_norm(n, sn));
    for (std::size_t j = 0; j < n; ++j) scaled[j] = factor * sn[j];
    for (std::size_t i = 0; i < m; ++i) {
        T* KS_RESTRICT t = K + i * stride;
        const T* KS_RESTRICT c = scaled;
        const T a = factor * xn[i];
        const Care<T> care(kernel, double(xn[i]), largest);
#pragma omp simd
        for (std::size_t j = 0; j < n; ++j) t[j] = (a + c[j]) + twice * t[j];
        if (care.rough) refine(n, kernel, xn[i], sn, t, [&](std::size_t j) { return squared_difference(d, X + i * d, S + j * d, 1); });
        exp2_all(n, t, care.deep);
    }
}

// ||x||^2 of dense rows X (m, d), and of CSR rows: to the bit the same for the same row. A coordinate is added to the running sum
// of its column, as in dot(); those that are not stored would add 0.
template <class T>
KS_CLONES void row_norms(std::size_t m, std::size_t d, const T* X, T* norms) {
    for (std::size_t i = 0; i < m; ++i) norms[i] = dot(d, X + i * d, X + i * d);
}
template <class T, class I>
KS_CLONES void csr_norms(const Csr<T, I>& X, T* norms) {
    for (std::size_t i = 0; i < X.n; ++i) {
        T acc[lanes<T>] = {};
        for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) acc[std::size_t(X.indices[k]) % lanes<T>] += X.data[k] * X.data[k];
        norms[i] = fold(acc);
    }
}

// The entries of a block of CSR rows as the tiles want them: how far into a tile a column starts, in bytes, and the value. `ahead` more
// entries than there are, because addresses are fetched before they are needed.
template <class T>
struct TileEntries {
    static constexpr std::size_t ahead = 3;
    std::vector<std::uint32_t> offset;
    std::vector<T> value;
    template <class I>
    explicit TileEntries(const Csr<T, I>& X) {
        const std::size_t start = X.indptr[0], count = std::size_t(X.indptr[X.n]) - start;
        offset.assign(count + ahead, 0);
        value.resize(count + ahead);
        for (std::size_t k = 0; k < count; ++k) {
            offset[k] = std::uint32_t(X.indices[start + k]) * std::uint32_t(csr_tile_width<T> * sizeof(T));
            value[k] = X.data[start + k];
        }
    }
};

// Exponents of entries first, ..., last - 1 (a row) with the vectors of one tile, into t (width); xn = ||x||^2, sn = ||s||^2. Which of
// the two is the row makes no difference to the last bit: rows become support vectors, and a call may end anywhere between them.
template <class T>
KS_INLINE void tile_exponents(const TileEntries<T>& X, std::size_t first, std::size_t last, T factor, T xn, const T* KS_RESTRICT tile,
                              const T* KS_RESTRICT sn, T* KS_RESTRICT t) {
    constexpr std::size_t width = csr_tile_width<T>;
    T acc[width] = {};
    const char* base = reinterpret_cast<const char*>(tile);
    const std::uint32_t* offset = X.offset.data();
    const char *now = base + offset[first], *next = base + offset[first + 1], *later = base + offset[first + 2];
    for (std::size_t k = first; k < last; ++k) {
        const T* KS_RESTRICT s = reinterpret_cast<const T*>(now);
        const T v = X.value[k];
        now = next, next = later, later = base + offset[k + 3];
        KS_UNROLL
        for (std::size_t j = 0; j < width; ++j) acc[j] += v * s[j];
    }
    KS_UNROLL
    for (std::size_t j = 0; j < width; ++j) t[j] = factor * ((xn + sn[j]) - 2 * acc[j]);
}

// Calls consume(i, first, count, values) for every row and tile: values (count) are the kernel values of row i with the vectors
// first, ..., first + count - 1. The norms sn are padded to whole tiles; `dense` has room for a row. With `upper`, row i takes only the
// tiles that reach beyond column i.
template <class T, class I, class F>
KS_INLINE void gaussian_tiles(std::size_t n, const Csr<T, I>& X, const T* xn, const T* tiles, const T* sn, const Gaussian<T>& kernel,
                              T* dense, bool upper, F consume) {
    constexpr std::size_t width = csr_tile_width<T>;
    const std::size_t m = X.n, d = X.d;
    const T factor = T(kernel.factor());
    const double largest = double(largest_norm(n, sn));
    const TileEntries<T> entries(X);
    const std::size_t start = X.indptr[0];
    std::vector<Care<T>> cares;
    cares.reserve(m);
    for (std::size_t i = 0; i < m; ++i) cares.emplace_back(kernel, double(xn[i]), largest);
    for (std::size_t first = 0; first < n; first += width) {
        const T* tile = tiles + first * d;
        const std::size_t count = std::min(width, n - first), rows = upper ? std::min(m, first + width) : m;
        for (std::size_t i = 0; i < rows; ++i) {
            alignas(64) T t[width];
            const Care<T> care = cares[i];
            tile_exponents(entries, X.indptr[i] - start, X.indptr[i + 1] - start, factor, xn[i], tile, sn + first, t);
            if (care.rough) {
                csr_to_row(X, i, dense);
                refine(count, kernel, xn[i], sn + first, t, [&](std::size_t j) { return squared_difference(d, dense, tile + j, width); });
            }
            exp2_all(width, t, care.deep);
            consume(i, first, count, t);
        }
    }
}

// Kernel values of row i of m with the vectors of a tile into K, rows `stride` apart.
template <class T>
KS_INLINE void put_tile(std::size_t m, std::size_t i, std::size_t first, std::size_t count, const T* values, T* K, std::size_t stride) {
    constexpr std::size_t width = csr_tile_width<T>;
    T* at = K + i * stride + first;
    if (i + rows_ahead < m) fetch<width>(at + rows_ahead * stride);
    if (count == width) std::memcpy(at, values, width * sizeof(T));  // of a known size, it is no call
    else std::copy_n(values, count, at);
}

// K (m, n) with rows `stride` apart.
template <class T, class I>
KS_CLONES void gaussian_csr(std::size_t n, const Csr<T, I>& X, const T* xn, const T* tiles, const T* sn, const Gaussian<T>& kernel,
                            T* dense, T* K, std::size_t stride) {
    gaussian_tiles(n, X, xn, tiles, sn, kernel, dense, false, [&](std::size_t i, std::size_t first, std::size_t count, const T* values) {
        put_tile(X.n, i, first, count, values, K, stride);
    });
}

// F (m, C) += K alpha', alpha (C, n) with rows `stride` apart, without storing K.
template <class T, class I>
KS_CLONES void gaussian_csr_scores(std::size_t n, const Csr<T, I>& X, const T* xn, const T* tiles, const T* sn, const Gaussian<T>& kernel,
                                   T* dense, int C, const T* alpha, std::size_t stride, double* F) {
    gaussian_tiles(n, X, xn, tiles, sn, kernel, dense, false, [&](std::size_t i, std::size_t first, std::size_t count, const T* values) {
        for (int c = 0; c < C; ++c) F[i * C + c] += double(dot(count, values, alpha + c * stride + first));
    });
}

// Copies row i of a CSR block into slot j of the tiles.
template <class T, class I>
void csr_to_tile(const Csr<T, I>& X, std::size_t i, T* tiles, std::size_t j) {
    constexpr std::size_t width = csr_tile_width<T>;
    csr_to_row(X, i, tiles + (j / width) * X.d * width + j % width, width);
}

// G (m, m): the part above the diagonal, 1 on it; what is below is of no use to anybody. `tiles` and `sn` have room for m vectors.
template <class T, class I>
KS_CLONES void gaussian_csr_among(const Csr<T, I>& X, const T* xn, T* tiles, T* sn, const Gaussian<T>& kernel, T* dense, T* G) {
    constexpr std::size_t width = csr_tile_width<T>;
    const std::size_t m = X.n;
    std::fill_n(std::copy_n(xn, m, sn), (width - m % width) % width, T(0));
    for (std::size_t i = 0; i < m; ++i) csr_to_tile(X, i, tiles, i);
    gaussian_tiles(m, X, xn, tiles, sn, kernel, dense, true, [&](std::size_t i, std::size_t first, std::size_t count, const T* values) {
        put_tile(m, i, first, count, values, G, m);
    });
    for (std::size_t i = 0; i < m; ++i) G[i * m + i] = T(1);
}

}  // namespace ks
