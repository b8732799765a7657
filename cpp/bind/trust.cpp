// Bindings of trust.hpp.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "passes/quantiles.hpp"
#include "passes/trust.hpp"

using namespace ks;

namespace {

using In = Vector<const double>;
using Out = Array<double>;

const Name columns_name("columns"), knots_name("knots"), recent_name("recent"), spread_name("spread");

// The state: size (3), weights (E + 1), theta, curvature.
void calibrate(nb::dict state, Array<const double> scores, Maybe<In> y, Maybe<In> importance, bool own, In keep, Out out) {
    const std::size_t n = scores.shape(0), E = keep.size(), C = scores.ndim() == 2 ? scores.shape(1) : 0;
    const std::size_t parts = C ? 2 * C : 4, bends = C ? 3 * C : 10;
    const auto size = entry<Vector<double>>(state, name::size), weights = entry<Vector<double>>(state, name::weights);
    const auto theta = entry<Out>(state, name::theta), curvature = entry<Out>(state, name::curvature);
    require(!y || y->size() == n, "calibrate: y must have one entry for each row");
    require(!importance || importance->size() == n, "calibrate: weight must have one entry for each row");
    require(size.size() == 3 && weights.size() == E + 1 && theta.size() == E * parts && curvature.size() == E * bends,
            "calibrate: the state does not fit the scores");
    require(out.size() == scores.size() && E < TRUST_MOST, "calibrate: out must be like scores");
    if (y && C)
        for (std::size_t i = 0; i < n; ++i)
            require(y->data()[i] >= 0.0 && y->data()[i] < double(C), "calibrate: y must hold numbers of classes");
    nb::gil_scoped_release unlocked;
    const double* labels = data_or_null(y);
    const double* factor = data_or_null(importance);
    if (C)
        calibrate_several(n, E, C, scores.data(), labels, factor, 1.0, own, bool(y), keep.data(), size.data(), weights.data(),
                          theta.data(), curvature.data(), out.data());
    else
        calibrate_two(n, E, scores.data(), labels, factor, 1.0, own, bool(y), keep.data(), size.data(), weights.data(),
                      theta.data(), curvature.data(), out.data());
}

// The state: size (2), quantiles and weights (L, E), factors (L).
void track(nb::dict state, In errors, In levels, In steps, Matrix<double> half) {
    const std::size_t n = errors.size(), L = levels.size(), E = steps.size();
    const auto size = entry<Vector<double>>(state, name::size), factors = entry<Vector<double>>(state, name::factors);
    const auto quantiles = entry<Matrix<double>>(state, name::quantiles), weights = entry<Matrix<double>>(state, name::weights);
    require(size.size() == 2 && quantiles.size() == L * E && weights.size() == L * E && factors.size() == L,
            "track: the state does not fit the levels and steps");
    require(half.shape(0) == n && half.shape(1) == L, "track: half must have a row for each error");
    nb::gil_scoped_release unlocked;
    track_errors(n, L, E, errors.data(), levels.data(), steps.data(), size.data(), quantiles.data(), weights.data(),
                 factors.data(), half.data());
}

// The state: see quantiles.hpp.
void quantiles_of(nb::dict state, In forecast, Maybe<Matrix<const double>> X, Maybe<In> y, Maybe<In> importance, In levels,
                  Matrix<double> out) {
    using namespace ks::quantiles;
    const std::size_t n = forecast.size(), L = levels.size(), d = X ? X->shape(1) : 0;
    const auto numbers = [&](const Name& name, std::size_t size) {
        const auto found = entry<Out>(state, name);
        require(found.size() == size, "quantiles: the state does not fit the levels and columns");
        return found.data();
    };
    const Model model{L, d, levels.data(), numbers(name::size, 2), numbers(recent_name, 2 * RECENT), numbers(knots_name, KNOTS),
                      numbers(spread_name, KNOTS), numbers(columns_name, d * CELLS), numbers(name::quantiles, L * KNOTS)};
    require(!X || X->shape(0) == n, "quantiles: X must have a row for each forecast");
    require(!y || y->size() == n, "quantiles: y must have one entry for each forecast");
    require(!importance || importance->size() == n, "quantiles: weight must have one entry for each forecast");
    require(out.shape(0) == n && out.shape(1) == L, "quantiles: out must have a row for each forecast");
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
    for (std::size_t i = 0; i < n && outputs > 1; ++i)  // a row of weight 0 may have an unknown label
        require((importance && importance->data()[i] == 0.0) || (y.data()[i] >= 0.0 && y.data()[i] < double(classes)),
                "follow: y must hold numbers of classes");
    follow_link(n, E, outputs, classes, scores.data(), y.data(), data_or_null(importance), keep.data(), link.data());
}

void doubts(Matrix<const double> scores, In y, Vector<double> out) {
    const std::size_t n = scores.shape(0), C = scores.shape(1);
    require(y.size() == n && out.size() == n, "doubts: y and out must have one entry for each row");
    for (std::size_t i = 0; i < n && C > 1; ++i)
        require(y.data()[i] >= 0.0 && y.data()[i] < double(C), "doubts: y must hold numbers of classes");
    for (std::size_t i = 0; i < n; ++i) out.data()[i] = trust_doubt(C, scores.data() + i * C, y.data()[i]);
}

const Group group([](nb::module_& m) {
    m.def("calibrate", &calibrate, nb::arg("state"), nb::arg("scores"), nb::arg("y").none(), nb::arg("weight").none(), nb::arg("own"),
          nb::arg("keep"), nb::arg("out").noconvert(),
          "out <- log-odds (n,) or log-probabilities (n, C) before each row; with y, the rows are learned.");
    m.def("follow", &follow, nb::arg("link").noconvert(), nb::arg("scores"), nb::arg("y"), nb::arg("weight").none(), nb::arg("classes"),
          nb::arg("keep"), "The link learns from scores (n, outputs) and labels, -1 or 1 for one output, else numbers of classes.");
    m.def("doubts", &doubts, nb::arg("scores"), nb::arg("y"), nb::arg("out").noconvert(),
          "out (n,) <- 1 - P(y) of scores (n, C): log-odds for C = 1, where y is -1 or 1, else logarithms of probabilities.");
    m.def("quantiles", &quantiles_of, nb::arg("state"), nb::arg("forecast"), nb::arg("X").none(), nb::arg("y").none(),
          nb::arg("weight").none(), nb::arg("levels"), nb::arg("out").noconvert(),
          "out (n, L) <- quantiles of the targets of rows; with y, each row is then learned.");
    m.def("track", &track, nb::arg("state"), nb::arg("errors"), nb::arg("levels"), nb::arg("steps"), nb::arg("half").noconvert(),
          "half (n, L) <- half-widths of intervals before each error, which is then learned.");
});

}  // namespace
