// Bindings of cosines.hpp.
#include "base/arrays.hpp"
#include "maps/cosines.hpp"

using namespace ks;

namespace {

template <class T>
void sums(Matrix<const T> P, Vector<const T> amplitude, Vector<const T> phase, Vector<double> F) {
    const std::size_t m = P.shape(0), D = P.shape(1);
    require(F.size() == m && amplitude.size() == D && phase.size() == D, "cosine_sums: shapes do not agree");
    nb::gil_scoped_release unlocked;
    cosine_sums<T>(m, D, P.data(), amplitude.data(), phase.data(), F.data());
}

}  // namespace

void bind_cosines(nb::module_& m) {
    const auto bind = [&](auto* f) {
        m.def("cosine_sums", f, nb::arg("P").noconvert(), nb::arg("amplitude").noconvert(), nb::arg("phase").noconvert(),
              nb::arg("F").noconvert(), "F (m,) += sum_j amplitude_j cos(P_ij - phase_j) for P (m, D).");
    };
    bind(&sums<float>);
    bind(&sums<double>);
}
