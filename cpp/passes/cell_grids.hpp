// Where the cells of a row are: grids over few columns with edges at quantiles, or grids over many columns whose cells share a table by
// hashing; the twin of by_levels, grid_maps and by_hashing in kernelstream/passes/cells/python.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::cells {

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

// Cells of rows in grids over few columns. A column's value becomes the number of its levels that are not above it; `maps`
// (R, K, L + 1) says what each such number adds to the cell's number in a grid. Grid r begins at cell r times `cells`.
class ByLevels {
  public:
    // For about n rows: what speeds up many of them is made once.
    ByLevels(std::size_t n, std::size_t d, std::size_t L, const double* levels, const std::int32_t* n_levels, std::size_t R, std::size_t K,
             const std::int32_t* columns, const std::int32_t* maps, std::size_t cells)
        : d_(d), L_(L), R_(R), K_(K), cells_(cells), columns_(columns), maps_(maps) {
        while (2 * half_ <= L) half_ *= 2;
        const std::size_t width = 2 * half_;  // a search by halves without branches needs 2^k - 1 levels
        take_columns();
        padded_.assign(which_.size() * width, INFINITY);
        for (std::size_t i = 0; i < which_.size(); ++i) {
            const std::size_t j = std::size_t(which_[i]);
            std::copy_n(levels + j * L, n_levels[j], padded_.data() + i * width);
        }
        small_ = n >= 64 && cuts_.take(R, K, L, columns_, maps);
    }

    ByLevels(const ByLevels&) = delete;  // columns_ may lie in own_

    std::size_t grids() const { return R_; }
    std::size_t columns() const { return d_; }

    // Cells (n, R) of rows X (n, d); code (d).
    KS_CLONES void find(std::size_t n, const double* X, std::int32_t* code, std::int32_t* out) const {
        const std::size_t used = which_.size();
        std::vector<double> values(used < d_ ? used : 0);
        for (std::size_t t = 0; t < n; ++t) {
            const double* x = X + t * d_;
            if (!values.empty()) {
                for (std::size_t i = 0; i < used; ++i) values[i] = x[which_[i]];
                x = values.data();
            }
            std::fill_n(code, used, 0);
            // all columns take a step before one takes the next: they do not wait for each other
            for (std::size_t step = half_; step > 0; step /= 2) {
                const double* at = padded_.data() + step - 1;
                for (std::size_t j = 0; j < used; ++j, at += 2 * half_) code[j] += at[code[j]] <= x[j] ? std::int32_t(step) : 0;
            }
            if (small_) {
                cuts_.find(code, std::int32_t(cells_), out + t * R_);
                continue;
            }
            for (std::size_t r = 0; r < R_; ++r) {
                std::int32_t cell = std::int32_t(r * cells_);
                const std::int32_t *column = columns_ + r * K_, *map = maps_ + r * K_ * (L_ + 1);
                for (std::size_t k = 0; k < K_; ++k) cell += map[k * (L_ + 1) + code[column[k]]];
                out[t * R_ + r] = cell;
            }
        }
    }

  private:
    // Of many columns the grids take some, and only these get codes.
    void take_columns() {
        std::vector<std::int32_t> place(d_, -1);
        for (std::size_t i = 0; i < R_ * K_; ++i) place[std::size_t(columns_[i])] = 0;
        for (std::size_t j = 0; j < d_; ++j)
            if (place[j] == 0) place[j] = std::int32_t(which_.size()), which_.push_back(std::int32_t(j));
        own_.resize(R_ * K_);
        for (std::size_t i = 0; i < R_ * K_; ++i) own_[i] = place[std::size_t(columns_[i])];
        columns_ = own_.data();
    }

    std::size_t d_, L_, R_, K_, cells_;
    const std::int32_t *columns_, *maps_;
    bool small_;
    std::size_t half_ = 1;
    std::vector<std::int32_t> which_, own_;  // columns with codes, and those of the grids as places among them
    std::vector<double> padded_;
    Cuts cuts_;
};

// The number of a bin joins a hash.
KS_INLINE std::uint64_t mix(std::uint64_t h, double bin) {
    h = (h ^ std::uint64_t(std::int64_t(bin) + 12345)) * 0x9E3779B97F4A7C15ull;
    return h ^ (h >> 31);
}

// Cells of rows in grids over many columns: the numbers of the bins, hashed into 2^bits cells that all grids share.
// columns (R, K), -1 for none; offset and density (R, K); salt (R).
class ByHashing {
  public:
    ByHashing(std::size_t d, std::size_t R, std::size_t K, const std::int32_t* columns, const double* offset, const double* density,
              const std::uint64_t* salt, int bits)
        : d_(d), R_(R), K_(K), columns_(columns), offset_(offset), density_(density), salt_(salt), bits_(bits) {}

    std::size_t grids() const { return R_; }
    std::size_t columns() const { return d_; }

    // Cells (n, R) of rows X (n, d).
    KS_CLONES void find(std::size_t n, const double* X, std::int32_t*, std::int32_t* out) const {
        // members would be read again after every write
        const std::size_t d = d_, R = R_, K = K_;
        const std::int32_t* const columns = columns_;
        const double *const offset = offset_, *const density = density_;
        const std::uint64_t* const salt = salt_;
        const std::uint64_t mask = (std::uint64_t(1) << bits_) - 1;
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

  private:
    std::size_t d_, R_, K_;
    const std::int32_t* columns_;
    const double *offset_, *density_;
    const std::uint64_t* salt_;
    int bits_;
};

}  // namespace ks::cells
