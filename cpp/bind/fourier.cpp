// Bindings of fourier.hpp.
#include "base/arrays.hpp"
#include "maps/fourier.hpp"

#include <vector>

using namespace ks;

namespace {

template <class T>
void bound_row(Matrix<const T> X, Matrix<const T> W, Matrix<T> Z, double scale) {
    const std::size_t d = X.shape(1), D = W.shape(1);
    require(X.shape(0) == 1 && W.shape(0) == d && Z.shape(0) == 1 && Z.shape(1) == 2 * D, "fourier_row: shapes do not agree");
    static thread_local std::vector<T> p;
    if (p.size() < D) p.resize(D);
    ks::fourier_row<T>(d, D, X.data(), W.data(), T(scale), p.data(), Z.data());
}

}  // namespace

void bind_fourier(nb::module_& m) {
    const auto bind = [&](auto* f) {
        m.def("fourier_row", f, nb::arg("X").noconvert(), nb::arg("W").noconvert(), nb::arg("Z").noconvert(),
              nb::arg("scale"), "Z (1, 2 D) <- scale * [cos(X W), sin(X W)] for one row X (1, d), W (d, D).");
    };
    bind(&bound_row<float>);
    bind(&bound_row<double>);
}
