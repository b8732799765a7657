// Bindings of the solvers on random binning features: conjugate gradients, coordinate descent, the online pass.
#include "base/arrays.hpp"
#include "passes/binning_cd.hpp"
#include "passes/binning.hpp"
#include "passes/krylov.hpp"

#include <nanobind/stl/pair.h>

#include <utility>

using namespace ks;
using namespace nb::literals;

namespace {

using Pair = std::pair<double, double>;

template <class T>
void bound_dots(Matrix<const T> P, Matrix<const T> Q, Matrix<double> sums, int threads) {
    const std::size_t D = P.shape(0), C = P.shape(1);
    require(Q.shape(0) == D && Q.shape(1) == C && sums.shape(0) == 2 && sums.shape(1) == C, "cg_dots: shapes differ");
    nb::gil_scoped_release release;
    column_sums(D, C, threads, sums.data(), [&](std::size_t begin, std::size_t end, double* out) {
        cg_dots<T>(begin, end, C, P.data(), Q.data(), out);
    });
}

template <class T>
void bound_step(Vector<const T> step, double lam, Matrix<const T> P, Matrix<const T> Q, Matrix<const T> M, Matrix<T> X,
                Matrix<T> R, Matrix<double> sums, int threads) {
    const std::size_t D = P.shape(0), C = P.shape(1), CM = M.shape(1);
    require(Q.shape(0) == D && X.shape(0) == D && R.shape(0) == D && M.shape(0) == D && Q.shape(1) == C && X.shape(1) == C &&
                R.shape(1) == C && (CM == C || CM == 1) && step.shape(0) == C && sums.shape(0) == 2 && sums.shape(1) == C,
            "cg_step: shapes differ");
    nb::gil_scoped_release release;
    column_sums(D, C, threads, sums.data(), [&](std::size_t begin, std::size_t end, double* out) {
        cg_step<T>(begin, end, C, CM, step.data(), T(lam), P.data(), Q.data(), M.data(), X.data(), R.data(), out);
    });
}

template <class T>
void bound_turn(Vector<const T> turn, Matrix<const T> M, Matrix<const T> R, Matrix<T> P, int threads) {
    const std::size_t D = P.shape(0), C = P.shape(1), CM = M.shape(1);
    require(R.shape(0) == D && M.shape(0) == D && R.shape(1) == C && (CM == C || CM == 1) && turn.shape(0) == C,
            "cg_turn: shapes differ");
    nb::gil_scoped_release release;
    if (D * C < 100000) threads = 1;
    parallel(threads, [&](int t) {
        const Share share(D, t, threads);
        cg_turn<T>(share.begin, share.end, C, CM, turn.data(), M.data(), R.data(), P.data());
    });
}

void bound_lists(Matrix<const std::int32_t> cells, Vector<const std::int64_t> starts, Matrix<std::int32_t> rows,
                 Vector<std::int32_t> first, int threads) {
    const std::size_t R = cells.shape(0), n = cells.shape(1);
    require(starts.shape(0) == R + 1 && rows.shape(0) == R && rows.shape(1) == n &&
                std::int64_t(first.shape(0)) == starts.data()[R],
            "cell_lists: shapes differ");
    nb::gil_scoped_release release;
    list_cells(n, R, cells.data(), starts.data(), rows.data(), first.data(), threads);
}

template <class F>
Pair with_curve(const std::string& loss, F&& f) {
    Sweep sweep;
    if (loss == "squared") sweep = f(SquaredCurve());
    else if (loss == "squared_hinge") sweep = f(SquaredHingeCurve());
    else if (loss == "logistic") sweep = f(LogisticCurve());
    else throw nb::value_error("coordinate descent serves squared, squared_hinge and logistic losses");
    return {sweep.violation, sweep.moved};
}

Pair bound_sweep_cells(Matrix<const std::int32_t> rows, Vector<const std::int32_t> first, Vector<const std::int64_t> starts,
                       Vector<const std::int64_t> order, Vector<const double> y, Maybe<Vector<const double>> weight,
                       const std::string& loss, double lam, bool active, Vector<double> f, Vector<double> w, int threads) {
    const std::size_t R = rows.shape(0), n = rows.shape(1);
    require(starts.shape(0) == R + 1 && order.shape(0) == R && y.shape(0) == n && f.shape(0) == n &&
                first.shape(0) == w.shape(0) && std::int64_t(w.shape(0)) == starts.data()[R] &&
                (!weight || weight->shape(0) == n),
            "sweep_cells: shapes differ");
    const CellLists lists{n, R, rows.data(), first.data(), starts.data()};
    if (n < 2000) threads = 1;
    nb::gil_scoped_release release;
    return with_curve(loss, [&](auto curve) {
        return sweep_cells<decltype(curve)>(lists, order.data(), y.data(), data_or_null(weight), lam, active, f.data(),
                                            w.data(), threads);
    });
}

template <class T>
Pair bound_sweep_columns(Matrix<const T> Z, Vector<const double> squares, Vector<const std::int64_t> order,
                         Vector<const double> y, Maybe<Vector<const double>> weight, const std::string& loss, double lam,
                         Vector<double> f, Vector<double> w, int threads) {
    const std::size_t P = Z.shape(0), n = Z.shape(1);
    require(squares.shape(0) == P && order.shape(0) == P && w.shape(0) == P && y.shape(0) == n && f.shape(0) == n &&
                (!weight || weight->shape(0) == n),
            "sweep_columns: shapes differ");
    nb::gil_scoped_release release;
    return with_curve(loss, [&](auto curve) {
        return sweep_columns<T, decltype(curve)>(n, P, Z.data(), squares.data(), order.data(), y.data(),
                                                 data_or_null(weight), lam, f.data(), w.data(), threads);
    });
}

template <class T>
std::int64_t bound_pass(Matrix<const std::int32_t> cells, std::size_t width, Vector<const double> y,
                        Maybe<Vector<const double>> weight, Matrix<T> W, Vector<double> scale, Maybe<Matrix<T>> G,
                        Matrix<double> memory, Maybe<Vector<double>> center, std::int64_t t, const std::string& loss_name,
                        const std::vector<double>& loss_parameters, const std::string& update_name,
                        const std::vector<double>& update_parameters, Matrix<double> F) {
    const std::size_t R = cells.shape(0), m = cells.shape(1), C = W.shape(1);
    const auto loss = make_loss(loss_name, loss_parameters);
    const auto update = make_update(update_name, update_parameters);
    require(W.shape(0) == R * width && scale.shape(0) == C, "w and scale do not fit the features");
    require(y.shape(0) == m && (!weight || weight->shape(0) == m), "y and weight need one entry per row");
    require(F.shape(0) == m && F.shape(1) == C, "scores must be (rows, outputs)");
    require(int(memory.shape(0)) >= update->n_memory && memory.shape(1) == C, "memory does not fit the update");
    require(!update->diagonal || (G && G->shape(0) == W.shape(0) && G->shape(1) == C), "a diagonal update needs G like w");
    require(!center || center->shape(0) == 2, "center holds a count and a mean");
    if (loss->kind == Kind::multiclass)
        for (std::size_t i = 0; i < m; ++i)
            require((weight && weight->data()[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)),
                    "class code out of range");
    for (std::size_t k = 0; k < R * m; ++k)
        require(cells.data()[k] >= 0 && std::size_t(cells.data()[k]) < width, "cell out of range");
    const CellModel<T> model{W.data(), scale.data(), data_or_null(G), memory.data(), data_or_null(center)};
    std::vector<double> scratch(3 * C);
    bool finite = true;
    nb::gil_scoped_release release;
    t = cell_pass<T>(m, R, width, int(C), cells.data(), y.data(), data_or_null(weight), model, t, *loss, *update, F.data(), finite,
                     scratch.data());
    require_finite(finite);
    require_finite(F.size(), F.data());
    require_finite(memory.size(), memory.data());
    return t;
}

template <class T>
void bind(nb::module_& m) {
    m.def("cg_dots", &bound_dots<T>, "P"_a.noconvert(), "Q"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
    m.def("cg_step", &bound_step<T>, "step"_a.noconvert(), "lam"_a, "P"_a.noconvert(), "Q"_a.noconvert(),
          "M"_a.noconvert(), "X"_a.noconvert(), "R"_a.noconvert(), "sums"_a.noconvert(), "threads"_a);
    m.def("cg_turn", &bound_turn<T>, "turn"_a.noconvert(), "M"_a.noconvert(), "R"_a.noconvert(), "P"_a.noconvert(),
          "threads"_a);
    m.def("sweep_columns", &bound_sweep_columns<T>, "Z"_a.noconvert(), "squares"_a.noconvert(), "order"_a.noconvert(),
          "y"_a.noconvert(), "weight"_a.none().noconvert(), "loss"_a, "lam"_a, "f"_a.noconvert(), "w"_a.noconvert(),
          "threads"_a);
    m.def("cell_pass", &bound_pass<T>, "cells"_a.noconvert(), "width"_a, "y"_a.noconvert(),
          "weight"_a.none().noconvert(), "W"_a.noconvert(), "scale"_a.noconvert(), "G"_a.none().noconvert(),
          "memory"_a.noconvert(), "center"_a.none().noconvert(), "t"_a, "loss"_a, "loss_parameters"_a, "update"_a,
          "update_parameters"_a, "F"_a.noconvert());
}

}  // namespace

void bind_binning_solvers(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
    m.def("cell_lists", &bound_lists, "cells"_a.noconvert(), "starts"_a.noconvert(), "rows"_a.noconvert(),
          "first"_a.noconvert(), "threads"_a);
    m.def("sweep_cells", &bound_sweep_cells, "rows"_a.noconvert(), "first"_a.noconvert(), "starts"_a.noconvert(),
          "order"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none().noconvert(), "loss"_a, "lam"_a, "active"_a,
          "f"_a.noconvert(), "w"_a.noconvert(), "threads"_a);
}
