// Bindings of the pass that learns its kernel, and of the yardstick of its speed.
#include "base/arrays.hpp"
#include "passes/learned.hpp"

#include <numeric>

using namespace ks;

namespace {

// One call of the pass: everything but the rows, which come dense or as CSR.
template <class T>
struct RrfCall {
    Vector<const double> y;
    Maybe<Vector<const double>> weight;
    Matrix<T> W, G;
    Vector<T> theta;
    Vector<const T> theta0;
    Vector<T> H;
    Matrix<const T> E;
    Maybe<Matrix<T>> sum_w;
    Maybe<Vector<T>> sum_theta;
    Maybe<Vector<double>> pending;
    Matrix<double> memory;
    Maybe<Vector<double>> center;
    Matrix<double> F;
    double unit, eta_g, guard;
    std::size_t batch_size;
    std::int64_t t;
    bool low_rank, centred;
    std::size_t size;
    std::unique_ptr<Loss> loss;
    std::unique_ptr<Update> update;

    template <class Rows>
    std::int64_t run(std::size_t m, std::size_t d, const Rows& rows) const {
        const std::size_t C = W.shape(0), D = E.shape(1), r = std::min(size, d), Q = centred ? size : 1;
        check(m, d, C, D, r, low_rank ? d * r : (centred ? 2 : 1) * Q * d);
        const std::size_t inner = low_rank ? r : Q * d;
        std::unique_ptr<T[]> numbers(new T[2 * d + inner + 4 * D]);
        std::unique_ptr<std::int32_t[]> index(new std::int32_t[d + r]);
        std::vector<double> outputs(3 * C);
        T *value = numbers.get(), *v = value + d, *h = v + inner, *u = h + d, *z = u + D, *q = z + 2 * D;
        std::iota(index.get() + d, index.get() + d + r, 0);
        const RrfScratch<T> scratch{{0, index.get(), value}, u, z, q, outputs.data()};
        const RrfModel<T> model{W.data(), G.data(), memory.data(), data_or_null(center), data_or_null(sum_w),
                                data_or_null(pending), T(unit), batch_size};
        const Guarded<T> p{theta.data(), theta0.data(), H.data(), data_or_null(sum_theta), T(eta_g), T(guard)};
        const auto pass = [&](const auto& spectrum) {
            nb::gil_scoped_release release;
            const std::int64_t end = rrf_pass<T>(m, D, int(C), rows, y.data(), data_or_null(weight), model, p, spectrum, t, *loss,
                                                 *update, F.data(), scratch);
            for (const T* weights : {model.W, model.G, model.sum}) require_finite(2 * C * D, weights);
            for (const T* numbers : {p.theta, p.H, p.sum}) require_finite(theta.shape(0), numbers);
            require_finite(F.size(), F.data());
            require_finite(memory.size(), memory.data());
            return end;
        };
        if (low_rank) return pass(LowRankSpectrum<T>{d, D, r, E.data(), index.get() + d, v, h});
        return pass(DiagonalSpectrum<T>{d, D, Q, centred, E.data(), v, h});
    }

    void check(std::size_t m, std::size_t d, std::size_t C, std::size_t D, std::size_t r,
               std::size_t parameters) const {
        require(d < (std::size_t(1) << 31), "more columns than 32-bit indices reach");
        require(size > 0 && E.shape(0) == (low_rank ? r : d), "E does not fit the spectrum");
        require(theta.shape(0) == parameters && theta0.shape(0) == parameters && H.shape(0) == parameters,
                "theta, theta0 and H do not fit the spectrum");
        require(y.shape(0) == m && (!weight || weight->shape(0) == m), "y and weight need one entry per row");
        require(W.shape(1) == 2 * D && G.shape(0) == C && G.shape(1) == 2 * D, "w and G must be (outputs, 2 D)");
        require(F.shape(0) == m && F.shape(1) == C, "scores must be (rows, outputs)");
        require(update->diagonal && int(memory.shape(0)) >= update->n_memory && memory.shape(1) == C,
                "memory does not fit the update");
        require(!center || center->shape(0) == 2, "center holds a count and a mean");
        const bool batches = batch_size > 1;
        require(batch_size > 0 && batches == bool(sum_w) && batches == bool(sum_theta) && batches == bool(pending),
                "batches, and only batches, need sums");
        require(!batches || (sum_w->shape(0) == C && sum_w->shape(1) == 2 * D && sum_theta->shape(0) == parameters &&
                             pending->shape(0) == 2),
                "the sums of a batch must be like w and theta");
        if (loss->kind == Kind::multiclass)
            for (std::size_t i = 0; i < m; ++i)
                require((weight && weight->data()[i] == 0.0) || (y.data()[i] >= 0 && y.data()[i] < double(C)),
                        "class code out of range");
    }

    std::int64_t dense(Matrix<const T> X) const {
        return run(X.shape(0), X.shape(1), DenseRows<T>{X.data(), X.shape(1)});
    }

    template <class I>
    std::int64_t csr(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, std::size_t d) const {
        require(indptr.shape(0) > 0 && indices.shape(0) == data.shape(0), "not a CSR matrix");
        const std::size_t m = indptr.shape(0) - 1;
        require(csr_valid(m, d, data.shape(0), indptr.data(), indices.data()), "not a CSR matrix");
        for (std::size_t i = 0; i < m; ++i)  // a row's entries are copied to d places
            require(std::size_t(indptr.data()[i + 1] - indptr.data()[i]) <= d, "a row holds an index twice");
        return run(m, d, CsrRows<T, I>{data.data(), indices.data(), indptr.data()});
    }
};

template <class T>
void init(RrfCall<T>* call, Vector<const double> y, Maybe<Vector<const double>> weight, Matrix<T> W, Matrix<T> G,
          Vector<T> theta, Vector<const T> theta0, Vector<T> H, Matrix<const T> E, Maybe<Matrix<T>> sum_w,
          Maybe<Vector<T>> sum_theta, Maybe<Vector<double>> pending, Matrix<double> memory,
          Maybe<Vector<double>> center, Matrix<double> F, double unit, double eta_g, double guard,
          std::size_t batch_size, std::int64_t t, const std::string& spectrum, std::size_t size,
          const std::string& loss_name, const std::vector<double>& loss_parameters, const std::string& update_name,
          const std::vector<double>& update_parameters) {
    require(spectrum == "diagonal" || spectrum == "mixture" || spectrum == "low_rank", "unknown spectrum");
    new (call) RrfCall<T>{y, weight, W, G, theta, theta0, H, E, sum_w, sum_theta, pending, memory, center, F, unit,
                          eta_g, guard, batch_size, t, spectrum == "low_rank", spectrum == "mixture", size,
                          make_loss(loss_name, loss_parameters), make_update(update_name, update_parameters)};
}

// Both products of every row of X, and nothing else; their sum keeps a compiler from leaving any of it out.
template <class T>
void bound_two_products(Matrix<const T> X, Matrix<const T> E, Vector<T> total) {
    const std::size_t d = X.shape(1), D = E.shape(1);
    require(E.shape(0) == d && total.shape(0) == d, "E and total need one row per column of X");
    std::vector<T> u(D), h(d);
    std::vector<std::int32_t> all(d);
    std::iota(all.begin(), all.end(), 0);
    nb::gil_scoped_release release;
    rrf_two_products<T>(X.shape(0), d, D, X.data(), E.data(), all.data(), u.data(), h.data(), total.data());
}

template <class T>
void bind(nb::module_& m, const char* name) {
    using Call = RrfCall<T>;
    const auto fixed = [] { return nb::arg().noconvert(); };
    const auto maybe = [] { return nb::arg().none().noconvert(); };
    nb::class_<Call>(m, name)
        .def("__init__", &init<T>, fixed(), maybe(), fixed(), fixed(), fixed(), fixed(), fixed(), fixed(), maybe(),
             maybe(), maybe(), fixed(), maybe(), fixed(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg())
        .def("dense", &Call::dense, fixed())
        .def("csr", &Call::template csr<std::int32_t>, fixed(), fixed(), fixed(), nb::arg())
        .def("csr", &Call::template csr<std::int64_t>, fixed(), fixed(), fixed(), nb::arg());
    m.def("rrf_two_products", &bound_two_products<T>, fixed(), fixed(), fixed());
}

}  // namespace

void bind_rrf(nb::module_& m) {
    bind<float>(m, "RrfCall32");
    bind<double>(m, "RrfCall64");
}
