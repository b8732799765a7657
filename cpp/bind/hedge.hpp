// The weights of learners in a state, checked.
#pragma once

#include <nanobind/stl/tuple.h>

#include <tuple>

#include "base/states.hpp"
#include "parts/hedge.hpp"

namespace ks {

using HedgeNumbers = std::tuple<double, double, bool, bool>;  // rate, share, votes, regression

inline HedgeRule rule_of(const HedgeNumbers& numbers) {
    return {std::get<0>(numbers), std::get<1>(numbers), std::get<2>(numbers), std::get<3>(numbers)};
}

// log_theta, history, history_stride, t, and for regression the range of the targets.
struct HedgeState {
    Vector<double> log_theta;
    Matrix<float> history;
    Maybe<Vector<double>> range;
    std::int64_t t;
    History past;
    Hedge hedge;

    HedgeState(nb::handle state, const HedgeRule& rule, std::size_t m, std::size_t C)
        : log_theta(entry<Vector<double>>(state, "log_theta")),
          history(entry<Matrix<float>>(state, "history")),
          t(number<std::int64_t>(state, "t")),
          past{history.data(), history.shape(0), m, number<std::int64_t>(state, "history_stride")},
          hedge(checked(m), rule, log_theta.data()) {
        if (rule.regression) range = entry<Vector<double>>(state, "range");
        require(!rule.regression || (C == 1 && range->shape(0) == 2), "regression has one output and a range");
    }

    double* range_or_null() const { return range ? range->data() : nullptr; }

    void write(nb::handle state) const {
        set_number(state, "t", t);
        set_number(state, "history_stride", past.stride);
    }

  private:
    std::size_t checked(std::size_t m) const {  // before the weights are read
        require(m > 0 && fits(log_theta, m) && history.shape(1) == m && history_fits(history.shape(0), t, past.stride),
                "weights do not fit");
        return m;
    }
};

}  // namespace ks
