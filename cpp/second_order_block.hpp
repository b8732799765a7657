// One block of rows of second-order learning, from features to steps: matrix products around second_order_pass.
//
// A = R R' at the start of the window. The window holds j rows already: V = R^-1 Z', and M, unit lower triangular, with
// M[i, l] = kappa_l z_i'P_l z_l, P_l being the inverse just before row l. A new row has v = R^-1 z, u = M^-1 V'v, and
// therefore z'P z = v'v - sum kappa u^2 and the score q'v + tau'u, q = R^-1 b at the start of the window. All matrices are column-major.
#pragma once

#include <algorithm>
#include <vector>

#include "blas.hpp"
#include "second_order.hpp"

namespace ks::second {

constexpr std::size_t PANEL = 24;  // columns of R solved at once by an inverted triangle; the rest is matrix products
constexpr std::size_t STRIP = 16;  // rows eliminated one by one, and columns of M solved directly

struct Head {
    std::size_t r, m, k;  // features, rows of the window, outputs
    const double* R;      // (r, r) lower
    const double* D;      // (PANEL, PANEL) inverses of the triangles on the diagonal of R, one after the other
    double* V;            // (r, m)
    double* M;            // (m, m)
    double* kappa;        // (m)
    double* tau;          // (k, m)
    const double* q;      // (r, k)
};

inline std::size_t panels(std::size_t r) { return (r + PANEL - 1) / PANEL; }

// Inverse X of a lower triangle L of the given size: its halves' inverses, and their product with the square between them.
KS_CLONES inline void invert_triangle(std::size_t size, const double* L, std::size_t ldl, double* X, std::size_t ldx) {
    if (size <= 8) {
        for (std::size_t c = 0; c < size; ++c)  // column c: forward substitution on a unit vector
            for (std::size_t i = c; i < size; ++i) {
                double sum = i == c ? 1.0 : 0.0;
                for (std::size_t l = c; l < i; ++l) sum -= L[l * ldl + i] * X[c * ldx + l];
                X[c * ldx + i] = sum / L[i * ldl + i];
            }
        return;
    }
    const std::size_t h = (size / 2 + 7) / 8 * 8, rest = size - h;
    double* low = X + h * ldx + h;
    invert_triangle(h, L, ldl, X, ldx);
    invert_triangle(rest, L + h * ldl + h, ldl, low, ldx);
    double column[PANEL];
    for (std::size_t c = 0; c < h; ++c) {
        std::fill(column, column + rest, 0.0);
        for (std::size_t l = c; l < h; ++l) {
            const double x = X[c * ldx + l], *from = L + l * ldl + h;
#pragma omp simd
            for (std::size_t i = 0; i < rest; ++i) column[i] -= x * from[i];
        }
        double* out = X + c * ldx + h;
        std::fill(out, out + rest, 0.0);
        for (std::size_t l = 0; l < rest; ++l) {
            const double x = column[l], *from = low + l * ldx;
#pragma omp simd
            for (std::size_t i = l; i < rest; ++i) out[i] += x * from[i];
        }
    }
}

// Cholesky factor of the lower triangle at A, in place, and its inverse X; false when a pivot is not positive.
KS_CLONES inline bool factor_triangle(std::size_t size, double* A, std::size_t ld, double* X) {
    for (std::size_t i = 0; i < size; ++i) {
        double* column = A + i * ld;
        if (!(column[i] > 0.0)) return false;
        const double pivot = std::sqrt(column[i]), inverse = 1.0 / pivot;
        column[i] = pivot;
#pragma omp simd
        for (std::size_t l = i + 1; l < size; ++l) column[l] *= inverse;
        for (std::size_t c = i + 1; c < size; ++c) {
            const double x = column[c];
            double* later = A + c * ld;
#pragma omp simd
            for (std::size_t l = c; l < size; ++l) later[l] -= x * column[l];
        }
    }
    std::fill(X, X + PANEL * PANEL, 0.0);
    invert_triangle(size, A, ld, X, PANEL);
    return true;
}

// Columns of panels p .. q, rows below them up to row `end`: B <- B R^-T, R being the factor within the panels.
inline void solve_below(const Blas& blas, std::size_t r, std::size_t p, std::size_t q, std::size_t begin, std::size_t end,
                        double* R, const double* D, double* scratch) {
    const std::size_t a = p * PANEL, b = std::min(q * PANEL, r), rows = end - begin;
    double* B = R + a * r + begin;
    if (q - p == 1) {
        const std::size_t size = b - a;
        blas.gemm(false, true, rows, size, size, 1.0, B, r, D + p * PANEL * PANEL, PANEL, 0.0, scratch, rows);
        for (std::size_t c = 0; c < size; ++c) std::copy_n(scratch + c * rows, rows, B + c * r);
        return;
    }
    const std::size_t half = p + (q - p) / 2, c = half * PANEL;
    solve_below(blas, r, p, half, begin, end, R, D, scratch);
    blas.gemm(false, true, rows, b - c, c - a, -1.0, B, r, R + a * r + c, r, 1.0, R + c * r + begin, r);
    solve_below(blas, r, half, q, begin, end, R, D, scratch);
}

// Factor of the square of panels p .. q in place, by halves; false when it is singular to rounding.
inline bool factor_panels(const Blas& blas, std::size_t r, std::size_t p, std::size_t q, double* R, double* D,
                          double* scratch) {
    const std::size_t a = p * PANEL, b = std::min(q * PANEL, r);
    if (q - p == 1) return factor_triangle(b - a, R + a * r + a, r, D + p * PANEL * PANEL);
    const std::size_t half = p + (q - p) / 2, c = half * PANEL;
    if (!factor_panels(blas, r, p, half, R, D, scratch)) return false;
    solve_below(blas, r, p, half, c, b, R, D, scratch);
    blas.syrk(false, b - c, c - a, -1.0, R + a * r + c, r, 1.0, R + c * r + c, r);
    return factor_panels(blas, r, half, q, R, D, scratch);
}

// R R' = A + ridge I and D; false when A is singular to rounding. Only lower triangles are read and written.
inline bool factor(const Blas& blas, std::size_t r, const double* A, double ridge, double* R, double* D,
                   std::vector<double>& work) {
    work.resize(r * PANEL);
    for (std::size_t c = 0; c < r; ++c) {
        std::copy_n(A + c * r + c, r - c, R + c * r + c);
        R[c * r + c] += ridge;
    }
    return factor_panels(blas, r, 0, panels(r), R, D, work.data());
}

// V <- R^-1 V within panels p .. q of R: halves, and between them a product as large as it can be.
inline void solve_panels(const Blas& blas, const Head& h, std::size_t p, std::size_t q, std::size_t n, double* V,
                         double* scratch) {
    const std::size_t r = h.r, a = p * PANEL, b = std::min(q * PANEL, r);
    if (q - p == 1) {
        const std::size_t size = b - a;
        blas.gemm(false, false, size, n, size, 1.0, h.D + p * PANEL * PANEL, PANEL, V + a, r, 0.0, scratch, PANEL);
        for (std::size_t t = 0; t < n; ++t) std::copy_n(scratch + t * PANEL, size, V + t * r + a);
        return;
    }
    const std::size_t half = p + (q - p) / 2, c = half * PANEL;
    solve_panels(blas, h, p, half, n, V, scratch);
    blas.gemm(false, false, b - c, n, c - a, -1.0, h.R + a * r + c, r, V + a, r, 1.0, V + c, r);
    solve_panels(blas, h, half, q, n, V, scratch);
}

// V <- R^-1 V for V (r, n); scratch (PANEL, n).
KS_CLONES inline void solve_factor(const Blas& blas, const Head& h, std::size_t n, double* V, double* scratch) {
    const std::size_t r = h.r;
    if (n == 1) {  // a vector: column by column
        for (std::size_t i = 0; i < r; ++i) {
            const double* column = h.R + i * r;
            const double pivot = V[i] / column[i];
            V[i] = pivot;
#pragma omp simd
            for (std::size_t l = i + 1; l < r; ++l) V[l] -= pivot * column[l];
        }
        return;
    }
    solve_panels(blas, h, 0, panels(r), n, V, scratch);
}

// U <- M^-1 U for U (j, n), leading dimension j.
KS_CLONES inline void solve_window(const Blas& blas, const Head& h, std::size_t j, std::size_t n, double* U) {
    const std::size_t strip = n == 1 ? j : STRIP;
    for (std::size_t a = 0; a < j; a += strip) {
        const std::size_t b = std::min(a + strip, j);
        for (std::size_t t = 0; t < n; ++t) {
            double* u = U + t * j;
            for (std::size_t l = a; l < b; ++l) {
                const double x = u[l];
                const double* column = h.M + l * h.m;
#pragma omp simd
                for (std::size_t i = l + 1; i < b; ++i) u[i] -= column[i] * x;
            }
        }
        blas.gemm(false, false, j - b, n, b - a, -1.0, h.M + a * h.m + b, h.m, U + a, j, 1.0, U + b, j);
    }
}

// dot products of one vector with the columns of V (r, j)
KS_CLONES inline void project(std::size_t r, std::size_t j, const double* V, const double* v, double* u) {
    for (std::size_t l = 0; l < j; ++l) {
        const double* column = V + l * r;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t i = 0; i < r; ++i) sum += column[i] * v[i];
        u[l] = sum;
    }
}

// U (j, n) and scores F (k, n) of rows with V = R^-1 Z' (r, n).
inline void see(const Blas& blas, const Head& h, std::size_t j, std::size_t n, const double* V, double* U, double* F) {
    blas.gemm(true, false, h.k, n, h.r, 1.0, h.q, h.r, V, h.r, 0.0, F, h.k);
    if (!j) return;
    if (n == 1)
        project(h.r, j, h.V, V, U);
    else
        blas.gemm(true, false, j, n, h.r, 1.0, h.V, h.r, V, h.r, 0.0, U, j);
    solve_window(blas, h, j, n, U);
    blas.gemm(false, false, h.k, n, j, 1.0, h.tau, h.k, U, j, 1.0, F, h.k);
}

// Learn n rows that follow the j rows of the window; all of them are entered, also those that do not move anything.
// In:  Z (n, r) row-major, y and weight as in second_order_pass.  Out: F (n, k), s (n), c (n), beta (n, k).
inline void learn_block(const Blas& blas, const Head& h, std::size_t j, std::size_t n, const double* Z, const double* y,
                        const double* weight, const Rule& rule, double* F, double* s, double* c, double* beta,
                        std::vector<double>& work) {
    work.resize(n * n + 2 * j * n + (PANEL + STRIP) * n + j);
    double *S = work.data(), *U = S + n * n, *KU = U + j * n, *scratch = KU + j * n, *G = scratch + PANEL * n,
           *root = G + STRIP * n;
    double* V = h.V + j * h.r;
    std::copy_n(Z, n * h.r, V);
    solve_factor(blas, h, n, V, scratch);
    see(blas, h, j, n, V, U, F);
    blas.syrk(true, n, h.r, 1.0, V, h.r, 0.0, S, n);  // lower triangle by columns = upper triangle by rows
    for (std::size_t l = 0; l < j; ++l) root[l] = std::sqrt(h.kappa[l]);
    for (std::size_t t = 0; t < n; ++t)
        for (std::size_t l = 0; l < j; ++l) KU[t * j + l] = root[l] * U[t * j + l];
    if (j) blas.syrk(true, n, j, -1.0, KU, j, 1.0, S, n);
    for (std::size_t a = 0; a < n; a += STRIP) {
        const std::size_t size = std::min(STRIP, n - a), b = a + size, rest = n - b;
        double *strip = S + a * n + a, *kappa = h.kappa + j + a, *tau = h.tau + (j + a) * h.k;
        second_order_pass(size, n - a, n, int(h.k), strip, F + a * h.k, y + a * h.k, weight + a, rule, c + a, beta + a * h.k,
                          kappa, tau);
        if (!rest) break;
        for (std::size_t l = 0; l < size; ++l) {
            const double scale = std::sqrt(kappa[l]), *row = strip + l * n + size;
            for (std::size_t t = 0; t < rest; ++t) G[t * size + l] = scale * row[t];
        }
        blas.syrk(true, rest, size, -1.0, G, size, 1.0, S + b * n + b, n);
        blas.gemm(false, true, h.k, rest, size, 1.0, tau, h.k, strip + size, n, 1.0, F + b * h.k, h.k);
    }
    for (std::size_t t = 0; t < n; ++t) s[t] = S[t * n + t];
    for (std::size_t l = 0; l < j; ++l)
        for (std::size_t t = 0; t < n; ++t) h.M[l * h.m + j + t] = h.kappa[l] * U[t * j + l];
    for (std::size_t l = 0; l < n; ++l) {
        double* column = h.M + (j + l) * h.m + j;
        column[l] = 1.0;
        for (std::size_t t = l + 1; t < n; ++t) column[t] = h.kappa[j + l] * S[l * n + t];
    }
}

// Uncertainties s (n) of rows that are not learned, and their scores F (n, k).
inline void score_block(const Blas& blas, const Head& h, std::size_t j, std::size_t n, const double* Z, double* F, double* s,
                        std::vector<double>& work) {
    work.resize(n * h.r + j * n + PANEL * n);
    double *V = work.data(), *U = V + n * h.r, *scratch = U + j * n;
    std::copy_n(Z, n * h.r, V);
    solve_factor(blas, h, n, V, scratch);
    see(blas, h, j, n, V, U, F);
    for (std::size_t t = 0; t < n; ++t) {
        double sum = 0.0;
        for (std::size_t i = 0; i < h.r; ++i) sum += V[t * h.r + i] * V[t * h.r + i];
        for (std::size_t l = 0; l < j; ++l) sum -= h.kappa[l] * U[t * j + l] * U[t * j + l];
        s[t] = std::max(sum, 0.0);
    }
}

}  // namespace ks::second
