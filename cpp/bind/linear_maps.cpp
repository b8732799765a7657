// Bindings of the passes that make the features of their rows themselves.
#include "bind/linear.hpp"
#include "passes/linear_fourier.hpp"
#include "passes/linear_nystroem.hpp"

using namespace ks;

namespace {

// Frequencies W (d, D) and what multiplies with them; where leading directions are damped, psi (n, k) of the rows, and strips
// (2 strips, k width).
template <class T> using Frequencies = std::tuple<Matrix<const T>, const Blas*, Maybe<Matrix<const T>>, Maybe<Matrix<const T>>>;

// On Fourier features, n rows that `project` projects on D frequencies.
template <class T, class Project>
void learn_fourier(nb::handle state, std::size_t n, const Frequencies<T>& map, const Project& project, const Vector<const double>& y,
                   const Maybe<Vector<const double>>& weight, const Spec& spec, const Matrix<double>& F) {
    const std::size_t D = std::get<0>(map).shape(1);
    const auto &psi = std::get<2>(map), &strips = std::get<3>(map);
    Directions<T> damped{data_or_null(psi), data_or_null(strips), psi ? psi->shape(1) : 0, D};
    require(!psi || (strips && psi->shape(0) == n && strips->shape(0) == 2 * Directions<T>::count(D) &&
                     strips->shape(1) == damped.k * Directions<T>::width),
            "fourier_pass: the directions do not fit the rows and frequencies");
    learn_rows<T>(state, n, 2 * D, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
        return fourier_pass<T>(n, D, C, project, y.data(), data_or_null(weight), model, t, *spec.loss, *spec.update,
                               psi ? &damped : nullptr, F.data(), scratch);
    });
}

// Rows X (n, d) on Fourier features.
template <class T>
void bound_fourier_pass(nb::dict state, Matrix<const T> X, Frequencies<T> map, Vector<const double> y, Maybe<Vector<const double>> weight,
                        const Spec& spec, Matrix<double> F) {
    const Matrix<const T>& W = std::get<0>(map);
    const Blas* blas = std::get<1>(map);
    const std::size_t n = X.shape(0), d = X.shape(1), D = W.shape(1);
    require(blas && W.shape(0) == d, "fourier_pass: the frequencies do not fit the rows");
    const DenseProjection<T> project{*blas, X.data(), W.data(), d, D};
    learn_fourier<T>(state, n, map, project, y, weight, spec, F);
}

template <class T, class I>
void bound_fourier_pass_csr(nb::dict state, CsrArrays<T, I> X, Frequencies<T> map, Vector<const double> y,
                            Maybe<Vector<const double>> weight, const Spec& spec, Matrix<double> F) {
    const Matrix<const T>& W = std::get<0>(map);
    const std::size_t d = W.shape(0), D = W.shape(1), n = csr_rows(X, d);
    const CsrProjection<T, I> project{std::get<0>(X).data(), std::get<1>(X).data(), std::get<2>(X).data(), W.data(), d, D};
    learn_fourier<T>(state, n, map, project, y, weight, spec, F);
}

// One row after the other on the Fourier features of frequencies W (d, D). The arrays of the state are looked up once, and again when
// the state has others: for a single row that takes longer than its features.
template <class T>
class FourierLearner {
    static constexpr std::size_t count = 6;
    static const Name& which(std::size_t i) {
        static const Name* const names[count] = {&name::w, &name::scale, &name::G, &name::w_mean, &name::memory, &name::center};
        return *names[i];
    }
    nb::dict state_;
    Matrix<const T> W_;
    nb::object held_;  // keeps the spec
    const Spec& spec_;
    nb::object entries_[count];
    std::optional<LinearArrays<T>> arrays_;
    std::vector<T> room_;  // projections and features
    std::vector<double> scratch_;

    void look_up() {
        bool same = arrays_.has_value();
        for (std::size_t i = 0; i < count && same; ++i) same = find(state_, which(i)).ptr() == entries_[i].ptr();
        if (same) return;
        arrays_.emplace(state_, spec_, entry<Matrix<T>>(state_, name::w));
        for (std::size_t i = 0; i < count; ++i) entries_[i] = nb::borrow(find(state_, which(i)));
        require(arrays_->W.shape(1) == 2 * W_.shape(1), "w does not fit the features");
        scratch_.resize(RowRoom::size * arrays_->W.shape(0));
    }

  public:
    FourierLearner(nb::dict state, Matrix<const T> W, nb::object spec)
        : state_(std::move(state)), W_(std::move(W)), held_(std::move(spec)), spec_(nb::cast<const Spec&>(held_)), room_(3 * W_.shape(1)) {}

    // X (1, d), y (1), weight (1) or null; F (1, C).
    void learn(Matrix<const T> X, Vector<const double> y, Maybe<Vector<const double>> weight, Matrix<double> F) {
        look_up();
        const std::size_t d = X.shape(1), D = W_.shape(1), C = arrays_->W.shape(0);
        require(X.shape(0) == 1 && W_.shape(0) == d, "one row, and frequencies of its width");
        require(y.shape(0) == 1 && (!weight || weight->shape(0) == 1), "y and weight need one entry per row of Z");
        require(F.shape(0) == 1 && F.shape(1) == C, "scores must be (rows, outputs)");
        check_codes(*spec_.loss, 1, C, y.data(), data_or_null(weight));
        T* z = room_.data() + D;
        fourier_row<T>(d, D, X.data(), W_.data(), T(1 / std::sqrt(double(D))), room_.data(), z);
        const LinearModel<T> model = arrays_->model();
        const std::int64_t t = linear_pass<T>(1, 2 * D, int(C), z, y.data(), data_or_null(weight), model,
                                              number<std::int64_t>(state_, name::t), *spec_.loss, *spec_.update, true, F.data(), scratch_.data());
        for (const T* weights : {model.W, model.G, model.mean}) require_finite(2 * C * D, weights);
        require_finite(C, F.data());
        require_finite(arrays_->memory.size(), arrays_->memory.data());
        set_number(state_, name::t, t);
    }
};

// Landmarks as the Nyström mapping keeps them: -2 S' (d, s), |S|^2 (s), projection (s, k), gamma; |x|^2 of the rows (n); what multiplies.
template <class T>
using Landmarks = std::tuple<Matrix<const T>, Vector<const T>, Matrix<const T>, double, Vector<const T>, const Blas*>;

// n rows on Nyström features of a Gaussian kernel.
template <class T, class Project>
void learn_nystroem(nb::handle state, std::size_t n, const Project& project, const Landmarks<T>& landmarks, const Vector<const double>& y,
                    const Maybe<Vector<const double>>& weight, const Spec& spec, const Matrix<double>& F) {
    const auto& [S2, norms, P, gamma, sizes, blas] = landmarks;
    const T* xx = sizes.data();
    const Blas& products = *blas;
    const std::size_t s = S2.shape(1), k = P.shape(1);
    require(norms.shape(0) == s && P.shape(0) == s && sizes.shape(0) == n, "nystroem_pass: the landmarks do not fit the rows");
    const GaussianLandmarks<T> map{s, k, norms.data(), P.data(), T(gamma)};
    const double* weights = data_or_null(weight);
    learn_rows<T>(state, n, k, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
        return nystroem_pass<T>(n, project, xx, map, products, t, [&](std::size_t first, std::size_t m, const T* Z, std::int64_t rows) {
            return linear_pass<T>(m, k, C, Z, y.data() + first, weights ? weights + first : nullptr, model, rows, *spec.loss,
                                  *spec.update, false, F.data() + first * C, scratch);
        });
    });
}

template <class T>
void bound_nystroem_pass(nb::dict state, Matrix<const T> X, Landmarks<T> landmarks, Vector<const double> y,
                         Maybe<Vector<const double>> weight, const Spec& spec, Matrix<double> F) {
    const Matrix<const T>& S2 = std::get<0>(landmarks);
    const std::size_t d = X.shape(1);
    require(std::get<5>(landmarks) && S2.shape(0) == d, "nystroem_pass: the landmarks do not fit the rows");
    const DenseProjection<T> project{*std::get<5>(landmarks), X.data(), S2.data(), d, S2.shape(1)};
    learn_nystroem<T>(state, X.shape(0), project, landmarks, y, weight, spec, F);
}

template <class T, class I>
void bound_nystroem_pass_csr(nb::dict state, CsrArrays<T, I> X, Landmarks<T> landmarks, Vector<const double> y,
                             Maybe<Vector<const double>> weight, const Spec& spec, Matrix<double> F) {
    const Matrix<const T>& S2 = std::get<0>(landmarks);
    const std::size_t d = S2.shape(0), n = csr_rows(X, d);
    require(std::get<5>(landmarks), "nystroem_pass: there is nothing that multiplies");
    const CsrProjection<T, I> project{std::get<0>(X).data(), std::get<1>(X).data(), std::get<2>(X).data(), S2.data(), d, S2.shape(1)};
    learn_nystroem<T>(state, n, project, landmarks, y, weight, spec, F);
}

template <class T>
void bind(nb::module_& m, const char* learner) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    const auto value = nb::arg();
    m.def("fourier_pass", &bound_fourier_pass<T>, value, plain, plain, plain, maybe, value, plain);
    m.def("fourier_pass", &bound_fourier_pass_csr<T, std::int32_t>, value, plain, plain, plain, maybe, value, plain);
    m.def("fourier_pass", &bound_fourier_pass_csr<T, std::int64_t>, value, plain, plain, plain, maybe, value, plain);
    nb::class_<FourierLearner<T>>(m, learner, "Learns single rows on Fourier features.")
        .def(nb::init<nb::dict, Matrix<const T>, nb::object>(), value, plain, value)
        .def("learn", &FourierLearner<T>::learn, plain, plain, maybe, plain);
    m.def("nystroem_pass", &bound_nystroem_pass<T>, value, plain, plain, plain, maybe, value, plain);
    m.def("nystroem_pass", &bound_nystroem_pass_csr<T, std::int32_t>, value, plain, plain, plain, maybe, value, plain);
    m.def("nystroem_pass", &bound_nystroem_pass_csr<T, std::int64_t>, value, plain, plain, plain, maybe, value, plain);
}

}  // namespace

void bind_linear_maps(nb::module_& m) {
    bind<float>(m, "FourierLearnerSingle");
    bind<double>(m, "FourierLearner");
}
