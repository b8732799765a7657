// Bindings of the passes over many learners.
#include "bind/group.hpp"
#include "bind/hedge.hpp"
#include "bind/linear.hpp"
#include "passes/family.hpp"

using namespace ks;

namespace {

void bound_hedge_pass(nb::dict state, Cube<const double> F, Vector<const double> y, Maybe<Vector<const double>> weight,
                      Maybe<Matrix<const bool>> drawn, HedgeNumbers numbers, Matrix<double> scores) {
    const std::size_t m = F.shape(0), n = F.shape(1), C = F.shape(2);
    HedgeState held(state, rule_of(numbers), m, C);
    require(fits(y, n) && fits(weight, n), "y and weight need one entry per row");
    require(fits(drawn, n, m), "drawn must be (rows, learners)");
    require(fits(scores, n, C), "scores must be (rows, outputs)");
    if (C > 1) require_codes(n, C, y.data(), data_or_null(weight));
    {
        nb::gil_scoped_release release;
        held.t = hedge_pass(n, m, int(C), F.data(), y.data(), data_or_null(weight), data_or_null(drawn), held.hedge, held.t, held.past,
                            held.range_or_null(), scores.data());
    }
    held.write(state);
}

// members: for every learner its state, its specification and the factor of the projections. Changes the states.
template <class T>
void bound_family_pass(nb::list members, Matrix<const T> P, Vector<const double> y, Maybe<Matrix<const double>> weights, int threads,
                       Cube<double> F) {
    const std::size_t m = F.shape(0), n = F.shape(1), C = F.shape(2);
    require(members.size() == m, "one entry per learner is needed");
    require(fits(P, n) && fits(y, n) && fits(weights, m, n), "block shapes differ");
    require(threads >= 1, "threads must be at least 1");
    std::vector<LinearArrays<T>> arrays;
    std::vector<FamilyMember<T>> family;
    for (std::size_t k = 0; k < m; ++k) {
        const auto [state, held, stretch] = nb::cast<std::tuple<nb::dict, nb::object, double>>(members[k]);
        const Spec& spec = nb::cast<const Spec&>(held);  // the list holds it
        arrays.emplace_back(state, spec, entry<Matrix<T>>(state, "w"));
        const Matrix<T>& W = arrays.back().W;
        const std::size_t width = W.shape(1);
        require(fits(W, C) && width % 2 == 0 && width / 2 <= P.shape(1) && width > 0, "w does not fit the projections");
        const double* weight = weights ? weights->data() + k * n : nullptr;
        if (spec.loss->kind == Kind::multiclass) require_codes(n, C, y.data(), weight);
        family.push_back({arrays.back().model(), width / 2, T(stretch), number<std::int64_t>(state, "t"), spec.loss.get(),
                          spec.update.get(), weight, F.data() + k * n * C});
    }
    {
        nb::gil_scoped_release release;
        family_pass<T>(n, P.shape(1), int(C), P.data(), y.data(), family, threads);
        for (const auto& member : family) require_finite(member.model.finite(2 * C * member.D));
        require_finite(F.size(), F.data());
    }
    for (std::size_t k = 0; k < m; ++k) set_number(members[k][0], "t", family[k].t);
}

const Group group([](nb::module_& m) {
    m.def("hedge_pass", &bound_hedge_pass, value, plain, plain, maybe, maybe, value, plain);
    m.def("family_pass", &bound_family_pass<float>, value, plain, plain, maybe, value, plain);
    m.def("family_pass", &bound_family_pass<double>, value, plain, plain, maybe, value, plain);
});

}  // namespace
