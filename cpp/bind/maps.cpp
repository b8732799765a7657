// Bindings of feature maps and kernels: Fourier features of a row, distances and exponentials of them.
#include "bind/group.hpp"
#include "maps/city_block.hpp"
#include "maps/fourier.hpp"
#include "maps/ranks.hpp"

using namespace ks;

namespace {

// Whether m rows of d columns in tiles are what `name` takes, with this norm and factor.
template <class T>
void check_tiles(const char* name, const Matrix<const T>& X, const Matrix<const T>& tiles, std::size_t m, int norm, double c) {
    constexpr std::size_t P = tile_width<T>;
    const auto demand = [&](bool ok, const char* reason) { require(ok, (std::string(name) + ": " + reason).c_str()); };
    demand(tiles.shape(1) == X.shape(1) * P && tiles.shape(0) == (m + P - 1) / P, "shapes do not agree");
    demand(norm == 1 || norm == 2, "norm must be 1 or 2");
    demand(c > 0 && std::isfinite(c), "c must be a finite number > 0");
}

template <class T>
void bound_exponential(Matrix<const T> X, Matrix<const T> tiles, Matrix<T> out, int norm, double c) {
    const std::size_t n = X.shape(0), d = X.shape(1), m = out.shape(1);
    require(fits(out, n), "exponential: shapes do not agree");
    check_tiles("exponential", X, tiles, m, norm, c);
    nb::gil_scoped_release release;
    (norm == 1 ? exponential<T, 1> : exponential<T, 2>)(n, m, d, X.data(), tiles.data(), T(c), out.data());
}

template <class T>
void bound_exponential_mixture(Matrix<const T> X, Matrix<const T> U, Matrix<const T> near, Matrix<const T> apart, Matrix<T> out,
                               double share) {
    const std::size_t n = X.shape(0), d = X.shape(1), m = out.shape(1);
    require(fits(out, n) && fits(U, n, d), "exponential_mixture: shapes do not agree");
    for (const auto& tiles : {near, apart}) check_tiles("exponential_mixture", X, tiles, m, 2, 1.0);
    nb::gil_scoped_release release;
    exponential_mixture<T>(n, m, d, X.data(), U.data(), near.data(), apart.data(), T(share), out.data());
}

template <class T>
void bound_exponential_square(Matrix<const T> X, Matrix<const T> U, Matrix<const T> near, Matrix<const T> apart, Matrix<T> K,
                              double share, std::size_t first) {
    const std::size_t m = X.shape(0), d = X.shape(1), n = K.shape(0);
    require(fits(K, n, n) && fits(U, m, d) && first % tile_width<T> == 0 && first <= n && m <= n - first &&
            (m % tile_width<T> == 0 || first + m == n), "exponential_square: shapes do not agree");
    for (const auto& tiles : {near, apart}) check_tiles("exponential_square", X, tiles, n, 2, 1.0);
    nb::gil_scoped_release release;
    exponential_square<T>(n, m, d, X.data(), U.data(), near.data(), apart.data(), T(share), first, K.data());
}

template <class T>
void bound_symmetric_product(Matrix<const T> K, Vector<const double> diagonal, Matrix<const double> V, Matrix<double> out) {
    const std::size_t n = K.shape(0), C = V.shape(0);
    require(fits(K, n, n) && fits(diagonal, n) && fits(V, C, n) && fits(out, C, n), "symmetric_product: shapes do not agree");
    nb::gil_scoped_release release;
    symmetric_product<T>(n, C, K.data(), diagonal.data(), V.data(), out.data());
}

template <class T>
void bound_exponential_sums(Matrix<const T> X, Matrix<const T> tiles, Matrix<const double> A, Matrix<double> out, int norm,
                            double c) {
    const std::size_t n = X.shape(0), d = X.shape(1), C = A.shape(0), m = A.shape(1);
    require(fits(out, n, C), "exponential_sums: shapes do not agree");
    check_tiles("exponential_sums", X, tiles, m, norm, c);
    nb::gil_scoped_release release;
    (norm == 1 ? exponential_sums<T, 1> : exponential_sums<T, 2>)(n, m, d, X.data(), tiles.data(), T(c), C, A.data(), out.data());
}

template <class T>
void bound_exponential_slopes(Matrix<const T> X, Matrix<const T> tiles, Matrix<const T> A, Cube<double> out, int norm, double near) {
    const std::size_t n = X.shape(0), d = X.shape(1), C = A.shape(0), m = A.shape(1);
    require(fits(out, n, C, d), "exponential_slopes: shapes do not agree");
    check_tiles("exponential_slopes", X, tiles, m, norm, 1.0);
    nb::gil_scoped_release release;
    (norm == 1 ? exponential_slopes<T, 1> : exponential_slopes<T, 2>)(n, m, d, X.data(), tiles.data(), T(near), C, A.data(), out.data());
}

template <class T>
void bound_fourier_row(Matrix<const T> X, Matrix<const T> W, Matrix<T> Z, double scale) {
    const std::size_t d = X.shape(1), D = W.shape(1);
    require(X.shape(0) == 1 && W.shape(0) == d && Z.shape(0) == 1 && Z.shape(1) == 2 * D, "fourier_row: shapes do not agree");
    static thread_local std::vector<T> p;
    if (p.size() < D) p.resize(D);
    fourier_row<T>(d, D, X.data(), W.data(), T(scale), p.data(), Z.data());
}

template <class T>
void bound_ranks(Matrix<const T> X, Vector<const std::int64_t> columns, Matrix<const float> places, Matrix<const float> heights,
                 Matrix<float> out) {
    const std::size_t n = X.shape(0), d = X.shape(1), k = columns.shape(0), knots = places.shape(1);
    require(fits(out, n, d) && fits(places, k) && fits(heights, k, knots) && knots > 0, "ranks: shapes do not agree");
    for (std::size_t i = 0; i < k; ++i) require(std::uint64_t(columns(i)) < d, "ranks: there is no such column");
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < k; ++i)
        for (std::size_t r = 0, j = std::size_t(columns(i)); r < n; ++r)
            out.data()[r * d + j] = float(height_at(X.data()[r * d + j], knots, places.data() + i * knots, heights.data() + i * knots));
}

const Group group([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def("fourier_row", &bound_fourier_row<T>, plain, plain, plain, value,
          "Z (1, 2 D) <- scale * [cos(X W), sin(X W)] for one row X (1, d), W (d, D).");
    m.def("ranks", &bound_ranks<T>, plain, plain, plain, plain, plain,
          "out (n, d), at some columns (k,) <- heights (k, knots) at X (n, d), along straight lines between places (k, knots).");
    m.def("exponential", &bound_exponential<T>, plain, plain, plain, value, value,
          "out (n, m) <- exp(-c |x - z|) for X (n, d) and m rows z in tiles of 64 bytes a column.");
    m.def("exponential_mixture", &bound_exponential_mixture<T>, plain, plain, plain, plain, plain, value,
          "out (n, m) <- share exp(-|x - z|_2) + (1 - share) exp(-|u - v|_1) for X, U (n, d) and m rows of both kinds in tiles.");
    m.def("exponential_square", &bound_exponential_square<T>, plain, plain, plain, plain, plain, value, value,
          "Rows of the same mixture K (n, n) from one on, X, U (m, d), and columns: all up to the diagonal; n rows of both kinds in tiles.");
    m.def("symmetric_product", &bound_symmetric_product<T>, plain, plain, plain, plain,
          "out (C, n) <- V (C, n) times a symmetric matrix with a diagonal (n,) and otherwise K (n, n) below it.");
    m.def("exponential_sums", &bound_exponential_sums<T>, plain, plain, plain, plain, value, value,
          "out (n, C) <- exp(-c |x - z|) A' for X (n, d), m rows z in tiles and A (C, m).");
    m.def("exponential_slopes", &bound_exponential_slopes<T>, plain, plain, plain, plain, value, value,
          "out (n, C, d) <- slopes of exp(-|x - z|) A' at X (n, d), but for the sign, m rows z in tiles and A (C, m).");
});

}  // namespace
