// Reparameterised random features over one block, rows in order: weights and kernel are learned together.
//   u_j = w_j(theta)'x;  z = (cos u, sin u)/sqrt(D);  f_c = a_c'cos + b_c'sin;  g = dl/df;
//   dl/d(a, b) = g z;  q_j = sum_c g_c (b_cj cos - a_cj sin);  dl/dtheta = the spectrum's pull back of q;
//   AdaGrad on both, theta within `guard` of its start. A mini-batch takes one step along the mean gradient.
// The features of a row need the theta of the row before, so nothing can be prepared for a block; a row costs one
// product E'v and one E q, with E (height, D) so that both run along D. Zeros of a row are left out of both.
#pragma once

#include <limits>
#include <numeric>
#include <vector>

#include "base/center.hpp"
#include "base/csr.hpp"
#include "base/vecmath.hpp"
#include "parts/updates.hpp"
#include "passes/linear.hpp"

namespace ks {

// ---- Products with some rows of a matrix ---------------------------------------------------------------------------

// h_k = E[index_k]'q, four rows at a time: q is read once for them, and there are enough sums to keep the core busy.
template <class T>
KS_INLINE void dot_rows(std::size_t n, const std::int32_t* KS_RESTRICT index, const T* KS_RESTRICT E,
                        std::size_t stride, std::size_t width, const T* KS_RESTRICT q, T* KS_RESTRICT h) {
    const auto row = [&](std::size_t k) { return E + std::size_t(index[k]) * stride; };
    std::size_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const T *e0 = row(k), *e1 = row(k + 1), *e2 = row(k + 2), *e3 = row(k + 3);
        T h0 = 0, h1 = 0, h2 = 0, h3 = 0;
#pragma omp simd reduction(+ : h0, h1, h2, h3)
        for (std::size_t j = 0; j < width; ++j) {
            h0 += e0[j] * q[j];
            h1 += e1[j] * q[j];
            h2 += e2[j] * q[j];
            h3 += e3[j] * q[j];
        }
        h[k] = h0, h[k + 1] = h1, h[k + 2] = h2, h[k + 3] = h3;
    }
    for (; k < n; ++k) {
        const T* e = row(k);
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t j = 0; j < width; ++j) sum += e[j] * q[j];
        h[k] = sum;
    }
}

// ---- Rows ----------------------------------------------------------------------------------------------------------

// The nonzero entries of a row, in units of the starting width.
template <class T>
struct Entries {
    std::size_t n;
    std::int32_t* index;
    T* value;
};

template <class T>
KS_INLINE void read_row(const Dense<T>& rows, std::size_t i, T unit, Entries<T>& x) {
    const T* KS_RESTRICT row = rows.X + i * rows.d;
    x.n = 0;
    for (std::size_t k = 0; k < rows.d; ++k) {
        x.index[x.n] = std::int32_t(k);
        x.value[x.n] = row[k] * unit;
        x.n += row[k] != T(0);
    }
}

template <class T, class I>
KS_INLINE void read_row(const Csr<T, I>& rows, std::size_t i, T unit, Entries<T>& x) {
    x.n = 0;
    for (I k = rows.indptr[i]; k < rows.indptr[i + 1]; ++k) {
        x.index[x.n] = std::int32_t(rows.indices[k]);
        x.value[x.n] = rows.data[k] * unit;
        x.n += rows.data[k] != T(0);
    }
}

// ---- Learned parameters --------------------------------------------------------------------------------------------

template <class T>
struct Guarded {
    T* theta;
    const T* start;
    T* H;         // sums of squared gradients
    T* sum;       // gradients of the unfinished batch, or null
    T eta, guard;
    T most = std::numeric_limits<T>::infinity();  // most times the sum of those before it that a squared gradient counts for
    static constexpr T tiny = T(1e-20);  // gradients of theta go with the square of the target: less than for weights

    // Before a step along the mean gradient of `rows` rows, the last of them row t: `reach` roots of mean squares count.
    KS_INLINE void expect(double rows, std::int64_t t) {
        if (double(t) > settled * rows) most = T(reach * reach * rows / double(t));
    }

    KS_INLINE void move(std::size_t i, T gradient) const {
        const T limit = H[i] * most;
        if (H[i] > 0 && gradient * gradient > limit) gradient = std::copysign(std::sqrt(limit), gradient);
        H[i] += gradient * gradient;
        const T moved = theta[i] - eta * gradient / std::sqrt(H[i] + tiny);
        const T low = start[i] - guard, high = start[i] + guard;
        theta[i] = moved < low ? low : moved > high ? high : moved;
    }
};

// sigma_q = exp(theta[0][q]), mu_q = theta[1][q]; D frequencies in Q runs, w_j = mu_q + sigma_q * e_j. Without centres
// there is one run.
template <class T>
struct DiagonalSpectrum {
    std::size_t d, D, Q;
    bool centred;
    const T* E;    // (d, D)
    T *v, *h;      // (Q, d) and (d,): scratch

    std::size_t size() const { return (centred ? 2 : 1) * Q * d; }
    std::size_t run(std::size_t q) const { return q * D / Q; }

    KS_INLINE void project(const Guarded<T>& p, const Entries<T>& x, T* u) const {
        for (std::size_t q = 0; q < Q; ++q) {
            const std::size_t first = run(q), width = run(q + 1) - first;
            const T* g = p.theta + q * d;
            T* vq = v + q * d;
            for (std::size_t k = 0; k < x.n; ++k) vq[k] = g[x.index[k]];
#pragma omp simd
            for (std::size_t k = 0; k < x.n; ++k) vq[k] = x.value[k] * exp(vq[k]);
            combine_rows(x.n, vq, [&](std::size_t k) { return E + std::size_t(x.index[k]) * D + first; }, width, u + first);
            if (!centred) continue;
            const T* mu = p.theta + (Q + q) * d;
            T shift = 0;
            for (std::size_t k = 0; k < x.n; ++k) shift += mu[x.index[k]] * x.value[k];
            for (std::size_t j = first; j < first + width; ++j) u[j] += shift;
        }
    }

    KS_INLINE void pull_back(const Guarded<T>& p, const Entries<T>& x, const T* c) const {
        for (std::size_t q = 0; q < Q; ++q) {
            const std::size_t first = run(q), width = run(q + 1) - first;
            const T* vq = v + q * d;
            dot_rows(x.n, x.index, E + first, D, width, c + first, h);
            if (p.sum) {
                for (std::size_t k = 0; k < x.n; ++k) p.sum[q * d + x.index[k]] += h[k] * vq[k];
            } else {
                for (std::size_t k = 0; k < x.n; ++k) p.move(q * d + x.index[k], h[k] * vq[k]);
            }
            if (!centred) continue;
            T total = 0;
            for (std::size_t j = first; j < first + width; ++j) total += c[j];
            const std::size_t mu = (Q + q) * d;
            for (std::size_t k = 0; k < x.n; ++k) {
                if (p.sum)
                    p.sum[mu + x.index[k]] += total * x.value[k];
                else
                    p.move(mu + x.index[k], total * x.value[k]);
            }
        }
    }
};

// w_j = theta e_j, theta (d, r): the row is mapped to v = theta'x first.
template <class T>
struct LowRankSpectrum {
    std::size_t d, D, r;
    const T* E;              // (r, D)
    std::int32_t* all;       // 0, 1, ..., r - 1
    T *v, *h;                // (r,) each: scratch

    std::size_t size() const { return d * r; }

    KS_INLINE void project(const Guarded<T>& p, const Entries<T>& x, T* u) const {
        for (std::size_t a = 0; a < r; ++a) v[a] = 0;
        for (std::size_t k = 0; k < x.n; ++k) axpy(r, x.value[k], p.theta + std::size_t(x.index[k]) * r, v);
        combine_rows(r, v, [&](std::size_t k) { return E + k * D; }, D, u);
    }

    KS_INLINE void pull_back(const Guarded<T>& p, const Entries<T>& x, const T* q) const {
        dot_rows(r, all, E, D, D, q, h);
        for (std::size_t k = 0; k < x.n; ++k) {
            const std::size_t first = std::size_t(x.index[k]) * r;
            if (p.sum)
                axpy(r, x.value[k], h, p.sum + first);
            else
                for (std::size_t a = 0; a < r; ++a) p.move(first + a, x.value[k] * h[a]);
        }
    }
};

// ---- The pass ------------------------------------------------------------------------------------------------------

template <class T>
struct RrfModel {
    T *W, *G;         // (C, 2 D) weights, cos block first, and their sums of squared gradients
    double* memory;   // of the update
    double* center;   // count and mean of the target, or null
    T* sum;           // (C, 2 D) gradients of the unfinished batch, or null
    double* pending;  // rows in it and the current step, or null
    T unit;           // one over the starting length
    std::size_t batch_size;
};

// Room for the work on a row: d columns, D frequencies, C outputs, and what the spectrum needs: v (inner), h (d) and `all` (r), 0, 1, ...
template <class T>
struct RrfScratch {
    std::vector<T> numbers;
    std::vector<std::int32_t> index;
    std::vector<double> outputs;  // (3 C,)
    Entries<T> x;
    T *v, *h, *u, *z, *q;   // (inner), (d,), (D,), (2 D,), (D,)
    std::int32_t* all;
    RrfScratch(std::size_t d, std::size_t D, std::size_t C, std::size_t inner, std::size_t r)
        : numbers(2 * d + inner + 4 * D), index(d + r), outputs(3 * C), x{0, index.data(), numbers.data()}, v(x.value + d), h(v + inner),
          u(h + d), z(u + D), q(z + 2 * D), all(index.data() + d) {
        std::iota(all, all + r, 0);
    }
    RrfScratch(const RrfScratch&) = delete;  // it points into itself
};

template <class T, class Spectrum>
KS_INLINE void rrf_finish_batch(std::size_t D, int C, const RrfModel<T>& model, Guarded<T>& p, const Spectrum& spectrum,
                                std::int64_t t) {
    p.expect(model.pending[0], t);
    const T share = T(1.0 / model.pending[0]);
    adagrad_step(2 * D * C, share, T(model.pending[1]), T(1), model.sum, model.G, model.W);
    std::fill_n(model.sum, 2 * D * C, T(0));
    if (p.eta > 0)
        for (std::size_t i = 0; i < spectrum.size(); ++i) p.move(i, p.sum[i] * share);
    std::fill_n(p.sum, spectrum.size(), T(0));
    model.pending[0] = model.pending[1] = 0.0;
}

// What a row with the products f (C) does: the scores F (C) before it; rate and g (C) times the row's importance, and t after it. False
// when the row is not learned.
template <class T>
KS_INLINE bool rrf_step(int C, double y, double importance, const RrfModel<T>& model, std::int64_t& t, const Loss& loss,
                        const Update& update, const double* f, double* F, double* rate, double* g) {
    const double offset = offset_of(model.center);
    for (int c = 0; c < C; ++c) F[c] = f[c] + offset;
    if (importance == 0.0) return false;
    ++t;
    const double target = loss.kind == Kind::multiclass ? y : y - offset;
    update.step(loss, Row{target, f, C, 1.0, t}, model.memory, rate, g);
    for (int c = 0; c < C; ++c) g[c] *= importance;
    follow(model.center, y, importance);
    return true;
}

template <class T, class Rows, class Spectrum>
KS_CLONES std::int64_t rrf_pass(std::size_t D, int C, const Rows& X, const double* y,
                                const double* weight, const RrfModel<T>& model, Guarded<T> p,
                                const Spectrum& spectrum, std::int64_t t, const Loss& loss, const Update& update,
                                double* F, RrfScratch<T>& s) {
    double *f = s.outputs.data(), *rate = f + C, *g = rate + C;
    const T *cos = s.z, *sin = s.z + D;
    const T scale = T(1) / std::sqrt(T(D));
    for (std::size_t i = 0; i < X.n; ++i) {
        read_row(X, i, model.unit, s.x);
        spectrum.project(p, s.x, s.u);
        trig(1, D, s.u, scale, s.z);
        for (int c = 0; c < C; ++c) f[c] = double(dot(2 * D, model.W + c * 2 * D, s.z));
        if (!rrf_step(C, y[i], weight ? weight[i] : 1.0, model, t, loss, update, f, F + i * C, rate, g)) continue;
        bool still = true;
        for (int c = 0; c < C; ++c) {
            const T gc = T(g[c]);
            if (gc == T(0)) continue;
            T *a = model.W + c * 2 * D, *b = a + D;
            if (still) std::fill_n(s.q, D, T(0));
            still = false;
#pragma omp simd
            for (std::size_t j = 0; j < D; ++j) s.q[j] += gc * (b[j] * cos[j] - a[j] * sin[j]);
            if (model.sum)
                axpy(2 * D, gc, s.z, model.sum + c * 2 * D);
            else
                adagrad_step(2 * D, gc, T(rate[0]), T(1), s.z, model.G + c * 2 * D, a);
        }
        if (!model.sum) p.expect(1.0, t);
        if (!still && p.eta > 0) spectrum.pull_back(p, s.x, s.q);
        if (!model.sum) continue;
        model.pending[0] += 1.0;
        model.pending[1] = rate[0];
        if (model.pending[0] >= double(model.batch_size)) rrf_finish_batch(D, C, model, p, spectrum, t);
    }
    return t;
}

}  // namespace ks
