// Bindings of vecmath.hpp. Arrays are taken as they are (noconvert): a copy made because of a wrong dtype or layout
// would receive the result and be thrown away, so a mismatch is a TypeError.
#include "base/vecmath.hpp"
#include "bind/group.hpp"

#include <cmath>
#include <memory>
#include <optional>

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using ks::Array;
using ks::Matrix;
using ks::Vector;

// Other threads run during a call that takes long enough for them to notice; handing over costs more than one row.
struct Release {
    std::optional<nb::gil_scoped_release> release;
    explicit Release(std::size_t elements) {
        if (elements > 10000) release.emplace();
    }
};

template <class T>
void trig(Matrix<const T> P, Matrix<T> Z, double scale) {
    const std::size_t m = P.shape(0), D = P.shape(1);
    ks::require(Z.shape(0) == m && Z.shape(1) == 2 * D, "trig: Z must be (m, 2 D) for P (m, D)");
    Release unlocked(m * D);
    ks::trig<T>(m, D, P.data(), T(scale), Z.data());
}

template <class T>
void exp_scaled(Array<T> X, double c, bool clip) {
    ks::require(c >= 0 && std::isfinite(c), "exp_scaled: c must be a finite number >= 0");
    Release unlocked(X.size());
    ks::exp_scaled<T>(X.size(), X.data(), T(c), clip);
}

template <class T>
bool all_finite(Array<const T> X) {
    Release unlocked(X.size());
    return ks::all_finite<T>(X.size(), X.data());
}

template <class T>
bool all_below(Array<const T> X, int exponent) {
    constexpr int most = std::numeric_limits<T>::max_exponent;
    ks::require(exponent > -most && exponent <= most, "all_below: no such exponent");
    Release unlocked(X.size());
    return ks::all_below<T>(X.size(), X.data(), exponent);
}

// Whether X is an array (n, d) of this type, contiguous, n > 0, with all |X| < 2^exponent.
template <class T>
bool plain_as(nb::handle X, std::size_t d, int exponent) {
    Matrix<const T> rows;
    if (!nb::try_cast(X, rows, false) || rows.shape(1) != d || rows.shape(0) == 0) return false;
    Release unlocked(rows.size());
    return ks::all_below<T>(rows.size(), rows.data(), exponent);
}

bool plain_rows(nb::handle X, bool single, std::size_t d, int exponent) {
    return single ? plain_as<float>(X, d, exponent) : plain_as<double>(X, d, exponent);
}

template <class T, class I>
void csr_matmul(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Matrix<const T> W,
                Matrix<T> out) {
    const std::size_t m = out.shape(0), d = W.shape(0), D = W.shape(1), nnz = indices.size();
    ks::require(indptr.size() == m + 1 && data.size() == nnz && out.shape(1) == D,
                "csr_matmul: shapes do not agree");
    Release unlocked(m * D);
    ks::require(ks::csr_valid<I>(m, d, nnz, indptr.data(), indices.data()),
                "csr_matmul: indptr or a column index is out of range");
    // A copy of each tile of W pays when its rows are used several times and it fits the second-level cache: up to 1.7
    // times the speed where D is a power of two, nothing lost elsewhere.
    constexpr std::size_t tile = ks::csr_tile_width<T>;
    std::unique_ptr<T[]> buffer;
    if (D >= tile && nnz >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) buffer.reset(new T[d * tile]);
    ks::csr_matmul<T, I>(m, d, D, data.data(), indices.data(), indptr.data(), W.data(), D, buffer.get(), out.data());
}

template <class T>
void bind_for(nb::module_& m) {
    m.def("trig", &trig<T>, "P"_a.noconvert(), "Z"_a.noconvert(), "scale"_a,
          "Z (m, 2 D) <- scale * [cos P, sin P] for P (m, D).");
    m.def("exp_scaled", &exp_scaled<T>, "X"_a.noconvert(), "c"_a, "clip"_a = true,
          "X <- exp(-c X) in place; with clip, negative entries count as 0.");
    m.def("all_finite", &all_finite<T>, "X"_a.noconvert(), "False when X holds a NaN or an infinity.");
    m.def("all_below", &all_below<T>, "X"_a.noconvert(), "exponent"_a, "False when some |X| reaches 2^exponent, or is NaN.");
    m.def("csr_matmul", &csr_matmul<T, std::int32_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "W"_a.noconvert(), "out"_a.noconvert(), "out (m, D) <- A W, A in CSR, W (d, D).");
    m.def("csr_matmul", &csr_matmul<T, std::int64_t>, "data"_a.noconvert(), "indices"_a.noconvert(),
          "indptr"_a.noconvert(), "W"_a.noconvert(), "out"_a.noconvert());
}

const ks::Group group([](nb::module_& m) {
    bind_for<float>(m);
    bind_for<double>(m);
    m.def("plain_rows", &plain_rows, "X"_a, "single"_a, "d"_a, "exponent"_a,
          "Whether X is a contiguous (n, d) array of floats or doubles, n > 0, with all |X| < 2^exponent.");
});

}  // namespace
