// Binding of smoothing over the last rows.
#include "base/arrays.hpp"
#include "base/states.hpp"
#include "passes/window.hpp"

using namespace ks;

namespace {

void bound_window_pass(nb::dict state, Matrix<const double> X, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight,
                       nb::tuple spec, Matrix<double> scores) {
    const auto rows = entry<Matrix<const double>>(state, "window_rows");
    const std::size_t n = X.shape(0), d = rows.shape(0), W = rows.shape(1), C = scores.shape(1);
    const window::Rule rule{nb::cast<int>(spec[0]), nb::cast<std::size_t>(spec[1])};
    require(X.shape(1) == d && scores.shape(0) == n && W > 0 && rule.neighbours > 0, "the rows do not fit the window");
    const bool writes = y.has_value();
    window::Model model{d, W, C, numbers_of<double>(state, "window_rows", d * W, writes), numbers_of<double>(state, "window_value", W, writes),
                        numbers_of<double>(state, "window_weight", W, writes), numbers_of<double>(state, "window_numbers", 3, writes)};
    require(model.numbers[0] >= 0 && model.numbers[0] < 9e15, "the window has learned an impossible number of rows");
    require((!y || y->shape(0) == n) && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    const double labels = rule.kind == 0 ? 0.0 : rule.kind == 1 ? 2.0 : double(C);
    require(rule.kind == 2 || C == 1, "scores do not fit the labels");
    const std::size_t held = std::min(W, std::size_t(model.numbers[0]));
    for (std::size_t i = 0; i < held && labels > 0; ++i) require(model.value[i] >= 0 && model.value[i] < labels, "class code out of range");
    for (std::size_t i = 0; y && i < n && labels > 0; ++i) require(y->data()[i] >= 0 && y->data()[i] < labels, "class code out of range");
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
