// Online learning on explicit features over one block, rows in order:
//   f_t = w'z_t;  (decay, tau) = step(loss, y_t, f_t, z_t'z_t, t);  w <- decay w + tau z_t   (one w per output).
// In:  Z (m, P), y (m).  Changed: W (C, P) and whatever the update carries.  Out: F (m, C), the scores before each update.
#pragma once

#include "base/center.hpp"
#include "maps/fourier.hpp"
#include "parts/updates.hpp"

namespace ks {

template <class T>
struct LinearModel {
    T* W;            // (C, P)
    double* scale;   // (C,): the function is scale * W, so that a decay costs one multiplication
    T* G;            // (C, P) squared gradients of a diagonal update, or null
    T* mean;         // (C, P) mean of the iterates, or null
    double* memory;  // (n_memory, C)
    double* center;  // count and mean of the target, or null
};

// Where the features of a row come from: an array, or projections (m, P/2) that become [cos, sin] when their turn comes, so
// that z never leaves the first-level cache.
template <class T>
struct Source {
    const T* rows;
    T* z;  // room for one row of features, or null when `rows` are the features
    T scale;
};

template <class T>
KS_CLONES std::int64_t linear_pass(std::size_t m, std::size_t P, int C, const Source<T>& source, const double* y,
                                   const double* weight, const LinearModel<T>& model, std::int64_t t, const Loss& loss,
                                   const Update& update, bool unit, double* F, double* scratch) {
    double *f = scratch, *decay = scratch + C, *tau = scratch + 2 * C;
    for (std::size_t i = 0; i < m; ++i) {
        if (source.z) cos_sin(P / 2, source.rows + i * (P / 2), source.scale, source.z, source.z + P / 2);
        const T* z = source.z ? source.z : source.rows + i * P;
        const double offset = offset_of(model.center);
        for (int c = 0; c < C; ++c) {
            f[c] = double(dot(P, model.W + c * P, z)) * model.scale[c];
            F[i * C + c] = (model.mean ? double(dot(P, model.mean + c * P, z)) : f[c]) + offset;
        }
        const double importance = weight ? weight[i] : 1.0;
        if (importance == 0.0) continue;
        ++t;
        const double k_xx = unit ? 1.0 : double(dot(P, z, z));
        const double target = loss.kind == Kind::multiclass ? y[i] : y[i] - offset;
        update.step(loss, Row{target, f, C, k_xx, t}, model.memory, decay, tau);
        for (int c = 0; c < C; ++c) {
            T* w = model.W + c * P;
            const double tau_c = tau[c] * importance;
            if (update.diagonal) {
                if (tau_c == 0.0) continue;
                if (update.fade != 1.0) scale(P, T(update.fade), model.G + c * P);
                adagrad_step(P, T(tau_c), T(decay[0]), z, model.G + c * P, w);
                continue;
            }
            double& s = model.scale[c];
            s *= decay[c];
            if (!(s > 1e-6 && s < 1e6)) {
                scale(P, T(s), w);
                s = 1.0;
            }
            if (tau_c != 0.0) axpy(P, T(tau_c / s), z, w);
        }
        for (int c = 0; c < C && model.mean; ++c) {
            const T s = T(model.scale[c]), share = T(1) / T(t);
            const T* KS_RESTRICT w = model.W + c * P;
            T* KS_RESTRICT average = model.mean + c * P;
#pragma omp simd
            for (std::size_t j = 0; j < P; ++j) average[j] += (w[j] * s - average[j]) * share;
        }
        follow(model.center, y[i], importance);
    }
    return t;
}

}  // namespace ks
