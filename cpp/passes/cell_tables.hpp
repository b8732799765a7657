// Learning on cells: f_c(x) = b_c + sum_r w[cell_r(x), c], AdaGrad with a step of its own for every cell; the twin of
// kernelstream/passes/cells/python.py.
//
// Where the cells of a row are comes from elsewhere: grids over few columns with edges at quantiles, or grids over many columns
// whose cells share a table by hashing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::cells {

constexpr double reach = 5.0;      // deviations of the target up to which a residual counts
constexpr double settled = 10.0;   // rows before that limit holds
constexpr double outside = 20.0;   // deviations up to which a target moves the mean and the deviation
constexpr double known = 30.0;     // rows before that limit holds
constexpr double tiny = 1e-12;
constexpr double largest = 3e38;   // that a table can hold

struct Rule {
    bool regression;
    double eta, fade;  // step scale; factor by which old squares of gradients fade
};

struct Model {
    std::size_t R, C;  // grids, outputs
    float* tables;     // (cells, 2, C): weights, sums of squared gradients
    double* bias;      // (2, C)
    double* target;    // (3): rows, mean, sum of squared deviations of the target
    double* use;       // (R): how much each grid has lowered the loss, to first order
};

KS_INLINE double deviation(const double* target) { return target[0] > 1 ? std::sqrt(target[2] / target[0]) : 1.0; }

// Mean and deviation of the target, which one wild number does not move far.
KS_INLINE void follow(double* target, double y) {
    if (target[0] >= known) {
        const double most = outside * deviation(target);
        if (most > 0 && std::abs(y - target[1]) > most) y = target[1] + std::copysign(most, y - target[1]);
    }
    const double delta = y - target[1];
    target[0] += 1;
    target[1] += delta / target[0];
    target[2] += delta * (y - target[1]);
}

// Derivative of the loss by the scores: squared with limited residuals, logistic (y = -1, 1), or softmax (y a class).
KS_INLINE void gradient(const Rule& rule, std::size_t C, const double* f, double y, const double* target, double* g) {
    if (rule.regression) {
        const double most = target[0] > settled ? reach * deviation(target) : INFINITY;
        g[0] = std::min(std::max(f[0] - y, -most), most);
    } else if (C == 1) {
        g[0] = -y / (1.0 + std::exp(y * f[0]));
    } else {
        const double top = *std::max_element(f, f + C);
        double total = 0.0;
        for (std::size_t c = 0; c < C; ++c) total += g[c] = std::exp(f[c] - top);
        for (std::size_t c = 0; c < C; ++c) g[c] /= total;
        g[std::size_t(y)] -= 1.0;
    }
}

// Whether all cells are within a table of so many.
KS_CLONES inline bool inside(std::size_t n, const std::int32_t* index, std::size_t size) {
    const std::uint32_t end = std::uint32_t(std::min<std::size_t>(size, std::size_t(1) << 31));
    std::uint32_t outside = 0;  // negative numbers are large ones without a sign
#pragma omp simd reduction(| : outside)
    for (std::size_t i = 0; i < n; ++i) outside |= std::uint32_t(index[i]) >= end ? 1u : 0u;
    return !outside;
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

// The same for C outputs, w and G (R, C); what is new takes their place.
KS_INLINE void step_many(std::size_t R, std::size_t C, const double* g, double step, double fade, double floor, double* w, double* G,
                         double* use) {
    for (std::size_t r = 0; r < R; ++r) {
        double *wr = w + r * C, *Gr = G + r * C;
        for (std::size_t c = 0; c < C; ++c) use[r] -= g[c] * wr[c];
#pragma omp simd
        for (std::size_t c = 0; c < C; ++c) {
            Gr[c] = fade * Gr[c] + g[c] * g[c];
            wr[c] -= step * g[c] / std::sqrt(Gr[c] + floor);
        }
    }
}

// index (n, R): the cells of each row. Out: scores (n, C) before each row; downhill (n, C), minus the derivatives.
KS_CLONES inline void pass(std::size_t n, const std::int32_t* index, const double* y, const double* weight, const Rule& rule,
                           Model& m, double* scores, double* downhill) {
    const std::size_t R = m.R, C = m.C;
    std::vector<double> work(2 * R * C + 2 * C);
    std::vector<float> fresh(C == 1 ? 2 * R : 0);
    double *w = work.data(), *G = w + R * C, *f = G + R * C, *g = f + C;
    for (std::size_t t = 0; t < n; ++t) {
        const std::int32_t* cell = index + t * R;
        if (t + 1 < n) fetch(R, cell + R, m.tables, 2 * C);
        if (C == 1) {
            for (std::size_t r = 0; r < R; ++r) {
                const float* at = m.tables + std::size_t(cell[r]) * 2;
                w[r] = at[0];
                G[r] = at[1];
            }
            f[0] = m.bias[0] + sum(R, w);
        } else {
            std::copy_n(m.bias, C, f);
            for (std::size_t r = 0; r < R; ++r) {
                const float* at = m.tables + std::size_t(cell[r]) * 2 * C;
                for (std::size_t c = 0; c < C; ++c) {
                    w[r * C + c] = at[c];
                    G[r * C + c] = at[C + c];
                    f[c] += at[c];
                }
            }
        }
        const double mean = rule.regression ? m.target[1] : 0.0;
        for (std::size_t c = 0; c < C; ++c) scores[t * C + c] = f[c] + mean;
        const double importance = weight ? weight[t] : 1.0;
        if (importance == 0.0) {
            std::fill_n(downhill + t * C, C, 0.0);
            continue;
        }
        gradient(rule, C, f, y[t] - mean, m.target, g);
        const double unit = rule.regression ? deviation(m.target) : 1.0;
        const double step = rule.eta * unit / std::sqrt(double(R) + 1.0), floor = unit * unit + tiny, fade = rule.fade;
        for (std::size_t c = 0; c < C; ++c) {
            downhill[t * C + c] = -g[c];
            g[c] *= importance;
            m.bias[C + c] = fade * m.bias[C + c] + g[c] * g[c];
            m.bias[c] -= step * g[c] / std::sqrt(m.bias[C + c] + floor);
        }
        if (C == 1) {
            step_one(R, g[0], step, fade, floor, w, G, m.use, fresh.data(), fresh.data() + R);
            for (std::size_t r = 0; r < R; ++r) {
                float* at = m.tables + std::size_t(cell[r]) * 2;
                at[0] = fresh[r];
                at[1] = fresh[R + r];
            }
        } else {
            step_many(R, C, g, step, fade, floor, w, G, m.use);
            for (std::size_t r = 0; r < R; ++r) {
                float* at = m.tables + std::size_t(cell[r]) * 2 * C;
                for (std::size_t c = 0; c < C; ++c) {
                    at[c] = float(std::min(std::max(w[r * C + c], -largest), largest));
                    at[C + c] = float(std::min(G[r * C + c], largest));
                }
            }
        }
        if (rule.regression) follow(m.target, y[t]);
    }
}

// Scores (n, C) of rows; nothing changes.
KS_CLONES inline void score(std::size_t n, const std::int32_t* index, bool regression, const Model& m, double* scores) {
    for (std::size_t t = 0; t < n; ++t) {
        double* f = scores + t * m.C;
        std::copy_n(m.bias, m.C, f);
        for (std::size_t r = 0; r < m.R; ++r) {
            const float* at = m.tables + std::size_t(index[t * m.R + r]) * 2 * m.C;
            for (std::size_t c = 0; c < m.C; ++c) f[c] += at[c];
        }
        if (regression)
            for (std::size_t c = 0; c < m.C; ++c) f[c] += m.target[1];
    }
}

// What each code of a column adds to the number of a grid's cell: maps (R, K, L + 1), zero beforehand, from edges (R, K, E) of which
// the first n_edges (R, K) count, and levels (d, L).
inline void grid_maps(std::size_t R, std::size_t K, std::size_t E, std::size_t L, const std::int32_t* columns, const double* edges,
                      const std::int32_t* n_edges, const double* levels, const std::int32_t* n_levels, std::int32_t* maps) {
    for (std::size_t r = 0; r < R; ++r) {
        std::int32_t stride = 1;
        for (std::size_t k = 0; k < K; ++k) {
            const std::size_t at = r * K + k, j = std::size_t(columns[at]);
            const std::int32_t size = n_edges[at];
            if (!size) continue;
            const double *edge = edges + at * E, *level = levels + j * L;
            std::int32_t bin = 0;
            for (std::int32_t l = 0; l < n_levels[j]; ++l) {
                while (bin < size && edge[bin] <= level[l]) ++bin;
                maps[at * (L + 1) + std::size_t(l) + 1] = bin * stride;
            }
            stride *= size + 1;
        }
    }
}

// The cuts of grids over few columns, without those that cut nothing, and small enough to stay in the first-level cache: a grid has
// at most 256 cells, so what a code adds to the number of one is a byte. Grids with as many cuts stand side by side.
class Cuts {
  public:
    // False when the maps (R, K, L + 1) do not fit into bytes.
    bool take(std::size_t R, std::size_t K, std::size_t L, const std::int32_t* columns, const std::int32_t* maps) {
        width_ = L + 1;
        std::vector<std::size_t> used(R * K);
        std::vector<std::size_t> count(R, 0);
        for (std::size_t r = 0; r < R; ++r)
            for (std::size_t k = 0; k < K; ++k) {
                std::uint32_t any = 0;
                const std::int32_t* map = maps + (r * K + k) * width_;
#pragma omp simd reduction(| : any)
                for (std::size_t i = 0; i < width_; ++i) any |= std::uint32_t(map[i]);
                if (any > 255) return false;
                if (any) used[r * K + count[r]++] = k;
            }
        first_.assign(K + 2, 0);
        for (std::size_t c = 0; c <= K; ++c) {
            first_[c] = grid_.size();
            for (std::size_t r = 0; r < R; ++r) {
                if (count[r] != c) continue;
                grid_.push_back(std::int32_t(r));
                for (std::size_t i = 0; i < c; ++i) {
                    const std::size_t at = r * K + used[r * K + i];
                    column_.push_back(columns[at]);
                    table_.insert(table_.end(), maps + at * width_, maps + (at + 1) * width_);
                }
            }
        }
        first_[K + 1] = grid_.size();
        return true;
    }

    // Cells (R) of a row with these codes.
    KS_INLINE void find(const std::int32_t* code, std::int32_t cells, std::int32_t* out) const {
        const std::int32_t* column = column_.data();
        const std::uint8_t* table = table_.data();
        for (std::size_t c = 0; c + 1 < first_.size(); ++c)
            for (std::size_t g = first_[c]; g < first_[c + 1]; ++g) {
                std::int32_t cell = grid_[g] * cells;
                for (std::size_t i = 0; i < c; ++i, table += width_) cell += table[code[*column++]];
                out[grid_[g]] = cell;
            }
    }

  private:
    std::size_t width_ = 0;
    std::vector<std::size_t> first_;         // of the grids with 0, 1, ... cuts
    std::vector<std::int32_t> grid_, column_;
    std::vector<std::uint8_t> table_;
};

// Cells of rows in grids over few columns, (n, R). A column's value becomes the number of its levels that are not above it;
// `maps` (R, K, L + 1) says what each such number adds to the cell's number in a grid. Grid r begins at cell r times `cells`.
KS_CLONES inline void by_levels(std::size_t n, std::size_t d, const double* X, std::size_t L, const double* levels,
                                const std::int32_t* n_levels, std::size_t R, std::size_t K, const std::int32_t* columns,
                                const std::int32_t* maps, std::size_t cells, std::int32_t* out) {
    std::vector<std::int32_t> code(d);
    std::size_t half = 1;
    while (2 * half <= L) half *= 2;
    const std::size_t width = 2 * half;  // a search by halves without branches needs 2^k - 1 levels
    std::vector<double> padded;
    const bool many = n > 8;
    if (many) {
        padded.assign(d * width, INFINITY);
        for (std::size_t j = 0; j < d; ++j) std::copy_n(levels + j * L, n_levels[j], padded.data() + j * width);
    }
    Cuts cuts;
    const bool small = n >= 64 && cuts.take(R, K, L, columns, maps);
    for (std::size_t t = 0; t < n; ++t) {
        const double* x = X + t * d;
        if (!many) {
            for (std::size_t j = 0; j < d; ++j) {
                const double* first = levels + j * L;
                code[j] = std::int32_t(std::upper_bound(first, first + n_levels[j], x[j]) - first);
            }
        } else {
            std::fill(code.begin(), code.end(), 0);
            // all columns take a step before one takes the next: they do not wait for each other
            for (std::size_t step = half; step > 0; step /= 2) {
                const double* at = padded.data() + step - 1;
                for (std::size_t j = 0; j < d; ++j, at += width) code[j] += at[code[j]] <= x[j] ? std::int32_t(step) : 0;
            }
        }
        if (small) {
            cuts.find(code.data(), std::int32_t(cells), out + t * R);
            continue;
        }
        for (std::size_t r = 0; r < R; ++r) {
            std::int32_t cell = std::int32_t(r * cells);
            const std::int32_t *column = columns + r * K, *map = maps + r * K * (L + 1);
            for (std::size_t k = 0; k < K; ++k) cell += map[k * (L + 1) + code[column[k]]];
            out[t * R + r] = cell;
        }
    }
}

// The number of a bin joins a hash.
KS_INLINE std::uint64_t mix(std::uint64_t h, double bin) {
    h = (h ^ std::uint64_t(std::int64_t(bin) + 12345)) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 31);
}

// Cells of rows in grids over many columns, (n, R): the numbers of the bins, hashed into 2^bits cells that all grids share.
// columns (R, K), -1 for none.
KS_CLONES inline void by_hashing(std::size_t n, std::size_t d, const double* X, std::size_t R, std::size_t K,
                                 const std::int32_t* columns, const double* offset, const double* density,
                                 const std::uint64_t* salt, int bits, std::int32_t* out) {
    const std::uint64_t mask = (std::uint64_t(1) << bits) - 1;
    constexpr std::size_t side = 4;  // grids at once: a hash is one long chain
    std::vector<double> bins(side * K);
    for (std::size_t t = 0; t < n; ++t) {
        const double* x = X + t * d;
        for (std::size_t r = 0; r < R; r += side) {
            const std::size_t count = std::min(side, R - r), first = r * K;
            for (std::size_t i = 0; i < count * K; ++i) bins[i] = x[std::max(columns[first + i], 0)];
#pragma omp simd
            for (std::size_t i = 0; i < count * K; ++i) {
                const double place = std::floor((bins[i] + offset[first + i]) * density[first + i]);
                bins[i] = lesser(larger(place, -1e15), 1e15);
            }
            std::uint64_t h[side];
            for (std::size_t e = 0; e < count; ++e) h[e] = salt[r + e];
            if (count == side) {
                for (std::size_t k = 0; k < K; ++k) {
                    KS_UNROLL
                    for (std::size_t e = 0; e < side; ++e) {
                        const std::uint64_t mixed = mix(h[e], bins[e * K + k]);
                        h[e] = columns[first + e * K + k] >= 0 ? mixed : h[e];
                    }
                }
            } else {
                for (std::size_t e = 0; e < count; ++e)
                    for (std::size_t k = 0; k < K; ++k)
                        if (columns[first + e * K + k] >= 0) h[e] = mix(h[e], bins[e * K + k]);
            }
            for (std::size_t e = 0; e < count; ++e) out[t * R + r + e] = std::int32_t((h[e] >> 7) & mask);
        }
    }
}

// What each grid would explain of the vectors v (n, C): sum over its cells of |sum v|^2/(c + 2) - V c/(c + 2), c rows in the
// cell, V the mean of |v|^2. index (n, R) with grid r at cell r times `cells`. out (R).
inline void gains(std::size_t n, std::size_t R, std::size_t C, std::size_t cells, const std::int32_t* index, const double* v,
                  double* out) {
    double mean = 0.0;
    for (std::size_t i = 0; i < n * C; ++i) mean += v[i] * v[i];
    mean /= double(std::max<std::size_t>(n, 1));
    std::vector<double> sum(cells * C), count(cells);
    for (std::size_t r = 0; r < R; ++r) {
        std::fill(sum.begin(), sum.end(), 0.0);
        std::fill(count.begin(), count.end(), 0.0);
        for (std::size_t t = 0; t < n; ++t) {
            const std::size_t k = std::size_t(index[t * R + r]) - r * cells;
            count[k] += 1.0;
            for (std::size_t c = 0; c < C; ++c) sum[k * C + c] += v[t * C + c];
        }
        out[r] = 0.0;
        for (std::size_t k = 0; k < cells; ++k) {
            if (count[k] == 0.0) continue;
            double size = 0.0;
            for (std::size_t c = 0; c < C; ++c) size += sum[k * C + c] * sum[k * C + c];
            out[r] += (size - mean * count[k]) / (count[k] + 2.0);
        }
    }
}

}  // namespace ks::cells
