// Random binning: the cell of every row in every grid, as a 64-bit hash and as a column number.
//
// Grid r cuts coordinate j at pitch delta: the cell index is floor((x_j - u) / delta), written as the nearest integer to
// (x_j - offset) * inverse with offset = u + delta / 2 and inverse = 1 / delta. A cell, d such integers i_j, is known by
//   h = (sum_j A_j i_j mod 2^32, sum_j B_j i_j mod 2^32)        with random 32-bit A, B (multilinear hashing),
// which does not depend on the order of the terms: a coordinate in which all rows of a chunk agree, or in which a row is
// zero, costs nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/csr.hpp"
#include "base/parallel.hpp"
#include "base/vecmath.hpp"

namespace ks {

template <class T> struct Cell;

// float: the fused product is rounded once, to an integer, by adding 1.5 * 2^23; the integer is then in the low bits.
template <> struct Cell<float> {
    static constexpr std::uint32_t bias = 0x4B400000u;  // bits of 1.5 * 2^23
    static KS_INLINE std::uint32_t index(float x, float offset, float inverse) {
        return bit_cast<std::uint32_t>(std::fma(x - offset, inverse, Math<float>::round));
    }
    static KS_INLINE double place(float x, float offset, float inverse) {
        return double(x - offset) * double(inverse);  // exact
    }
};

// double: no sum follows the product, so no compiler fuses it, and the product is rounded as the formula reads.
template <> struct Cell<double> {
    static constexpr std::uint32_t bias = 0;
    static KS_INLINE std::uint32_t index(double x, double offset, double inverse) {
        return std::uint32_t(std::int32_t(std::rint((x - offset) * inverse)));
    }
    static KS_INLINE double place(double x, double offset, double inverse) { return (x - offset) * inverse; }
};

template <class T>
struct Grids {
    std::size_t d, R;
    const T *inverse, *offset;  // (R, d)
    const T* limit;             // (d,): up to +-limit an index has at most 22 bits in every grid, which `index` needs
    const std::uint32_t *A, *B; // (d,)
};

// The index, plus bias, of a coordinate beyond the limit.
template <class T>
std::uint32_t far_index(T x, T offset, T inverse) {
    const double place = std::min(std::max(Cell<T>::place(x, offset, inverse), -0x1p62), 0x1p62);
    return std::uint32_t(std::int64_t(std::rint(place))) + Cell<T>::bias;
}

constexpr std::size_t kChunk = 2048;  // rows whose coordinates stay in the second-level cache while the grids pass
constexpr std::size_t kAhead = 16;    // rows between asking for a slot of a table and using it
constexpr std::size_t kTile = 16;     // rows side by side in registers
constexpr std::size_t kBlock = 32768;  // rows hashed before they are looked up: a grid's table then stays in the cache for a while

// ---- Columns of zeros: one row at a time, grids side by side -------------------------------------------------------
template <class T>
struct ByRow {
    std::vector<T> inverse, offset;    // (d, R)
    std::vector<std::uint32_t> zero;   // (d, R): index of coordinate 0

    ByRow(const Grids<T>& g, std::size_t first, std::size_t R) : inverse(g.d * R), offset(g.d * R), zero(g.d * R) {
        for (std::size_t r = 0; r < R; ++r)
            for (std::size_t j = 0; j < g.d; ++j) {
                const std::size_t from = (first + r) * g.d + j, to = j * R + r;
                inverse[to] = g.inverse[from], offset[to] = g.offset[from];
                zero[to] = Cell<T>::index(T(0), offset[to], inverse[to]);
            }
    }
};

// The hashes of all grids move by one coordinate, from 0 to x.
template <class T>
KS_CLONES void add_coordinate(std::size_t R, T x, const T* KS_RESTRICT offset, const T* KS_RESTRICT inverse,
                              const std::uint32_t* KS_RESTRICT zero, std::uint32_t A, std::uint32_t B,
                              std::uint32_t* KS_RESTRICT a, std::uint32_t* KS_RESTRICT b) {
#pragma omp simd
    for (std::size_t r = 0; r < R; ++r) {
        const std::uint32_t step = Cell<T>::index(x, offset[r], inverse[r]) - zero[r];
        a[r] += A * step;
        b[r] += B * step;
    }
}

// ---- Other columns: one grid at a time, rows side by side ----------------------------------------------------------
template <class T>
struct Active {  // a coordinate in which the grid cuts the rows of the chunk apart
    std::uint32_t column, A, B;
    T offset, inverse;
};

template <class T>
KS_CLONES void hash_tiles(std::size_t tiles, std::size_t width, const T* KS_RESTRICT X, std::size_t count,
                          const Active<T>* KS_RESTRICT active, std::uint32_t base_a, std::uint32_t base_b,
                          std::uint32_t* KS_RESTRICT a, std::uint32_t* KS_RESTRICT b) {
    for (std::size_t tile = 0; tile < tiles; ++tile) {
        std::uint32_t ha[kTile], hb[kTile];
        for (std::size_t l = 0; l < kTile; ++l) ha[l] = base_a, hb[l] = base_b;
        for (std::size_t k = 0; k < count; ++k) {
            const Active<T> c = active[k];
            const T* KS_RESTRICT x = X + (tile * width + c.column) * kTile;
#pragma omp simd
            for (std::size_t l = 0; l < kTile; ++l) {
                const std::uint32_t index = Cell<T>::index(x[l], c.offset, c.inverse);
                ha[l] += c.A * index;
                hb[l] += c.B * index;
            }
        }
        for (std::size_t l = 0; l < kTile; ++l) a[tile * kTile + l] = ha[l], b[tile * kTile + l] = hb[l];
    }
}

// ---- Both: hashes of all rows in grids [first, last), handed to sink(grid, row, count, a, b) -----------------------
template <class T, class Sink>
class Hasher {
  public:
    Hasher(const Grids<T>& grids, std::size_t first, std::size_t last, const Sink& sink)
        : g(grids), first_(first), R(last - first), by_row(grids, first, last - first), sink_(sink) {
        row_a.resize(kTile * R), row_b.resize(kTile * R), base.resize(2 * R);
    }

    void run(const Dense<T>& rows) {
        blocks(rows.n, [&](std::size_t begin, std::size_t end) {
            for (std::size_t at = begin; at < end; at += kChunk) chunk(rows, at, std::min(kChunk, end - at), at - begin);
        });
    }

    template <class I>
    void run(const Csr<T, I>& rows) {
        for (std::size_t r = 0; r < R; ++r) zero_hash(r);
        blocks(rows.n, [&](std::size_t begin, std::size_t end) {
            const std::size_t m = end - begin;
            for (std::size_t r = 0; r < R; ++r) {
                std::fill_n(&a[r * stride], m, base[2 * r]);
                std::fill_n(&b[r * stride], m, base[2 * r + 1]);
            }
            add_rows(begin, m, 0, [&](std::size_t i, std::size_t lane) {
                for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) add(rows.indices[k], rows.data[k], lane);
            });
        });
    }

  private:
    // All rows, a block at a time: hash, then hand over grid by grid.
    template <class Hash>
    void blocks(std::size_t n, Hash&& hash) {
        stride = std::min(kBlock, n) + kTile + (kTile - n % kTile) % kTile;
        a.resize(R * stride), b.resize(R * stride);
        for (std::size_t begin = 0; begin < n; begin += kBlock) {
            const std::size_t end = std::min(begin + kBlock, n);
            hash(begin, end);
            for (std::size_t r = 0; r < R; ++r) sink_(first_ + r, begin, end - begin, &a[r * stride], &b[r * stride]);
        }
    }

    KS_INLINE void add(std::size_t j, T x, std::size_t lane) {
        if (x == T(0)) return;
        const std::size_t at = j * R;
        if (std::abs(x) > g.limit[j]) return add_far(j, x, lane);
        add_coordinate<T>(R, x, &by_row.offset[at], &by_row.inverse[at], &by_row.zero[at], g.A[j], g.B[j],
                          &row_a[lane * R], &row_b[lane * R]);
    }

    void add_far(std::size_t j, T x, std::size_t lane) {
        for (std::size_t r = 0; r < R; ++r) {
            const std::size_t at = j * R + r;
            const std::uint32_t step = far_index<T>(x, by_row.offset[at], by_row.inverse[at]) - by_row.zero[at];
            row_a[lane * R + r] += g.A[j] * step;
            row_b[lane * R + r] += g.B[j] * step;
        }
    }

    // Adds the coordinates that add_row(row, lane) enters, for rows [at, at + m); kTile rows at a time, a cache line each.
    template <class AddRow>
    void add_rows(std::size_t at, std::size_t m, std::size_t to, AddRow&& add_row) {
        for (std::size_t i = 0; i < m; i += kTile) {
            const std::size_t count = std::min(kTile, m - i);
            std::fill(row_a.begin(), row_a.end(), 0), std::fill(row_b.begin(), row_b.end(), 0);
            for (std::size_t lane = 0; lane < count; ++lane) add_row(at + i + lane, lane);
            for (std::size_t r = 0; r < R; ++r) {
                std::uint32_t *KS_RESTRICT ar = &a[r * stride + to + i], *KS_RESTRICT br = &b[r * stride + to + i];
                for (std::size_t lane = 0; lane < count; ++lane) {
                    ar[lane] += row_a[lane * R + r];
                    br[lane] += row_b[lane * R + r];
                }
            }
        }
    }

    void zero_hash(std::size_t r) {
        base[2 * r] = base[2 * r + 1] = 0;
        for (std::size_t j = 0; j < g.d; ++j) add_constant(r, j, by_row.zero[j * R + r] - Cell<T>::bias);
    }

    KS_INLINE void add_constant(std::size_t r, std::size_t j, std::uint32_t index) {
        base[2 * r] += g.A[j] * index, base[2 * r + 1] += g.B[j] * index;
    }

    void chunk(const Dense<T>& rows, std::size_t begin, std::size_t m, std::size_t to) {
        const std::size_t d = g.d, tiles = (m + kTile - 1) / kTile;
        const T* from = rows.X + begin * d;
        split(from, m);
        X.resize(tiles * full.size() * kTile);
        for (std::size_t i = 0; i < tiles * kTile && !full.empty(); ++i) {
            const T* row = from + std::min(i, m - 1) * d;
            T* tile = X.data() + i / kTile * full.size() * kTile + i % kTile;
            for (std::size_t k = 0; k < full.size(); ++k) tile[k * kTile] = row[full[k]];
        }
        for (std::size_t r = 0; r < R; ++r) {
            collect(r);
            hash_tiles<T>(tiles, full.size(), X.data(), active.size(), active.data(), base[2 * r], base[2 * r + 1],
                          &a[r * stride + to], &b[r * stride + to]);
        }
        if (!holed.empty())
            add_rows(begin, m, to, [&](std::size_t i, std::size_t lane) {
                for (const std::uint32_t j : holed) add(j, rows.X[i * d + j], lane);
            });
    }

    // Columns that vary are `holed` where it is less work to go from entry to entry, or where one is far, else `full`.
    void split(const T* from, std::size_t m) {
        const std::size_t d = g.d;
        low.assign(from, from + d), high = low, filled.assign(d, 0);
        for (std::size_t i = 0; i < m; ++i) count_row(d, from + i * d, low.data(), high.data(), filled.data());
        full.clear(), holed.clear();
        for (std::uint32_t j = 0; j < d; ++j) {
            const bool few = m < 4 * kTile ? filled[j] > 0 : (low[j] != high[j] && filled[j] * 3 < m);
            const bool far = low[j] < -g.limit[j] || high[j] > g.limit[j];
            (few || far ? holed : full).push_back(j);
        }
    }

    static KS_INLINE void count_row(std::size_t d, const T* KS_RESTRICT x, T* KS_RESTRICT low, T* KS_RESTRICT high,
                                    std::uint32_t* KS_RESTRICT filled) {
#pragma omp simd
        for (std::size_t j = 0; j < d; ++j) {
            low[j] = std::min(low[j], x[j]), high[j] = std::max(high[j], x[j]);
            filled[j] += x[j] != T(0);
        }
    }

    // The full columns in which grid r cuts the rows apart; all other coordinates are constants of the hash.
    void collect(std::size_t r) {
        active.clear();
        base[2 * r] = base[2 * r + 1] = 0;
        for (const std::uint32_t j : holed) add_constant(r, j, by_row.zero[j * R + r] - Cell<T>::bias);
        for (std::uint32_t k = 0; k < full.size(); ++k) {
            const std::uint32_t j = full[k];
            const T offset = by_row.offset[j * R + r], inverse = by_row.inverse[j * R + r];
            const std::uint32_t bottom = Cell<T>::index(low[j], offset, inverse);
            const bool cuts = bottom != Cell<T>::index(high[j], offset, inverse);
            if (cuts) active.push_back({k, g.A[j], g.B[j], offset, inverse});
            add_constant(r, j, (cuts ? 0u : bottom) - Cell<T>::bias);
        }
    }

    const Grids<T>& g;
    const std::size_t first_, R;
    std::size_t stride = 0;  // from one grid's hashes to the next; no power of two, whose multiples share cache lines
    ByRow<T> by_row;
    const Sink& sink_;
    std::vector<std::uint32_t> a, b, row_a, row_b, base, filled, full, holed;
    std::vector<T> X, low, high;
    std::vector<Active<T>> active;
};

// ---- Hash -> column ------------------------------------------------------------------------------------------------
// Open addressing, 8 bytes a slot: 40 bits of the hash and the column + 1; 0 is empty. The place comes from the high bits of a.
// Two cells are taken for one only if they meet in a run of slots and agree in 40 bits: about once in 2^39 look-ups.
struct Table {
    static constexpr std::size_t max_cells = (std::size_t(1) << 24) - 2;
    std::uint64_t* slots = nullptr;
    int bits = 0;

    static int bits_for(std::size_t cells) {
        int bits = 8;
        while ((std::size_t(1) << bits) < 2 * cells) ++bits;
        return bits;
    }

    std::size_t size() const { return std::size_t(1) << bits; }

    static KS_INLINE std::uint64_t tag(std::uint32_t a, std::uint32_t b) {
        return (std::uint64_t(b) << 32) | (std::uint64_t(a) << 24 & 0xFF000000u);
    }

    // Column of the cell, or -1; `place` ends at its slot or at the empty one.
    KS_INLINE std::int32_t find(std::uint32_t a, std::uint32_t b, std::size_t& place) const {
        const std::uint64_t wanted = tag(a, b);
        const std::size_t mask = size() - 1;
        for (place = a >> (32 - bits);; place = (place + 1) & mask) {
            const std::uint64_t slot = slots[place], column = slot ^ wanted;  // small where the tags agree
            if (column < (1u << 24) && column > 0) return std::int32_t(column) - 1;
            if (slot == 0) return -1;
        }
    }

    // Prefetch the slot of a later row: a large table is rarely in a near cache.
    KS_INLINE void prefetch(std::uint32_t a) const {
#if defined(__GNUC__)
        __builtin_prefetch(slots + (a >> (32 - bits)));
#endif
    }

    KS_INLINE void put(std::size_t place, std::uint32_t a, std::uint32_t b, std::size_t column) const {
        slots[place] = tag(a, b) | (column + 1);
    }

    // Slots must be empty.
    void fill(const std::uint64_t* keys, std::size_t count) const {
        for (std::size_t c = 0; c < count; ++c) {
            const std::uint32_t a = std::uint32_t(keys[c] >> 32), b = std::uint32_t(keys[c]);
            std::size_t place;
            if (find(a, b, place) < 0) put(place, a, b, c);
        }
    }
};

struct GrowingTable {
    std::vector<std::uint64_t> slots, keys;
    Table table;

    GrowingTable() { grow(0); }

    void grow(std::size_t cells) {
        table.bits = Table::bits_for(cells);
        slots.assign(table.size(), 0);
        table.slots = slots.data();
        table.fill(keys.data(), keys.size());
    }

    void add(std::size_t place, std::uint32_t a, std::uint32_t b) {
        keys.push_back(std::uint64_t(a) << 32 | b);
        if (2 * keys.size() > table.size()) return grow(2 * keys.size());
        table.put(place, a, b, keys.size() - 1);
    }
};

// Columns out (m) of the cells with hashes a and b (m), -1 for a cell without one.
inline void find_cells(const Table& table, std::size_t m, const std::uint32_t* a, const std::uint32_t* b, std::int32_t* out) {
    std::size_t place;
    for (std::size_t i = 0; i < m; ++i) {
        if (i + kAhead < m) table.prefetch(a[i + kAhead]);
        out[i] = table.find(a[i], b[i], place);
    }
}

// The same, giving new cells the next column; columns follow the first appearance. False when there are too many.
inline bool number_cells(GrowingTable& grid, std::size_t m, const std::uint32_t* a, const std::uint32_t* b, std::int32_t* out) {
    std::size_t place;
    for (std::size_t i = 0; i < m; ++i) {
        if (i + kAhead < m) grid.table.prefetch(a[i + kAhead]);
        out[i] = grid.table.find(a[i], b[i], place);
        if (out[i] >= 0) continue;
        if (grid.keys.size() >= Table::max_cells) return false;
        out[i] = std::int32_t(grid.keys.size());
        grid.add(place, a[i], b[i]);
    }
    return true;
}

// Every thread takes some of the grids and goes through all rows.
template <class T, class Rows, class Sink>
void hash_cells(const Rows& rows, const Grids<T>& grids, int threads, const Sink& sink) {
    threads = std::max(1, std::min<int>(threads, int(grids.R)));
    if (rows.n * grids.R < 20000) threads = 1;
    parallel(threads, [&](int t) {
        const Share share(grids.R, t, threads);
        if (share.begin == share.end) return;
        Hasher<T, Sink>(grids, share.begin, share.end, sink).run(rows);
    });
}

}  // namespace ks
