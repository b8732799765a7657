// Checks that bindings have in common: sparse rows, class codes, and the arrays of first-order learning.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>
#include <variant>

#include "base/arrays.hpp"
#include "base/csr.hpp"
#include "base/states.hpp"
#include "parts/spec.hpp"

namespace ks {

template <class T, class I> using CsrArrays = std::tuple<Vector<const T>, Vector<const I>, Vector<const I>>;  // data, indices, indptr

// Rows X (n, d), dense or sparse.
template <class T> using AnyRows = std::variant<Matrix<const T>, CsrArrays<T, std::int32_t>, CsrArrays<T, std::int64_t>>;

// The number of rows of a CSR matrix with d columns.
template <class T, class I> std::size_t csr_rows(const CsrArrays<T, I>& X, std::size_t d) {
    const auto& [data, indices, indptr] = X;
    require(indptr.shape(0) > 0 && indices.shape(0) == data.shape(0), "not a CSR matrix: data, indices and indptr do not agree");
    const std::size_t m = indptr.shape(0) - 1;
    require(csr_valid<I>(m, d, data.shape(0), indptr.data(), indices.data()), "not a CSR matrix: an index is out of range");
    return m;
}

// Rows of weight 0 are not learned: their codes may be anything.
inline void check_codes(const Loss& loss, std::size_t m, std::size_t C, const double* y, const double* weight) {
    for (std::size_t i = 0; i < m && loss.kind == Kind::multiclass; ++i)
        require((weight && weight[i] == 0.0) || (y[i] >= 0 && y[i] < double(C)), "class code out of range");
}

// What the update and the target's mean keep in a state.
struct Carried {
    Matrix<double> memory;
    Maybe<Vector<double>> center;

    Carried(nb::handle state, const Spec& spec, std::size_t C)
        : memory(entry<Matrix<double>>(state, name::memory)), center(maybe_entry<Vector<double>>(state, name::center)) {
        require(int(memory.shape(0)) >= spec.update->n_memory && memory.shape(1) == C, "memory does not fit the update");
        require(!center || center->shape(0) == 2, "center holds a count and a mean");
    }
};

}  // namespace ks
