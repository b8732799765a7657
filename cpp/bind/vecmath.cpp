// Bindings of vecmath.hpp. Arrays are taken as they are (noconvert): a copy made because of a wrong dtype or layout
// would receive the result and be thrown away, so a mismatch is a TypeError.
#include "base/projection.hpp"
#include "bind/group.hpp"

#include <cmath>
#include <optional>

using namespace ks;
using namespace nb::literals;

namespace {

// Other threads run during a call that takes long enough for them to notice; handing over costs more than one row.
struct Release {
    std::optional<nb::gil_scoped_release> release;
    explicit Release(std::size_t elements) {
        if (elements > 10000) release.emplace();
    }
};

template <class T>
void bound_trig(Matrix<const T> P, Matrix<T> Z, double scale) {
    const std::size_t m = P.shape(0), D = P.shape(1);
    require(fits(Z, m, 2 * D), "trig: Z must be (m, 2 D) for P (m, D)");
    Release unlocked(m * D);
    trig<T>(m, D, P.data(), T(scale), Z.data());
}

template <class T>
void bound_exp_scaled(Array<T> X, double c, bool clip) {
    require(c >= 0 && std::isfinite(c), "exp_scaled: c must be a finite number >= 0");
    Release unlocked(X.size());
    exp_scaled<T>(X.size(), X.data(), T(c), clip);
}

template <class T>
bool bound_all_below(Array<const T> X, int exponent) {
    constexpr int most = std::numeric_limits<T>::max_exponent;
    require(exponent > -most && exponent <= most, "all_below: no such exponent");
    Release unlocked(X.size());
    return all_below<T>(X.size(), X.data(), exponent);
}

// Whether X is an array (n, d) of this type, contiguous, n > 0, with all |X| < 2^exponent.
template <class T>
bool plain_as(nb::handle X, std::size_t d, int exponent) {
    Matrix<const T> rows;
    if (!nb::try_cast(X, rows, false) || rows.shape(1) != d || fits(rows, 0)) return false;
    Release unlocked(rows.size());
    return all_below<T>(rows.size(), rows.data(), exponent);
}

bool plain_rows(nb::handle X, bool single, std::size_t d, int exponent) {
    return single ? plain_as<float>(X, d, exponent) : plain_as<double>(X, d, exponent);
}

template <class T, class I>
void bound_csr_matmul(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Matrix<const T> W,
                Matrix<T> out) {
    const std::size_t m = out.shape(0), d = W.shape(0), D = W.shape(1), nnz = indices.size();
    require(indptr.size() == m + 1 && data.size() == nnz && out.shape(1) == D,
                "csr_matmul: shapes do not agree");
    Release unlocked(m * D);
    require(csr_form<I>(m, d, nnz, indptr.data(), indices.data()) <= Form::unordered,
                "csr_matmul: indptr or a column index is out of range");
    times(Csr<T, I>{m, d, data.data(), indices.data(), indptr.data()}, W.data(), D, nullptr)(0, m, out.data());
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("trig", &bound_trig<T>, plain, plain, value,
          "Z (m, 2 D) <- scale * [cos P, sin P] for P (m, D).");
    m.def("exp_scaled", &bound_exp_scaled<T>, "X"_a.noconvert(), "c"_a, "clip"_a = true,
          "X <- exp(-c X) in place; with clip, negative entries count as 0.");
    m.def("all_below", &bound_all_below<T>, "X"_a.noconvert(), "exponent"_a, "False when some |X| reaches 2^exponent, or is NaN.");
    m.def("csr_matmul", &bound_csr_matmul<T, std::int32_t>, plain, plain, plain, plain, plain, "out (m, D) <- A W, A in CSR, W (d, D).");
    m.def("csr_matmul", &bound_csr_matmul<T, std::int64_t>, plain, plain, plain, plain, plain);
});

const Group group([](nb::module_& m) {
    m.def("plain_rows", &plain_rows, "X"_a, "single"_a, "d"_a, "exponent"_a,
          "Whether X is a contiguous (n, d) array of floats or doubles, n > 0, with all |X| < 2^exponent.");
});

}  // namespace
