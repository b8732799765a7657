// Bindings of second-order learning and of the Taylor features it likes best.
#include "arrays.hpp"
#include "second_order.hpp"
#include "taylor.hpp"

using namespace ks;
using namespace ks::second;

namespace {

void bound_pass(Matrix<double> S, Matrix<double> F, Matrix<const double> y, Vector<const double> weight, Vector<double> c,
                Matrix<double> beta, Vector<double> kappa, Matrix<double> tau, const std::string& name,
                const std::vector<double>& parameters, const std::string& loss_name, const std::vector<double>& loss_parameters) {
    const std::size_t n = S.shape(0), k = F.shape(1);
    const auto rule = make_rule(name, parameters, loss_name, loss_parameters);
    require(S.shape(1) == n && F.shape(0) == n && weight.shape(0) == n && c.shape(0) == n && kappa.shape(0) == n,
            "the block's arrays differ in their number of rows");
    for (const Matrix<double>* a : {&beta, &tau}) require(a->shape(0) == n && a->shape(1) == k, "beta and tau must be (rows, outputs)");
    require(y.shape(0) == n && y.shape(1) == k, "y must be (rows, outputs)");
    nb::gil_scoped_release release;
    second_order_pass(n, int(k), S.data(), F.data(), y.data(), weight.data(), *rule, c.data(), beta.data(), kappa.data(), tau.data());
}

void bound_unit_forward(Matrix<const double> Mt, Matrix<double> U) {
    require(Mt.shape(0) >= U.shape(1) && Mt.shape(1) >= U.shape(1), "the triangle is smaller than its right-hand side");
    nb::gil_scoped_release release;
    unit_forward(U.shape(0), U.shape(1), Mt.shape(1), Mt.data(), U.data());
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
    m.def("second_order_pass", &bound_pass, fixed, fixed, fixed, fixed, fixed, fixed, fixed, fixed, nb::arg(), nb::arg(),
          nb::arg(), nb::arg());
    m.def("unit_forward", &bound_unit_forward, fixed, fixed);
    m.def("diagonal_pass", &bound_diagonal_pass, fixed, fixed, nb::arg().none().noconvert(), fixed, fixed, fixed, nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
    bind<float>(m);
    bind<double>(m);
}
