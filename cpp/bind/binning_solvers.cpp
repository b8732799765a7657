// Bindings of the solvers on random binning features: conjugate gradients, coordinate descent.
#include "bind/group.hpp"
#include "bind/rows.hpp"
#include "passes/binning_cd.hpp"
#include "passes/krylov.hpp"

#include <nanobind/stl/pair.h>

#include <utility>

using namespace ks;

namespace {

using Pair = std::pair<double, double>;

template <class T>
void bound_dots(Matrix<const T> P, Matrix<const T> Q, Matrix<double> sums, int threads) {
    const std::size_t D = P.shape(0), C = P.shape(1);
    require(fits(Q, D, C) && fits(sums, 2, C), "cg_dots: shapes differ");
    nb::gil_scoped_release release;
    over_columns(D, C, threads, 2 * C, sums.data(), [&](std::size_t begin, std::size_t end, double* out) {
        cg_dots<T>(begin, end, C, P.data(), Q.data(), out);
    });
}

// The state: X, R (D, C) change; P, Q (D, C), M (D, C) or (D, 1).
template <class T>
void bound_step(nb::dict state, Vector<const T> step, double lam, Vector<double> sums, int threads) {
    const auto P = entry<Matrix<const T>>(state, "P"), Q = entry<Matrix<const T>>(state, "Q"), M = entry<Matrix<const T>>(state, "M");
    const auto X = entry<Matrix<T>>(state, "X"), R = entry<Matrix<T>>(state, "R");
    const std::size_t D = P.shape(0), C = P.shape(1), CM = M.shape(1);
    require(fits(Q, D, C) && fits(X, D, C) && fits(R, D, C) && fits(M, D) && (CM == C || CM == 1) && fits(step, C) && fits(sums, C),
            "cg_step: shapes differ");
    nb::gil_scoped_release release;
    over_columns(D, C, threads, C, sums.data(), [&](std::size_t begin, std::size_t end, double* out) {
        cg_step<T>(begin, end, C, CM, step.data(), T(lam), P.data(), Q.data(), M.data(), X.data(), R.data(), out);
    });
}

template <class T>
void bound_turn(Vector<const T> turn, Matrix<const T> M, Matrix<const T> R, Matrix<T> P, int threads) {
    const std::size_t D = P.shape(0), C = P.shape(1), CM = M.shape(1);
    require(fits(R, D) && fits(M, D) && R.shape(1) == C && (CM == C || CM == 1) && fits(turn, C), "cg_turn: shapes differ");
    nb::gil_scoped_release release;
    over_columns(D, C, threads, 0, nullptr, [&](std::size_t begin, std::size_t end, double*) {
        cg_turn<T>(begin, end, C, CM, turn.data(), M.data(), R.data(), P.data());
    });
}

void bound_lists(Matrix<const std::int32_t> cells, Vector<const std::int64_t> starts, Matrix<std::int32_t> rows,
                 Vector<std::int32_t> first, int threads) {
    const std::size_t R = cells.shape(0), n = cells.shape(1);
    require(fits(starts, R + 1) && fits(rows, R, n) && std::int64_t(first.shape(0)) == starts.data()[R], "cell_lists: shapes differ");
    nb::gil_scoped_release release;
    list_cells(n, R, cells.data(), starts.data(), rows.data(), first.data(), threads);
}

template <class F>
Pair with_curve(const std::string& loss, F&& f) {
    Sweep sweep;
    if (loss == "squared") sweep = f(Squared(0.0));
    else if (loss == "squared_hinge") sweep = f(SquaredHinge());
    else if (loss == "logistic") sweep = f(Logistic());
    else throw nb::value_error("coordinate descent serves squared, squared_hinge and logistic losses");
    return {sweep.violation, sweep.moved};
}

using Lists = std::tuple<Matrix<const std::int32_t>, Vector<const std::int32_t>, Vector<const std::int64_t>>;  // rows, first, starts
using Rule = std::tuple<std::string, double, bool>;  // loss, lam, whether only weights that are not 0 are visited

// The state: f (n), w.
Pair bound_sweep_cells(nb::dict state, Lists lists, Vector<const std::int64_t> order, Vector<const double> y,
                       Maybe<Vector<const double>> weight, Rule rule, int threads) {
    const auto& [rows, first, starts] = lists;
    const auto& [loss, lam, active] = rule;
    const auto f = entry<Vector<double>>(state, "f"), w = entry<Vector<double>>(state, "w");
    const std::size_t R = rows.shape(0), n = rows.shape(1);
    require(fits(starts, R + 1) && fits(order, R) && fits(y, n) && fits(f, n) && fits(weight, n) && fits(w, starts.data()[R]) &&
                fits(first, w.shape(0)), "sweep_cells: shapes differ");
    for (std::size_t r = 0; r < R; ++r) require(order.data()[r] >= 0 && std::size_t(order.data()[r]) < R, "sweep_cells: no such grid");
    const CellLists all{n, R, rows.data(), first.data(), starts.data()};
    if (n < 2000) threads = 1;
    const double penalty = lam;
    const bool some = active;
    nb::gil_scoped_release release;
    return with_curve(loss, [&](const auto& curve) {
        return sweep_cells(curve, all, order.data(), y.data(), data_or_null(weight), penalty, some, f.data(), w.data(), threads);
    });
}

// The state: f (n), w (P); features: Z (P, n) and the sums of its squares.
template <class T>
Pair bound_sweep_columns(nb::dict state, std::pair<Matrix<const T>, Vector<const double>> features, Vector<const std::int64_t> order,
                         Vector<const double> y, Maybe<Vector<const double>> weight, Rule rule) {
    const auto& [Z, squares] = features;
    const auto f = entry<Vector<double>>(state, "f"), w = entry<Vector<double>>(state, "w");
    const std::size_t P = Z.shape(0), n = Z.shape(1);
    require(fits(squares, P) && fits(order, P) && fits(w, P) && fits(y, n) && fits(f, n) && fits(weight, n), "sweep_columns: shapes differ");
    for (std::size_t j = 0; j < P; ++j) require(order.data()[j] >= 0 && std::size_t(order.data()[j]) < P, "sweep_columns: no such column");
    const T* columns = Z.data();
    const double *sums = squares.data(), lam = std::get<1>(rule);
    nb::gil_scoped_release release;
    return with_curve(std::get<0>(rule), [&](const auto& curve) {
        return sweep_columns(curve, n, P, columns, sums, order.data(), y.data(), data_or_null(weight), lam, f.data(), w.data());
    });
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("cg_dots", &bound_dots<T>, plain, plain, plain, value);
    m.def("cg_step", &bound_step<T>, value, plain, value, plain, value);
    m.def("cg_turn", &bound_turn<T>, plain, plain, plain, plain, value);
    m.def("sweep_columns", &bound_sweep_columns<T>, value, plain, plain, plain, maybe, value);
});

const Group group([](nb::module_& m) {
    m.def("cell_lists", &bound_lists, plain, plain, plain, plain, value);
    m.def("sweep_cells", &bound_sweep_cells, value, plain, plain, plain, maybe, value, value);
});

}  // namespace
