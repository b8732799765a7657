// Bindings of the kernel expansions: Gaussian blocks, and the passes with and without a budget.
#include "base/arrays.hpp"
#include "passes/budget.hpp"
#include "passes/expansion.hpp"
#include "maps/gaussian.hpp"
#include "base/known.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

using namespace ks;

namespace {

template <class T> using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;  // rows contiguous, any distance apart

template <class A> std::size_t row_stride(const A& a) {
    require(a.shape(1) <= 1 || a.stride(1) == 1, "rows must be contiguous");
    return a.shape(0) > 1 ? std::size_t(a.stride(0)) : a.shape(1);
}

void check_codes(const Loss& loss, std::size_t m, std::size_t C, const double* y, const double* weight) {
    for (std::size_t i = 0; i < m && loss.kind == Kind::multiclass; ++i)
        require((weight && weight[i] == 0.0) || (y[i] >= 0 && y[i] < double(C)), "class code out of range");
}

// ---- Gaussian blocks ------------------------------------------------------------------------------------------------

template <class T>
void bound_gaussian_dense(Matrix<const T> X, Vector<const T> xn, Matrix<const T> S, Vector<const T> sn, double gamma, Strided<T> K,
                          bool unit_diagonal) {
    const std::size_t m = X.shape(0), d = X.shape(1), n = K.shape(1);
    require(xn.shape(0) == m && K.shape(0) == m && S.shape(1) == d && S.shape(0) >= n && sn.shape(0) >= n, "block shapes differ");
    const std::size_t stride = row_stride(K);
    std::vector<T> buffer(n);
    nb::gil_scoped_release release;
    gaussian_dense<T>(m, n, d, X.data(), xn.data(), S.data(), sn.data(), Gaussian<T>{gamma}, buffer.data(), K.data(), stride);
    for (std::size_t i = 0; unit_diagonal && i < std::min(m, n); ++i) K.data()[i * stride + i] = T(1);
}

template <class T> using Tiles = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class T, class I>
std::size_t csr_rows(Vector<const T>& data, Vector<const I>& indices, Vector<const I>& indptr, std::size_t d) {
    require(indptr.shape(0) > 0 && indices.shape(0) == data.shape(0), "not a CSR matrix");
    const std::size_t m = indptr.shape(0) - 1;
    require(csr_valid<I>(m, d, data.shape(0), indptr.data(), indices.data()), "CSR indices are out of range");
    return m;
}

template <class T>
void bound_row_norms(Matrix<const T> X, Vector<T> norms) {
    require(norms.shape(0) == X.shape(0), "norms need one entry per row");
    row_norms<T>(X.shape(0), X.shape(1), X.data(), norms.data());
}

template <class T, class I>
void bound_csr_norms(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, std::size_t d, Vector<T> norms) {
    const std::size_t m = csr_rows(data, indices, indptr, d);
    require(norms.shape(0) == m, "norms need one entry per row");
    csr_norms<T, I>(m, {data.data(), indices.data(), indptr.data()}, norms.data());
}

template <class T, class I>
void bound_gaussian_csr(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Vector<const T> xn,
                        Tiles<const T> tiles, Vector<const T> sn, double gamma, Strided<T> K) {
    const std::size_t d = tiles.shape(1), m = csr_rows(data, indices, indptr, d), n = K.shape(1);
    require(xn.shape(0) == m && K.shape(0) == m, "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && tiles.shape(0) * csr_tile_width<T> == sn.shape(0) && sn.shape(0) >= n, "tiles do not fit");
    const std::size_t stride = row_stride(K);
    std::vector<T> buffer(d + sn.shape(0));
    nb::gil_scoped_release release;
    gaussian_csr<T, I>(m, n, d, {data.data(), indices.data(), indptr.data()}, xn.data(), tiles.data(), sn.data(), Gaussian<T>{gamma},
                       buffer.data(), K.data(), stride);
}

template <class T, class I>
void bound_gaussian_csr_among(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Vector<const T> xn, Tiles<T> tiles,
                              double gamma, Matrix<T> G) {
    const std::size_t d = tiles.shape(1), m = csr_rows(data, indices, indptr, d), room = tiles.shape(0) * tiles.shape(2);
    require(xn.shape(0) == m && G.shape(0) == m && G.shape(1) == m, "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && room >= m, "tiles do not fit");
    std::vector<T> buffer(d + room), norms(room);
    nb::gil_scoped_release release;
    gaussian_csr_among<T, I>(m, d, {data.data(), indices.data(), indptr.data()}, xn.data(), tiles.data(), norms.data(), Gaussian<T>{gamma},
                             buffer.data(), G.data());
}

template <class T, class I>
void bound_gaussian_csr_scores(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Vector<const T> xn,
                               Tiles<const T> tiles, Vector<const T> sn, double gamma, Strided<const T> alpha, Matrix<double> F) {
    const std::size_t d = tiles.shape(1), m = csr_rows(data, indices, indptr, d), n = alpha.shape(1), C = alpha.shape(0);
    require(xn.shape(0) == m && F.shape(0) == m && F.shape(1) == C, "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && tiles.shape(0) * csr_tile_width<T> == sn.shape(0) && sn.shape(0) >= n, "tiles do not fit");
    const std::size_t stride = row_stride(alpha);
    std::vector<T> buffer(d + sn.shape(0));
    nb::gil_scoped_release release;
    gaussian_csr_scores<T, I>(m, n, d, {data.data(), indices.data(), indptr.data()}, xn.data(), tiles.data(), sn.data(), Gaussian<T>{gamma},
                              buffer.data(), int(C), alpha.data(), stride, F.data());
}

template <class T, class I>
void bound_csr_to_slots(Vector<const T> data, Vector<const I> indices, Vector<const I> indptr, Vector<const std::int64_t> rows,
                        Vector<const std::int64_t> slots, Maybe<Matrix<T>> support, Maybe<Tiles<T>> tiles) {
    const std::size_t d = tiles ? tiles->shape(1) : support ? support->shape(1) : 0, m = csr_rows(data, indices, indptr, d);
    require(rows.shape(0) == slots.shape(0), "rows and slots differ");
    require(!tiles || tiles->shape(2) == csr_tile_width<T>, "tiles have another width");
    require(!support || support->shape(1) == d, "support vectors have another width");
    const Csr<T, I> X{data.data(), indices.data(), indptr.data()};
    for (std::size_t k = 0; k < rows.shape(0); ++k) {
        const auto i = std::size_t(rows.data()[k]), j = std::size_t(slots.data()[k]);
        require(i < m && (!tiles || j < tiles->shape(0) * tiles->shape(2)) && (!support || j < support->shape(0)), "slot out of range");
        if (tiles) csr_to_tile<T, I>(X, i, d, tiles->data(), j);
        if (support) csr_to_row<T, I>(X, i, d, support->data() + j * d);
    }
}

// ---- Passes ---------------------------------------------------------------------------------------------------------

template <class T>
std::tuple<std::size_t, std::size_t> bound_expansion_pass(
    Matrix<double> F, Matrix<const T> G, Maybe<Matrix<double>> M, Vector<const double> y, Maybe<Vector<const double>> weight,
    Maybe<Vector<const double>> u, Matrix<double> memory, Maybe<Vector<double>> center, std::int64_t t, bool stop,
    Vector<std::int64_t> joined, Matrix<double> coefficients, Vector<double> decay, const std::string& loss_name,
    const std::vector<double>& loss_parameters, const std::string& update_name, const std::vector<double>& update_parameters,
    const std::string& growing_name, const std::vector<double>& growing_parameters) {
    const std::size_t m = F.shape(0), C = F.shape(1);
    const auto loss = make_loss(loss_name, loss_parameters);
    const auto update = make_update(update_name, update_parameters);
    const auto growing = growing_name.empty() ? nullptr : make_growing(growing_name, growing_parameters);
    require(!update->diagonal, "a diagonal update needs explicit features");
    require(G.shape(0) == m && G.shape(1) == m && y.shape(0) == m && (!weight || weight->shape(0) == m), "block shapes differ");
    require((!M || (M->shape(0) == m && M->shape(1) == C)) && (!u || u->shape(0) >= m), "block shapes differ");
    require(coefficients.shape(0) == joined.shape(0) && coefficients.shape(1) == C && decay.shape(0) == C, "coefficients must be (room, outputs)");
    require(int(memory.shape(0)) >= update->n_memory && memory.shape(1) == C, "memory does not fit the update");
    require(!center || center->shape(0) == 2, "center holds a count and a mean");
    check_codes(*loss, m, C, y.data(), data_or_null(weight));
    std::vector<double> scratch(4 * C);
    const Block block{m, int(C), F.data(), data_or_null(M), y.data(), data_or_null(weight), data_or_null(u)};
    Members members{joined.shape(0), 0, joined.data(), coefficients.data(), decay.data()};
    nb::gil_scoped_release release;
    const std::size_t consumed = expansion_pass<T>(block, G.data(), *loss, *update, growing.get(), memory.data(),
                                                   data_or_null(center), t, stop, members, scratch.data());
    require_finite(consumed * C, F.data());
    require_finite(members.q * C, coefficients.data());
    require_finite(memory.size(), memory.data());
    return {consumed, members.q};
}

// Returns the next row, t, the number of support vectors and the merged vectors (slot, a, b, h; ...).
template <class T>
std::tuple<std::size_t, std::int64_t, std::size_t, std::vector<double>> bound_budget_pass(
    Matrix<T> K, Matrix<const T> G, Vector<const double> y, Maybe<Vector<const double>> weight, Maybe<Vector<const double>> u,
    Matrix<T> alpha, Vector<double> scale, Vector<T> diag, std::size_t n, Vector<double> numbers, Maybe<Matrix<T>> gram,
    Maybe<Matrix<double>> basis, Maybe<Matrix<double>> factor, Maybe<Matrix<const double>> fixed, Maybe<Matrix<const double>> solved,
    Maybe<Vector<const std::int64_t>> solution, Maybe<Matrix<double>> sv_scores, Maybe<Matrix<const T>> Z, Maybe<Matrix<T>> w, Maybe<Matrix<T>> z,
    Vector<std::int64_t> owner, Matrix<double> memory, Maybe<Vector<double>> center, std::size_t start, std::int64_t first,
    std::int64_t t, const std::string& loss_name, const std::vector<double>& loss_parameters, const std::string& update_name,
    const std::vector<double>& update_parameters, const std::string& budget_name, const std::vector<double>& budget_parameters,
    Matrix<double> F) {
    const std::size_t m = K.shape(0), N = K.shape(1), C = alpha.shape(0);
    const auto loss = make_loss(loss_name, loss_parameters);
    const auto update = make_update(update_name, update_parameters);
    const auto budget = make_budget<T>(budget_name, budget_parameters);
    require(budget != nullptr, "the native engine has no such budget strategy: use engine='python'");
    require(!update->diagonal, "a diagonal update needs explicit features");
    require(G.shape(0) == m && G.shape(1) == m && y.shape(0) == m && (!weight || weight->shape(0) == m), "block shapes differ");
    require(F.shape(0) == m && F.shape(1) == C && (!u || u->shape(0) >= m), "block shapes differ");
    require(alpha.shape(1) == N && scale.shape(0) == C && diag.shape(0) == N && owner.shape(0) == N && n <= N, "support set does not fit");
    require(int(memory.shape(0)) >= update->n_memory && memory.shape(1) == C, "memory does not fit the update");
    auto square = [&](const auto& a) { return !a || (a->shape(0) == N && a->shape(1) == N); };
    require(square(gram) && square(basis) && square(factor) && (!sv_scores || (sv_scores->shape(0) == C && sv_scores->shape(1) == N)), "support set does not fit");
    require(square(fixed) && !solved == !solution && (!solved || (solved->shape(1) == N && solution->shape(0) == m)), "solutions do not fit");
    for (std::size_t i = 0; solution && i < m; ++i)
        require(solution->data()[i] < std::int64_t(solved->shape(0)), "solutions do not fit");
    const std::size_t P = Z ? Z->shape(1) : 0;
    require(!Z || (w && z && Z->shape(0) == m && w->shape(0) == C && w->shape(1) == P && z->shape(0) == N && z->shape(1) == P), "features do not fit");
    require(!center || center->shape(0) == 2, "center holds a count and a mean");
    check_codes(*loss, m, C, y.data(), data_or_null(weight));
    Support<T> S{m, N, n, int(C), K.data(), G.data(), alpha.data(), scale.data(), diag.data(), numbers.data(), data_or_null(gram),
                 data_or_null(basis), data_or_null(factor), data_or_null(fixed), data_or_null(solved),
                 data_or_null(solution), data_or_null(sv_scores), data_or_null(Z), P, data_or_null(w), data_or_null(z), owner.data(), {},
                 std::vector<double>(4 * (N + 1) + C)};
    require(budget->fits(S, numbers.shape(0)), "the support set lacks what the strategy needs");
    require(start <= m && t >= first && (!u || u->shape(0) >= std::size_t(t - first) + (m - start)), "not enough random numbers");
    Position at{start, t};
    {
        nb::gil_scoped_release release;
        budget_pass<T>(S, *budget, y.data(), data_or_null(weight), data_or_null(u), memory.data(), data_or_null(center), *loss, *update,
                       first, at, F.data());
        require_finite((at.row - start) * C, F.data() + start * C);
        require_finite(C * N, S.alpha);
        require_finite(N, S.diag);
        require_finite(C * P, S.w);
        require_finite(memory.size(), memory.data());
    }
    return {at.row, at.t, S.n, std::move(S.blends)};
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    m.def("csr_norms", &bound_csr_norms<T, I>, plain, plain, plain, nb::arg(), plain);
    m.def("gaussian_csr", &bound_gaussian_csr<T, I>, plain, plain, plain, plain, plain, plain, nb::arg(), plain);
    m.def("gaussian_csr_among", &bound_gaussian_csr_among<T, I>, plain, plain, plain, plain, plain, nb::arg(), plain);
    m.def("gaussian_csr_scores", &bound_gaussian_csr_scores<T, I>, plain, plain, plain, plain, plain, plain, nb::arg(), plain, plain);
    m.def("csr_to_slots", &bound_csr_to_slots<T, I>, plain, plain, plain, plain, plain, maybe, maybe);
}

template <class T>
void bind(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    const auto value = nb::arg();
    bind_sparse<T, std::int32_t>(m);
    bind_sparse<T, std::int64_t>(m);
    m.def("row_norms", &bound_row_norms<T>, plain, plain);
    m.def("gaussian_dense", &bound_gaussian_dense<T>, plain, plain, plain, plain, value, plain, value);
    m.def("expansion_pass", &bound_expansion_pass<T>, plain, plain, maybe, plain, maybe, maybe, plain, maybe, value, value, plain, plain,
          plain, value, value, value, value, value, value);
    m.def("budget_pass", &bound_budget_pass<T>, plain, plain, plain, maybe, maybe, plain, plain, plain, value, plain, maybe, maybe, maybe,
          maybe, maybe, maybe, maybe, maybe, maybe, maybe, plain, plain, maybe, value, value, value, value, value, value, value, value, value, plain);
}

}  // namespace

void bind_budget(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
    // those that remove, and those that only grow
    m.def("has_budget", [](const std::string& name) {
        return make_budget<double>(name, {0.0}) != nullptr || is_known(make_growing, name);
    });
    m.attr("FLOAT_TILE") = csr_tile_width<float>;
    m.attr("DOUBLE_TILE") = csr_tile_width<double>;
}
