// Binding of smoothing over the last rows.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "passes/window.hpp"

using namespace ks;

namespace {

void check_labels(const window::Rule& rule, std::size_t C, std::size_t n, const double* y) {
    if (rule.kind > 0) require_codes(n, rule.kind == 1 ? 2 : C, y);
}

// Of rows with d columns, C outputs.
window::Model model_of(nb::handle state, const window::Rule& rule, std::size_t d, std::size_t C, bool writes) {
    const auto rows = entry<Matrix<const double>>(state, "window_rows");
    const std::size_t W = rows.shape(1);
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, writes); };
    require(fits(rows, d) && W > 0 && rule.neighbours > 0 && (rule.kind == 2 || C == 1), "the rows do not fit the window");
    const window::Model model{d, W, C, numbers("window_rows", d * W), numbers("window_value", W), numbers("window_weight", W),
                              numbers("window_numbers", 3)};
    require(model.numbers[0] >= 0 && model.numbers[0] < 9e15, "the window has learned an impossible number of rows");
    check_labels(rule, C, std::min(W, std::size_t(model.numbers[0])), model.value);
    return model;
}

void bound_window_pass(nb::dict state, Matrix<const double> X, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight,
                       nb::tuple spec, Matrix<double> scores) {
    const std::size_t n = X.shape(0);
    const window::Rule rule{nb::cast<int>(spec[0]), nb::cast<std::size_t>(spec[1])};
    window::Model model = model_of(state, rule, X.shape(1), scores.shape(1), y.has_value());
    require(fits(scores, n) && fits(y, n) && fits(weight, n), "y and weight need one entry per row");
    if (y) check_labels(rule, model.C, n, y->data());
    {
        nb::gil_scoped_release release;
        window::pass(n, X.data(), data_or_null(y), data_or_null(weight), rule, model, scores.data());
    }
    require_finite(scores.size(), scores.data());
}

template <class T>
rows::LearnerPtr<T> row_window(nb::dict state, nb::list others, int kind, std::size_t neighbours) {
    auto made = rows::begin<T>(state, others);
    const window::Rule rule{kind, neighbours};
    made->learner = std::make_unique<rows::Window<T>>(rule, model_of(state, rule, made->d, made->C, true));
    made->pin("window_rows", "window_value", "window_weight", "window_numbers");
    return made;
}

const Group group([](nb::module_& m) {
    m.def("window_pass", &bound_window_pass, value, plain, maybe, maybe, value, plain);
    m.def("row_window32", &row_window<float>);
    m.def("row_window64", &row_window<double>);
});

}  // namespace
