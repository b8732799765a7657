// Learning on cells: f_c(x) = b_c + sum_r w[cell_r(x), c], AdaGrad with a step of its own for every cell; the twin of
// kernelstream/passes/cells/python.py.
//
// Where the cells of a row are comes from cell_grids.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/center.hpp"
#include "base/parallel.hpp"
#include "base/vecmath.hpp"
#include "parts/losses.hpp"

namespace ks::cells {

constexpr double reach = 5.0;      // deviations of the target up to which a residual counts
constexpr double settled = 10.0;   // rows before that limit holds
constexpr double tiny = 1e-12;
constexpr double largest = 3e38;   // that a table can hold

struct Rule {
    bool regression;
    double eta, fade;  // step scale; factor by which old squares of gradients fade
};

struct Model {
    std::size_t R, C, width;  // grids, outputs, columns of the tables: at least C, 1 of a single output
    std::size_t size;         // cells of all tables
    float* tables;     // (size, 2, width): weights, sums of squared gradients
    double* bias;      // (2, C)
    double* target;    // (3): rows, mean, sum of squared deviations of the target
    double* use;       // (R): how much each grid has lowered the loss, to first order
};

// Derivative of the loss by the scores: squared with limited residuals, logistic (y = -1, 1), or softmax (y a class).
KS_INLINE void gradient(const Rule& rule, std::size_t C, const double* f, double y, const double* target, double* g) {
    if (rule.regression) {
        // the first target teaches the mean alone
        const double most = target[0] > settled ? reach * deviation(target) : target[0] > 0.0 ? INFINITY : 0.0;
        g[0] = std::min(std::max(f[0] - y, -most), most);
    } else if (C == 1) {
        g[0] = -y / (1.0 + std::exp(y * f[0]));
    } else {
        Softmax().rows_gradient(int(y), f, int(C), g);
    }
}

constexpr std::size_t kept = 32;  // numbers in which the derivatives of a row are kept

// -g (C) as at most `kept` sums with signs, which keep its length on average; see `sketched` in the python engine.
KS_INLINE void sketch(std::size_t C, const double* g, double* out) {
    const std::size_t few = std::min(C, kept);
    for (std::size_t c = 0; c < few; ++c) out[c] = -g[c];
    if (C == few) return;
    std::fill_n(out, few, 0.0);
    for (std::size_t c = 0; c < C; ++c) out[c % kept] += std::uint64_t(c) * 0x9E3779B97F4A7C15ull >> 63 ? g[c] : -g[c];
}

// Whether all cells are within a table of so many.
KS_CLONES inline bool inside(std::size_t n, const std::int32_t* index, std::size_t size) {
    const std::uint32_t end = std::uint32_t(std::min<std::size_t>(size, std::size_t(1) << 31));
    std::uint32_t outside = 0;  // negative numbers are large ones without a sign
#pragma omp simd reduction(| : outside)
    for (std::size_t i = 0; i < n; ++i) outside |= std::uint32_t(index[i]) >= end ? 1u : 0u;
    return !outside;
}

// f (C) of a row with these cells, less the mean of the target; w (R) has room for the weights of a single output, which are added in
// several running sums: one alone would wait for the addition before.
KS_INLINE void add_up(const Model& m, const std::int32_t* cell, double* w, double* f) {
    if (m.C == 1) {
        for (std::size_t r = 0; r < m.R; ++r) w[r] = m.tables[std::size_t(cell[r]) * 2];
        f[0] = m.bias[0] + sum(m.R, w);
        return;
    }
    std::copy_n(m.bias, m.C, f);
    for (std::size_t r = 0; r < m.R; ++r) {
        const float* at = m.tables + std::size_t(cell[r]) * 2 * m.width;
        for (std::size_t c = 0; c < m.C; ++c) f[c] += at[c];
    }
}

KS_INLINE void fetch(std::size_t R, const std::int32_t* cell, const float* tables, std::size_t width) {
#if defined(__GNUC__)
    for (std::size_t r = 0; r < R; ++r) __builtin_prefetch(tables + std::size_t(cell[r]) * width, 1);
#else
    (void)R, (void)cell, (void)tables, (void)width;
#endif
}

// One row of one output, from its gradient g times importance on: w and G (R) as they were in the tables.
KS_INLINE void step_one(std::size_t R, double g, double step, double fade, double floor, const double* KS_RESTRICT w,
                        const double* KS_RESTRICT G, double* KS_RESTRICT use, float* KS_RESTRICT new_w, float* KS_RESTRICT new_G) {
    const double g2 = g * g, move = step * g;
#pragma omp simd
    for (std::size_t r = 0; r < R; ++r) {
        const double squares = fade * G[r] + g2, moved = w[r] - move / std::sqrt(squares + floor);
        use[r] -= g * w[r];
        new_w[r] = float(lesser(larger(moved, -largest), largest));
        new_G[r] = float(lesser(squares, largest));
    }
}

constexpr std::size_t together = 64;  // outputs whose weights are in the cache at the same time

// The same for outputs `first` ... `first + width - 1` of tables with `side` columns; `old` has room for (2, R, width). Grids that share
// a cell see what it held before the row.
KS_INLINE void step_many(std::size_t R, std::size_t side, std::size_t first, std::size_t width, const std::int32_t* cell, const double* g,
                         double step, double fade, double floor, float* tables, double* old, double* use) {
    double *w = old, *G = old + R * width;
    for (std::size_t r = 0; r < R; ++r) {
        const float* at = tables + std::size_t(cell[r]) * 2 * side + first;
        for (std::size_t c = 0; c < width; ++c) {
            w[r * width + c] = at[c];
            G[r * width + c] = at[side + c];
        }
    }
    g += first;
    for (std::size_t r = 0; r < R; ++r) {
        const double *wr = w + r * width, *Gr = G + r * width;
        float* at = tables + std::size_t(cell[r]) * 2 * side + first;
        if (width < 8) {
            for (std::size_t c = 0; c < width; ++c) use[r] -= g[c] * wr[c];
        } else {
            use[r] -= dot(width, g, wr);
        }
#pragma omp simd
        for (std::size_t c = 0; c < width; ++c) {
            const double squares = fade * Gr[c] + g[c] * g[c], moved = wr[c] - step * g[c] / std::sqrt(squares + floor);
            at[c] = float(lesser(larger(moved, -largest), largest));
            at[side + c] = float(lesser(squares, largest));
        }
    }
}

// index (n, R): the cells of each row; y null learns nothing. Out: scores (n, C) before each row; downhill (n, at most `kept`), a sketch
// of minus the derivatives, of rows that are learned.
KS_CLONES inline void pass(std::size_t n, const std::int32_t* index, const double* y, const double* weight, const Rule& rule,
                           Model& m, double* scores, double* downhill) {
    const std::size_t R = m.R, C = m.C, few = std::min(C, kept);
    const std::size_t tile = std::min(C, together);
    std::vector<double> work(2 * R * tile + 2 * C);
    std::vector<float> fresh(C == 1 ? 2 * R : 0);
    double *w = work.data(), *G = w + R * tile, *f = G + R * tile, *g = f + C;
    for (std::size_t t = 0; t < n; ++t) {
        const std::int32_t* cell = index + t * R;
        if (t + 1 < n) fetch(R, cell + R, m.tables, 2 * m.width);
        add_up(m, cell, w, f);
        const double mean = rule.regression ? m.target[1] : 0.0;
        for (std::size_t c = 0; c < C; ++c) scores[t * C + c] = f[c] + mean;
        if (!y) continue;
        const double importance = weight ? weight[t] : 1.0;
        if (importance == 0.0) {
            std::fill_n(downhill + t * few, few, 0.0);
            continue;
        }
        gradient(rule, C, f, y[t] - mean, m.target, g);
        sketch(C, g, downhill + t * few);
        const double unit = rule.regression ? deviation(m.target) : 1.0;
        const double step = rule.eta * unit / std::sqrt(double(R) + 1.0), floor = unit * unit + tiny, fade = rule.fade;
        for (std::size_t c = 0; c < C; ++c) {
            g[c] *= importance;
            m.bias[C + c] = fade * m.bias[C + c] + g[c] * g[c];
            m.bias[c] -= step * g[c] / std::sqrt(m.bias[C + c] + floor);
        }
        if (C == 1) {
            for (std::size_t r = 0; r < R; ++r) G[r] = m.tables[std::size_t(cell[r]) * 2 + 1];
            step_one(R, g[0], step, fade, floor, w, G, m.use, fresh.data(), fresh.data() + R);
            for (std::size_t r = 0; r < R; ++r) {
                float* at = m.tables + std::size_t(cell[r]) * 2;
                at[0] = fresh[r];
                at[1] = fresh[R + r];
            }
        } else {
            for (std::size_t c = 0; c < C; c += tile)
                step_many(R, m.width, c, std::min(tile, C - c), cell, g, step, fade, floor, m.tables, w, m.use);
        }
        if (rule.regression) follow(m.target, y[t]);
    }
}

// Cells (n, R) of rows X (n, d), which `grids` finds.
template <class Grids>
void find_rows(std::size_t n, const double* X, const Grids& grids, int threads, std::int32_t* out) {
    const std::size_t d = grids.columns();
    parallel(threads, [&](int t) {
        const Share share(n, t, threads);
        std::vector<std::int32_t> code(d);
        grids.find(share.end - share.begin, X + share.begin * d, code.data(), out + share.begin * grids.grids());
    });
}

// What grids r = begin ... end - 1 of R would explain of the vectors v (n, C): sum over a grid's cells of |sum v|^2/(c + 2) - V c/(c + 2),
// c rows in the cell, V = `mean` of |v|^2. index (n, R) with grid r at cell r times `cells`. out (R).
KS_CLONES inline void gains_of(std::size_t begin, std::size_t end, std::size_t n, std::size_t R, std::size_t C, std::size_t cells,
                               double mean, const std::int32_t* index, const double* v, double* out) {
    const std::size_t width = C + 1;
    std::vector<double> sums((end - begin) * cells * width, 0.0);  // rows in a cell, and the sum of their vectors
    for (std::size_t t = 0; t < n; ++t)
        for (std::size_t r = begin; r < end; ++r) {
            double* cell = sums.data() + (std::size_t(index[t * R + r]) - begin * cells) * width;
            cell[0] += 1.0;
            for (std::size_t c = 0; c < C; ++c) cell[1 + c] += v[t * C + c];
        }
    for (std::size_t r = begin; r < end; ++r) {
        out[r] = 0.0;
        for (std::size_t k = 0; k < cells; ++k) {
            const double* cell = sums.data() + ((r - begin) * cells + k) * width;
            if (cell[0] == 0.0) continue;
            double size = 0.0;
            for (std::size_t c = 0; c < C; ++c) size += cell[1 + c] * cell[1 + c];
            out[r] += (size - mean * cell[0]) / (cell[0] + 2.0);
        }
    }
}

inline void gains(std::size_t n, std::size_t R, std::size_t C, std::size_t cells, const std::int32_t* index, const double* v, int threads,
                  double* out) {
    constexpr std::size_t side = 8;  // grids at once: their numbers of a row share a line of the cache
    double mean = 0.0;
    for (std::size_t i = 0; i < n * C; ++i) mean += v[i] * v[i];
    mean /= double(std::max<std::size_t>(n, 1));
    parallel(threads, [&](int t) {
        for (std::size_t r = std::size_t(t) * side; r < R; r += std::size_t(threads) * side)
            gains_of(r, std::min(r + side, R), n, R, C, cells, mean, index, v, out);
    });
}

}  // namespace ks::cells
