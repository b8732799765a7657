// Rows of a matrix, dense or sparse; and whether a sparse one is one, and in which form.
#pragma once

#include <cstddef>

namespace ks {

template <class T>
struct Dense {
    std::size_t n, d;
    const T* X;  // (n, d)
};

template <class T, class I>
struct Csr {
    std::size_t n, d;
    const T* data;
    const I *indices, *indptr;  // indptr (n + 1) may begin in the middle of the other two
};

// Row i as a dense one, whose numbers are `apart`.
template <class T, class I>
void csr_to_row(const Csr<T, I>& X, std::size_t i, T* row, std::size_t apart = 1) {
    for (std::size_t j = 0; j < X.d; ++j) row[j * apart] = T(0);
    for (I k = X.indptr[i]; k < X.indptr[i + 1]; ++k) row[std::size_t(X.indices[k]) * apart] = X.data[k];
}

enum class Form : int { canonical = 0, unordered = 1, broken_rows = 2, broken_columns = 3 };

// Of m rows, d columns and room for `stored` entries. Unordered: the indices of a row do not rise strictly.
template <class I>
Form csr_form(std::size_t m, std::size_t d, std::size_t stored, const I* indptr, const I* indices) {
    if (indptr[0] < 0) return Form::broken_rows;
    for (std::size_t i = 0; i < m; ++i)
        if (indptr[i + 1] < indptr[i]) return Form::broken_rows;
    if (std::size_t(indptr[m]) > stored) return Form::broken_rows;
    int outside = 0, falls = 0;
    const I width = I(d);
    for (std::size_t i = 0; i < m; ++i) {
        const std::size_t end = std::size_t(indptr[i + 1]);
        for (std::size_t k = std::size_t(indptr[i]); k < end; ++k) outside |= (indices[k] < 0) | (indices[k] >= width);
        for (std::size_t k = std::size_t(indptr[i]) + 1; k < end; ++k) falls |= indices[k] <= indices[k - 1];
    }
    return outside ? Form::broken_columns : falls ? Form::unordered : Form::canonical;
}

}  // namespace ks
