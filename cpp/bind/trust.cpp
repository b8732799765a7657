// Bindings of trust.hpp.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "passes/quantiles.hpp"
#include "passes/trust.hpp"

using namespace ks;

namespace {

using In = Vector<const double>;
using Out = Array<double>;

// The state: size (3), weights (E + 1), theta, curvature.
void calibrate(nb::dict state, Array<const double> scores, Maybe<In> y, Maybe<In> importance, bool own, In keep, Out out) {
    const std::size_t n = scores.shape(0), E = keep.size(), C = scores.ndim() == 2 ? scores.shape(1) : 0;
    const std::size_t parts = C ? 2 * C : 4, bends = C ? 3 * C : 10;
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, true); };
    const Calibration held{E, keep.data(), numbers("size", 3), numbers("weights", E + 1), numbers("theta", E * parts),
                           numbers("curvature", E * bends)};
    require(fits(y, n), "calibrate: y must have one entry for each row");
    require(fits(importance, n), "calibrate: weight must have one entry for each row");
    require(out.size() == scores.size() && E < TRUST_MOST, "calibrate: out must be like scores");
    if (y && C) require_codes(n, C, y->data());
    nb::gil_scoped_release unlocked;
    if (C) calibrate_several(held, n, C, scores.data(), data_or_null(y), data_or_null(importance), 1.0, own, out.data());
    else calibrate_two(held, n, scores.data(), data_or_null(y), data_or_null(importance), 1.0, own, out.data());
}

// The state: size (2), quantiles and weights (L, E), factors (L).
void track(nb::dict state, In errors, In levels, In steps, Matrix<double> half) {
    const std::size_t n = errors.size(), L = levels.size(), E = steps.size();
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, true); };
    const ErrorTracker tracker{L, E, levels.data(), steps.data(), numbers("size", 2), numbers("quantiles", L * E),
                               numbers("weights", L * E), numbers("factors", L)};
    require(fits(half, n, L), "track: half must have a row for each error");
    nb::gil_scoped_release unlocked;
    tracker.learn(n, errors.data(), half.data());
}

// The state: see quantiles.hpp.
void quantiles_of(nb::dict state, In forecast, Maybe<Matrix<const double>> X, Maybe<In> y, Maybe<In> importance, In levels,
                  Matrix<double> out) {
    using namespace ks::quantiles;
    const std::size_t n = forecast.size(), L = levels.size(), d = X ? X->shape(1) : 0;
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, true); };
    const Model model{L, d, levels.data(), numbers("size", 2), numbers("recent", 2 * RECENT), numbers("knots", KNOTS),
                      numbers("spread", KNOTS), numbers("columns", d * CELLS), numbers("quantiles", L * KNOTS)};
    require(!X || X->shape(0) == n, "quantiles: X must have a row for each forecast");
    require(!y || y->size() == n, "quantiles: y must have one entry for each forecast");
    require(!importance || importance->size() == n, "quantiles: weight must have one entry for each forecast");
    require(fits(out, n, L), "quantiles: out must have a row for each forecast");
    nb::gil_scoped_release unlocked;
    Pass pass(model);
    for (std::size_t i = 0; i < n; ++i) {
        const bool learns = y && !(importance && importance->data()[i] == 0.0);
        pass.row(forecast.data()[i], d ? X->data() + i * d : nullptr, learns ? y->data() + i : nullptr, out.data() + i * L);
    }
}

void follow(Vector<double> link, Matrix<const double> scores, In y, Maybe<In> importance, std::size_t classes, In keep) {
    const std::size_t n = scores.shape(0), outputs = scores.shape(1), E = keep.size();
    require(y.size() == n && (!importance || importance->size() == n), "follow: one label and one weight for each row");
    require(classes >= 2 && (outputs == classes || (outputs == 1 && classes == 2)), "follow: the scores do not fit the classes");
    require(link.size() == link_length(E, classes) && E < TRUST_MOST, "follow: the link does not fit the classes");
    if (outputs > 1) require_codes(n, classes, y.data(), data_or_null(importance));
    follow_link(n, E, outputs, classes, scores.data(), y.data(), data_or_null(importance), keep.data(), link.data());
}

void doubts(Matrix<const double> scores, In y, Vector<double> out) {
    const std::size_t n = scores.shape(0), C = scores.shape(1);
    require(y.size() == n && out.size() == n, "doubts: y and out must have one entry for each row");
    if (C > 1) require_codes(n, C, y.data());
    for (std::size_t i = 0; i < n; ++i) out.data()[i] = trust_doubt(C, scores.data() + i * C, y.data()[i]);
}

const Group group([](nb::module_& m) {
    m.def("calibrate", &calibrate, value, value, value.none(), value.none(), value, value, plain,
          "out <- log-odds (n,) or log-probabilities (n, C) before each row; with y, the rows are learned.");
    m.def("follow", &follow, plain, value, value, value.none(), value, value,
          "The link learns from scores (n, outputs) and labels, -1 or 1 for one output, else numbers of classes.");
    m.def("doubts", &doubts, value, value, plain,
          "out (n,) <- 1 - P(y) of scores (n, C): log-odds for C = 1, where y is -1 or 1, else logarithms of probabilities.");
    m.def("quantiles", &quantiles_of, value, value, value.none(), value.none(), value.none(), value, plain,
          "out (n, L) <- quantiles of the targets of rows; with y, each row is then learned.");
    m.def("track", &track, value, value, value, value, plain,
          "half (n, L) <- half-widths of intervals before each error, which is then learned.");
});

}  // namespace
