// Bindings of the passes that make the features of their rows themselves.
#include "bind/group.hpp"
#include "bind/linear.hpp"
#include "bind/row_learner.hpp"
#include "passes/linear_fourier.hpp"
#include "passes/linear_nystroem.hpp"

using namespace ks;

namespace {

// What multiplies rows with W (d, D).
template <class Rows, class T>
auto times(const Rows& rows, const Matrix<const T>& W, const Blas* blas) {
    return [=, frequencies = W.data(), D = W.shape(1)](std::size_t first, std::size_t m, T* out) {
        project(blas, rows, frequencies, D, first, m, out);
    };
}

// Rows X on Fourier features of frequencies W (d, D); `map`: these and what multiplies with them.
template <class T>
void bound_fourier_pass(nb::dict state, AnyRows<T> X, std::tuple<Matrix<const T>, const Blas*> map, Vector<const double> y,
                        Maybe<Vector<const double>> weight, const Spec& spec, Matrix<double> F) {
    const Matrix<const T>& W = std::get<0>(map);
    const std::size_t D = W.shape(1);
    require(std::get<1>(map), "fourier_pass: there is nothing that multiplies");
    std::visit([&](const auto& given) {
        const auto rows = rows_of(given, W.shape(0));
        learn_rows<T>(state, rows.n, 2 * D, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
            return fourier_pass<T>(rows.n, D, C, times(rows, W, std::get<1>(map)), y.data(), data_or_null(weight), model, t, *spec.loss,
                                   *spec.update, F.data(), scratch);
        });
    }, X);
}

// Single rows on the Fourier features of frequencies W (d, D), or without them on the columns.
template <class T>
rows::LearnerPtr<T> row_linear(nb::dict state, nb::list others, Maybe<Matrix<const T>> W, bool unit, nb::object spec) {
    const LinearArrays<T> arrays(state, nb::cast<const Spec&>(spec), entry<Matrix<T>>(state, "w"));
    auto made = std::make_unique<rows::BoundLearner<T>>(state, others, W ? W->shape(0) : arrays.W.shape(1), arrays.W.shape(0));
    auto map = rows::features_of(*made, W);
    const auto faded = maybe_entry<Vector<double>>(state, "G_scale");
    require(arrays.W.shape(1) == map.size(), "w does not fit the features");
    require(!faded || faded->shape(0) == made->C, "G_scale needs one entry per output");
    made->pin("w", "scale", "G", "w_mean", "memory", "center", "G_scale");
    made->held.keep(spec);
    made->learner = std::make_unique<rows::Linear<T>>(std::move(map), arrays.model(), arrays.G ? data_or_null(faded) : nullptr, made->C,
                                                      arrays.memory.size(), unit, nb::cast<const Spec&>(spec));
    return made;
}

// Landmarks as the Nyström mapping keeps them: -2 S' (d, s), |S|^2 (s), projection (s, k), gamma; |x|^2 of the rows (n); what multiplies.
template <class T>
using Landmarks = std::tuple<Matrix<const T>, Vector<const T>, Matrix<const T>, double, Vector<const T>, const Blas*>;

// Rows X on Nyström features of a Gaussian kernel.
template <class T>
void bound_nystroem_pass(nb::dict state, AnyRows<T> X, Landmarks<T> landmarks, Vector<const double> y, Maybe<Vector<const double>> weight,
                         const Spec& spec, Matrix<double> F) {
    const auto& [S2, norms, P, gamma, sizes, blas] = landmarks;
    require(blas, "nystroem_pass: there is nothing that multiplies");
    const Blas* products = blas;
    const T* xx = sizes.data();
    const std::size_t s = S2.shape(1), k = P.shape(1), count = sizes.shape(0);
    require(fits(norms, s) && fits(P, s), "nystroem_pass: the landmarks do not fit the rows");
    const GaussianLandmarks<T> map{s, k, norms.data(), P.data(), T(gamma)};
    const double* weights = data_or_null(weight);
    const Matrix<const T>& W = S2;
    std::visit([&](const auto& given) {
        const auto rows = rows_of(given, W.shape(0));
        require(count == rows.n, "nystroem_pass: the landmarks do not fit the rows");
        learn_rows<T>(state, count, k, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
            return nystroem_pass<T>(count, times(rows, W, products), xx, map, *products, t, [&](std::size_t first, std::size_t m, const T* Z, std::int64_t seen) {
                return linear_pass<T>(m, k, C, Z, y.data() + first, weights ? weights + first : nullptr, model, seen, *spec.loss,
                                      *spec.update, false, F.data() + first * C, scratch);
            });
        });
    }, X);
}

const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("fourier_pass", &bound_fourier_pass<T>, value, plain, plain, plain, maybe, value, plain);
    m.def(rows::named<T>("row_linear").c_str(), &row_linear<T>, value, value, maybe, value, value);
    m.def("nystroem_pass", &bound_nystroem_pass<T>, value, plain, plain, plain, maybe, value, plain);
});

}  // namespace
