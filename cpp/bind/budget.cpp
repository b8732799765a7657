// Bindings of the kernel expansions: Gaussian blocks, and the passes with and without a budget.
#include "base/blas.hpp"
#include "bind/group.hpp"
#include "bind/support.hpp"
#include "maps/gaussian_wide.hpp"
#include "passes/budget.hpp"
#include "passes/expansion.hpp"

using namespace ks;

namespace {

template <class T> using Strided = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;  // rows contiguous, any distance apart

template <class A> std::size_t row_stride(const A& a) {
    require(a.shape(1) <= 1 || a.stride(1) == 1, "rows must be contiguous");
    return a.shape(0) > 1 ? std::size_t(a.stride(0)) : a.shape(1);
}

// ---- Gaussian blocks ------------------------------------------------------------------------------------------------

template <class T>
void bound_gaussian_dense(Matrix<const T> X, Vector<const T> xn, Matrix<const T> S, Vector<const T> sn, double gamma, Strided<T> K,
                          bool unit_diagonal) {
    const std::size_t m = X.shape(0), d = X.shape(1), n = K.shape(1);
    require(fits(xn, m) && fits(K, m) && S.shape(1) == d && S.shape(0) >= n && sn.shape(0) >= n, "block shapes differ");
    const std::size_t stride = row_stride(K);
    std::vector<T> buffer(n);
    nb::gil_scoped_release release;
    gaussian_dense<T>(m, n, d, X.data(), xn.data(), S.data(), sn.data(), Gaussian<T>{gamma}, buffer.data(), K.data(), stride);
    for (std::size_t i = 0; unit_diagonal && i < std::min(m, n); ++i) K.data()[i * stride + i] = T(1);
}

template <class T> using Tiles = Cube<T>;

template <class T>
void bound_row_norms(Matrix<const T> X, Vector<T> norms) {
    require(fits(norms, X.shape(0)), "norms need one entry per row");
    row_norms<T>(X.shape(0), X.shape(1), X.data(), norms.data());
}

template <class T, class I>
void bound_csr_norms(CsrArrays<T, I> X, std::size_t d, Vector<T> norms) {
    const Csr<T, I> rows = rows_of(X, d);
    require(fits(norms, rows.n), "norms need one entry per row");
    csr_norms<T, I>(rows, norms.data());
}

template <class T, class I>
void bound_gaussian_csr(CsrArrays<T, I> X, Vector<const T> xn, Tiles<const T> tiles, Vector<const T> sn, double gamma,
                        Strided<T> K) {
    const std::size_t d = tiles.shape(1), n = K.shape(1);
    const Csr<T, I> rows = rows_of(X, d);
    require(fits(xn, rows.n) && fits(K, rows.n), "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && tiles.shape(0) * csr_tile_width<T> == sn.shape(0) && sn.shape(0) >= n, "tiles do not fit");
    const std::size_t stride = row_stride(K);
    std::vector<T> dense(d);
    nb::gil_scoped_release release;
    gaussian_csr<T, I>(n, rows, xn.data(), tiles.data(), sn.data(), Gaussian<T>{gamma}, dense.data(), K.data(), stride);
}

template <class T, class I>
void bound_gaussian_csr_among(CsrArrays<T, I> X, Vector<const T> xn, Tiles<T> tiles, double gamma, Matrix<T> G) {
    const std::size_t d = tiles.shape(1), room = tiles.shape(0) * tiles.shape(2);
    const Csr<T, I> rows = rows_of(X, d);
    require(fits(xn, rows.n) && fits(G, rows.n, rows.n), "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && room >= rows.n, "tiles do not fit");
    std::vector<T> dense(d), norms(room);
    nb::gil_scoped_release release;
    gaussian_csr_among<T, I>(rows, xn.data(), tiles.data(), norms.data(), Gaussian<T>{gamma}, dense.data(), G.data());
}

template <class T, class I>
void bound_gaussian_csr_scores(CsrArrays<T, I> X, Vector<const T> xn, Tiles<const T> tiles, Vector<const T> sn, double gamma,
                               Strided<const T> alpha, Matrix<double> F) {
    const std::size_t d = tiles.shape(1), n = alpha.shape(1), C = alpha.shape(0);
    const Csr<T, I> rows = rows_of(X, d);
    require(fits(xn, rows.n) && fits(F, rows.n, C), "block shapes differ");
    require(tiles.shape(2) == csr_tile_width<T> && tiles.shape(0) * csr_tile_width<T> == sn.shape(0) && sn.shape(0) >= n, "tiles do not fit");
    const std::size_t stride = row_stride(alpha);
    std::vector<T> dense(d);
    nb::gil_scoped_release release;
    gaussian_csr_scores<T, I>(n, rows, xn.data(), tiles.data(), sn.data(), Gaussian<T>{gamma}, dense.data(),
                              int(C), alpha.data(), stride, F.data());
}

template <class T, class I>
void bound_csr_to_slots(CsrArrays<T, I> X, Vector<const std::int64_t> rows, Vector<const std::int64_t> slots,
                        Matrix<T> support, Tiles<T> tiles) {
    const std::size_t d = support.shape(1);
    require(fits(rows, slots.shape(0)), "rows and slots differ");
    require(tiles.shape(1) == d && tiles.shape(2) == csr_tile_width<T>, "tiles have another width");
    const Csr<T, I> all = rows_of(X, d);
    for (std::size_t k = 0; k < rows.shape(0); ++k) {
        const auto i = std::size_t(rows.data()[k]), j = std::size_t(slots.data()[k]);
        require(i < all.n && j < tiles.shape(0) * tiles.shape(2) && j < support.shape(0), "slot out of range");
        csr_to_tile<T, I>(all, i, tiles.data(), j);
        csr_to_row<T, I>(all, i, support.data() + j * d);
    }
}

// ---- Vectors of very many columns -----------------------------------------------------------------------------------

template <class T>
void read_vectors(SparseSet<T>& set, Matrix<const T> support, Vector<const std::int64_t> slots) {
    require(support.shape(0) <= set.capacity() && support.shape(1) < std::size_t(~std::uint32_t(0)), "support vectors have another shape");
    for (std::size_t k = 0; k < slots.shape(0); ++k) {
        const auto slot = std::size_t(slots.data()[k]);
        require(slot < support.shape(0), "slot out of range");
        set.read(slot, support.shape(1), support.data() + slot * support.shape(1));
    }
}

// Slots and columns of all entries of the vectors `slots`.
template <class T>
nb::tuple list_entries(const SparseSet<T>& set, Vector<const std::int64_t> slots) {
    std::vector<std::int64_t> rows, columns;
    for (std::size_t k = 0; k < slots.shape(0); ++k) {
        require(std::size_t(slots.data()[k]) < set.capacity(), "slot out of range");
        const auto& found = set[std::size_t(slots.data()[k])].columns;
        rows.insert(rows.end(), found.size(), slots.data()[k]);
        columns.insert(columns.end(), found.begin(), found.end());
    }
    return nb::make_tuple(own(std::move(rows)), own(std::move(columns)));
}

// Rows of X (m, d) become vectors of the set, and of the support vectors where there are some.
template <class T, class I>
void put_rows(SparseSet<T>& set, CsrArrays<T, I> X, std::size_t d, Vector<const std::int64_t> rows, Vector<const std::int64_t> slots,
              Maybe<Matrix<T>> support) {
    const Csr<T, I> all = rows_of(X, d);
    require(fits(rows, slots.shape(0)) && fits(support, set.capacity(), d), "rows, slots and support vectors do not fit");
    for (std::size_t k = 0; k < rows.shape(0); ++k) {
        const auto i = std::size_t(rows.data()[k]), j = std::size_t(slots.data()[k]);
        require(i < all.n && j < set.capacity(), "slot out of range");
        set.put(j, all, i, support ? support->data() + j * d : nullptr);
    }
}

// K (m, n) with the vectors first, ..., first + n - 1, whose norms are sn.
template <class T, class I>
void wide_values(const SparseSet<T>& set, CsrArrays<T, I> X, std::size_t d, Vector<const T> xn, std::size_t first, Vector<const T> sn,
                 double gamma, Strided<T> K) {
    const std::size_t n = K.shape(1), stride = row_stride(K);
    const Csr<T, I> rows = rows_of(X, d);
    require(fits(xn, rows.n) && fits(K, rows.n) && fits(sn, n) && first + n <= set.capacity(), "block shapes differ");
    nb::gil_scoped_release release;
    gaussian_wide<T, I>(n, rows, xn.data(), set, first, sn.data(), Gaussian<T>{gamma}, K.data(), stride);
}

template <class T>
void bind_sparse_set(nb::module_& m, const char* name) {
    nb::class_<SparseSet<T>>(m, name, "Vectors of very many columns, by their entries.")
        .def(nb::init<std::size_t>())
        .def("__len__", &SparseSet<T>::capacity)
        .def("read", &read_vectors<T>, plain, plain)
        .def("entries", &list_entries<T>, plain)
        .def("put", &put_rows<T, std::int32_t>, plain, value, plain, plain, maybe)
        .def("put", &put_rows<T, std::int64_t>, plain, value, plain, plain, maybe)
        .def("gaussian", &wide_values<T, std::int32_t>, plain, value, plain, value, plain, value, plain)
        .def("gaussian", &wide_values<T, std::int64_t>, plain, value, plain, value, plain, value, plain);
}

// ---- Passes ---------------------------------------------------------------------------------------------------------

// Random numbers of rows of a block, at least n where there are any.
const double* uniforms(nb::handle block, std::size_t n) {
    const auto u = maybe_entry<Vector<const double>>(block, "u");
    require(!u || u->shape(0) >= n, "not enough random numbers");
    return data_or_null(u);
}

// The block: F (m, C) scores at its start, G (m, m), M, y, weight, u, and room for those that join: joined, coefficients, decay.
// Changes memory and center of the state, not t. Returns how many rows were handled, and how many joined.
template <class T>
std::tuple<std::size_t, std::size_t> learn_expansion(nb::handle state, nb::handle given, const Spec& spec, bool stop) {
    const auto F = entry<Matrix<double>>(given, "F");
    const auto joined = entry<Vector<std::int64_t>>(given, "joined");
    const std::size_t m = F.shape(0), C = F.shape(1), room = joined.shape(0);
    const Carried carried(state, spec, C);
    const Block block{m, int(C), F.data(), shaped_or_null<double>(given, "M", m, C), shaped<const double>(given, "y", m),
                      shaped_or_null<const double>(given, "weight", m), uniforms(given, m)};
    Members members{room, 0, joined.data(), shaped<double>(given, "coefficients", room, C), shaped<double>(given, "decay", C)};
    const T* G = shaped<const T>(given, "G", m, m);
    require(!spec.update->diagonal, "a diagonal update needs explicit features");
    require(!spec.budget<T>(), "the strategy removes vectors: it needs a budget");
    if (spec.loss->kind == Kind::multiclass) require_codes(m, C, block.y, block.weight);
    const std::int64_t t = number<std::int64_t>(state, "t");
    std::vector<double> scratch(4 * C);
    nb::gil_scoped_release release;
    const std::size_t consumed = expansion_pass<T>(block, G, *spec.loss, *spec.update, spec.growing.get(), carried.memory.data(),
                                                   data_or_null(carried.center), t, stop, members, scratch.data());
    require_finite(consumed * C, F.data(), members.q * C, members.coefficients, carried.memory.size(), carried.memory.data());
    return {consumed, members.q};
}

std::tuple<std::size_t, std::size_t> bound_expansion_pass(nb::dict state, nb::dict block, const Spec& spec, bool stop) {
    return by_type(item(block, "G"), [&](auto type) { return learn_expansion<decltype(type)>(state, block, spec, stop); });
}

// The block: K (m, capacity), G (m, m), y, weight, u, Z, owner (capacity), scores (m, C); for a set that will not change any more inverse
// (capacity, capacity), and solution (m) says which of solved (rows, capacity) is a row's: K^-1 k, or without inverse k, and `blas` divides
// it. Learns from row `start` on, `first` being t before the block.
// Changes the state; returns the next row and the merged vectors (slot, a, b, h; ...).
template <class T>
std::tuple<std::size_t, std::vector<double>> learn_budget(nb::handle state, nb::handle block, const Spec& spec, std::size_t start,
                                                          std::int64_t first) {
    const auto K = entry<Matrix<T>>(block, "K");
    const auto solved = maybe_entry<Matrix<double>>(block, "solved");
    const auto Z = maybe_entry<Matrix<const T>>(block, "Z");
    const std::int64_t t = number<std::int64_t>(state, "t");
    Support<T> S = support_of<T>(state, spec);
    const std::size_t m = K.shape(0), N = S.capacity, C = S.C, P = Z ? Z->shape(1) : 0, expected = solved ? solved->shape(0) : 0;
    const Carried carried(state, spec, C);
    S.m = m, S.K = shaped<T>(block, "K", m, N), S.G = shaped<const T>(block, "G", m, m);
    S.owner = shaped<std::int64_t>(block, "owner", N);
    S.fixed = shaped_or_null<const double>(block, "inverse", N, N);
    S.solved = data_or_null(solved);
    S.solution = shaped_or_null<const std::int64_t>(block, "solution", m);
    S.known = S.n;
    const Blas* blas = solved && !S.fixed ? nb::cast<const Blas*>(item(block, "blas")) : nullptr;
    require(!S.fixed || S.n == N, "the inverse is one of other vectors");
    require(!S.solved == !S.solution && (!solved || (fits(*solved, expected, N) && (S.fixed || S.factor))), "solutions do not fit");
    for (std::size_t i = 0; S.solution && i < m; ++i)
        require(S.solution[i] < std::int64_t(expected) && (expected < m || S.solution[i] >= 0), "solutions do not fit");
    if (Z) {
        require(fits(*Z, m), "features do not fit");
        S.Z = Z->data(), S.P = P, S.w = shaped<T>(state, "budget_w", C, P), S.z = shaped<T>(state, "budget_z", N, P);
    }
    const Budget<T>& budget = budget_of(spec, S);
    const double *y = shaped<const double>(block, "y", m), *weight = shaped_or_null<const double>(block, "weight", m);
    if (spec.loss->kind == Kind::multiclass) require_codes(m, C, y, weight);
    require(start <= m && t >= first, "the block is learned already");
    const double* u = uniforms(block, std::max(m, std::size_t(t - first) + (m - start)));
    double* F = shaped<double>(block, "scores", m, C);
    Position at{start, t};
    {
        nb::gil_scoped_release release;
        if (blas) {
            blas->trsm(S.n, expected, S.factor, N, S.solved, N);
            S.pending.resize(expected == m ? C * N : 0);
        }
        budget_pass<T>(S, budget, y, weight, u, carried.memory.data(), data_or_null(carried.center), *spec.loss, *spec.update, first, at, F);
        require_finite((at.row - start) * C, F + start * C, C * N, S.alpha, N, S.diag, C * P, S.w);
        require_finite(carried.memory.size(), carried.memory.data());
    }
    set_number(state, "t", at.t);
    set_number(state, "n_support", S.n);
    return {at.row, std::move(S.blends)};
}

std::tuple<std::size_t, std::vector<double>> bound_budget_pass(nb::dict state, nb::dict block, const Spec& spec, std::size_t start,
                                                               std::int64_t first) {
    return by_type(item(block, "K"), [&](auto type) { return learn_budget<decltype(type)>(state, block, spec, start, first); });
}

template <class T, class I>
void bind_sparse(nb::module_& m) {
    m.def("csr_norms", &bound_csr_norms<T, I>, plain, value, plain);
    m.def("gaussian_csr", &bound_gaussian_csr<T, I>, plain, plain, plain, plain, value, plain);
    m.def("gaussian_csr_among", &bound_gaussian_csr_among<T, I>, plain, plain, plain, value, plain);
    m.def("gaussian_csr_scores", &bound_gaussian_csr_scores<T, I>, plain, plain, plain, plain, value, plain, plain);
    m.def("csr_to_slots", &bound_csr_to_slots<T, I>, plain, plain, plain, plain, plain);
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    bind_sparse<T, std::int32_t>(m);
    bind_sparse<T, std::int64_t>(m);
    bind_sparse_set<T>(m, sizeof(T) == 4 ? "SparseSetSingle" : "SparseSet");
    m.def("row_norms", &bound_row_norms<T>, plain, plain);
    m.def("gaussian_dense", &bound_gaussian_dense<T>, plain, plain, plain, plain, value, plain, value);
});

const Group group([](nb::module_& m) {
    m.def("expansion_pass", &bound_expansion_pass);
    m.def("budget_pass", &bound_budget_pass);
    m.attr("FLOAT_TILE") = csr_tile_width<float>;
    m.attr("DOUBLE_TILE") = csr_tile_width<double>;
});

}  // namespace
