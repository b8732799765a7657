// Bindings of the pass that learns its kernel.
#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "passes/learned.hpp"

using namespace ks;

namespace {

// kind of spectrum ("diagonal", "mixture", "low_rank") and its size, E, step size, guard, rows of a batch
template <class T> using Kernel = std::tuple<std::string, std::size_t, Matrix<const T>, double, double, std::size_t>;

// Weights in a state, w and G (C, 2 D), and memory, center, inverse_length; for batches sum_w and pending.
template <class T>
RrfModel<T> model_of(nb::handle state, const Carried& carried, std::size_t C, std::size_t D, std::size_t batch_size) {
    const bool batches = batch_size > 1;
    return {shaped<T>(state, "w", C, 2 * D), shaped<T>(state, "G", C, 2 * D), carried.memory.data(), data_or_null(carried.center),
            batches ? shaped<T>(state, "sum_w", C, 2 * D) : nullptr, batches ? shaped<double>(state, "pending", 2) : nullptr,
            T(number<double>(state, "inverse_length")), batch_size};
}

// The parameters of the kernel, theta, theta0 and H; for batches sum_theta.
template <class T>
Guarded<T> parameters_of(nb::handle state, std::size_t size, double eta, double guard, bool batches) {
    const auto numbers = [&](const char* name) { return numbers_of<T>(state, name, size, true); };
    return {numbers("theta"), numbers_of<T>(state, "theta0", size, false), numbers("H"), batches ? numbers("sum_theta") : nullptr, T(eta),
            T(guard)};
}

// Rows that come one after another, dense or sparse.
template <class T, class Rows>
void learn(nb::handle state, const Rows& rows, const Vector<const double>& y,
           const Maybe<Vector<const double>>& weight, const Spec& spec, const Kernel<T>& kernel, const Matrix<double>& F) {
    const auto& [kind, size, E, eta_g, guard, batch_size] = kernel;
    const std::size_t m = rows.n, d = rows.d;
    const bool low_rank = kind == "low_rank", centred = kind == "mixture";
    const std::size_t C = F.shape(1), D = E.shape(1), r = std::min(size, d), Q = centred ? size : 1;
    if constexpr (!std::is_same_v<Rows, Dense<T>>)
        for (std::size_t i = 0; i < m; ++i)  // a row's entries are copied to d places
            require(std::size_t(rows.indptr[i + 1] - rows.indptr[i]) <= d, "a row holds an index twice");
    const std::size_t parameters = low_rank ? d * r : (centred ? 2 : 1) * Q * d;
    const Carried carried(state, spec, C);
    require(d < (std::size_t(1) << 31), "more columns than 32-bit indices reach");
    require(size > 0 && batch_size > 0 && E.shape(0) == (low_rank ? r : d), "E does not fit the spectrum");
    require(fits(y, m) && fits(weight, m), "y and weight need one entry per row");
    require(fits(F, m), "scores must be (rows, outputs)");
    require(spec.update->diagonal, "the kernel is learned with a diagonal update");
    if (spec.loss->kind == Kind::multiclass) require_codes(m, C, y.data(), data_or_null(weight));
    const RrfModel<T> model = model_of<T>(state, carried, C, D, batch_size);
    const Guarded<T> p = parameters_of<T>(state, parameters, eta_g, guard, batch_size > 1);
    RrfScratch<T> room(d, D, C, low_rank ? r : Q * d, r);
    const std::int64_t t = number<std::int64_t>(state, "t");
    const auto pass = [&](const auto& spectrum) {
        nb::gil_scoped_release release;
        const std::int64_t end = rrf_pass<T>(D, int(C), rows, y.data(), data_or_null(weight), model, p, spectrum, t, *spec.loss,
                                             *spec.update, F.data(), room);
        for (const T* weights : {model.W, model.G, model.sum}) require_finite(2 * C * D, weights);
        for (const T* numbers : {p.theta, p.H, p.sum}) require_finite(parameters, numbers);
        require_finite(F.size(), F.data(), carried.memory.size(), carried.memory.data());
        return end;
    };
    set_number(state, "t", low_rank ? pass(LowRankSpectrum<T>{d, D, r, E.data(), room.all, room.v, room.h})
                                    : pass(DiagonalSpectrum<T>{d, D, Q, centred, E.data(), room.v, room.h}));
}

template <class T>
void bound_pass(nb::dict state, AnyRows<T> X, Vector<const double> y, Maybe<Vector<const double>> weight, const Spec& spec,
                Kernel<T> kernel, Matrix<double> F) {
    const std::string& kind = std::get<0>(kernel);
    const std::size_t height = std::get<2>(kernel).shape(0);  // of E: a row for each column, or for each of the few they are mapped to
    require((kind == "diagonal" || kind == "mixture" || kind == "low_rank") && height > 0, "unknown spectrum");
    const std::size_t d = kind == "low_rank" ? entry<Array<const T>>(state, "theta0").size() / height : height;
    std::visit([&](const auto& rows) { learn<T>(state, rows_of(rows, d), y, weight, spec, kernel, F); }, X);
}

template <class T>
rows::LearnerPtr<T> row_learned_widths(nb::dict state, nb::list others, Matrix<const T> E, double eta, double guard, nb::object spec) {
    auto made = rows::begin<T>(state, others);
    const Spec& parts = nb::cast<const Spec&>(spec);
    const std::size_t d = made->d, C = made->C, D = E.shape(1);
    const Carried carried(state, parts, C);
    require(fits(E, d) && parts.update->diagonal, "E does not fit");
    made->pin("w", "G", "theta", "theta0", "H", "memory", "center", "inverse_length");
    made->held.keep(E, spec);
    made->learner = std::make_unique<rows::LearnedWidths<T>>(d, D, C, carried.memory.size(), model_of<T>(state, carried, C, D, 1),
                                                             parameters_of<T>(state, d, eta, guard, false), E.data(), parts);
    return made;
}

const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("rrf_pass", &bound_pass<T>, value, plain, plain, maybe, value, plain, plain);
    m.def(rows::named<T>("row_learned_widths").c_str(), &row_learned_widths<T>, value, value, plain, value, value, value);
});

}  // namespace
