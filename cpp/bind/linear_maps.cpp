// Bindings of the passes that make the features of their rows themselves.
#include "bind/group.hpp"
#include "bind/linear.hpp"
#include "bind/row_learner.hpp"
#include "passes/linear_maps.hpp"

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
        std::vector<T> held;
        T* z = on_line(held, 2 * D);
        learn_rows<T>(state, rows.n, 2 * D, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
            const auto learn = [&](std::size_t first, std::size_t m, const T* P, std::int64_t seen) {
                return fourier_rows<T>(m, D, C, P, z, y.data() + first, weight ? weight->data() + first : nullptr, model, seen,
                                       *spec.loss, *spec.update, F.data() + first * C, scratch);
            };
            return projected_pass<T>(rows.n, block_rows<T>(D), D, times(rows, W, std::get<1>(map)), t, learn);
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
    const auto& [S2, norms, P, gamma, xx, blas] = landmarks;
    const Matrix<const T>& W = S2;
    const T *own = norms.data(), *sizes = xx.data(), *projection = P.data(), width = T(gamma);
    const Blas* products = blas;
    const std::size_t n = xx.shape(0), s = W.shape(1), k = P.shape(1);
    require(products, "nystroem_pass: there is nothing that multiplies");
    require(fits(norms, s) && fits(P, s), "nystroem_pass: the landmarks do not fit the rows");
    std::visit([&](const auto& given) {
        const auto rows = rows_of(given, W.shape(0));
        require(n == rows.n, "nystroem_pass: the landmarks do not fit the rows");
        const std::size_t block = block_rows<T>(s);
        std::vector<T> held;
        T* Z = on_line(held, block * k);
        learn_rows<T>(state, n, k, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
            const auto learn = [&](std::size_t first, std::size_t m, T* K, std::int64_t seen) {
                add_norms(m, s, sizes + first, own, K);
                exp_scaled(m * s, K, width, true);
                products->gemm(k, m, s, T(1), projection, k, K, s, T(0), Z, k);
                return linear_pass<T>(m, k, C, Z, y.data() + first, weight ? weight->data() + first : nullptr, model, seen, *spec.loss,
                                      *spec.update, false, F.data() + first * C, scratch);
            };
            return projected_pass<T>(n, block, s, times(rows, W, products), t, learn);
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
