// One block of rows of second-order learning, from features to steps.
//
// A = R R' at the start of the window. The window holds j rows already: V = R^-1 Z', and M, unit lower triangular, with
// M[i, l] = kappa_l z_i'P_l z_l, P_l being the inverse just before row l. A new row has v = R^-1 z, u = M^-1 V'v, and
// therefore z'P z = v'v - sum kappa u^2 and the score q'v + tau'u, q = R^-1 b at the start of the window.
//
// What a row gets depends on the rows before it and not on how they came: V is solved in panels of PANEL coordinates and u in
// strips of STRIP rows of the window, wherever a block starts or ends; every sum is an inner product (dots.hpp) or runs in the
// order of the rows. So the window can be made again from its rows, all at once, to the bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/blas.hpp"
#include "base/dots.hpp"
#include "base/lines.hpp"
#include "passes/second_order.hpp"

namespace ks::second {

constexpr std::size_t LINE = 8;    // numbers of a line of the cache
constexpr std::size_t PANEL = 24;  // coordinates solved at once by an inverted triangle, some lines
constexpr std::size_t STRIP = 16;  // rows of the window whose u is solved at once
#if defined(__x86_64__)
constexpr std::size_t LANES = 8;  // rows that pass a strip side by side
#else
constexpr std::size_t LANES = 2;
#endif

// Vectors have r numbers, those after the features are 0: r is a multiple of LINE, so that all of them begin at a line of the cache where
// the first does.
struct Head {
    std::size_t features, r, m, k;  // of a row, the same rounded up, rows of the window, outputs
    double* R;            // (r, r) lower triangle by rows; what is above the diagonal may be anything
    double* D;            // (PANEL, PANEL) inverses of the triangles on the diagonal of R, one after the other, by columns
    double* V;            // (m, r)
    double* M;            // (m, m), what is below the diagonal
    double* kappa;        // (m)
    double* tau;          // (m, k)
    double* q;            // (k, r)
};

inline std::size_t padded(std::size_t features) { return (features + LINE - 1) / LINE * LINE; }

// n vectors (n, features) -> (n, r), the rest 0.
inline void pad(std::size_t n, std::size_t features, std::size_t r, const double* from, double* to) {
    for (std::size_t t = 0; t < n; ++t) std::fill_n(std::copy_n(from + t * features, features, to + t * r), r - features, 0.0);
}

inline std::size_t panels(std::size_t r) { return (r + PANEL - 1) / PANEL; }

// x <- D x for Q vectors, `apart` from each other, of `size` coordinates, at most PANEL; the last ones first, because they need the others.
template <std::size_t Q>
KS_INLINE void apply_triangle(std::size_t size, const double* D, double* x, std::size_t apart) {
    for (std::size_t end = size; end > 0; end -= LINE) {
        double acc[Q][LINE] = {};
        for (std::size_t l = 0; l < end; ++l) {
            const double* d = D + l * PANEL + end - LINE;
            KS_UNROLL
            for (std::size_t t = 0; t < Q; ++t) {
                const double factor = x[t * apart + l];
                KS_UNROLL
                for (std::size_t i = 0; i < LINE; ++i) acc[t][i] += d[i] * factor;
            }
        }
        for (std::size_t t = 0; t < Q; ++t) std::copy_n(acc[t], LINE, x + t * apart + end - LINE);
    }
}

// V <- R^-1 V for n vectors V (n, r), a few at a time, so that they stay in the second-level cache; of the coordinates the first `end`.
KS_CLONES inline void solve_factor(std::size_t end, std::size_t r, std::size_t n, const double* R, const double* D, double* V) {
    constexpr std::size_t most = 64;
    for (std::size_t start = 0; start < n; start += most, V += most * r) {
        const std::size_t count = std::min(most, n - start);
        for (std::size_t a = 0; a < end; a += PANEL) {
            const std::size_t size = std::min(PANEL, end - a);
            if (a) dots({size, count, a, R + a * r, r, V, r, V + a, r, true});
            std::size_t t = 0;
            for (; t + 4 <= count; t += 4) apply_triangle<4>(size, D + a * PANEL, V + t * r + a, r);
            for (; t < count; ++t) apply_triangle<1>(size, D + a * PANEL, V + t * r + a, r);
        }
    }
}

// Cholesky factor of a matrix of the given size, of which `rows`, `r` apart, have the lower triangle, in place, and its inverse D, by
// columns; false when a pivot is not positive. Whole columns of L and whole rows of the inverse X are taken, since registers have room.
KS_CLONES inline bool factor_triangle(std::size_t size, std::size_t r, double* rows, double* D) {
    double L[PANEL][PANEL] = {}, X[PANEL][PANEL] = {};  // L by columns; what is above its diagonal has no meaning
    for (std::size_t i = 0; i < size; ++i)
        for (std::size_t c = 0; c <= i; ++c) L[c][i] = rows[i * r + c];
    for (std::size_t i = 0; i < size; ++i) {
        if (!(L[i][i] > 0.0)) return false;
        const double pivot = std::sqrt(L[i][i]);
        scale(PANEL, 1.0 / pivot, L[i]);
        L[i][i] = pivot;
        for (std::size_t c = i + 1; c < size; ++c) axpy(PANEL, -L[i][c], L[i], L[c]);
    }
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t c = 0; c <= i; ++c) rows[i * r + c] = L[c][i];
        X[i][i] = 1.0;
    }
    for (std::size_t l = 0; l < size; ++l) {  // forward substitution on the unit vectors
        for (std::size_t c = 0; c < PANEL; ++c) X[l][c] /= L[l][l];
        for (std::size_t i = l + 1; i < size; ++i) axpy(PANEL, -L[l][i], X[l], X[i]);
    }
    for (std::size_t c = 0; c < PANEL; ++c)
        for (std::size_t i = 0; i < PANEL; ++i) D[c * PANEL + i] = X[i][c];
    return true;
}

// R R' = A + ridge I and D, A (features, features) by its upper triangle, beyond which R R' is I: the rows of a panel are what solves the
// system with those above, and the factor of what is left of them. False when A is singular to rounding.
inline bool factor(std::size_t features, std::size_t r, const double* A, double ridge, double* R, double* D) {
    for (std::size_t a = 0; a < r; a += PANEL) {
        const std::size_t size = std::min(PANEL, r - a);
        double* rows = R + a * r;
        const std::size_t given = std::min(size, features - a);
        for (std::size_t i = 0; i < a + given; ++i)
            for (std::size_t t = i > a ? i - a : 0; t < given; ++t) rows[t * r + i] = A[i * features + a + t];
        for (std::size_t t = given; t < size; ++t) std::fill_n(rows + t * r, r, 0.0);
        for (std::size_t t = 0; t < size; ++t) rows[t * r + a + t] += t < given ? ridge : 1.0;
        solve_factor(a, r, size, R, D, rows);
        if (a) dots({size, size, a, rows, r, rows, r, rows + a, r, true});
        if (!factor_triangle(size, r, rows + a, D + a * PANEL)) return false;
    }
    return true;
}

// Rows that pass the window: their vectors V (n, r), u (n, width), scores F (n, k) and s (n) as far as they are known.
struct Passing {
    std::size_t n, width;
    const double* V;
    double *U, *F, *s;
};

// A strip of the window, rows a, ..., b - 1 of it, of which the first `from` have been passed.
struct Strip {
    std::size_t a, from, b;
    double column[STRIP][STRIP];  // of M within the strip; 0 up to the diagonal, and above `from`

    Strip(const Head& h, std::size_t a, std::size_t from, std::size_t b) : a(a), from(from), b(a + from), column{} {
        while (this->b < b) extend(h);
    }
    // One more row of the window belongs to it.
    void extend(const Head& h) {
        for (std::size_t l = 0; l < b - a; ++l) column[l][b - a] = h.M[b * h.m + a + l];
        ++b;
    }
    // Q rows, from t on, pass it, side by side in the lanes of registers. In place of u there are products, from which the part due to
    // earlier strips has been subtracted.
    template <std::size_t Q>
    KS_INLINE void pass(const Head& h, const Passing& rows, std::size_t t) const {
        const std::size_t count = b - a, k = h.k;
        double u[STRIP][Q] = {}, s[Q];
        for (std::size_t e = 0; e < Q; ++e) {
            const double* from_row = rows.U + (t + e) * rows.width + a;
            for (std::size_t l = 0; l < count; ++l) u[l][e] = from_row[l];
            s[e] = rows.s[t + e];
        }
        KS_UNROLL
        for (std::size_t l = 0; l + 1 < STRIP; ++l) {  // beyond the strip's end there are zeros
            KS_UNROLL
            for (std::size_t i = l + 1; i < STRIP; ++i) {
                const double factor = column[l][i];
                KS_UNROLL
                for (std::size_t e = 0; e < Q; ++e) u[i][e] -= factor * u[l][e];
            }
        }
        for (std::size_t l = from; l < count; ++l) {
            for (std::size_t o = 0; o < k; ++o)
                for (std::size_t e = 0; e < Q; ++e) rows.F[(t + e) * k + o] += h.tau[(a + l) * k + o] * u[l][e];
            for (std::size_t e = 0; e < Q; ++e) s[e] -= h.kappa[a + l] * u[l][e] * u[l][e];
        }
        for (std::size_t e = 0; e < Q; ++e) {
            double* to_row = rows.U + (t + e) * rows.width + a;
            for (std::size_t l = 0; l < count; ++l) to_row[l] = u[l][e];
            rows.s[t + e] = s[e];
        }
    }
};

// The rows from `first` on pass a strip, whatever the strips before it have to do with it included.
KS_CLONES inline void pass_strip(const Head& h, const Strip& strip, std::size_t first, const Passing& rows) {
    const std::size_t start = strip.a + strip.from, width = rows.width;
    double* U = rows.U + first * width;
    if (strip.a)
        dots({strip.b - start, rows.n - first, strip.a, h.M + start * h.m, h.m, U, width, U + start, width, true});
    std::size_t t = first;
    for (; t + LANES <= rows.n; t += LANES) strip.pass<LANES>(h, rows, t);
    for (; t < rows.n; ++t) strip.pass<1>(h, rows, t);
}

// All rows pass the j rows of the window.
inline void pass_window(const Head& h, std::size_t j, const Passing& rows) {
    const std::size_t r = h.r;
    dots({h.k, rows.n, r, h.q, r, rows.V, r, rows.F, h.k, false});
    dots({j, rows.n, r, h.V, r, rows.V, r, rows.U, rows.width, false});
    for (std::size_t t = 0; t < rows.n; ++t) dots({1, 1, r, rows.V + t * r, r, rows.V + t * r, r, rows.s + t, 1, false});
    for (std::size_t a = 0; a < j; a += STRIP) pass_strip(h, Strip(h, a, 0, std::min(a + STRIP, j)), 0, rows);
}

// out[t, i] = v_t'v_i for n vectors V (n, r) and i <= t; some of the others are written too.
inline void products_among(std::size_t r, std::size_t n, const double* V, double* out) {
    constexpr std::size_t block = 64;
    for (std::size_t a = 0; a < n; a += block) {
        const std::size_t end = std::min(a + block, n);
        dots({a, end - a, r, V, r, V + a * r, r, out + a * n, n, false});
        for (std::size_t t = a; t < end; t += STRIP) {
            const std::size_t later = std::min(t + STRIP, end);
            dots({later - a, later - t, r, V + a * r, r, V + t * r, r, out + t * n + a, n, false});
        }
    }
}

// Learn n rows that follow the j rows of the window; those that move something stay in it. Returns how many rows it has then.
// In:  Z (n, r), y (n, k), weight (n).  Out: F (n, k), s (n) before each row; c (n), beta (n, k), all 0 for a row that moved nothing.
KS_CLONES inline std::size_t learn_block(const Head& h, std::size_t j, std::size_t n, const double* Z, const double* y,
                                         const double* weight, const Rule& rule, double* F, double* s, double* c, double* beta,
                                         std::vector<double>& work) {
    const std::size_t r = h.r, m = h.m, k = h.k, width = padded(j + n);
    double *U = on_line(work, n * width + padded(n * n) + STRIP * width), *among = U + n * width, *scaled = among + padded(n * n);
    double part[STRIP * STRIP], *V = h.V + j * r;
    pad(n, h.features, r, Z, V);
    solve_factor(r, r, n, h.R, h.D, V);
    const Passing rows{n, width, V, U, F, s};
    pass_window(h, j, rows);
    products_among(r, n, V, among);
    std::size_t end = j, t = 0;  // rows of the window, and of the block
    while (t < n) {
        // Rows t, t + 1, ... are the next of the window, until a strip is full. They have passed all of the window but each other.
        const std::size_t a = end / STRIP * STRIP, group = std::min(STRIP, n - t), first = t;
        Strip strip(h, a, end - a, end);
        for (std::size_t i = 0; i < group; ++i)
            for (std::size_t l = 0; l < a; ++l) scaled[i * width + l] = h.kappa[l] * U[(first + i) * width + l];
        dots({group, group, a, scaled, width, U + first * width, width, part, STRIP, false});
        std::size_t owner[STRIP] = {};  // of the rows of the strip that are new: their numbers in the block
        for (; t < first + group && end < a + STRIP; ++t) {
            double* u = U + t * width;
            for (std::size_t l = a + strip.from; l < end; ++l)
                u[l] = among[t * n + owner[l - a]] - part[(t - first) * STRIP + owner[l - a] - first];
            strip.pass<1>(h, rows, t);
            double* betas = beta + t * k;
            const double *f = F + t * k, uncertainty = s[t] = std::max(s[t], 0.0);
            c[t] = 0.0;
            std::fill_n(betas, k, 0.0);
            if (weight[t] != 0.0 || rule.always) rule.step(y + t * k, f, uncertainty, weight[t], int(k), c[t], betas);
            if (c[t] == 0.0 && std::all_of(betas, betas + k, [](double x) { return x == 0.0; })) continue;
            const double shrink = 1.0 / (1.0 + c[t] * uncertainty);
            h.kappa[end] = c[t] * shrink;
            for (std::size_t o = 0; o < k; ++o) h.tau[end * k + o] = (betas[o] - c[t] * f[o]) * shrink;
            for (std::size_t l = 0; l < end; ++l) h.M[end * m + l] = h.kappa[l] * u[l];
            if (end != j + t) std::copy_n(V + t * r, r, h.V + end * r);
            owner[end++ - a] = t;
            strip.extend(h);
        }
        if (t == n || end == a + strip.from) continue;
        for (std::size_t later = t; later < n; ++later)
            for (std::size_t l = a + strip.from; l < end; ++l) U[later * width + l] = among[later * n + owner[l - a]];
        pass_strip(h, strip, t, rows);
    }
    return end;
}

// What is stored of least squares: A without its ridge, b and the other sums of the rows that have left the window, and those in it.
struct Statistics {
    double *gram, *b, *yy, *zsum, mass;    // (r, r) upper, (k, r), (k), (r): see kernelstream/second_order/statistics.py
    double *window, *window_c, *window_b;  // (m, r), (m), (m, k)
};

// The rows of the full window join the sums; false when these leave the range of floats.
KS_CLONES inline bool flush(const Blas& blas, const Head& h, Statistics& s, std::vector<double>& work) {
    const std::size_t r = h.features, m = h.m, k = h.k;
    bool scaled = false;
    for (std::size_t t = 0; t < m; ++t) {
        const double c = s.window_c[t], *z = s.window + t * r;
        for (std::size_t o = 0; o < k; ++o) {
            const double beta = s.window_b[t * k + o];
            axpy(r, beta, z, s.b + o * r);
            if (c > 0) s.yy[o] += beta * (beta / c);
        }
        axpy(r, c, z, s.zsum);
        s.mass += c;
        scaled |= c != 1.0;
    }
    const double* rows = s.window;
    if (scaled) {
        work.resize(m * r);
        for (std::size_t t = 0; t < m; ++t) {
            const double root = std::sqrt(s.window_c[t]);
            for (std::size_t i = 0; i < r; ++i) work[t * r + i] = root * s.window[t * r + i];
        }
        rows = work.data();
    }
    blas.syrk(r, m, rows, s.gram);
    for (std::size_t i = 0; i < r; ++i)
        if (!std::isfinite(s.gram[i * r + i])) return false;  // which bounds the rest of the matrix
    return all_finite(k * r, s.b);
}

// The head of an empty window: R, D and q; where A is singular to rounding, with more ridge. False when none helps.
inline bool restart(const Head& h, const Statistics& s, double ridge) {
    const std::size_t n = h.features;
    while (!factor(n, h.r, s.gram, ridge, h.R, h.D)) {
        double size = 0.0;
        for (std::size_t i = 0; i < n; ++i) size = std::max(size, std::abs(s.gram[i * n + i]) * double(n));
        if (!std::isfinite(size) || !all_finite(n * n, s.gram) || ridge > std::max(10.0 * size, 1e-290)) return false;
        ridge = std::max({10.0 * ridge, 1e-15 * size, 1e-300});
    }
    pad(h.k, n, h.r, s.b, h.q);
    solve_factor(h.r, h.r, h.k, h.R, h.D, h.q);
    return true;
}

// Rows of learn_block that moved something stay in the window of the statistics, from place j on.
inline void enter(const Head& h, std::size_t j, std::size_t n, const double* Z, const double* c, const double* beta, Statistics& s) {
    for (std::size_t t = 0; t < n; ++t) {
        const double* betas = beta + t * h.k;
        if (c[t] == 0.0 && std::all_of(betas, betas + h.k, [](double x) { return x == 0.0; })) continue;
        const double* z = Z + t * h.features;
        double* place = s.window + j * h.features;
        if (place != z) std::copy_n(z, h.features, place);
        s.window_c[j] = c[t];
        std::copy_n(betas, h.k, s.window_b + j * h.k);
        ++j;
    }
}

// Room for the work on rows of least squares.
struct Room {
    std::vector<double> work, c, beta, ones;
};

// Least squares over n rows that follow the j of the window: whenever it is full, its rows join the sums and the head begins again.
// weight may be null. Out: F (n, k), s (n), and how many rows are in the window then; false when numbers leave the range of floats.
inline bool run(const Blas& blas, const Head& h, Statistics& sums, double ridge, std::size_t& j, std::size_t n, const double* Z,
                const double* y, const double* weight, double* F, double* s, Room& room) {
    const LeastSquares rule;
    room.ones.resize(h.m, 1.0);
    for (std::size_t start = 0; start < n;) {
        const std::size_t count = std::min(n - start, h.m - j), r = h.features, k = h.k;
        room.c.resize(count), room.beta.resize(count * k);
        const double* importance = weight ? weight + start : room.ones.data();
        const std::size_t end = learn_block(h, j, count, Z + start * r, y + start * k, importance, rule, F + start * k, s + start,
                                            room.c.data(), room.beta.data(), room.work);
        if (!all_finite(end - j, h.kappa + j) || !all_finite((end - j) * k, h.tau + j * k)) return false;
        enter(h, j, count, Z + start * r, room.c.data(), room.beta.data(), sums);
        start += count;
        j = end;
        if (j < h.m) continue;
        j = 0;
        if (!flush(blas, h, sums, room.work) || !restart(h, sums, ridge)) return false;
    }
    return all_finite(n * h.k, F) && all_finite(n, s);
}

// Uncertainties s (n) of rows that are not learned, and their scores F (n, k).
inline void score_block(const Head& h, std::size_t j, std::size_t n, const double* Z, double* F, double* s,
                        std::vector<double>& work) {
    const std::size_t width = padded(j);
    double *V = on_line(work, n * h.r + n * width), *U = V + n * h.r;
    pad(n, h.features, h.r, Z, V);
    solve_factor(h.r, h.r, n, h.R, h.D, V);
    pass_window(h, j, Passing{n, width, V, U, F, s});
    for (std::size_t t = 0; t < n; ++t) s[t] = std::max(s[t], 0.0);
}

}  // namespace ks::second
