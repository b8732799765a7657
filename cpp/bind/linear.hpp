// What first-order learning on explicit features keeps in a state, checked.
#pragma once

#include "bind/rows.hpp"
#include "passes/linear.hpp"

namespace ks {

template <class T> struct LinearArrays : Carried {
    Matrix<T> W;
    Vector<double> scale;
    Maybe<Matrix<T>> G, mean;

    LinearArrays(nb::handle state, const Spec& spec, Matrix<T> w)
        : Carried(state, spec, w.shape(0)), W(std::move(w)), scale(entry<Vector<double>>(state, name::scale)) {
        if (spec.update->diagonal) G = entry<Matrix<T>>(state, name::G);
        if (spec.average) mean = entry<Matrix<T>>(state, name::w_mean);
        const auto like_w = [&](const Maybe<Matrix<T>>& a) { return !a || (a->shape(0) == W.shape(0) && a->shape(1) == W.shape(1)); };
        require(scale.shape(0) == W.shape(0), "w and scale differ in their outputs");
        require(like_w(G), "a diagonal update needs G like w");
        require(like_w(mean), "w_mean must be like w");
    }

    LinearModel<T> model() const {
        return {W.data(), scale.data(), data_or_null(G), data_or_null(mean), memory.data(), data_or_null(center)};
    }
};

}  // namespace ks
