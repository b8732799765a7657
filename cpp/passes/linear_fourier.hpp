// Online learning on Fourier features, rows to weights in one go: z = [cos(W'x), sin(W'x)]/sqrt(D), the recursion of linear.hpp.
#pragma once

#include <vector>

#include "base/projection.hpp"
#include "passes/linear.hpp"

namespace ks {

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

// All n rows; returns t.
template <class T, class Project>
std::int64_t fourier_pass(std::size_t n, std::size_t D, int C, const Project& project, const double* y, const double* weight,
                          const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update, double* F,
                          double* scratch) {
    // Projections of a block stay in a cache, and are of rows enough to pay for reading all frequencies.
    constexpr std::size_t room = std::size_t(8) << 20;
    const std::size_t block = std::min(n, std::clamp<std::size_t>(room / (D * sizeof(T)), 32, 256));
    std::vector<T> P(block * D), z(2 * D);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = std::min(block, n - first);
        project(first, m, P.data());
        t = fourier_rows<T>(m, D, C, P.data(), z.data(), y + first, weight ? weight + first : nullptr, model, t, loss, update, F + first * C,
                            scratch);
    }
    return t;
}

}  // namespace ks
