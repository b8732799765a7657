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
    require(y.shape(0) == n && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    require(!drawn || (drawn->shape(0) == n && drawn->shape(1) == m), "drawn must be (rows, learners)");
    require(scores.shape(0) == n && scores.shape(1) == C, "scores must be (rows, outputs)");
    for (std::size_t i = 0; i < n && C > 1; ++i)
        require((weight && weight->data()[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)), "class code out of range");
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
    require(P.shape(0) == n && y.shape(0) == n && (!weights || (weights->shape(0) == m && weights->shape(1) == n)), "block shapes differ");
    require(threads >= 1, "threads must be at least 1");
    std::vector<LinearArrays<T>> arrays;
    std::vector<FamilyMember<T>> family;
    for (std::size_t k = 0; k < m; ++k) {
        const auto [state, held, stretch] = nb::cast<std::tuple<nb::dict, nb::object, double>>(members[k]);
        const Spec& spec = nb::cast<const Spec&>(held);  // the list holds it
        arrays.emplace_back(state, spec, entry<Matrix<T>>(state, name::w));
        const Matrix<T>& W = arrays.back().W;
        const std::size_t width = W.shape(1);
        require(W.shape(0) == C && width % 2 == 0 && width / 2 <= P.shape(1) && width > 0, "w does not fit the projections");
        const double* weight = weights ? weights->data() + k * n : nullptr;
        check_codes(*spec.loss, n, C, y.data(), weight);
        family.push_back({arrays.back().model(), width / 2, T(stretch), number<std::int64_t>(state, name::t), spec.loss.get(),
                          spec.update.get(), weight, F.data() + k * n * C});
    }
    {
        nb::gil_scoped_release release;
        family_pass<T>(n, P.shape(1), int(C), P.data(), y.data(), family, threads);
        for (const auto& member : family)
            for (const T* weights : {member.model.W, member.model.G, member.model.mean}) require_finite(2 * C * member.D, weights);
        require_finite(F.size(), F.data());
    }
    for (std::size_t k = 0; k < m; ++k) set_number(members[k][0], name::t, family[k].t);
}

const Group group([](nb::module_& m) {
    m.def("hedge_pass", &bound_hedge_pass, value, plain, plain, maybe, maybe, value, plain);
    const auto family = [&](auto* f) { m.def("family_pass", f, value, plain, plain, maybe, value, plain); };
    family(&bound_family_pass<float>);
    family(&bound_family_pass<double>);
});

}  // namespace
