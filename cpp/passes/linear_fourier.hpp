// Online learning on Fourier features, rows to weights in one go: z = [cos(W'x), sin(W'x)]/sqrt(D), the recursion of linear.hpp.
//
// Where leading directions are damped, z less psi B, the features of all rows of a block are made before they are learned.
#pragma once

#include <vector>

#include "base/projection.hpp"
#include "passes/linear.hpp"

namespace ks {

// What features lose along some directions: psi (n, k) of the rows, B (k, 2 D).
template <class T>
struct Directions {
    const Blas& blas;
    const T *psi, *B;
    std::size_t k;
};

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

// All n rows; returns t. damped: or null.
template <class T, class Project>
std::int64_t fourier_pass(std::size_t n, std::size_t D, int C, const Project& project, const double* y, const double* weight,
                          const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update,
                          const Directions<T>* damped, double* F, double* scratch) {
    // Projections of a block stay in the cache, and are of rows enough to pay for reading all frequencies.
    constexpr std::size_t room = std::size_t(2) << 20;
    const std::size_t block = std::min(n, std::clamp<std::size_t>(room / (D * sizeof(T)), 32, 128)), width = 2 * D;
    std::vector<T> P(block * D), z((damped ? block : 1) * width);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = std::min(block, n - first);
        const double *targets = y + first, *weights = weight ? weight + first : nullptr;
        project(first, m, P.data());
        if (!damped) {
            t = fourier_rows<T>(m, D, C, P.data(), z.data(), targets, weights, model, t, loss, update, F + first * C, scratch);
            continue;
        }
        trig(m, D, P.data(), T(1 / std::sqrt(double(D))), z.data());
        damped->blas.gemm(width, m, damped->k, T(-1), damped->B, width, damped->psi + first * damped->k, damped->k, T(1), z.data(), width);
        t = linear_pass<T>(m, width, C, z.data(), targets, weights, model, t, loss, update, false, F + first * C, scratch);
    }
    return t;
}

}  // namespace ks
