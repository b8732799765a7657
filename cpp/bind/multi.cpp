// Bindings of the passes over many learners.
#include "base/arrays.hpp"
#include "passes/family.hpp"
#include "parts/hedge.hpp"
#include "base/states.hpp"

#include <nanobind/stl/tuple.h>

#include <memory>
#include <tuple>

using namespace ks;

namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

std::tuple<std::int64_t, std::int64_t> bound_hedge_pass(Cube<const double> F, Vector<const double> y, Maybe<Vector<const double>> weight,
                                                        Vector<double> log_theta, std::int64_t t, Matrix<float> history,
                                                        std::int64_t stride, Maybe<Vector<double>> range, double rate, double share,
                                                        bool votes, bool regression, Maybe<Matrix<const bool>> drawn, Matrix<double> scores) {
    const std::size_t m = F.shape(0), n = F.shape(1), C = F.shape(2);
    require(m > 0 && log_theta.shape(0) == m && history.shape(1) == m && history_fits(history.shape(0), t, stride), "weights do not fit");
    require(y.shape(0) == n && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    require(!drawn || (drawn->shape(0) == n && drawn->shape(1) == m), "drawn must be (rows, learners)");
    require(scores.shape(0) == n && scores.shape(1) == C, "scores must be (rows, outputs)");
    require(!regression || (C == 1 && range && range->shape(0) == 2), "regression has one output and a range");
    for (std::size_t i = 0; i < n && C > 1; ++i)
        require((weight && weight->data()[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)), "class code out of range");
    Hedge hedge(m, HedgeRule{rate, share, votes, regression}, log_theta.data());
    History past{history.data(), history.shape(0), m, stride};
    nb::gil_scoped_release release;
    t = hedge_pass(n, m, int(C), F.data(), y.data(), data_or_null(weight), data_or_null(drawn), hedge, t, past,
                   regression ? range->data() : nullptr, scores.data());
    return {t, past.stride};
}

struct Twins {
    std::unique_ptr<Loss> loss;
    std::unique_ptr<Update> update;
};

// states: list of dicts; specs: list of (loss name, parameters, update name, parameters, averages). Changes the states.
template <class T>
void bound_family_pass(Matrix<const T> P, std::vector<double> stretch, Vector<const double> y, Maybe<Matrix<const double>> weights,
                       nb::list states, nb::list specs, int threads, Cube<double> F) {
    const std::size_t m = F.shape(0), n = F.shape(1), C = F.shape(2);
    require(stretch.size() == m && states.size() == m && specs.size() == m, "one entry per learner is needed");
    require(P.shape(0) == n && y.shape(0) == n && (!weights || (weights->shape(0) == m && weights->shape(1) == n)), "block shapes differ");
    require(threads >= 1, "threads must be at least 1");
    std::vector<Twins> twins(m);
    std::vector<FamilyMember<T>> members;
    for (std::size_t k = 0; k < m; ++k) {
        const nb::handle state = states[k];
        const auto spec = nb::cast<std::tuple<std::string, std::vector<double>, std::string, std::vector<double>, bool>>(specs[k]);
        twins[k] = {make_loss(std::get<0>(spec), std::get<1>(spec)), make_update(std::get<2>(spec), std::get<3>(spec))};
        const auto& [loss, update] = twins[k];
        const auto W = entry<Matrix<T>>(state, "w");
        const auto scale = entry<Vector<double>>(state, "scale");
        const auto memory = entry<Matrix<double>>(state, "memory");
        const auto G = maybe_entry<Matrix<T>>(state, "G"), mean = maybe_entry<Matrix<T>>(state, "w_mean");
        const auto center = maybe_entry<Vector<double>>(state, "center");
        const std::size_t width = W.shape(1);
        require(W.shape(0) == C && width % 2 == 0 && width / 2 <= P.shape(1) && width > 0, "w does not fit the projections");
        require(scale.shape(0) == C && memory.shape(1) == C && int(memory.shape(0)) >= update->n_memory, "memory does not fit the update");
        require(!update->diagonal || (G && G->shape(0) == C && G->shape(1) == width), "a diagonal update needs G like w");
        require(!mean || (mean->shape(0) == C && mean->shape(1) == width), "w_mean must be like w");
        require(!center || center->shape(0) == 2, "center holds a count and a mean");
        const double* weight = weights ? weights->data() + k * n : nullptr;
        for (std::size_t i = 0; i < n && loss->kind == Kind::multiclass; ++i)
            require((weight && weight[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)), "class code out of range");
        const LinearModel<T> model{W.data(), scale.data(), data_or_null(G), std::get<4>(spec) ? data_or_null(mean) : nullptr,
                                   memory.data(), data_or_null(center)};
        members.push_back({model, width / 2, T(stretch[k]), nb::cast<std::int64_t>(state["t"]), loss.get(), update.get(), weight,
                           F.data() + k * n * C});
    }
    {
        nb::gil_scoped_release release;
        family_pass<T>(n, P.shape(1), int(C), P.data(), y.data(), members, threads);
        for (const auto& member : members)
            for (const T* weights : {member.model.W, member.model.G, member.model.mean}) require_finite(2 * C * member.D, weights);
        require_finite(F.size(), F.data());
    }
    for (std::size_t k = 0; k < m; ++k) states[k]["t"] = members[k].t;
}

}  // namespace

void bind_multi(nb::module_& m) {
    m.def("hedge_pass", &bound_hedge_pass, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().none().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg().none().noconvert(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg().none().noconvert(), nb::arg().noconvert());
    const auto family = [&](auto* f) {
        m.def("family_pass", f, nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().none().noconvert(), nb::arg(),
              nb::arg(), nb::arg(), nb::arg().noconvert());
    };
    family(&bound_family_pass<float>);
    family(&bound_family_pass<double>);
}
