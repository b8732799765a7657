// Bindings of the sequential passes over blocks of rows.
#include "base/corrupt.hpp"
#include "base/targets.hpp"
#include "bind/group.hpp"
#include "bind/linear.hpp"

using namespace ks;

namespace {

// The columns of rows X are the features. `before_all` is called before weights change that no row of X has an entry for.
template <class T, class I>
void bound_linear_pass_csr(nb::dict state, CsrArrays<T, I> X, Vector<const double> y, Maybe<Vector<const double>> weight, const Spec& spec,
                           Matrix<double> F, nb::object before_all) {
    const std::size_t P = entry<Matrix<T>>(state, "w").shape(1);
    const Csr<T, I> rows = rows_of(X, P);
    const auto kept = maybe_entry<Vector<double>>(state, "G_scale");
    const std::function<void()> announce = [&] {
        nb::gil_scoped_acquire held;
        before_all();
    };
    bool swept = false, moved = true;  // all weights have changed; those that rows have an entry for are finite
    const auto pass = [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
        std::vector<double> own(kept ? 0 : C, 1.0);
        require(!kept || kept->shape(0) == std::size_t(C), "G_scale needs one entry per output");
        Deferred<T> later{P, C, model, kept ? kept->data() : own.data(), announce};
        t = linear_pass_csr<T, I>(rows, C, y.data(), data_or_null(weight), model, t, *spec.loss, *spec.update, later, F.data(), scratch);
        for (int c = 0; c < C && model.G && !kept; ++c) later.restore(c);
        swept = later.swept;
        moved = later.watch == T(0);
        return t;
    };
    learn_rows<T>(state, rows.n, P, y, weight, spec, F, pass, [&](const LinearModel<T>& model) {
        const std::size_t all = F.shape(1) * P;
        if (!moved || (model.mean && !all_finite(all, model.mean))) return false;
        return !swept || (all_finite(all, model.W) && (!model.G || all_finite(all, model.G)));
    });
}

// unit: the rows have norm one.
template <class T>
void bound_linear_pass(nb::dict state, Matrix<const T> Z, Vector<const double> y, Maybe<Vector<const double>> weight, const Spec& spec,
                       bool unit, Matrix<double> F) {
    const std::size_t m = Z.shape(0), P = Z.shape(1);
    learn_rows<T>(state, m, P, y, weight, spec, F, [&](int C, const LinearModel<T>& model, std::int64_t t, double* scratch) {
        return linear_pass<T>(m, P, C, Z.data(), y.data(), data_or_null(weight), model, t, *spec.loss, *spec.update, unit, F.data(), scratch);
    });
}

template <class T>
void bound_standardize(nb::dict state, Matrix<T> X, Maybe<Vector<const double>> weight) {
    const auto* usual = shaped_or_null<const double>(state, "x_usual", 7, X.shape(1));
    const Columns columns = columns_by(X.shape(1), usual, [&](const char* name, std::size_t d) { return shaped<double>(state, name, d); });
    require(!weight || weight->shape(0) == X.shape(0), "weight needs one entry per row");
    double count = number<double>(state, "x_count");
    {
        nb::gil_scoped_release release;
        count = standardize<T>(X.shape(0), X.shape(1), X.data(), data_or_null(weight), count, columns);
    }
    set_number(state, "x_count", count);
}

// Rows, each scaled as if it was the next.
template <class T>
void bound_scale(nb::dict state, Matrix<const T> X, Matrix<T> out) {
    const std::size_t n = X.shape(0), d = X.shape(1);
    require(fits(out, n, d), "scale: shapes do not agree");
    const auto read = [&](const char* name, std::size_t size) {  // only read: the arrays may be those of a file
        return const_cast<double*>(shaped<const double>(state, name, size));
    };
    const Columns columns = columns_by(d, shaped_or_null<const double>(state, "x_usual", 7, d), read);
    const double count = number<double>(state, "x_count");
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < n; ++i) scale_row<T>(d, X.data() + i * d, count, columns, out.data() + i * d);
}

// Rows with gaps filled and far cells drawn in, in place; usual (7, d).
template <class T> void bound_clean(Matrix<T> X, Matrix<const double> usual) {
    require(fits(usual, 7, X.shape(1)), "clean: shapes do not agree");
    corrupt::clean(X.shape(0), X.data(), corrupt::Usual{X.shape(1), const_cast<double*>(usual.data())});
}

template <class T> void bound_remember(Matrix<const T> X, std::size_t count, Matrix<double> usual, Matrix<double> recent) {
    const std::size_t d = X.shape(1), places = recent.shape(0);
    require(fits(usual, 7, d) && places > 0 && recent.shape(1) == d, "remember: shapes do not agree");
    for (std::size_t i = 0; i < X.shape(0); ++i)
        corrupt::remember(X.data() + i * d, count + i, corrupt::Usual{d, usual.data()}, recent.data(), places);
}

// What columns (n, d) are like, into found (4, d).
void bound_measure(Matrix<const double> kept, Matrix<const double> usual, Matrix<double> found) {
    const std::size_t d = kept.shape(1);
    require(fits(usual, 7, d) && fits(found, 4, d), "measure: shapes do not agree");
    const corrupt::Usual known{d, const_cast<double*>(usual.data())};
    std::vector<double> cells;
    for (std::size_t j = 0; j < d; ++j) {
        cells.clear();
        for (std::size_t i = 0; i < kept.shape(0); ++i) {
            const double x = kept.data()[i * d + j];
            if (x < corrupt::none && !known.is_gap(j, x)) cells.push_back(x);
        }
        corrupt::measure(cells, found.data() + j, d);
    }
}

// y (n, k) as one array of n k numbers; weight and out (n). Rows entered, whether a look is due, and how many rows were wild.
nb::tuple bound_take_targets(Array<const double> y, Maybe<Vector<const double>> weight, Matrix<double> seen, Matrix<double> last,
                             Vector<double> out) {
    const std::size_t n = out.shape(0), k = seen.shape(1);
    require(y.size() == n * k && fits(seen, target_rows) && fits(last, target_block, k) && fits(weight, n),
            "targets and weights do not fit");
    const Taken taken = take_targets(n, k, y.data(), data_or_null(weight), seen.data(), last.data(), out.data());
    return nb::make_tuple(taken.rows, taken.due, taken.wild);
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("linear_pass", &bound_linear_pass<T>, value, plain, plain, maybe, value, value, plain);
    m.def("linear_pass_csr", &bound_linear_pass_csr<T, std::int32_t>, value, plain, plain, maybe, value, plain, value);
    m.def("linear_pass_csr", &bound_linear_pass_csr<T, std::int64_t>, value, plain, plain, maybe, value, plain, value);
    m.def("squash", [](Matrix<T> X, double most) { squash<T>(X.size(), X.data(), T(most)); }, plain, value);
    m.def("clean", &bound_clean<T>, plain, plain);
    m.def("remember", &bound_remember<T>, plain, value, plain, plain);
    m.def("scale", &bound_scale<T>, value, plain, plain);
    m.def("standardize", &bound_standardize<T>, value, plain, maybe);
});

const Group group([](nb::module_& m) {
    m.def("take_targets", &bound_take_targets, plain, maybe, plain, plain, plain);
    m.def("measure", &bound_measure, plain, plain, plain);
});

}  // namespace
