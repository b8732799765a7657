// Checks that bindings have in common: sparse rows, class codes, and the arrays of first-order learning.
#pragma once

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <tuple>
#include <variant>

#include "base/arrays.hpp"
#include "base/csr.hpp"
#include "base/ranges.hpp"
#include "base/states.hpp"
#include "parts/spec.hpp"

namespace ks {

template <class T, class I> using CsrArrays = std::tuple<Vector<const T>, Vector<const I>, Vector<const I>>;  // data, indices, indptr

// Rows X (n, d), dense or sparse.
template <class T> using AnyRows = std::variant<Matrix<const T>, CsrArrays<T, std::int32_t>, CsrArrays<T, std::int64_t>>;

// These rows, of d columns, checked.
template <class T> Dense<T> rows_of(const Matrix<const T>& X, std::size_t d) {
    require(X.shape(1) == d, "the rows have another width than they must");
    return {X.shape(0), d, X.data()};
}
template <class T, class I> Csr<T, I> rows_of(const CsrArrays<T, I>& X, std::size_t d) {
    const auto& [data, indices, indptr] = X;
    require(indptr.shape(0) > 0 && fits(indices, data.shape(0)), "not a CSR matrix: data, indices and indptr do not agree");
    const std::size_t n = indptr.shape(0) - 1;
    require(csr_form<I>(n, d, data.shape(0), indptr.data(), indices.data()) <= Form::unordered, "not a CSR matrix: an index is out of range");
    return {n, d, data.data(), indices.data(), indptr.data()};
}

// Moments and ranges of d columns; find(name, d) gives the numbers of an entry.
template <class Find> Columns columns_by(std::size_t d, const double* usual, Find find) {
    return {find("x_mean", d), find("x_m2", d), find("x_low", d), find("x_high", d), find("x_doubt", d), find("x_since", d),
            find("x_middle", d), find("x_unit", d), find("x_tailed", d), usual};
}

// What the update and the target's mean keep in a state.
struct Carried {
    Matrix<double> memory;
    Maybe<Vector<double>> center;

    Carried(nb::handle state, const Spec& spec, std::size_t C)
        : memory(entry<Matrix<double>>(state, "memory")), center(maybe_entry<Vector<double>>(state, "center")) {
        require(int(memory.shape(0)) >= spec.update->n_memory && memory.shape(1) == C, "memory does not fit the update");
        require(!center || center->shape(0) == 2, "center holds a count and a mean");
    }
};

}  // namespace ks
