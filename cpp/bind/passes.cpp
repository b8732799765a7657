// Bindings of the sequential passes over blocks of rows.
#include "base/arrays.hpp"
#include "base/known.hpp"
#include "passes/linear.hpp"
#include "base/ranges.hpp"

using namespace ks;

namespace {

template <class T>
std::int64_t bound_linear_pass(Matrix<const T> Z, Vector<const double> y, Maybe<Vector<const double>> weight, Matrix<T> W,
                               Vector<double> scale, Maybe<Matrix<T>> G, Maybe<Matrix<T>> mean, Matrix<double> memory,
                               Maybe<Vector<double>> center, std::int64_t t, const std::string& loss_name,
                               const std::vector<double>& loss_parameters, const std::string& update_name,
                               const std::vector<double>& update_parameters, bool unit, bool trig, Matrix<double> F) {
    const std::size_t m = Z.shape(0), P = Z.shape(1) * (trig ? 2 : 1), C = W.shape(0);
    const auto loss = make_loss(loss_name, loss_parameters);
    const auto update = make_update(update_name, update_parameters);
    require(y.shape(0) == m && (!weight || weight->shape(0) == m), "y and weight need one entry per row of Z");
    require(W.shape(1) == P && scale.shape(0) == C, "w and scale do not fit the features");
    require(F.shape(0) == m && F.shape(1) == C, "scores must be (rows, outputs)");
    require(int(memory.shape(0)) >= update->n_memory && memory.shape(1) == C, "memory does not fit the update");
    require(!update->diagonal || (G && G->shape(0) == C && G->shape(1) == P), "a diagonal update needs G like w");
    require(!mean || (mean->shape(0) == C && mean->shape(1) == P), "w_mean must be like w");
    require(!center || center->shape(0) == 2, "center holds a count and a mean");
    if (loss->kind == Kind::multiclass)
        for (std::size_t i = 0; i < m; ++i)
            require((weight && weight->data()[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)), "class code out of range");
    const LinearModel<T> model{W.data(), scale.data(), data_or_null(G), data_or_null(mean), memory.data(), data_or_null(center)};
    std::vector<double> scratch(3 * C);
    static thread_local std::vector<T> row;
    if (trig && row.size() < P) row.resize(P);
    const Source<T> source{Z.data(), trig ? row.data() : nullptr, T(1 / std::sqrt(double(P / 2)))};
    nb::gil_scoped_release release;
    t = linear_pass<T>(m, P, int(C), source, y.data(), data_or_null(weight), model, t, *loss, *update, unit, F.data(),
                       scratch.data());
    for (const T* weights : {model.W, model.G, model.mean}) require_finite(C * P, weights);
    require_finite(F.size(), F.data());
    require_finite(memory.size(), memory.data());
    return t;
}

template <class T>
double bound_standardize(Matrix<T> X, Maybe<Vector<const double>> weight, double count, Vector<double> mean,
                         Vector<double> m2, Vector<double> low, Vector<double> high, Vector<double> doubt) {
    for (const auto* column : {&mean, &m2, &low, &high, &doubt})
        require(column->shape(0) == X.shape(1), "moments and ranges need one entry per column");
    require(!weight || weight->shape(0) == X.shape(0), "weight needs one entry per row");
    nb::gil_scoped_release release;
    return standardize<T>(X.shape(0), X.shape(1), X.data(), data_or_null(weight), count,
                          {mean.data(), m2.data(), low.data(), high.data(), doubt.data()});
}

// y (n, k) as one array of n k numbers; weight and out (n).
std::size_t bound_set_aside(Array<const double> y, Maybe<Vector<const double>> weight, Matrix<double> seen, Vector<double> out) {
    const std::size_t n = out.shape(0), k = seen.shape(1);
    require(y.size() == n * k && seen.shape(0) == 5 && (!weight || weight->shape(0) == n), "targets and weights do not fit");
    return set_aside(n, k, y.data(), data_or_null(weight), seen.data(), out.data());
}

template <class T>
void bind(nb::module_& m) {
    m.def("linear_pass", &bound_linear_pass<T>, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().none().noconvert(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().none().noconvert(), nb::arg().none().noconvert(),
          nb::arg().noconvert(), nb::arg().none().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg().noconvert());
    m.def("standardize", &bound_standardize<T>, nb::arg().noconvert(), nb::arg().none().noconvert(), nb::arg(),
          nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace

void bind_passes(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
    m.def("has_loss", [](const std::string& name) { return is_known(make_loss, name); });
    m.def("has_update", [](const std::string& name) { return is_known(make_update, name); });
    m.def("set_aside", &bound_set_aside, nb::arg().noconvert(), nb::arg().none().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert());
}
