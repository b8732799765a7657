// Bindings of the learners that take kernel values from one pool of vectors.
#include "bind/group.hpp"
#include "bind/hedge.hpp"
#include "bind/support.hpp"
#include "passes/pool_pass.hpp"

using namespace ks;

namespace {

template <class T>
void bound_squared_distances(Matrix<const T> X, Vector<const T> xn, Matrix<const T> S, Vector<const T> sn, Matrix<const T> A, Matrix<T> D,
                             std::size_t n) {
    const std::size_t m = X.shape(0), d = X.shape(1), width = D.shape(1);
    require(fits(xn, m) && fits(D, m) && fits(A, m, width) && S.shape(1) == d, "block shapes differ");
    require(n <= width && S.shape(0) >= n && sn.shape(0) >= n, "block shapes differ");
    nb::gil_scoped_release release;
    squared_distances<T>(m, n, d, X.data(), xn.data(), S.data(), sn.data(), A.data(), D.data(), width);
}

// size, A, D, norms, reach
template <class T>
using BlockArrays = std::tuple<std::size_t, Matrix<const T>, Maybe<Matrix<const T>>, Vector<const T>, double>;

template <class T>
PoolBlock<T> pool_block(const BlockArrays<T>& arrays) {
    const auto& [size, A, D, norms, reach] = arrays;
    require(fits(norms, A.shape(0)) && fits(D, A.shape(0), A.shape(1)), "block shapes differ");
    require(size <= A.shape(1), "the pool is larger than the block of products");
    return {A.shape(0), size, A.shape(1), A.data(), data_or_null(D), norms.data(), reach};
}

using Kernel = std::tuple<int, double, double>;  // degree (0: Gaussian), gamma, c
using Joining = std::tuple<Vector<std::int64_t>, Matrix<double>, Vector<double>, Vector<double>>;  // rows, coefficients, decay, born

// given: state, kernel, specification, index, u, first, joining
template <class T>
PoolMember<T> pool_member(nb::handle given, const PoolBlock<T>& block, std::size_t rows, std::size_t C, const double* y, double* F) {
    const nb::dict state = nb::cast<nb::dict>(given[0]);
    const auto [degree, gamma, c] = nb::cast<Kernel>(given[1]);
    const Spec& spec = nb::cast<const Spec&>(given[2]);  // `given` holds it
    const auto index = nb::cast<Vector<std::int32_t>>(given[3], false);
    Maybe<Vector<const double>> u;
    if (!nb::handle(given[4]).is_none()) u = nb::cast<Vector<const double>>(given[4], false);
    Support<T> S = support_of<T>(state, spec);
    const std::size_t N = S.capacity;
    const Carried carried(state, spec, C);
    require(S.C == int(C) && index.shape(0) >= N, "support set does not fit");
    S.places = index.data();
    PoolMember<T> member{PoolKernel{degree, gamma, c}, spec.loss.get(), spec.update.get(), nullptr, nullptr, std::move(S), index.data(),
                         shaped_or_null<const double>(state, "born", N), carried.memory.data(), data_or_null(carried.center), data_or_null(u),
                         nb::cast<std::int64_t>(given[5]), number<std::int64_t>(state, "t"), F, Members{}, RowNumbers(int(C)), {}, T(0),
                         {}, {}, {}};
    require(degree >= 0 && (degree > 0 || block.D), "Gaussian kernels need distances");
    require(member.t >= member.first && (!u || u->shape(0) >= std::size_t(member.t - member.first) + rows), "not enough random numbers");
    for (std::size_t j = 0; j < member.S.n; ++j)
        require(index.data()[j] >= 0 && std::size_t(index.data()[j]) < block.width, "no such place in the pool");
    if (member.loss->kind == Kind::multiclass) require_codes(rows, C, y, nullptr);
    if (nb::handle(given[6]).is_none()) {
        member.budget = &budget_of(spec, member.S);
        member.owner.assign(N, -1);
    } else {
        const auto [joined, coefficients, decay, when] = nb::cast<Joining>(given[6], false);
        require(fits(coefficients, joined.shape(0), C) && fits(decay, C) && fits(when, joined.shape(0)),
                "coefficients must be (room, outputs)");
        require(spec.growing != nullptr, "the strategy does not only grow");
        member.growing = spec.growing.get();
        member.joining = {joined.shape(0), 0, joined.data(), coefficients.data(), decay.data(), when.data()};
    }
    return member;
}

template <class T>
std::vector<PoolMember<T>> pool_members(nb::list specs, const PoolBlock<T>& block, std::size_t start, Vector<const double> y,
                                        Cube<double> F) {
    const std::size_t rows = y.shape(0), C = F.shape(2);
    require(fits(F, specs.size(), rows) && start + rows <= block.m, "block shapes differ");
    std::vector<PoolMember<T>> members;
    members.reserve(specs.size());
    for (std::size_t k = 0; k < specs.size(); ++k)
        members.push_back(pool_member<T>(specs[k], block, rows, C, y.data(), F.data() + k * rows * C));
    for (auto& member : members) member.S.owner = member.owner.data();
    return members;
}

// Learn the rows y of a block from `start` on: pass(block, members) goes over them. What it leaves behind enters the states; returns for
// every learner how many rows have joined a set that only grows.
template <class T, class Pass>
std::vector<std::size_t> learn_pool(const BlockArrays<T>& arrays, std::size_t start, const Vector<const double>& y, nb::list specs,
                                    const Cube<double>& F, Pass pass) {
    const PoolBlock<T> block = pool_block<T>(arrays);
    auto members = pool_members<T>(specs, block, start, y, F);
    {
        nb::gil_scoped_release release;
        pass(block, members);
        require_finite(F.size(), F.data());
        for (const auto& member : members) {
            require_finite(member.S.C * member.S.capacity, member.S.alpha, member.S.capacity, member.S.diag);
            require_finite(member.S.C * member.joining.q, member.joining.coefficients);
        }
    }
    std::vector<std::size_t> joined;
    for (std::size_t k = 0; k < members.size(); ++k) {
        set_number(specs[k][0], "t", members[k].t);
        if (members[k].budget) set_number(specs[k][0], "n_support", members[k].S.n);
        joined.push_back(members[k].joining.q);
    }
    return joined;
}

template <class T>
std::vector<std::size_t> bound_pool_pass(const BlockArrays<T>& arrays, std::size_t start, Vector<const double> y,
                                         Maybe<Matrix<const double>> weights, nb::list specs, int threads, Cube<double> F) {
    require(threads >= 1 && fits(weights, specs.size(), y.shape(0)), "block shapes differ");
    return learn_pool<T>(arrays, start, y, specs, F, [&](const PoolBlock<T>& block, std::vector<PoolMember<T>>& members) {
        pool_pass<T>(block, start, y.shape(0), y.data(), data_or_null(weights), members, threads);
    });
}

using Given = std::tuple<Vector<const double>, Maybe<Vector<const double>>, Matrix<const double>, Vector<const bool>>;
using Drawing = std::tuple<double, bool>;

// given: y, weight, chances (rows, learners), able (learners); drawing: smoothing, and whether only those drawn are judged;
// out: F (learners, rows, C) and scores (rows, C).
template <class T>
std::vector<std::size_t> bound_pool_hedge_pass(nb::dict whole, const BlockArrays<T>& arrays, nb::list specs, const Given& given,
                                               std::tuple<HedgeNumbers, Drawing> rule, int threads,
                                               const std::tuple<Cube<double>, Matrix<double>>& out) {
    const auto& y = std::get<0>(given);
    const auto& weight = std::get<1>(given);
    const auto& chances = std::get<2>(given);
    const auto& able = std::get<3>(given);
    const auto& F = std::get<0>(out);
    const auto& scores = std::get<1>(out);
    const Drawing drawing = std::get<1>(rule);
    const std::size_t rows = y.shape(0), m = specs.size(), C = F.shape(2);
    require(threads >= 1 && fits(chances, rows, m) && fits(weight, rows), "block shapes differ");
    require(fits(able, m), "able needs one entry per learner");
    require(fits(scores, rows, C), "scores must be (rows, outputs)");
    HedgeState held(whole, rule_of(std::get<0>(rule)), m, C);
    auto joined = learn_pool<T>(arrays, 0, y, specs, F, [&](const PoolBlock<T>& block, std::vector<PoolMember<T>>& members) {
        held.t = pool_hedge_pass<T>(block, 0, rows, int(C), y.data(), data_or_null(weight), chances.data(), able.data(),
                                    std::get<0>(drawing), std::get<1>(drawing), members, threads, F.data(), held.hedge, held.t, held.past,
                                    held.range_or_null(), scores.data());
    });
    held.write(whole);
    return joined;
}

const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("squared_distances", &bound_squared_distances<T>, plain, plain, plain, plain, plain, plain, value);
    m.def("pool_pass", &bound_pool_pass<T>, plain, value, plain, maybe, value, value, plain);
    m.def("pool_hedge_pass", &bound_pool_hedge_pass<T>, value, plain, value, plain, value, value, plain);
});

}  // namespace
