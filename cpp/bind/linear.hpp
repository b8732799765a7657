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

// Learn m rows with P features; pass(C, model, t, scratch) goes over them and returns t, and finite(model) says whether the weights
// that it has changed are.
template <class T, class Pass, class Finite>
void learn_rows(nb::handle state, std::size_t m, std::size_t P, const Vector<const double>& y, const Maybe<Vector<const double>>& weight,
                const Spec& spec, const Matrix<double>& F, Pass pass, Finite finite) {
    const LinearArrays<T> arrays(state, spec, entry<Matrix<T>>(state, name::w));
    const std::size_t C = arrays.W.shape(0);
    require(y.shape(0) == m && (!weight || weight->shape(0) == m), "y and weight need one entry per row of Z");
    require(arrays.W.shape(1) == P, "w does not fit the features");
    require(F.shape(0) == m && F.shape(1) == C, "scores must be (rows, outputs)");
    check_codes(*spec.loss, m, C, y.data(), data_or_null(weight));
    std::int64_t t = number<std::int64_t>(state, name::t);
    const LinearModel<T> model = arrays.model();
    std::vector<double> scratch(RowRoom::size * C);
    {
        nb::gil_scoped_release release;
        t = pass(int(C), model, t, scratch.data());
        require_finite(finite(model));
        require_finite(F.size(), F.data());
        require_finite(arrays.memory.size(), arrays.memory.data());
    }
    set_number(state, name::t, t);
}

// The same where a pass changes all weights.
template <class T, class Pass>
void learn_rows(nb::handle state, std::size_t m, std::size_t P, const Vector<const double>& y, const Maybe<Vector<const double>>& weight,
                const Spec& spec, const Matrix<double>& F, Pass pass) {
    std::size_t all = 0;
    const auto counted = [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
        all = std::size_t(C) * P;
        return pass(C, model, t, scratch);
    };
    learn_rows<T>(state, m, P, y, weight, spec, F, counted, [&](const LinearModel<T>& model) {
        for (const T* weights : {model.W, model.G, model.mean})
            if (weights && !all_finite(all, weights)) return false;
        return true;
    });
}

}  // namespace ks
