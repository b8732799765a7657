// Online learning on features that a pass makes itself, rows to weights in one go, by the recursion of linear.hpp: Fourier features
// z = [cos(W'x), sin(W'x)]/sqrt(D), and Nyström features z = P'k_S(x) of a Gaussian kernel.
#pragma once

#include <vector>

#include "base/projection.hpp"
#include "passes/linear.hpp"

namespace ks {

// All n rows, a block at a time: project(first, m, P) makes their projections P (m, width), which stay in a cache, and
// pass(first, m, P, t) learns the rows and returns t.
template <class T, class Project, class Pass>
std::int64_t projected_pass(std::size_t n, std::size_t block, std::size_t width, const Project& project, std::int64_t t, const Pass& pass) {
    std::vector<T> P(std::min(n, block) * width);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = std::min(block, n - first);
        project(first, m, P.data());
        t = pass(first, m, P.data(), t);
    }
    return t;
}

// Rows of projections of D frequencies in a block: enough to pay for reading all of these.
template <class T> std::size_t fourier_block(std::size_t D) {
    constexpr std::size_t room = std::size_t(8) << 20;
    return std::clamp<std::size_t>(room / (D * sizeof(T)), 32, 256);
}

// The m rows of a block with projections P (m, D); z (2 D): room for the features of one, which are learned while they are in the nearest
// cache. Returns t.
template <class T>
KS_CLONES std::int64_t fourier_rows(std::size_t m, std::size_t D, int C, const T* P, T* z, const double* y, const double* weight,
                                    const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update, double* F,
                                    double* scratch) {
    const RowRoom room(scratch, C);
    for (std::size_t i = 0; i < m; ++i) {
        cos_sin(D, P + i * D, T(1 / std::sqrt(double(D))), z, z + D);
        t = linear_row<T>(2 * D, C, DenseRow<T>{2 * D, z}, y[i], weight ? weight[i] : 1.0, model, t, loss, update, true, F + i * C, room);
    }
    return t;
}

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

}  // namespace ks
