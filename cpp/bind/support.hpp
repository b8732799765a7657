// The support set of a kernel expansion as a state has it, checked.
#pragma once

#include "bind/rows.hpp"

namespace ks {

template <class T> Support<T> support_of(nb::handle state, const Spec& spec) {
    const auto alpha = entry<Matrix<T>>(state, "alpha");
    const auto numbers = maybe_entry<Vector<double>>(state, "budget_memory");
    const std::size_t C = alpha.shape(0), N = alpha.shape(1);
    require(!spec.update->diagonal, "a diagonal update needs explicit features");
    Support<T> S{};
    S.capacity = N, S.n = number<std::size_t>(state, "n_support"), S.C = int(C);
    S.alpha = alpha.data();
    S.scale = shaped<double>(state, "scale", C);
    S.diag = shaped<T>(state, "diag", N);
    S.memory = data_or_null(numbers), S.numbers = numbers ? numbers->shape(0) : 0;
    S.gram = shaped_or_null<T>(state, "budget_gram", N, N);
    S.basis = shaped_or_null<double>(state, "budget_basis", N, N);
    S.factor = shaped_or_null<double>(state, "budget_factor", N, N);
    S.scores = shaped_or_null<double>(state, "budget_scores", C, N);
    S.buffer.resize(4 * (N + 1) + C);
    require(S.n <= N, "support set does not fit");
    return S;
}

// The strategy, which must find in the support set what it needs.
template <class T> const Budget<T>& budget_of(const Spec& spec, const Support<T>& S) {
    const Budget<T>* budget = spec.budget<T>();
    require(budget != nullptr, "a strategy without removal has no budget");
    require(budget->fits(S), "the support set lacks what the strategy needs");
    return *budget;
}

}  // namespace ks
