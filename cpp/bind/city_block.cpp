// Bindings of the distances that Laplacian kernels are made of.
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
void bind_for(nb::module_& m) {
    m.def("city_block", &bound_city_block<T>, nb::arg("X").noconvert(), nb::arg("Z").noconvert(), nb::arg("out").noconvert(),
          "out (n, m) <- sums of |x_j - z_j| for X (n, d) and Z (m, d).");
}

}  // namespace

void bind_city_block(nb::module_& m) {
    bind_for<float>(m);
    bind_for<double>(m);
}
