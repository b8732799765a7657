// Bindings of second-order learning and of the Taylor features it likes best.
#include "base/arrays.hpp"
#include "passes/second_order.hpp"
#include "passes/second_order_block.hpp"
#include "maps/taylor.hpp"

#include <nanobind/stl/pair.h>

using namespace ks;
using namespace ks::second;

namespace {

// The arrays of a head: R (r, r), D (panels, PANEL²), V (m, r), M (m, m), kappa (m), tau (m, k), q (k, r).
template <class A>
Head head_of(const A& R, const A& D, const Matrix<double>& V, const Matrix<double>& M, const Vector<double>& kappa,
             const Matrix<double>& tau, const A& q) {
    const std::size_t r = R.shape(0), m = V.shape(0), k = q.shape(0);
    require(R.shape(1) == r && V.shape(1) == r && q.shape(1) == r, "R, V and q differ in their number of features");
    require(D.shape(0) == panels(r) && D.shape(1) == PANEL * PANEL, "D does not fit R");
    require(M.shape(0) == m && M.shape(1) == m && kappa.shape(0) == m && tau.shape(0) == m && tau.shape(1) == k,
            "M, kappa and tau do not fit the window");
    return {r, m, k, R.data(), D.data(), V.data(), M.data(), kappa.data(), tau.data(), q.data()};
}

// Returns the number of rows in the window.
std::size_t bound_learn(Matrix<const double> R, Matrix<const double> D, Matrix<double> V, Matrix<double> M,
                 Vector<double> kappa, Matrix<double> tau, Matrix<const double> q, std::size_t j, Matrix<const double> Z,
                 Matrix<const double> y, Vector<const double> weight, Matrix<double> F, Vector<double> s, Vector<double> c,
                 Matrix<double> beta, const std::string& name, const std::vector<double>& parameters,
                 const std::string& loss_name, const std::vector<double>& loss_parameters) {
    const Head h = head_of(R, D, V, M, kappa, tau, q);
    const std::size_t n = Z.shape(0);
    const auto rule = make_rule(name, parameters, loss_name, loss_parameters);
    require(Z.shape(1) == h.r && j + n <= h.m, "the rows do not fit the window");
    require(weight.shape(0) == n && s.shape(0) == n && c.shape(0) == n, "the block's arrays differ in their number of rows");
    for (const Matrix<double>* a : {&F, &beta}) require(a->shape(0) == n && a->shape(1) == h.k, "scores must be (rows, outputs)");
    require(y.shape(0) == n && y.shape(1) == h.k, "y must be (rows, outputs)");
    nb::gil_scoped_release release;
    thread_local std::vector<double> work;
    const std::size_t end =
        learn_block(h, j, n, Z.data(), y.data(), weight.data(), *rule, F.data(), s.data(), c.data(), beta.data(), work);
    require_finite(F.size(), F.data());
    require_finite(n, s.data());
    require_finite(end - j, h.kappa + j);
    require_finite((end - j) * h.k, h.tau + j * h.k);
    return end;
}

// Least squares over any number of rows: whenever the window is full, its rows join the sums and the head begins anew. Returns the
// number of rows in the window, and the sum of their weights.
std::pair<std::size_t, double> bound_run(const Blas& blas, Matrix<double> R, Matrix<double> D, Matrix<double> V, Matrix<double> M,
                                         Vector<double> kappa, Matrix<double> tau, Matrix<double> q, std::size_t j,
                                         Matrix<double> window, Array<double> window_c, Matrix<double> window_b, Array<double> gram,
                                         Matrix<double> b, Vector<double> yy, Vector<double> zsum, double mass, double ridge,
                                         Matrix<const double> Z, Matrix<const double> y, Maybe<Vector<const double>> weight,
                                         Matrix<double> F, Vector<double> s) {
    const Head h = head_of(R, D, V, M, kappa, tau, q);
    const std::size_t n = Z.shape(0), r = h.r, m = h.m, k = h.k;
    require(Z.shape(1) == r && j < m && window.shape(0) == m && window.shape(1) == r && window_c.size() == m && window_b.size() == m * k,
            "the rows do not fit the window");
    require(gram.size() == r * r && b.size() == k * r && yy.size() == k && zsum.size() == r, "the sums do not fit the head");
    require(y.shape(0) == n && y.shape(1) == k && F.shape(0) == n && F.shape(1) == k && s.shape(0) == n && (!weight || weight->size() == n),
            "y and scores must be (rows, outputs)");
    Statistics sums{gram.data(), b.data(), yy.data(), zsum.data(), mass, window.data(), window_c.data(), window_b.data()};
    const second::LeastSquares rule;
    bool fine = true;
    {
        nb::gil_scoped_release release;
        thread_local std::vector<double> work, c, beta, ones;
        if (ones.size() < m) ones.assign(m, 1.0);
        for (std::size_t start = 0; start < n && fine;) {
            const std::size_t count = std::min(n - start, m - j);
            c.resize(count), beta.resize(count * k);
            const double* importance = weight ? weight->data() + start : ones.data();
            const std::size_t end = learn_block(h, j, count, Z.data() + start * r, y.data() + start * k, importance, rule,
                                                F.data() + start * k, s.data() + start, c.data(), beta.data(), work);
            fine = all_finite(end - j, h.kappa + j) && all_finite((end - j) * k, h.tau + j * k);
            enter(h, j, count, Z.data() + start * r, c.data(), beta.data(), sums);
            start += count;
            j = end;
            if (j < m || !fine) continue;
            fine = flush(blas, h, sums, work) && restart(blas, h, sums, ridge, R.data(), D.data(), q.data(), work);
            j = 0;
        }
    }
    require_finite(fine);
    require_finite(F.size(), F.data());
    require_finite(n, s.data());
    return {j, sums.mass};
}

void bound_score(Matrix<const double> R, Matrix<const double> D, Matrix<double> V, Matrix<double> M,
                 Vector<double> kappa, Matrix<double> tau, Matrix<const double> q, std::size_t j, Matrix<const double> Z,
                 Matrix<double> F, Vector<double> s) {
    const Head h = head_of(R, D, V, M, kappa, tau, q);
    const std::size_t n = Z.shape(0);
    require(Z.shape(1) == h.r && j <= h.m && s.shape(0) == n, "the rows do not fit the window");
    require(F.shape(0) == n && F.shape(1) == h.k, "scores must be (rows, outputs)");
    nb::gil_scoped_release release;
    thread_local std::vector<double> work;
    score_block(h, j, n, Z.data(), F.data(), s.data(), work);
}

// gram (r, r) upper, b (k, r) -> R, D and q of the head; false when gram + ridge I is singular to rounding.
bool bound_factor(const Blas& blas, Matrix<const double> gram, double ridge, Matrix<const double> b, Matrix<double> R,
                  Matrix<double> D, Matrix<double> q) {
    const std::size_t r = R.shape(0), k = q.shape(0);
    require(R.shape(1) == r && q.shape(1) == r, "R and q differ in their number of features");
    require(D.shape(0) == panels(r) && D.shape(1) == PANEL * PANEL, "D does not fit R");
    require(gram.shape(0) == r && gram.shape(1) == r && b.shape(0) == k && b.shape(1) == r, "gram and b do not fit R");
    nb::gil_scoped_release release;
    thread_local std::vector<double> work;
    if (!factor(blas, r, gram.data(), ridge, R.data(), D.data(), work)) return false;
    mirror(r, R.data());
    std::copy_n(b.data(), r * k, q.data());
    solve_factor(r, k, R.data(), D.data(), q.data());
    return true;
}

void bound_diagonal_pass(Matrix<const double> Z, Matrix<const double> y, Maybe<Vector<const double>> weight, Matrix<double> A,
                         Matrix<double> W, Matrix<double> F, const std::string& name, const std::vector<double>& parameters,
                         const std::string& loss_name, const std::vector<double>& loss_parameters) {
    const std::size_t n = Z.shape(0), r = Z.shape(1), k = W.shape(0);
    const auto rule = make_rule(name, parameters, loss_name, loss_parameters);
    require(W.shape(1) == r && A.shape(0) == k && A.shape(1) == r, "A and w do not fit the features");
    require(y.shape(0) == n && y.shape(1) == k && F.shape(0) == n && F.shape(1) == k, "y and scores must be (rows, outputs)");
    require(!weight || weight->shape(0) == n, "weight needs one entry per row");
    nb::gil_scoped_release release;
    diagonal_pass(n, r, int(k), Z.data(), y.data(), data_or_null(weight), *rule, A.data(), W.data(), F.data());
    require_finite(F.size(), F.data());
    require_finite(A.size(), A.data());
    require_finite(W.size(), W.data());
}

template <class T>
void bound_taylor(Matrix<const T> X, Matrix<const std::int64_t> begin, Vector<const std::int64_t> end, Vector<const T> coef,
                  bool gaussian, Matrix<T> Z) {
    const std::size_t m = X.shape(0), d = X.shape(1), M = begin.shape(0), r = coef.shape(0);
    require(begin.shape(1) == d && end.shape(0) == M, "the table of monomials does not fit the rows");
    require(Z.shape(0) == m && Z.shape(1) == r, "Z must be (rows, monomials)");
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

template <class T>
void bind(nb::module_& m) {
    m.def("taylor", &bound_taylor<T>, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert());
}

}  // namespace

void bind_second_order(nb::module_& m) {
    const auto fixed = nb::arg().noconvert();
    const auto plain = nb::arg();
    nb::class_<Blas>(m, "Blas").def(nb::init<nb::capsule, nb::capsule>());
    m.attr("PANEL") = PANEL;
    m.def("second_order_learn", &bound_learn, fixed, fixed, fixed, fixed, fixed, fixed, fixed, plain, fixed, fixed, fixed,
          fixed, fixed, fixed, fixed, plain, plain, plain, plain);
    m.def("second_order_run", &bound_run, plain, fixed, fixed, fixed, fixed, fixed, fixed, fixed, plain, fixed, fixed, fixed, fixed,
          fixed, fixed, fixed, plain, plain, fixed, fixed, nb::arg().none().noconvert(), fixed, fixed);
    m.def("second_order_score", &bound_score, fixed, fixed, fixed, fixed, fixed, fixed, fixed, plain, fixed, fixed, fixed);
    m.def("second_order_factor", &bound_factor, plain, fixed, plain, fixed, fixed, fixed, fixed);
    m.def("diagonal_pass", &bound_diagonal_pass, fixed, fixed, nb::arg().none().noconvert(), fixed, fixed, fixed, nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    bind<float>(m);
    bind<double>(m);
}
