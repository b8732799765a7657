// Online learning on explicit features over one block, rows in order:
//   f_t = w'z_t;  (decay, tau) = step(loss, y_t, f_t, z_t'z_t, t);  w <- decay w + tau z_t   (one w per output).
// In:  Z (m, P), y (m).  Changed: W (C, P) and whatever the update carries.  Out: F (m, C), the scores before each update.
#pragma once

#include <algorithm>
#include <cmath>

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

// The features of a row, all of them,
template <class T>
struct DenseRow {
    std::size_t P;
    const T* z;

    KS_INLINE double dot(const T* w) const { return double(ks::dot(P, w, z)); }
    KS_INLINE double norm() const { return double(ks::dot(P, z, z)); }
    KS_INLINE void add(T factor, T* w) const { axpy(P, factor, z, w); }
    KS_INLINE void adagrad(int, T g, T eta, double fade, T* G, T* w) const {
        if (fade != 1.0) scale(P, T(fade), G);
        adagrad_step(P, g, eta, z, G, w);
    }
};

// or those that are not zero: what a row costs does not depend on the number of columns.
template <class T, class I>
struct SparseRow {
    std::size_t P, count;
    const I* at;
    const T* z;
    double* faded;  // (C,): the squared gradients are faded * G, so that fading costs one multiplication

    KS_INLINE double dot(const T* w) const {
        T sum = 0;
        for (std::size_t k = 0; k < count; ++k) sum += w[at[k]] * z[k];
        return double(sum);
    }
    KS_INLINE double norm() const { return double(ks::dot(count, z, z)); }
    KS_INLINE void add(T factor, T* w) const {
        for (std::size_t k = 0; k < count; ++k) w[at[k]] += factor * z[k];
    }
    KS_INLINE void adagrad(int c, T g, T eta, double fade, T* G, T* w) const {
        faded[c] *= fade;
        if (!(faded[c] > 1e-6)) restore(c, G);
        const T factor = T(faded[c]), rate = eta * g;
        for (std::size_t k = 0; k < count; ++k) {
            const T gradient = g * z[k];
            T& squares = G[at[k]];
            squares += gradient * gradient / factor;
            w[at[k]] -= rate * z[k] / std::sqrt(squares * factor + T(1e-12));
        }
    }
    KS_INLINE void restore(int c, T* G) const {
        if (faded[c] != 1.0) scale(P, T(faded[c]), G);
        faded[c] = 1.0;
    }
};

// One row; returns t after it.
template <class T, class R>
KS_INLINE std::int64_t linear_row(std::size_t P, int C, const R& z, double y, double importance, const LinearModel<T>& model,
                                  std::int64_t t, const Loss& loss, const Update& update, bool unit, double* F, double* scratch) {
    double *f = scratch, *decay = scratch + C, *tau = scratch + 2 * C;
    const double offset = offset_of(model.center);
    for (int c = 0; c < C; ++c) {
        f[c] = z.dot(model.W + c * P) * model.scale[c];
        F[c] = (model.mean ? z.dot(model.mean + c * P) : f[c]) + offset;
    }
    if (importance == 0.0) return t;
    ++t;
    const double k_xx = unit ? 1.0 : z.norm();
    const double target = loss.kind == Kind::multiclass ? y : y - offset;
    update.step(loss, Row{target, f, C, k_xx, t}, model.memory, decay, tau);
    for (int c = 0; c < C; ++c) {
        T* w = model.W + c * P;
        const double tau_c = tau[c] * importance;
        if (update.diagonal) {
            if (tau_c == 0.0) continue;
            z.adagrad(c, T(tau_c), T(decay[0]), update.fade, model.G + c * P, w);
            continue;
        }
        double& s = model.scale[c];
        s *= decay[c];
        if (!(s > 1e-6 && s < 1e6)) {
            scale(P, T(s), w);
            s = 1.0;
        }
        if (tau_c != 0.0) z.add(T(tau_c / s), w);
    }
    for (int c = 0; c < C && model.mean; ++c) {
        const T s = T(model.scale[c]), share = T(1) / T(t);
        const T* KS_RESTRICT w = model.W + c * P;
        T* KS_RESTRICT average = model.mean + c * P;
#pragma omp simd
        for (std::size_t j = 0; j < P; ++j) average[j] += (w[j] * s - average[j]) * share;
    }
    follow(model.center, y, importance);
    return t;
}

template <class T>
KS_CLONES std::int64_t linear_pass(std::size_t m, std::size_t P, int C, const Source<T>& source, const double* y,
                                   const double* weight, const LinearModel<T>& model, std::int64_t t, const Loss& loss,
                                   const Update& update, bool unit, double* F, double* scratch) {
    for (std::size_t i = 0; i < m; ++i) {
        if (source.z) cos_sin(P / 2, source.rows + i * (P / 2), source.scale, source.z, source.z + P / 2);
        const DenseRow<T> z{P, source.z ? source.z : source.rows + i * P};
        t = linear_row<T>(P, C, z, y[i], weight ? weight[i] : 1.0, model, t, loss, update, unit, F + i * C, scratch);
    }
    return t;
}

// The same on rows of a CSR matrix as they are; scratch (4 C).
template <class T, class I>
KS_CLONES std::int64_t linear_pass_csr(std::size_t m, std::size_t P, int C, const T* data, const I* indices, const I* indptr,
                                       const double* y, const double* weight, const LinearModel<T>& model, std::int64_t t,
                                       const Loss& loss, const Update& update, double* F, double* scratch) {
    double* faded = scratch + 3 * C;
    std::fill(faded, faded + C, 1.0);
    for (std::size_t i = 0; i < m; ++i) {
        const std::size_t start = std::size_t(indptr[i]);
        const SparseRow<T, I> z{P, std::size_t(indptr[i + 1]) - start, indices + start, data + start, faded};
        t = linear_row<T>(P, C, z, y[i], weight ? weight[i] : 1.0, model, t, loss, update, false, F + i * C, scratch);
    }
    for (int c = 0; c < C && model.G; ++c) SparseRow<T, I>{P, 0, nullptr, nullptr, faded}.restore(c, model.G + c * P);
    return t;
}

}  // namespace ks
