// Online learning on Nyström features of a Gaussian kernel, rows to weights in one go: z = P'k_S(x), the recursion of linear.hpp.
#pragma once

#include <vector>

#include "base/projection.hpp"
#include "passes/linear.hpp"

namespace ks {

// Landmarks S (s, d) and the projection, in the form in which they are used.
template <class T>
struct GaussianLandmarks {
    std::size_t s, k;
    const T* norms;  // (s): |S|^2
    const T* P;      // (s, k)
    T gamma;
};

// K (m, s) += norms of rows and of landmarks, |x|^2 + |s|^2.
template <class T>
KS_CLONES void add_norms(std::size_t m, std::size_t s, const T* KS_RESTRICT rows, const T* KS_RESTRICT landmarks, T* K) {
    for (std::size_t i = 0; i < m; ++i) {
        T* KS_RESTRICT at = K + i * s;
        const T own = rows[i];
#pragma omp simd
        for (std::size_t j = 0; j < s; ++j) at[j] = (at[j] + own) + landmarks[j];
    }
}

// Rows with |x|^2 in xx, whose products with the columns of -2 S' `project` makes; returns t. pass(first, rows, Z, t) learns rows with
// features Z (rows, k).
template <class T, class Project, class Pass>
std::int64_t nystroem_pass(std::size_t n, const Project& project, const T* xx, const GaussianLandmarks<T>& map, const Blas& blas,
                           std::int64_t t, Pass&& pass) {
    constexpr std::size_t block = 64;
    const std::size_t s = map.s, k = map.k;
    std::vector<T> K(block * s), Z(block * k);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t rows = std::min(block, n - first);
        project(first, rows, K.data());
        add_norms(rows, s, xx + first, map.norms, K.data());
        exp_scaled(rows * s, K.data(), map.gamma, true);
        blas.gemm(k, rows, s, T(1), map.P, k, K.data(), s, T(0), Z.data(), k);
        t = pass(first, rows, Z.data(), t);
    }
    return t;
}

}  // namespace ks
