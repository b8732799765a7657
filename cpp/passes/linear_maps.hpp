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
    thread_local std::vector<T> held;  // memory that is new to the process costs as much as what is done with it
    T* P = on_line(held, std::min(n, block) * width);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = std::min(block, n - first);
        project(first, m, P);
        t = pass(first, m, P, t);
    }
    return t;
}

// Rows of a block with projections of this width: enough to pay for reading all that they are made of.
template <class T> std::size_t block_rows(std::size_t width) {
    constexpr std::size_t room = std::size_t(8) << 20;
    return std::clamp<std::size_t>(room / (width * sizeof(T)), 32, 256);
}

// A row of D angles p, for one output: its features z (2 D) are made on the way to its score, when the weights take the step of the row
// before, whose features z has been.
template <class T>
struct FourierRow : DenseRow<T> {
    const T* p;
    T* features;
    T& step;

    FourierRow(std::size_t D, const T* angles, T* z, T& before) : DenseRow<T>{2 * D, z}, p(angles), features(z), step(before) {}
    KS_INLINE double dot(T* w) const {
        const std::size_t D = this->P / 2;
        const T f = fourier_step(D, p, T(1 / std::sqrt(double(D))), step, features, w);
        step = T(0);
        return double(f);
    }
    KS_INLINE void add(T factor, T*) const { step = factor; }
};

// The m rows of a block with projections P (m, D); z (2 D): room for the features of one, which are learned while they are in the nearest
// cache. Returns t.
template <class T>
KS_CLONES std::int64_t fourier_rows(std::size_t m, std::size_t D, int C, const T* P, T* z, const double* y, const double* weight,
                                    const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update, double* F,
                                    double* scratch) {
    const RowRoom room(scratch, C);
    const auto learn = [&](std::size_t i, const auto& row) {
        return linear_row<T>(2 * D, C, row, y[i], weight ? weight[i] : 1.0, model, t, loss, update, true, F + i * C, room);
    };
    const bool plain = C == 1 && !update.diagonal && !model.mean;  // a step adds a multiple of the features, and nothing else
    T step = 0;
    for (std::size_t i = 0; i < m; ++i) {
        if (plain) {
            t = learn(i, FourierRow<T>(D, P + i * D, z, step));
        } else {
            cos_sin(D, P + i * D, T(1 / std::sqrt(double(D))), z, z + D);
            t = learn(i, DenseRow<T>{2 * D, z});
        }
    }
    if (step != T(0)) axpy(2 * D, step, z, model.W);
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
