// Online learning on explicit features over one block, rows in order:
//   f_t = w'z_t;  (decay, tau) = step(loss, y_t, f_t, z_t'z_t, t);  w <- decay w + tau z_t   (one w per output).
// In:  Z (m, P), y (m).  Changed: W (C, P) and whatever the update carries; scratch (RowRoom::size C).  Out: F (m, C), the scores before each update.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "base/adagrad.hpp"
#include "base/center.hpp"
#include "base/csr.hpp"
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

    // Whether all that is as large as W, n numbers, is.
    bool finite(std::size_t n) const {
        for (const T* weights : {W, G, mean})
            if (weights && !all_finite(n, weights)) return false;
        return true;
    }
};

// mean += (factor w - mean) share, n numbers.
template <class T>
KS_INLINE void follow_weights(std::size_t n, T factor, T share, const T* KS_RESTRICT w, T* KS_RESTRICT mean) {
#pragma omp simd
    for (std::size_t j = 0; j < n; ++j) mean[j] += (w[j] * factor - mean[j]) * share;
}

// The features of a row, all of them,
template <class T>
struct DenseRow {
    std::size_t P;
    const T* z;

    KS_INLINE double dot(const T* w) const { return double(ks::dot(P, w, z)); }
    KS_INLINE double norm() const { return double(ks::dot(P, z, z)); }
    KS_INLINE void add(T factor, T* w) const { axpy(P, factor, z, w); }
    KS_INLINE void adagrad(int, T g, T eta, double fade, T* G, T* w) const {
        adagrad_step(P, g, eta, T(fade), z, G, w);
    }
    KS_INLINE void stretch(T factor, T* w) const { scale(P, factor, w); }
    KS_INLINE void average(T factor, T share, const T* w, T* mean) const { follow_weights(P, factor, share, w, mean); }
};

// What a pass over sparse rows puts off, because it concerns all columns. The squared gradients are faded * G, so that fading costs
// one multiplication. Where the mean of the iterates is followed, a column that no row has had since row a of the pass holds the mean
// of then, and
//   (t0 + b) mean_b = (t0 + a) mean_a + w (s_a+1 + ... + s_b),  s = scale,  as its weight was the same all the time.
template <class T>
struct Deferred {
    static constexpr std::size_t most = 4096;  // rows whose scales are remembered
    std::size_t P;
    int C;
    const LinearModel<T>& model;
    double* faded;                          // (C,)
    const std::function<void()>& announce;  // is called before all columns change
    bool swept = false;                     // whether they have
    T watch = 0;                            // 0 as long as the weights that change are finite, else NaN: 0 * inf
    double t0 = 0;                          // rows that the mean is of, before
    std::size_t now = 0;                    // rows since then
    std::vector<std::uint32_t> last{};      // (P,) rows up to which a column's mean is right
    std::vector<double> sums{};             // (now + 1, C) sums of the scales

    void begin(std::int64_t t) {
        if (!model.mean) return;
        t0 = double(t);
        now = 0;
        last.assign(P, 0);
        sums.assign(std::size_t(C), 0.0);
    }
    void sweep() {
        if (!swept) announce();
        swept = true;
    }
    // The squared gradients of one output as they are.
    void restore(int c) {
        if (faded[c] != 1.0) {
            sweep();
            scale(P, T(faded[c]), model.G + c * P);
        }
        faded[c] = 1.0;
    }
    KS_INLINE void catch_up(int c, std::size_t j) {
        const std::size_t a = last[j];
        T& mean = model.mean[c * P + j];
        mean = T(((t0 + double(a)) * double(mean) + double(model.W[c * P + j]) * (sums[now * C + c] - sums[a * C + c])) / (t0 + double(now)));
    }
    // The mean of all columns is that of now.
    void settle(std::int64_t t) {
        if (!model.mean) return;
        for (int c = 0; c < C; ++c)
            for (std::size_t j = 0; j < P; ++j)
                if (last[j] < now) catch_up(c, j);
        begin(t);
    }
};

// or those that are not zero: what a row costs does not depend on the number of columns.
template <class T, class I>
struct SparseRow {
    std::size_t count;
    const I* at;
    const T* z;
    Deferred<T>& later;

    KS_INLINE double dot(const T* w) const {
        T sum = 0;
        for (std::size_t k = 0; k < count; ++k) sum += w[at[k]] * z[k];
        return double(sum);
    }
    KS_INLINE double norm() const { return double(ks::dot(count, z, z)); }
    KS_INLINE void add(T factor, T* w) const {
        T watch = 0;
        for (std::size_t k = 0; k < count; ++k) watch += (w[at[k]] += factor * z[k]) * T(0);
        later.watch += watch;
    }
    KS_INLINE void adagrad(int c, T g, T eta, double fade, T* G, T* w) const {
        later.faded[c] *= fade;
        if (!(later.faded[c] > 1e-6)) later.restore(c);
        const T factor = T(later.faded[c]), rate = eta * g;
        T watch = 0;
        for (std::size_t k = 0; k < count; ++k) {
            const T gradient = g * z[k];
            T& squares = G[at[k]];
            squares += gradient * gradient / factor;
            w[at[k]] -= rate * z[k] / std::sqrt(squares * factor + T(1e-12));
            watch += squares * T(0) + w[at[k]] * T(0);
        }
        later.watch += watch;
    }
    KS_INLINE void stretch(T factor, T* w) const {
        later.sweep();
        later.settle(std::int64_t(later.t0) + std::int64_t(later.now));
        scale(later.P, factor, w);
    }
    // The mean of the columns that the row has, before it is learned
    KS_INLINE void catch_up() const {
        for (std::size_t k = 0; k < count; ++k) {
            if (later.last[at[k]] == later.now) continue;
            for (int c = 0; c < later.C; ++c) later.catch_up(c, at[k]);
            later.last[at[k]] = std::uint32_t(later.now);
        }
    }
    // and after it.
    KS_INLINE void average(T factor, T share, const T* w, T* mean) const {
        for (std::size_t k = 0; k < count; ++k) mean[at[k]] += (w[at[k]] * factor - mean[at[k]]) * share;
    }
    KS_INLINE void averaged() const {
        const std::size_t before = later.now * later.C;
        for (int c = 0; c < later.C; ++c) later.sums.push_back(later.sums[before + c] + later.model.scale[c]);
        ++later.now;
        for (std::size_t k = 0; k < count; ++k) later.last[at[k]] = std::uint32_t(later.now);
    }
};

// Room for what is worked out for a row.
struct RowRoom {
    static constexpr std::size_t size = 3;  // numbers for each output
    double *f, *decay, *tau;
    RowRoom(double* room, int C) : f(room), decay(room + C), tau(room + 2 * C) {}
};

// One row with these features; returns t after it. F (C) are the scores before it.
template <class T, class R>
KS_INLINE std::int64_t linear_row(std::size_t P, int C, const R& z, double y, double importance, const LinearModel<T>& model,
                                  std::int64_t t, const Loss& loss, const Update& update, bool unit, double* F, const RowRoom& room) {
    const double offset = offset_of(model.center);
    for (int c = 0; c < C; ++c) {
        room.f[c] = z.dot(model.W + c * P) * model.scale[c];
        F[c] = (model.mean ? z.dot(model.mean + c * P) : room.f[c]) + offset;
    }
    if (importance == 0.0) return t;
    ++t;
    const double target = loss.kind == Kind::multiclass ? y : y - offset;
    update.step(loss, Row{target, room.f, C, unit ? 1.0 : z.norm(), t}, model.memory, room.decay, room.tau);
    follow(model.center, y, importance);
    for (int c = 0; c < C; ++c) {
        T* w = model.W + c * P;
        const double tau = room.tau[c] * importance;
        if (update.diagonal) {
            if (tau != 0.0) z.adagrad(c, T(tau), T(room.decay[0]), update.fade, model.G + c * P, w);
            continue;
        }
        double& s = model.scale[c];
        s *= room.decay[c];
        if (!(s > 1e-6 && s < 1e6)) {
            z.stretch(T(s), w);
            s = 1.0;
        }
        if (tau != 0.0) z.add(T(tau / s), w);
    }
    for (int c = 0; c < C && model.mean; ++c) z.average(T(model.scale[c]), T(1) / T(t), model.W + c * P, model.mean + c * P);
    return t;
}

template <class T>
KS_CLONES std::int64_t linear_pass(std::size_t m, std::size_t P, int C, const T* Z, const double* y,
                                   const double* weight, const LinearModel<T>& model, std::int64_t t, const Loss& loss,
                                   const Update& update, bool unit, double* F, double* scratch) {
    const RowRoom room(scratch, C);
    for (std::size_t i = 0; i < m; ++i) {
        const DenseRow<T> z{P, Z + i * P};
        t = linear_row<T>(P, C, z, y[i], weight ? weight[i] : 1.0, model, t, loss, update, unit, F + i * C, room);
    }
    return t;
}

// The same on rows of a CSR matrix as they are.
template <class T, class I>
KS_CLONES std::int64_t linear_pass_csr(const Csr<T, I>& X, int C, const double* y, const double* weight, const LinearModel<T>& model,
                                       std::int64_t t, const Loss& loss, const Update& update, Deferred<T>& later, double* F, double* scratch) {
    const RowRoom room(scratch, C);
    later.begin(t);
    for (std::size_t i = 0; i < X.n; ++i) {
        const std::size_t start = std::size_t(X.indptr[i]);
        const SparseRow<T, I> z{std::size_t(X.indptr[i + 1]) - start, X.indices + start, X.data + start, later};
        if (model.mean) z.catch_up();
        const std::int64_t before = t;
        t = linear_row<T>(later.P, C, z, y[i], weight ? weight[i] : 1.0, model, t, loss, update, false, F + i * C, room);
        if (model.mean && t > before) z.averaged();
        if (later.now == Deferred<T>::most) later.settle(t);
    }
    later.settle(t);
    return t;
}

}  // namespace ks
