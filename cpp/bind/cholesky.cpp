// Bindings of triangular factors.
#include "base/cholesky.hpp"
#include "bind/group.hpp"

using namespace ks;

namespace {

template <class T>
bool factorise(const Cholesky<T>& cholesky, Matrix<T> K, int threads) {
    require(K.shape(0) == K.shape(1), "factorise: K must be square");
    nb::gil_scoped_release unlocked;
    return cholesky.factorise(K.shape(0), K.data(), threads);
}

template <class T>
void divide(const Cholesky<T>& cholesky, Matrix<const T> K, Matrix<T> V) {
    require(K.shape(0) == K.shape(1) && V.shape(1) == K.shape(0), "divide: shapes do not agree");
    nb::gil_scoped_release unlocked;
    cholesky.divide(K.shape(0), K.data(), V.shape(0), V.data());
}

const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    nb::class_<Cholesky<T>>(m, sizeof(T) == 4 ? "CholeskySingle" : "CholeskyDouble", "Triangular factors on several threads.")
        .def(nb::init<nb::capsule, nb::capsule, nb::capsule, nb::capsule, nb::capsule>())
        .def("factorise", &factorise<T>, plain, value,
             "K = U'U in the upper triangle of K (n, n), on several threads; what is below stays. False where there is no U.")
        .def("divide", &divide<T>, plain, plain, "The matrix of a factor in the upper triangle of K (n, n) divides each row of V (C, n).");
});

}  // namespace
