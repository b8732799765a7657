// Vector work of preconditioned conjugate gradients for several right-hand sides at once, arrays (D, C) with one step per
// column. The vectors are longer than any cache, so what counts is how often they pass: once for each function here.
//   dots:  P'Q and P'P;   step:  X += a P, R -= a (Q + lam P), R'M R and R'R;   turn:  P = M R + b P.
#pragma once

#include <cstddef>
#include <vector>

#include "base/parallel.hpp"
#include "base/vecmath.hpp"

namespace ks {

// sums[k] for k < 2 C: each thread adds up its rows, then the threads' sums are added in order.
template <class Body>
void column_sums(std::size_t D, std::size_t C, int threads, double* sums, Body&& body) {
    if (D * C < 100000) threads = 1;
    std::vector<double> parts(std::size_t(threads) * (2 * C + 16), 0.0);  // 16: no cache line belongs to two threads
    parallel(threads, [&](int t) {
        const Share share(D, t, threads);
        body(share.begin, share.end, parts.data() + t * (2 * C + 16));
    });
    for (std::size_t k = 0; k < 2 * C; ++k) {
        sums[k] = 0.0;
        for (int t = 0; t < threads; ++t) sums[k] += parts[t * (2 * C + 16) + k];
    }
}

template <class T>
KS_CLONES void cg_dots(std::size_t begin, std::size_t end, std::size_t C, const T* KS_RESTRICT P, const T* KS_RESTRICT Q,
                       double* KS_RESTRICT sums) {
    if (C == 1) {
        double pq = 0.0, pp = 0.0;
#pragma omp simd reduction(+ : pq, pp)
        for (std::size_t i = begin; i < end; ++i) pq += double(P[i]) * double(Q[i]), pp += double(P[i]) * double(P[i]);
        sums[0] = pq, sums[1] = pp;
        return;
    }
    for (std::size_t i = begin; i < end; ++i)
        for (std::size_t c = 0; c < C; ++c) {
            const double p = double(P[i * C + c]);
            sums[c] += p * double(Q[i * C + c]);
            sums[C + c] += p * p;
        }
}

template <class T>
KS_CLONES void cg_step(std::size_t begin, std::size_t end, std::size_t C, std::size_t CM, const T* KS_RESTRICT step, T lam,
                       const T* KS_RESTRICT P, const T* KS_RESTRICT Q, const T* KS_RESTRICT M, T* KS_RESTRICT X,
                       T* KS_RESTRICT R, double* KS_RESTRICT sums) {
    if (C == 1) {
        const T a = step[0];
        double rz = 0.0, rr = 0.0;
#pragma omp simd reduction(+ : rz, rr)
        for (std::size_t i = begin; i < end; ++i) {
            const T r = R[i] - a * (Q[i] + lam * P[i]);
            X[i] += a * P[i];
            R[i] = r;
            rz += double(r) * double(M[i] * r);
            rr += double(r) * double(r);
        }
        sums[0] = rz, sums[1] = rr;
        return;
    }
    for (std::size_t i = begin; i < end; ++i)
        for (std::size_t c = 0; c < C; ++c) {
            const std::size_t k = i * C + c;
            const T r = R[k] - step[c] * (Q[k] + lam * P[k]);
            X[k] += step[c] * P[k];
            R[k] = r;
            sums[c] += double(r) * double(M[CM == 1 ? i : k] * r);
            sums[C + c] += double(r) * double(r);
        }
}

template <class T>
KS_CLONES void cg_turn(std::size_t begin, std::size_t end, std::size_t C, std::size_t CM, const T* KS_RESTRICT turn,
                       const T* KS_RESTRICT M, const T* KS_RESTRICT R, T* KS_RESTRICT P) {
    if (C == 1) {
        const T b = turn[0];
#pragma omp simd
        for (std::size_t i = begin; i < end; ++i) P[i] = M[i] * R[i] + b * P[i];
        return;
    }
    for (std::size_t i = begin; i < end; ++i)
        for (std::size_t c = 0; c < C; ++c) {
            const std::size_t k = i * C + c;
            P[k] = M[CM == 1 ? i : k] * R[k] + turn[c] * P[k];
        }
}

}  // namespace ks
