// Coordinate descent for  sum_i a_i l(y_i, f_i) + lam |w|_1  with f = Z w kept up to date.
//
// Random binning: the cells of one grid have no row in common, so all of them may move at once and each still finds
// exactly the responses it would have found alone. A thread owns some of the cells, hence the responses of their rows; after
// every grid the threads wait for each other. The result does not depend on their number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/parallel.hpp"
#include "base/vecmath.hpp"
#include "parts/losses.hpp"

namespace ks {

struct Sweep {  // what a pass over the coordinates found
    double violation = 0.0;  // largest distance of the gradient from where it must be at the minimum
    double moved = 0.0;      // largest change of a weight, times the root of its curvature
};

// How far coordinate w is from its minimum, with gradient g of the loss.
inline double violation(double w, double g, double lam) {
    return w > 0 ? std::abs(g + lam) : w < 0 ? std::abs(g - lam) : std::max(0.0, std::abs(g) - lam);
}

// Minimum of g d + H d^2 / 2 + lam |w + d|.
inline double soft_step(double w, double g, double H, double lam) {
    if (g + lam <= H * w) return -(g + lam) / H;
    if (g - lam >= H * w) return -(g - lam) / H;
    return -w;
}

// One cell: a Newton step for its weight, halved until the objective falls enough (Yuan, Chang, Hsieh, Lin 2010).
template <class Curve>
KS_INLINE void descend(const Curve& loss, const std::int32_t* rows, std::size_t count, double z, const double* y, const double* a, double lam,
                       double* f, double& w, Sweep& sweep) {
    double g = 0.0, H = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
        const std::int32_t i = rows[k];
        const double ai = a ? a[i] : 1.0;
        g += ai * loss.slope(y[i], f[i]);
        H += ai * loss.curvature(y[i], f[i]);
    }
    g *= z, H = std::max(H * z * z, 1e-12);
    sweep.violation = std::max(sweep.violation, violation(w, g, lam));
    double d = soft_step(w, g, H, lam);
    if (d == 0.0) return;
    if (!std::is_same_v<Curve, Squared>) {
        const double promised = g * d + lam * (std::abs(w + d) - std::abs(w));
        for (int halvings = 0;; ++halvings, d *= 0.5) {
            double change = lam * (std::abs(w + d) - std::abs(w));
            for (std::size_t k = 0; k < count; ++k) {
                const std::int32_t i = rows[k];
                change += (a ? a[i] : 1.0) * (loss.at(y[i], f[i] + d * z) - loss.at(y[i], f[i]));
            }
            if (change <= 0.01 * std::ldexp(promised, -halvings)) break;
            if (halvings == 30) return;
        }
    }
    w += d;
    sweep.moved = std::max(sweep.moved, std::abs(d) * std::sqrt(H));
    for (std::size_t k = 0; k < count; ++k) f[rows[k]] += d * z;
}

struct CellLists {
    std::size_t n, R;
    const std::int32_t* rows;    // (R, n): rows of each grid, cell by cell
    const std::int32_t* first;   // (D,): where each cell begins among the rows of its grid
    const std::int64_t* starts;  // (R + 1,)
};

// Rows of each grid sorted by cell, in their order within a cell.
inline void list_cells(std::size_t n, std::size_t R, const std::int32_t* cells, const std::int64_t* starts,
                       std::int32_t* rows, std::int32_t* first, int threads) {
    parallel(std::min<int>(threads, int(R)), [&](int t) {
        const Share share(R, t, std::min<int>(threads, int(R)));
        for (std::size_t r = share.begin; r < share.end; ++r) {
            const std::size_t count = starts[r + 1] - starts[r];
            const std::int32_t* cell = cells + r * n;
            std::vector<std::int32_t> next(count + 1, 0);
            for (std::size_t i = 0; i < n; ++i) ++next[cell[i] + 1];
            for (std::size_t c = 0; c < count; ++c) next[c + 1] += next[c];
            std::copy(next.begin(), next.end() - 1, first + starts[r]);
            for (std::size_t i = 0; i < n; ++i) rows[r * n + next[cell[i]]++] = std::int32_t(i);
        }
    });
}

constexpr std::size_t kTurns = 8;  // runs of rows that a thread takes in every grid

// One pass over the grids in the given order; with `active`, over the cells whose weight is not zero.
template <class Curve>
Sweep sweep_cells(const Curve& loss, const CellLists& lists, const std::int64_t* order, const double* y, const double* a, double lam,
                  bool active, double* f, double* w, int threads) {
    const double z = 1.0 / std::sqrt(double(lists.R));
    std::vector<Sweep> sweeps(threads);
    Barrier barrier(threads);
    parallel(threads, [&](int t) {
        Sweep own;
        const auto n = std::int32_t(lists.n);
        // The threads take turns over short runs of rows: the cells that have a weight are not evenly spread.
        const std::size_t runs = threads == 1 ? 1 : std::size_t(threads) * kTurns;
        for (std::size_t k = 0; k < lists.R; ++k) {
            const std::int64_t r = order[k];
            const std::int32_t *begin = lists.first + lists.starts[r], *end = lists.first + lists.starts[r + 1];
            for (std::size_t run = t; run < runs; run += threads) {
                const auto low = std::int32_t(lists.n * run / runs), high = std::int32_t(lists.n * (run + 1) / runs);
                // cells that begin in this run of rows
                const std::int32_t *from = std::lower_bound(begin, end, low), *to = std::lower_bound(from, end, high);
                for (const std::int32_t* cell = from; cell < to; ++cell) {
                    double& weight = w[cell - lists.first];
                    if (active && weight == 0.0) continue;
                    const std::int32_t stop = cell + 1 < end ? cell[1] : n;
                    descend(loss, lists.rows + r * lists.n + *cell, std::size_t(stop - *cell), z, y, a, lam, f, weight, own);
                }
            }
            barrier.wait();
        }
        sweeps[t] = own;
    });
    Sweep all;
    for (const Sweep& s : sweeps) all = {std::max(all.violation, s.violation), std::max(all.moved, s.moved)};
    return all;
}

// ---- Dense features -------------------------------------------------------------------------------------------------
// One pass over the columns of Z, (P, n) here, in the given order. Every coordinate touches every row: threads that moved several at
// once would have to shorten all steps by their number (Richtarik and Takac 2016), and gain nothing.
template <class T, class Curve>
Sweep sweep_columns(const Curve& loss, std::size_t n, std::size_t P, const T* Z, const double* squares, const std::int64_t* order,
                    const double* y, const double* a, double lam, double* f, double* w) {
    Sweep all;
    for (std::size_t k = 0; k < P; ++k) {
        const std::size_t j = order[k];
        const T* z = Z + j * n;
        double g = 0.0;
        for (std::size_t i = 0; i < n; ++i) g += (a ? a[i] : 1.0) * loss.slope(y[i], f[i]) * double(z[i]);
        const double H = std::max(Curve::steepest * squares[j], 1e-12);
        all.violation = std::max(all.violation, violation(w[j], g, lam));
        const double d = soft_step(w[j], g, H, lam);
        if (d == 0.0) continue;
        w[j] += d;
        all.moved = std::max(all.moved, std::abs(d) * std::sqrt(H));
        for (std::size_t i = 0; i < n; ++i) f[i] += d * double(z[i]);
    }
    return all;
}

}  // namespace ks
