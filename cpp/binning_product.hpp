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

#include "parallel.hpp"
#include "vecmath.hpp"

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

// out (D, C) <- scale * sum over the rows of each cell of U[row, :], U (n, C); grids are shared among the threads.
template <class T>
void cells_transposed_times(const CellMatrix& Z, std::size_t C, const T* U, double scale, T* out, std::size_t first,
                            std::size_t last) {
    std::vector<double> sums;
    std::size_t r = first;
    const auto finish = [&](std::size_t begin, std::size_t end, const double* from) {
        for (std::size_t k = begin * C; k < end * C; ++k) out[k] = T(scale * from[k - begin * C]);
    };
    // Several grids at once: neighbouring rows often share a cell, and the next sum would wait for the last to be stored.
    if (C == 1)
        for (; r + 8 <= last; r += 8) {
            const std::int64_t* s = Z.starts + r;
            sums.assign(s[8] - s[0], 0.0);
            double *s0 = sums.data(), *s1 = s0 + (s[1] - s[0]), *s2 = s0 + (s[2] - s[0]), *s3 = s0 + (s[3] - s[0]),
                   *s4 = s0 + (s[4] - s[0]), *s5 = s0 + (s[5] - s[0]), *s6 = s0 + (s[6] - s[0]), *s7 = s0 + (s[7] - s[0]);
            const std::int32_t *c0 = Z.cells + r * Z.n, *c1 = c0 + Z.n, *c2 = c1 + Z.n, *c3 = c2 + Z.n, *c4 = c3 + Z.n,
                               *c5 = c4 + Z.n, *c6 = c5 + Z.n, *c7 = c6 + Z.n;
            for (std::size_t i = 0; i < Z.n; ++i) {
                const double u = double(U[i]);
                s0[c0[i]] += u, s1[c1[i]] += u, s2[c2[i]] += u, s3[c3[i]] += u;
                s4[c4[i]] += u, s5[c5[i]] += u, s6[c6[i]] += u, s7[c7[i]] += u;
            }
            finish(s[0], s[8], sums.data());
        }
    for (; r < last; ++r) {
        const std::size_t base = Z.starts[r];
        sums.assign((Z.starts[r + 1] - base) * C, 0.0);
        const std::int32_t* c = Z.cells + r * Z.n;
        for (std::size_t i = 0; i < Z.n; ++i) {
            const T* from = U + i * C;
            double* to = sums.data() + std::size_t(c[i]) * C;
            for (std::size_t k = 0; k < C; ++k) to[k] += double(from[k]);
        }
        finish(base, Z.starts[r + 1], sums.data());
    }
}

}  // namespace ks
