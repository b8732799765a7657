// Binding of kernel functions in a learned metric.
#include "bind/metric.hpp"

using namespace ks;

namespace {

void bound_metric_pass(Matrix<const double> X, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight, Vector<double> follow,
                       const MetricFunctions& functions, Matrix<double> scores) {
    require(follow.shape(0) == metric::FOLLOWED, "what follows the forecasts has five numbers");
    const metric::Model model = metric_model(functions, follow.data());
    const std::size_t n = X.shape(0);
    require(X.shape(1) == model.d && scores.shape(0) == n && scores.shape(1) == model.C, "the rows do not fit the functions");
    require((!y || y->shape(0) == n) && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    {
        nb::gil_scoped_release release;
        metric::Scratch work(model, std::min(n, metric::AT_ONCE));
        metric::pass(model, n, X.data(), data_or_null(y), data_or_null(weight), work, scores.data());
    }
}

}  // namespace

void bind_metric(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    m.def("metric_pass", &bound_metric_pass, plain, maybe, maybe, plain, nb::arg(), plain);
}
