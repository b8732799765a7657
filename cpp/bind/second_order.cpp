// Bindings of second-order learning and of the Taylor features it likes best.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "maps/taylor.hpp"
#include "passes/second_order.hpp"
#include "passes/second_order_block.hpp"

#include <nanobind/stl/pair.h>

using namespace ks;
using namespace ks::second;

namespace {

// The arrays of a head: R (r, r), D (panels, PANEL²), V (m, r), M (m, m), kappa (m), tau (m, k), q (k, r); rows have `features`, r is padded.
Head head_of(nb::handle state) {
    const std::size_t features = number<std::size_t>(state, "features"), r = padded(features);
    const std::size_t m = entry<Matrix<double>>(state, "V").shape(0), k = entry<Matrix<double>>(state, "q").shape(0);
    require(number<std::size_t>(state, "n") <= m, "more rows than the window has room for");
    return {features, r, m, k, shaped<double>(state, "R", r, r), shaped<double>(state, "D", panels(r), PANEL * PANEL),
            shaped<double>(state, "V", m, r), shaped<double>(state, "M", m, m), shaped<double>(state, "kappa", m),
            shaped<double>(state, "tau", m, k), shaped<double>(state, "q", k, r)};
}

// What least squares keeps in a state: window, window_c, window_b, gram, b, yy, zsum, mass.
Statistics sums_of(nb::handle state, const Head& h) {
    const std::size_t r = h.features, m = h.m, k = h.k;
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, true); };
    return {numbers("gram", r * r), numbers("b", k * r), numbers("yy", k), numbers("zsum", r),
            number<double>(state, "mass"), numbers("window", m * r), numbers("window_c", m), numbers("window_b", m * k)};
}

// The block: Z (n, r), y (n, k), weight (n), and room for F (n, k), s (n), c (n), beta (n, k). Changes the head.
void bound_learn(nb::dict state, nb::dict block, const Rule& rule) {
    const Head h = head_of(state);
    const std::size_t n = entry<Matrix<const double>>(block, "Z").shape(0), j = number<std::size_t>(state, "n"), k = h.k;
    const auto given = [&](const char* name, auto... sizes) { return shaped<const double>(block, name, n, sizes...); };
    const auto room = [&](const char* name, auto... sizes) { return shaped<double>(block, name, n, sizes...); };
    const double *Z = given("Z", h.features), *y = given("y", k), *weight = given("weight");
    double *F = room("F", k), *s = room("s"), *c = room("c"), *beta = room("beta", k);
    require(n <= h.m - j, "the rows do not fit the window");
    std::size_t end;
    {
        nb::gil_scoped_release release;
        thread_local std::vector<double> work;
        end = learn_block(h, j, n, Z, y, weight, rule, F, s, c, beta, work);
        require_finite(n * k, F, n, s, end - j, h.kappa + j, (end - j) * k, h.tau + j * k);
    }
    set_number(state, "n", end);
}

// Least squares over any number of rows; the state has the number ridge too. Out: F (n, k) and s (n).
void bound_run(const Blas& blas, nb::dict head, nb::dict state, Matrix<const double> Z, Matrix<const double> y,
               Maybe<Vector<const double>> weight, std::pair<Matrix<double>, Vector<double>> out) {
    const Head h = head_of(head);
    const auto& [F, s] = out;
    std::size_t j = number<std::size_t>(head, "n");
    const std::size_t n = Z.shape(0);
    require(Z.shape(1) == h.features && j < h.m, "the rows do not fit the window");
    require(fits(y, n, h.k) && fits(F, n, h.k) && fits(s, n) && fits(weight, n), "y and scores must be (rows, outputs)");
    Statistics sums = sums_of(state, h);
    const double ridge = number<double>(state, "ridge"), *importance = data_or_null(weight);
    double *scores = F.data(), *uncertainty = s.data();
    bool fine;
    {
        nb::gil_scoped_release release;
        thread_local Room room;
        fine = run(blas, h, sums, ridge, j, n, Z.data(), y.data(), importance, scores, uncertainty, room);
    }
    require_finite(fine);
    set_number(head, "n", j);
    set_number(state, "mass", sums.mass);
}

void bound_score(nb::dict state, Matrix<const double> Z, Matrix<double> F, Vector<double> s) {
    const Head h = head_of(state);
    const std::size_t n = Z.shape(0), j = number<std::size_t>(state, "n");
    require(Z.shape(1) == h.features && fits(s, n), "the rows do not fit the window");
    require(fits(F, n, h.k), "scores must be (rows, outputs)");
    nb::gil_scoped_release release;
    thread_local std::vector<double> work;
    score_block(h, j, n, Z.data(), F.data(), s.data(), work);
}

// gram (features, features) upper, b (k, features) -> R, D and q of the head; false when gram + ridge I is singular to rounding.
bool bound_factor(Matrix<const double> gram, double ridge, Matrix<const double> b, Matrix<double> R, Matrix<double> D, Matrix<double> q) {
    const std::size_t features = gram.shape(0), r = R.shape(0), k = q.shape(0);
    require(r == padded(features) && R.shape(1) == r && q.shape(1) == r, "R and q differ in their number of features");
    require(fits(D, panels(r), PANEL * PANEL), "D does not fit R");
    require(gram.shape(1) == features && fits(b, k, features), "gram and b do not fit R");
    nb::gil_scoped_release release;
    if (!factor(features, r, gram.data(), ridge, R.data(), D.data())) return false;
    pad(k, features, r, b.data(), q.data());
    solve_factor(r, r, k, R.data(), D.data(), q.data());
    return true;
}

// The state: A and w (k, r).
void bound_diagonal_pass(nb::dict state, Matrix<const double> Z, Matrix<const double> y, Maybe<Vector<const double>> weight, const Rule& rule,
                         Matrix<double> F) {
    const auto A = entry<Matrix<double>>(state, "A"), W = entry<Matrix<double>>(state, "w");
    const std::size_t n = Z.shape(0), r = Z.shape(1), k = W.shape(0);
    require(W.shape(1) == r && fits(A, k, r), "A and w do not fit the features");
    require(fits(y, n, k) && fits(F, n, k), "y and scores must be (rows, outputs)");
    require(!weight || weight->shape(0) == n, "weight needs one entry per row");
    nb::gil_scoped_release release;
    diagonal_pass(n, r, int(k), Z.data(), y.data(), data_or_null(weight), rule, A.data(), W.data(), F.data());
    require_finite(F.size(), F.data(), A.size(), A.data(), W.size(), W.data());
}

template <class T>
void bound_taylor(Matrix<const T> X, Matrix<const std::int64_t> begin, Vector<const std::int64_t> end, Vector<const T> coef,
                  bool gaussian, Matrix<T> Z) {
    const std::size_t m = X.shape(0), d = X.shape(1), M = begin.shape(0), r = coef.shape(0);
    require(begin.shape(1) == d && fits(end, M), "the table of monomials does not fit the rows");
    require(fits(Z, m, r), "Z must be (rows, monomials)");
    std::size_t total = 1;
    for (std::size_t n = 0; n < M; ++n)
        for (std::size_t i = 0; i < d; ++i) {
            const std::int64_t first = begin.data()[n * d + i], stop = end.data()[n];
            require(0 <= first && first <= stop && std::size_t(stop) <= total, "a monomial is made from one not made yet");
            total += stop - first;
        }
    require(total == r, "coef needs one entry per monomial");
    nb::gil_scoped_release release;
    taylor<T>(m, d, M, r, X.data(), begin.data(), end.data(), coef.data(), gaussian, Z.data());
}

// Single rows of least squares; W (d, D) frequencies of Fourier features, none for the columns themselves.
template <class T>
rows::LearnerPtr<T> row_least_squares(nb::dict state, nb::list others, Maybe<Matrix<const T>> W, bool intercept, bool labels,
                                      const Blas& blas, nb::dict head) {
    auto made = rows::begin<T>(state, others);
    auto map = rows::features_of(*made, W);
    const Head h = head_of(head);
    require(h.features == map.size() + intercept && h.k == made->C, "R, V and q differ in their number of features");
    made->held.keep(nb::object(head.attr("copy")()));  // its arrays
    made->head = head;
    made->learner = std::make_unique<rows::LeastSquares<T>>(std::move(map), intercept, labels, h, sums_of(state, h),
                                                            made->template numbers<double>("ridge", 1)[0], blas);
    made->pin("gram", "b", "yy", "zsum", "window", "window_c", "window_b");
    return made;
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("taylor", &bound_taylor<T>, plain, plain, plain, plain, value, plain);
    m.def(rows::named<T>("row_least_squares").c_str(), &row_least_squares<T>, value, value, maybe, value, value, value, value);
});

const Group group([](nb::module_& m) {
    nb::class_<Blas>(m, "Blas").def(nb::init<nb::capsule, nb::capsule, nb::capsule, nb::capsule>());
    m.attr("PANEL") = PANEL;
    m.attr("LINE") = LINE;
    nb::class_<Rule>(m, "Act", "A second-order rule: its name and parameters, and those of its loss.").def(nb::new_(&make_rule));
    m.def("second_order_learn", &bound_learn);
    m.def("second_order_run", &bound_run, value, value, value, plain, plain, maybe, plain);
    m.def("second_order_score", &bound_score, value, plain, plain, plain);
    m.def("second_order_factor", &bound_factor, plain, value, plain, plain, plain, plain);
    m.def("diagonal_pass", &bound_diagonal_pass, value, plain, plain, maybe, value, plain);
});

}  // namespace
