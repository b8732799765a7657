// Binding of smoothing over the last rows.
#include "arrays.hpp"
#include "states.hpp"
#include "window.hpp"

using namespace ks;

namespace {

void bound_window_pass(nb::dict state, Matrix<const double> X, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight,
                       nb::tuple spec, Matrix<double> scores) {
    const auto rows = entry<Matrix<double>>(state, "window_rows");
    const auto value = entry<Vector<double>>(state, "window_value"), mass = entry<Vector<double>>(state, "window_weight");
    const auto numbers = entry<Vector<double>>(state, "window_numbers");
    const std::size_t n = X.shape(0), d = rows.shape(0), W = rows.shape(1), C = scores.shape(1);
    const window::Rule rule{nb::cast<int>(spec[0]), nb::cast<std::size_t>(spec[1])};
    require(X.shape(1) == d && scores.shape(0) == n && W > 0 && rule.neighbours > 0, "the rows do not fit the window");
    require(value.shape(0) == W && mass.shape(0) == W && numbers.shape(0) == 3 && numbers.data()[0] >= 0, "the window's arrays differ");
    require((!y || y->shape(0) == n) && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    const double labels = rule.kind == 0 ? 0.0 : rule.kind == 1 ? 2.0 : double(C);
    require(rule.kind == 2 || C == 1, "scores do not fit the labels");
    const std::size_t held = std::min(W, std::size_t(numbers.data()[0]));
    for (std::size_t i = 0; i < held && labels > 0; ++i) require(value.data()[i] >= 0 && value.data()[i] < labels, "class code out of range");
    for (std::size_t i = 0; y && i < n && labels > 0; ++i) require(y->data()[i] >= 0 && y->data()[i] < labels, "class code out of range");
    window::Model model{d, W, C, rows.data(), value.data(), mass.data(), numbers.data()};
    {
        nb::gil_scoped_release release;
        window::pass(n, X.data(), data_or_null(y), data_or_null(weight), rule, model, scores.data());
    }
    require_finite(scores.size(), scores.data());
}

}  // namespace

void bind_window(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    m.def("window_pass", &bound_window_pass, nb::arg(), plain, maybe, maybe, nb::arg(), plain);
}
