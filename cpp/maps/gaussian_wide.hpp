// Gaussian kernel values between sparse rows of very many columns: nothing is done for a column that a row does not have.
//
// The vectors are kept by their entries. A table tells which rows of a block have an entry in a column, and every entry of a vector
// is multiplied with theirs: as many products as there are pairs of entries in common columns, plus an exponential for every pair.
#pragma once

#include <cstdint>
#include <vector>

#include "maps/gaussian.hpp"

namespace ks {

// Vectors by their entries, columns rising.
template <class T>
class SparseSet {
  public:
    struct Entries {
        std::vector<std::uint32_t> columns;
        std::vector<T> values;
    };

    explicit SparseSet(std::size_t capacity) : vectors_(capacity) {}
    std::size_t capacity() const { return vectors_.size(); }
    const Entries& operator[](std::size_t slot) const { return vectors_[slot]; }

    // Vector `slot` becomes the dense x (d).
    void read(std::size_t slot, std::size_t d, const T* x) {
        Entries& v = vectors_[slot];
        v.columns.clear(), v.values.clear();
        for (std::size_t j = 0; j < d; ++j)
            if (x[j] != T(0)) v.columns.push_back(std::uint32_t(j)), v.values.push_back(x[j]);
    }

    // It becomes row i of X, here and, where there is one, in the dense s, of which nothing but these entries and the old ones is written to.
    template <class I>
    void put(std::size_t slot, const Csr<T, I>& X, std::size_t i, T* s) {
        Entries& v = vectors_[slot];
        for (std::size_t k = 0; s && k < v.columns.size(); ++k) s[v.columns[k]] = T(0);
        v.columns.assign(X.indices + X.indptr[i], X.indices + X.indptr[i + 1]);
        v.values.assign(X.data + X.indptr[i], X.data + X.indptr[i + 1]);
        for (std::size_t k = 0; s && k < v.columns.size(); ++k) s[v.columns[k]] = v.values[k];
    }

  private:
    std::vector<Entries> vectors_;
};

// The rows of a block that have an entry in a column, found by its number: a hash table of the columns, then lists.
template <class T, class I>
class ColumnLists {
  public:
    explicit ColumnLists(const Csr<T, I>& X) {
        const std::size_t first = X.indptr[0], count = std::size_t(X.indptr[X.n]) - first;
        unsigned bits = 4;
        while ((std::size_t(1) << bits) < 2 * count) ++bits;
        shift_ = 64 - bits;
        table_.assign(std::size_t(1) << bits, {none, 0});
        std::vector<std::uint32_t> list(count);
        start_.reserve(count + 2);
        start_.assign(2, 0);
        for (std::size_t k = 0; k < count; ++k) {
            Place& place = find(std::uint32_t(X.indices[first + k]));
            if (place.column == none) {
                place = {std::uint32_t(X.indices[first + k]), std::uint32_t(start_.size() - 2)};
                start_.push_back(0);
            }
            list[k] = place.list;
            ++start_[place.list + 2];
        }
        for (std::size_t l = 2; l < start_.size(); ++l) start_[l] += start_[l - 1];
        row_.resize(count);
        value_.resize(count);
        for (std::size_t i = 0; i < X.n; ++i)
            for (std::size_t k = std::size_t(X.indptr[i]) - first; k < std::size_t(X.indptr[i + 1]) - first; ++k) {
                const std::uint32_t to = start_[list[k] + 1]++;
                row_[to] = std::uint32_t(i);
                value_[to] = X.data[first + k];
            }
    }

    // Calls consume(i, x_ij) for the rows i that have column j.
    template <class F>
    KS_INLINE void each(std::uint32_t j, F consume) {
        const Place& place = find(j);
        if (place.column == none) return;
        for (std::uint32_t k = start_[place.list]; k < start_[place.list + 1]; ++k) consume(row_[k], value_[k]);
    }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t(0);  // no column: there are at most 2^32 - 1
    struct Place {
        std::uint32_t column, list;
    };
    std::vector<Place> table_;
    unsigned shift_;
    std::vector<std::uint32_t> start_, row_;  // list l: start_[l], ..., start_[l + 1] - 1
    std::vector<T> value_;

    // Where a column is, or would be.
    KS_INLINE Place& find(std::uint32_t j) {
        std::size_t at = std::size_t((std::uint64_t(j) * 0x9E3779B97F4A7C15u) >> shift_);
        while (table_[at].column != j && table_[at].column != none) at = (at + 1) & (table_.size() - 1);
        return table_[at];
    }
};

// ||x - s||^2 of row i and a vector.
template <class T, class I>
double sparse_difference(const Csr<T, I>& X, std::size_t i, std::size_t count, const std::uint32_t* columns, const T* values) {
    double sum = 0;
    std::size_t l = 0;
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) {
        for (; l < count && columns[l] < std::uint32_t(X.indices[k]); ++l) sum += double(values[l]) * double(values[l]);
        const bool both = l < count && columns[l] == std::uint32_t(X.indices[k]);
        const double gap = double(X.data[k]) - (both ? double(values[l++]) : 0.0);
        sum += gap * gap;
    }
    for (; l < count; ++l) sum += double(values[l]) * double(values[l]);
    return sum;
}

// K (m, n), rows `stride` apart, with the vectors first, ..., first + n - 1 of a set; sn (n) are their norms.
template <class T, class I>
KS_CLONES void gaussian_wide(std::size_t n, const Csr<T, I>& X, const T* xn, const SparseSet<T>& set, std::size_t first,
                             const T* sn, const Gaussian<T>& kernel, T* K, std::size_t stride) {
    const T factor = T(kernel.factor());
    const double largest = double(largest_norm(n, sn));
    for (std::size_t i = 0; i < X.n; ++i) std::fill_n(K + i * stride, n, T(0));
    ColumnLists<T, I> lists(X);
    for (std::size_t j = 0; j < n; ++j) {
        const auto& s = set[first + j];
        for (std::size_t k = 0; k < s.columns.size(); ++k) {
            const T v = s.values[k];
            lists.each(s.columns[k], [&](std::uint32_t i, T x) { K[i * stride + j] += v * x; });
        }
    }
    for (std::size_t i = 0; i < X.n; ++i) {
        const Care<T> care(kernel, double(xn[i]), largest);
        T* t = K + i * stride;
        for (std::size_t j = 0; j < n; ++j) t[j] = factor * ((xn[i] + sn[j]) - 2 * t[j]);
        if (care.rough)
            refine(n, kernel, xn[i], sn, t, [&](std::size_t j) {
                const auto& s = set[first + j];
                return sparse_difference(X, i, s.columns.size(), s.columns.data(), s.values.data());
            });
        exp2_all(n, t, care.deep);
    }
}

}  // namespace ks
