// Bindings of distances and the exponential kernels of them.
#include <cmath>

#include "base/arrays.hpp"
#include "maps/city_block.hpp"

namespace nb = nanobind;

namespace {

template <class T>
void bound_city_block(ks::Matrix<const T> X, ks::Matrix<const T> Z, ks::Matrix<T> out) {
    const std::size_t n = X.shape(0), d = X.shape(1), m = Z.shape(0);
    ks::require(Z.shape(1) == d && out.shape(0) == n && out.shape(1) == m, "city_block: shapes do not agree");
    nb::gil_scoped_release release;
    ks::city_block<T>(n, m, d, X.data(), Z.data(), out.data());
}

template <class T>
void bound_exponential(ks::Matrix<const T> X, ks::Matrix<const T> tiles, ks::Matrix<T> out, int norm, double c) {
    constexpr std::size_t P = ks::tile_width<T>;
    const std::size_t n = X.shape(0), d = X.shape(1), m = out.shape(1);
    ks::require(out.shape(0) == n && tiles.shape(1) == d * P && tiles.shape(0) == (m + P - 1) / P,
                "exponential: shapes do not agree");
    ks::require(norm == 1 || norm == 2, "exponential: norm must be 1 or 2");
    ks::require(c > 0 && std::isfinite(c), "exponential: c must be a finite number > 0");
    nb::gil_scoped_release release;
    (norm == 1 ? ks::exponential<T, 1> : ks::exponential<T, 2>)(n, m, d, X.data(), tiles.data(), T(c), out.data());
}

template <class T>
void bound_exponential_sums(ks::Matrix<const T> X, ks::Matrix<const T> tiles, ks::Matrix<const double> A, ks::Matrix<double> out,
                            int norm, double c) {
    constexpr std::size_t P = ks::tile_width<T>;
    const std::size_t n = X.shape(0), d = X.shape(1), C = A.shape(0), m = A.shape(1);
    ks::require(out.shape(0) == n && out.shape(1) == C && tiles.shape(1) == d * P && tiles.shape(0) == (m + P - 1) / P,
                "exponential_sums: shapes do not agree");
    ks::require(norm == 1 || norm == 2, "exponential_sums: norm must be 1 or 2");
    ks::require(c > 0 && std::isfinite(c), "exponential_sums: c must be a finite number > 0");
    nb::gil_scoped_release release;
    (norm == 1 ? ks::exponential_sums<T, 1> : ks::exponential_sums<T, 2>)(n, m, d, X.data(), tiles.data(), T(c), C, A.data(),
                                                                          out.data());
}

template <class T>
void bind_for(nb::module_& m) {
    m.def("city_block", &bound_city_block<T>, nb::arg("X").noconvert(), nb::arg("Z").noconvert(), nb::arg("out").noconvert(),
          "out (n, m) <- sums of |x_j - z_j| for X (n, d) and Z (m, d).");
    m.def("exponential", &bound_exponential<T>, nb::arg("X").noconvert(), nb::arg("tiles").noconvert(),
          nb::arg("out").noconvert(), nb::arg("norm"), nb::arg("c"),
          "out (n, m) <- exp(-c |x - z|) for X (n, d) and m rows z in tiles of 64 bytes a column.");
    m.def("exponential_sums", &bound_exponential_sums<T>, nb::arg("X").noconvert(), nb::arg("tiles").noconvert(),
          nb::arg("A").noconvert(), nb::arg("out").noconvert(), nb::arg("norm"), nb::arg("c"),
          "out (n, C) <- exp(-c |x - z|) A' for X (n, d), m rows z in tiles and A (C, m).");
}

}  // namespace

void bind_city_block(nb::module_& m) {
    bind_for<float>(m);
    bind_for<double>(m);
}
