// Vector work of preconditioned conjugate gradients for several right-hand sides at once, arrays (D, C) with one step per
// column. The vectors are longer than any cache, so what counts is how often they pass: once for each function here.
//   dots:  P'Q and P'P;   step:  X += a P, R -= a (Q + lam P), R'M R;   turn:  P = M R + b P.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/parallel.hpp"
#include "base/vecmath.hpp"

namespace ks {

// body(begin, end, sums (n)) for all D rows, some of them at a time, which stay in the cache for all C columns: each thread adds up its
// rows, then the threads' sums are added in order.
template <class Body>
void over_columns(std::size_t D, std::size_t C, int threads, std::size_t n, double* sums, Body&& body) {
    if (D * C < 100000) threads = 1;
    const std::size_t apart = n + 16, step = std::max<std::size_t>(1, 8192 / C);  // 16: no cache line belongs to two threads
    std::vector<double> parts(std::size_t(threads) * apart, 0.0);
    parallel(threads, [&](int t) {
        const Share share(D, t, threads);
        for (std::size_t at = share.begin; at < share.end; at += step) body(at, std::min(at + step, share.end), parts.data() + t * apart);
    });
    for (std::size_t k = 0; k < n; ++k) {
        sums[k] = 0.0;
        for (int t = 0; t < threads; ++t) sums[k] += parts[t * apart + k];
    }
}

template <class T>
KS_CLONES void cg_dots(std::size_t begin, std::size_t end, std::size_t C, const T* KS_RESTRICT P, const T* KS_RESTRICT Q,
                       double* KS_RESTRICT sums) {
    for (std::size_t c = 0; c < C; ++c) {
        double pq = 0.0, pp = 0.0;
#pragma omp simd reduction(+ : pq, pp)
        for (std::size_t i = begin; i < end; ++i) {
            const double p = double(P[i * C + c]);
            pq += p * double(Q[i * C + c]);
            pp += p * p;
        }
        sums[c] += pq;
        sums[C + c] += pp;
    }
}

template <class T>
KS_CLONES void cg_step(std::size_t begin, std::size_t end, std::size_t C, std::size_t CM, const T* KS_RESTRICT step, T lam,
                       const T* KS_RESTRICT P, const T* KS_RESTRICT Q, const T* KS_RESTRICT M, T* KS_RESTRICT X,
                       T* KS_RESTRICT R, double* KS_RESTRICT sums) {
    for (std::size_t c = 0; c < C; ++c) {
        const T a = step[c], *m = M + (CM == 1 ? 0 : c);
        double rz = 0.0;
#pragma omp simd reduction(+ : rz)
        for (std::size_t i = begin; i < end; ++i) {
            const std::size_t k = i * C + c;
            const T r = R[k] - a * (Q[k] + lam * P[k]);
            X[k] += a * P[k];
            R[k] = r;
            rz += double(r) * double(m[i * CM] * r);
        }
        sums[c] += rz;
    }
}

template <class T>
KS_CLONES void cg_turn(std::size_t begin, std::size_t end, std::size_t C, std::size_t CM, const T* KS_RESTRICT turn,
                       const T* KS_RESTRICT M, const T* KS_RESTRICT R, T* KS_RESTRICT P) {
    for (std::size_t c = 0; c < C; ++c) {
        const T b = turn[c], *m = M + (CM == 1 ? 0 : c);
#pragma omp simd
        for (std::size_t i = begin; i < end; ++i) P[i * C + c] = m[i * CM] * R[i * C + c] + b * P[i * C + c];
    }
}

}  // namespace ks
