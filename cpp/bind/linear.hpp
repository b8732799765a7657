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
        : Carried(state, spec, w.shape(0)), W(std::move(w)), scale(entry<Vector<double>>(state, "scale")) {
        if (spec.update->diagonal) G = entry<Matrix<T>>(state, "G");
        if (spec.average) mean = entry<Matrix<T>>(state, "w_mean");
        const auto like_w = [&](const Maybe<Matrix<T>>& a) { return fits(a, W.shape(0), W.shape(1)); };
        require(fits(scale, W.shape(0)), "w and scale differ in their outputs");
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
    const LinearArrays<T> arrays(state, spec, entry<Matrix<T>>(state, "w"));
    const std::size_t C = arrays.W.shape(0);
    require(fits(y, m) && fits(weight, m), "y and weight need one entry per row of Z");
    require(arrays.W.shape(1) == P, "w does not fit the features");
    require(fits(F, m, C), "scores must be (rows, outputs)");
    if (spec.loss->kind == Kind::multiclass) require_codes(m, C, y.data(), data_or_null(weight));
    std::int64_t t = number<std::int64_t>(state, "t");
    const LinearModel<T> model = arrays.model();
    std::vector<double> scratch(RowRoom::size * C);
    {
        nb::gil_scoped_release release;
        t = pass(int(C), model, t, scratch.data());
        require_finite(finite(model));
        require_finite(F.size(), F.data(), arrays.memory.size(), arrays.memory.data());
    }
    set_number(state, "t", t);
}

// The same where a pass changes all weights.
template <class T, class Pass>
void learn_rows(nb::handle state, std::size_t m, std::size_t P, const Vector<const double>& y, const Maybe<Vector<const double>>& weight,
                const Spec& spec, const Matrix<double>& F, Pass pass) {
    learn_rows<T>(state, m, P, y, weight, spec, F, pass, [&](const LinearModel<T>& model) { return model.finite(F.shape(1) * P); });
}

}  // namespace ks
