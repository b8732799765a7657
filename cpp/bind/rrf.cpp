// Bindings of the pass that learns its kernel.
#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "passes/learned.hpp"

#include <numeric>

using namespace ks;

namespace {

// kind of spectrum ("diagonal", "mixture", "low_rank") and its size, E, step size, guard, rows of a batch
template <class T> using Kernel = std::tuple<std::string, std::size_t, Matrix<const T>, double, double, std::size_t>;

// The state: w, G, theta, theta0, H, memory, center, t, inverse_length, and for batches sum_w, sum_theta, pending.
template <class T, class Rows>
void learn(nb::handle state, const Rows& rows, const Vector<const double>& y,
           const Maybe<Vector<const double>>& weight, const Spec& spec, const Kernel<T>& kernel, const Matrix<double>& F) {
    const auto& [kind, size, E, eta_g, guard, batch_size] = kernel;
    const std::size_t m = rows.n, d = rows.d;
    require(kind == "diagonal" || kind == "mixture" || kind == "low_rank", "unknown spectrum");
    const bool low_rank = kind == "low_rank", centred = kind == "mixture", batches = batch_size > 1;
    const auto W = entry<Matrix<T>>(state, "w"), G = entry<Matrix<T>>(state, "G");
    const auto theta = entry<Array<T>>(state, "theta"), H = entry<Array<T>>(state, "H");
    const auto theta0 = entry<Array<const T>>(state, "theta0");
    Maybe<Matrix<T>> sum_w;
    Maybe<Array<T>> sum_theta;
    Maybe<Vector<double>> pending;
    if (batches) {
        sum_w = entry<Matrix<T>>(state, "sum_w");
        sum_theta = entry<Array<T>>(state, "sum_theta");
        pending = entry<Vector<double>>(state, "pending");
    }
    const std::size_t C = W.shape(0), D = E.shape(1), r = std::min(size, d), Q = centred ? size : 1;
    const std::size_t parameters = low_rank ? d * r : (centred ? 2 : 1) * Q * d, inner = low_rank ? r : Q * d;
    const Carried carried(state, spec, C);
    require(d < (std::size_t(1) << 31), "more columns than 32-bit indices reach");
    require(size > 0 && E.shape(0) == (low_rank ? r : d), "E does not fit the spectrum");
    require(theta.size() == parameters && theta0.size() == parameters && H.size() == parameters,
            "theta, theta0 and H do not fit the spectrum");
    require(fits(y, m) && fits(weight, m), "y and weight need one entry per row");
    require(W.shape(1) == 2 * D && fits(G, C, 2 * D), "w and G must be (outputs, 2 D)");
    require(fits(F, m, C), "scores must be (rows, outputs)");
    require(spec.update->diagonal, "the kernel is learned with a diagonal update");
    require(batch_size > 0 && fits(sum_w, C, 2 * D) && (!sum_theta || sum_theta->size() == parameters) && fits(pending, 2),
            "the sums of a batch must be like w and theta");
    if (spec.loss->kind == Kind::multiclass) require_codes(m, C, y.data(), data_or_null(weight));
    std::unique_ptr<T[]> numbers(new T[2 * d + inner + 4 * D]);
    std::unique_ptr<std::int32_t[]> index(new std::int32_t[d + r]);
    std::vector<double> outputs(3 * C);
    T *value = numbers.get(), *v = value + d, *h = v + inner, *u = h + d, *z = u + D, *q = z + 2 * D;
    std::iota(index.get() + d, index.get() + d + r, 0);
    const RrfScratch<T> scratch{{0, index.get(), value}, u, z, q, outputs.data()};
    const RrfModel<T> model{W.data(), G.data(), carried.memory.data(), data_or_null(carried.center), data_or_null(sum_w),
                            data_or_null(pending), T(number<double>(state, "inverse_length")), batch_size};
    const Guarded<T> p{theta.data(), theta0.data(), H.data(), data_or_null(sum_theta), T(eta_g), T(guard)};
    const std::int64_t t = number<std::int64_t>(state, "t");
    const auto pass = [&](const auto& spectrum) {
        nb::gil_scoped_release release;
        const std::int64_t end = rrf_pass<T>(D, int(C), rows, y.data(), data_or_null(weight), model, p, spectrum, t, *spec.loss,
                                             *spec.update, F.data(), scratch);
        for (const T* weights : {model.W, model.G, model.sum}) require_finite(2 * C * D, weights);
        for (const T* numbers : {p.theta, p.H, p.sum}) require_finite(parameters, numbers);
        require_finite(F.size(), F.data(), carried.memory.size(), carried.memory.data());
        return end;
    };
    set_number(state, "t", low_rank ? pass(LowRankSpectrum<T>{d, D, r, E.data(), index.get() + d, v, h})
                                        : pass(DiagonalSpectrum<T>{d, D, Q, centred, E.data(), v, h}));
}

template <class T>
void bound_dense(nb::dict state, Matrix<const T> X, Vector<const double> y, Maybe<Vector<const double>> weight, const Spec& spec,
                 Kernel<T> kernel, Matrix<double> F) {
    learn<T>(state, Dense<T>{X.shape(0), X.shape(1), X.data()}, y, weight, spec, kernel, F);
}

template <class T, class I>
void bound_csr(nb::dict state, std::tuple<Vector<const T>, Vector<const I>, Vector<const I>, std::size_t> X, Vector<const double> y,
               Maybe<Vector<const double>> weight, const Spec& spec, Kernel<T> kernel, Matrix<double> F) {
    const auto& [data, indices, indptr, d] = X;
    const Csr<T, I> rows = csr_of(CsrArrays<T, I>(data, indices, indptr), d);
    for (std::size_t i = 0; i < rows.n; ++i)  // a row's entries are copied to d places
        require(std::size_t(indptr.data()[i + 1] - indptr.data()[i]) <= d, "a row holds an index twice");
    learn<T>(state, rows, y, weight, spec, kernel, F);
}

template <class T>
rows::LearnerPtr<T> row_learned_widths(nb::dict state, nb::list others, Matrix<const T> E, double eta, double guard, nb::object spec) {
    auto made = rows::begin<T>(state, others);
    const Spec& parts = nb::cast<const Spec&>(spec);
    const std::size_t d = made->d, C = made->C, D = E.shape(1);
    const Carried carried(state, parts, C);
    require(fits(E, d) && parts.update->diagonal, "E does not fit");
    const auto numbers = [&](const char* name, std::size_t size) { return made->template numbers<T>(name, size); };
    const RrfModel<T> model{numbers("w", 2 * C * D), numbers("G", 2 * C * D), carried.memory.data(), data_or_null(carried.center),
                            nullptr, nullptr, T(number<double>(state, "inverse_length")), 1};
    const Guarded<T> theta{numbers("theta", d), numbers("theta0", d), numbers("H", d), nullptr, T(eta), T(guard)};
    made->pin("memory", "center", "inverse_length");
    made->held.keep(E, spec);
    made->learner = std::make_unique<rows::LearnedWidths<T>>(d, D, C, carried.memory.size(), model, theta, E.data(), parts);
    return made;
}

// rows: X (m, d), or (data, indices, indptr, d).
const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    const auto pass = [&](auto* f) { m.def("rrf_pass", f, value, plain, plain, maybe, value, plain, plain); };
    pass(&bound_dense<T>);
    pass(&bound_csr<T, std::int32_t>);
    pass(&bound_csr<T, std::int64_t>);
    m.def(rows::named<T>("row_learned_widths").c_str(), &row_learned_widths<T>, value, value, plain, value, value, value);
});

}  // namespace
