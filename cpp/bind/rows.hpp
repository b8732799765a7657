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

// The rows of a CSR matrix with d columns, checked.
template <class T, class I> Csr<T, I> csr_of(const CsrArrays<T, I>& X, std::size_t d) {
    const auto& [data, indices, indptr] = X;
    require(indptr.shape(0) > 0 && fits(indices, data.shape(0)), "not a CSR matrix: data, indices and indptr do not agree");
    const std::size_t n = indptr.shape(0) - 1;
    require(csr_form<I>(n, d, data.shape(0), indptr.data(), indices.data()) <= Form::unordered, "not a CSR matrix: an index is out of range");
    return {n, d, data.data(), indices.data(), indptr.data()};
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
