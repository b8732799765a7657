// Online learning on Fourier features, rows to weights in one go: z = [cos(W'x), sin(W'x)]/sqrt(D), the recursion of linear.hpp.
//
// Where leading directions are damped (maps/damped.hpp), the features of four rows are made together.
#pragma once

#include <vector>

#include "base/projection.hpp"
#include "maps/damped.hpp"
#include "passes/linear.hpp"

namespace ks {

// The projections of a block of rows on D frequencies, and the features of one group of them.
template <class T>
struct FourierBlock {
    std::size_t D;
    T scale;
    const Directions<T>* damped;  // or null
    std::size_t group;            // rows whose features are made together; a power of two, so that no division is needed
    std::vector<T> P, z;
    double norms[4];  // of damped rows
    FourierBlock(std::size_t frequencies, std::size_t rows, const Directions<T>* directions)
        : D(frequencies), scale(T(1 / std::sqrt(double(D)))), damped(directions), group(damped ? 4 : 1), P(rows * D), z(group * 2 * D) {}

    KS_INLINE std::size_t place(std::size_t i) const { return i & (group - 1); }
    KS_INLINE T* features(std::size_t i) { return z.data() + place(i) * 2 * D; }
    // Features of row i of the m rows of the block, which is row `row` of the call, and of the others of its group.
    KS_INLINE void make(std::size_t i, std::size_t m, std::size_t row) {
        if (place(i)) return;
        const std::size_t count = std::min(group, m - i);
        for (std::size_t r = i; r < i + count; ++r) cos_sin(D, P.data() + r * D, scale, features(r), features(r) + D);
        if (!damped) return;
        const T* psi = damped->psi + row * damped->k;
        if (count == 4) return take_off<T, 4>(*damped, psi, features(i), norms);
        for (std::size_t r = i; r < i + count; ++r, psi += damped->k) take_off<T, 1>(*damped, psi, features(r), norms + place(r));
    }
    KS_INLINE double norm(std::size_t i) const { return damped ? norms[place(i)] : 1.0; }
};

// The m rows of a block, `first` rows into the call; returns t.
template <class T>
KS_CLONES std::int64_t fourier_rows(std::size_t first, std::size_t m, int C, FourierBlock<T>& rows, const double* y, const double* weight,
                                    const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update, double* F,
                                    double* scratch) {
    const RowRoom room(scratch, C);
    const std::size_t P = 2 * rows.D;
    for (std::size_t i = 0; i < m; ++i) {
        rows.make(i, m, first + i);
        const DenseRow<T> z{P, rows.features(i)};
        row_sums(P, C, z, model, room.sums);
        if (row_step(C, rows.norm(i), y[i], weight ? weight[i] : 1.0, model, t, loss, update, F + i * C, room))
            row_change(P, C, z, model, t, update, room);
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
    const std::size_t block = std::min(n, std::clamp<std::size_t>(room / (D * sizeof(T)), 32, 128));
    FourierBlock<T> rows(D, block, damped);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t m = std::min(block, n - first);
        project(first, m, rows.P.data());
        t = fourier_rows<T>(first, m, C, rows, y + first, weight ? weight + first : nullptr, model, t, loss, update, F + first * C, scratch);
    }
    return t;
}

}  // namespace ks
