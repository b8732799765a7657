// Products with the random binning matrix Z (n, D), whose row i holds 1/sqrt(R) in one column of each of R grids.
//
// Only the columns are kept: cells (R, n), the column within its grid, and starts (R + 1,), where each grid's columns begin.
// One grid's part of a vector is small enough for a cache near the core, so the rows of a grid go by as a stream of
// 4-byte numbers: that is what the products should cost.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "base/vecmath.hpp"

namespace ks {

struct CellMatrix {
    std::size_t n, R;
    const std::int32_t* cells;   // (R, n); -1 where a row has no column
    const std::int64_t* starts;  // (R + 1,)
};

constexpr std::size_t kStrip = 8192;  // rows whose sums stay in the cache while the grids pass

template <class T>
KS_INLINE void add_four(std::size_t C, const T* KS_RESTRICT a, const T* KS_RESTRICT b, const T* KS_RESTRICT c,
                        const T* KS_RESTRICT d, double* KS_RESTRICT to) {
#pragma omp simd
    for (std::size_t k = 0; k < C; ++k) to[k] += double((a[k] + b[k]) + (c[k] + d[k]));
}

// out (n, C) <- scale * sum over grids of V[column, :], V (D, C); rows are shared among the threads.
template <class T, bool missing>
void cells_times(const CellMatrix& Z, std::size_t C, const T* V, double scale, double* out, std::size_t begin,
                 std::size_t end) {
    for (std::size_t at = begin; at < end; at += kStrip) {
        const std::size_t m = std::min(kStrip, end - at);
        double* KS_RESTRICT sums = out + at * C;
        std::fill_n(sums, m * C, 0.0);
        std::size_t r = 0;
        // Several grids at once: fewer visits to the sums. Eight numbers are added in their own type, the rest in double.
        if (C == 1 && !missing)
            for (; r + 8 <= Z.R; r += 8) {
                const std::int32_t *c0 = Z.cells + r * Z.n + at, *c1 = c0 + Z.n, *c2 = c1 + Z.n, *c3 = c2 + Z.n,
                                   *c4 = c3 + Z.n, *c5 = c4 + Z.n, *c6 = c5 + Z.n, *c7 = c6 + Z.n;
                const std::int64_t* s = Z.starts + r;
                const T *v0 = V + s[0], *v1 = V + s[1], *v2 = V + s[2], *v3 = V + s[3], *v4 = V + s[4], *v5 = V + s[5],
                        *v6 = V + s[6], *v7 = V + s[7];
                for (std::size_t i = 0; i < m; ++i)
                    sums[i] += double(((v0[c0[i]] + v1[c1[i]]) + (v2[c2[i]] + v3[c3[i]])) +
                                      ((v4[c4[i]] + v5[c5[i]]) + (v6[c6[i]] + v7[c7[i]])));
            }
        if (C > 1 && !missing)
            for (; r + 4 <= Z.R; r += 4) {
                const std::int32_t *c0 = Z.cells + r * Z.n + at, *c1 = c0 + Z.n, *c2 = c1 + Z.n, *c3 = c2 + Z.n;
                const T *v0 = V + Z.starts[r] * C, *v1 = V + Z.starts[r + 1] * C, *v2 = V + Z.starts[r + 2] * C,
                        *v3 = V + Z.starts[r + 3] * C;
                for (std::size_t i = 0; i < m; ++i)
                    add_four(C, v0 + std::size_t(c0[i]) * C, v1 + std::size_t(c1[i]) * C, v2 + std::size_t(c2[i]) * C,
                             v3 + std::size_t(c3[i]) * C, sums + i * C);
            }
        for (; r < Z.R; ++r) {
            const std::int32_t* c = Z.cells + r * Z.n + at;
            const T* v = V + Z.starts[r] * C;
            for (std::size_t i = 0; i < m; ++i) {
                if (missing && c[i] < 0) continue;
                const T* from = v + std::size_t(c[i]) * C;
                double* to = sums + i * C;
                for (std::size_t k = 0; k < C; ++k) to[k] += double(from[k]);
            }
        }
        for (std::size_t i = 0; i < m * C; ++i) sums[i] *= scale;
    }
}

// Sums over the rows of the cells of G grids at once: neighbouring rows often share a cell, and with one grid the next sum
// would wait for the last to be stored.
template <int G, class T>
void scatter(const CellMatrix& Z, const T* U, std::size_t r, std::vector<double>& sums) {
    const std::int64_t* s = Z.starts + r;
    sums.assign(s[G] - s[0], 0.0);
    double* to[G];
    const std::int32_t* c[G];
    for (int g = 0; g < G; ++g) to[g] = sums.data() + (s[g] - s[0]), c[g] = Z.cells + (r + g) * Z.n;
    for (std::size_t i = 0; i < Z.n; ++i) {
        const double u = double(U[i]);
#pragma GCC unroll 8
        for (int g = 0; g < G; ++g) to[g][c[g][i]] += u;
    }
}

// out (D, C) <- scale * sum over the rows of each cell of U[row, :], U (n, C); grids are shared among the threads.
template <class T>
void cells_transposed_times(const CellMatrix& Z, std::size_t C, const T* U, double scale, T* out, std::size_t first,
                            std::size_t last) {
    std::vector<double> sums;
    for (std::size_t r = first; r < last;) {
        const std::size_t left = last - r, base = Z.starts[r];
        std::size_t count = 1;
        if (C == 1) {
            count = left >= 8 ? 8 : 1;
            (count == 8 ? scatter<8, T> : scatter<1, T>)(Z, U, r, sums);
        } else {
            sums.assign((Z.starts[r + 1] - base) * C, 0.0);
            const std::int32_t* c = Z.cells + r * Z.n;
            for (std::size_t i = 0; i < Z.n; ++i) {
                const T* KS_RESTRICT from = U + i * C;
                double* KS_RESTRICT to = sums.data() + std::size_t(c[i]) * C;
#pragma omp simd
                for (std::size_t k = 0; k < C; ++k) to[k] += double(from[k]);
            }
        }
        r += count;
        const std::size_t size = (Z.starts[r] - base) * C;
        T* KS_RESTRICT to = out + base * C;
        for (std::size_t k = 0; k < size; ++k) to[k] = T(scale * sums[k]);
    }
}

}  // namespace ks
