// Online learning on random binning features over one block, rows in order; the same recursion as linear_pass.hpp, where a row
// has one entry z = 1/sqrt(R) in each of R columns.
// In:  cells (R, m), the column of each row within each grid of `width` columns; y (m).  Changed: W (R width, C) and whatever
// the update carries.  Out: F (m, C), the scores before each update; `finite` whether all numbers that changed are.
#pragma once

#include "base/center.hpp"
#include "parts/updates.hpp"
#include "base/vecmath.hpp"

namespace ks {

template <class T>
struct CellModel {
    T* W;            // (P, C)
    double* scale;   // (C,): the function is scale * W
    T* G;            // (P, C) squared gradients of a diagonal update, or null
    double* memory;  // (n_memory, C)
    double* center;  // count and mean of the target, or null
};

template <class T>
std::int64_t cell_pass(std::size_t m, std::size_t R, std::size_t width, int C, const std::int32_t* cells, const double* y,
                       const double* weight, const CellModel<T>& model, std::int64_t t, const Loss& loss,
                       const Update& update, double* F, bool& finite, double* scratch) {
    double *f = scratch, *decay = scratch + C, *tau = scratch + 2 * C;
    const double z = 1.0 / std::sqrt(double(R));
    for (std::size_t i = 0; i < m; ++i) {
        const auto at = [&](std::size_t r) { return (r * width + std::size_t(cells[r * m + i])) * C; };
        const double offset = offset_of(model.center);
        for (int c = 0; c < C; ++c) f[c] = 0.0;
        for (std::size_t r = 0; r < R; ++r) {
            const T* w = model.W + at(r);
            for (int c = 0; c < C; ++c) f[c] += double(w[c]);
        }
        for (int c = 0; c < C; ++c) {
            f[c] *= z * model.scale[c];
            F[i * C + c] = f[c] + offset;
        }
        const double importance = weight ? weight[i] : 1.0;
        if (importance == 0.0) continue;
        ++t;
        const double target = loss.kind == Kind::multiclass ? y[i] : y[i] - offset;
        update.step(loss, Row{target, f, C, 1.0, t}, model.memory, decay, tau);
        bool moves = false;
        for (int c = 0; c < C; ++c) {
            tau[c] *= importance * z;
            moves = moves || tau[c] != 0.0;
            if (update.diagonal) continue;
            double& s = model.scale[c];
            s *= decay[c];
            if (!(s > 1e-6 && s < 1e6)) {
                for (std::size_t j = 0; j < R * width; ++j) model.W[j * C + c] *= T(s);
                s = 1.0;
            }
            tau[c] /= s;
        }
        for (std::size_t r = 0; r < R && moves; ++r) {
            T* w = model.W + at(r);
            if (!update.diagonal) {
                for (int c = 0; c < C; ++c) finite &= std::isfinite(w[c] += T(tau[c]));
                continue;
            }
            T* G = model.G + at(r);
            for (int c = 0; c < C; ++c) {
                if (tau[c] == 0.0) continue;
                const T step = T(tau[c]);
                G[c] = T(update.fade) * G[c] + step * step;
                w[c] -= T(decay[0]) * step / std::sqrt(G[c] + T(tiny));
                finite &= std::isfinite(w[c]) && std::isfinite(G[c]);
            }
        }
        follow(model.center, y[i], importance);
    }
    return t;
}

}  // namespace ks
