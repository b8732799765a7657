// Cholesky factors of large matrices on several threads, each with BLAS of one thread: the work is cut in the same pieces
// whatever the number of threads, so that the factor is the same to the last bit.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/blas_threads.hpp"
#include "base/parallel.hpp"

namespace ks {

// The functions of BLAS and LAPACK that it takes, for one type of numbers; `wide` when they count in 64 bits.
template <class T>
class Cholesky {
  public:
    Cholesky(nanobind::capsule gemm, nanobind::capsule syrk, nanobind::capsule trsm, nanobind::capsule trsv, nanobind::capsule potrf)
        : gemm_(gemm.data()), syrk_(syrk.data()), trsm_(trsm.data()), trsv_(trsv.data()), potrf_(potrf.data()) {
        const std::string signature = gemm.name() ? gemm.name() : "";
        wide_ = signature.find("int64") != std::string::npos || signature.find("long") != std::string::npos;
    }

    // A = L L' in the lower triangle of A (n, n), column-major; what is above stays. False where A is not positive.
    bool factorise(std::size_t n, T* A, int threads) const {
        return wide_ ? factorised<std::int64_t>(n, A, n, threads) : factorised<int>(n, A, n, threads);
    }

    // V (n, C), column-major, <- L'^-1 L^-1 V, for the factor in the lower triangle of A.
    void divide(std::size_t n, const T* A, std::size_t C, T* V) const {
        wide_ ? divided<std::int64_t>(std::int64_t(n), A, std::int64_t(C), V) : divided<int>(int(n), A, int(C), V);
    }

  private:
    static constexpr std::size_t kFew = 4;  // columns that are divided one by one, which takes OpenBLAS a fifth of the time for one
    static constexpr std::size_t kWhole = 1024, kPiece = 1024;  // rows that LAPACK factorises at once; rows of a piece, at most
    void *gemm_, *syrk_, *trsm_, *trsv_, *potrf_;
    bool wide_;

    // By halves: the first n / 2 columns, the rows below them, and what remains once these are taken off.
    template <class I>
    bool factorised(std::size_t n, T* A, std::size_t ld, int threads) const {
        if (n <= kWhole) return potrf<I>(I(n), A, I(ld));
        const std::size_t half = n / 2, pieces = (n - half + kPiece - 1) / kPiece;
        T *below = A + half, *rest = A + half + half * ld;
        if (!factorised<I>(half, A, ld, threads)) return false;
        each(pieces, threads, [&](std::size_t i) {
            const Piece rows(i, pieces, n - half);
            trsm<I>(I(rows.size), I(half), A, below + rows.begin, I(ld));
        });
        each(pieces * (pieces + 1) / 2, threads, [&](std::size_t k) {
            std::size_t i = 0;  // row of the k-th piece in the lower triangle
            while (k > i) k -= ++i;
            const Piece rows(i, pieces, n - half), columns(k, pieces, n - half);
            T* piece = rest + rows.begin + columns.begin * ld;
            if (i == k) syrk<I>(I(rows.size), I(half), below + rows.begin, piece, I(ld));
            else gemm<I>(I(rows.size), I(columns.size), I(half), below + rows.begin, below + columns.begin, piece, I(ld));
        });
        return factorised<I>(n - half, rest, ld, threads);
    }

    // Rows or columns of piece i; all pieces are about as large.
    struct Piece {
        std::size_t begin, size;
        Piece(std::size_t i, std::size_t pieces, std::size_t n) : begin(n * i / pieces), size(n * (i + 1) / pieces - begin) {}
    };

    // f(i) for all pieces; a thread that is done takes the next one.
    template <class F>
    static void each(std::size_t pieces, int threads, F&& f) {
        std::atomic<std::size_t> next{0};
        const int used = int(std::min(std::size_t(std::max(threads, 1)), pieces));
        parallel(used, [&](int t) {
            if (t + 1 < used) blas_threads.alone();
            for (std::size_t i = next++; i < pieces; i = next++) f(i);
        });
    }

    // C (m, n) -= A B', A (m, k), B (n, k)
    template <class I>
    void gemm(I m, I n, I k, const T* A, const T* B, T* C, I ld) const {
        using F = void (*)(char*, char*, I*, I*, I*, T*, T*, I*, T*, I*, T*, T*, I*);
        char plain = 'N', turned = 'T';
        T minus = -1, one = 1;
        reinterpret_cast<F>(gemm_)(&plain, &turned, &m, &n, &k, &minus, const_cast<T*>(A), &ld, const_cast<T*>(B), &ld, &one, C, &ld);
    }

    // Lower triangle of C (n, n) -= A A', A (n, k)
    template <class I>
    void syrk(I n, I k, const T* A, T* C, I ld) const {
        using F = void (*)(char*, char*, I*, I*, T*, T*, I*, T*, T*, I*);
        char lower = 'L', plain = 'N';
        T minus = -1, one = 1;
        reinterpret_cast<F>(syrk_)(&lower, &plain, &n, &k, &minus, const_cast<T*>(A), &ld, &one, C, &ld);
    }

    // B (m, n) <- B L'^-1, L (n, n)
    template <class I>
    void trsm(I m, I n, const T* L, T* B, I ld) const {
        using F = void (*)(char*, char*, char*, char*, I*, I*, T*, T*, I*, T*, I*);
        char right = 'R', lower = 'L', turned = 'T', plain = 'N';
        T one = 1;
        reinterpret_cast<F>(trsm_)(&right, &lower, &turned, &plain, &m, &n, &one, const_cast<T*>(L), &ld, B, &ld);
    }

    template <class I>
    void divided(I n, const T* A, I C, T* V) const {
        using Many = void (*)(char*, char*, char*, char*, I*, I*, T*, T*, I*, T*, I*);
        using One = void (*)(char*, char*, char*, I*, T*, I*, T*, I*);
        char left = 'L', lower = 'L';
        T one = 1, *L = const_cast<T*>(A);
        I step = 1;
        for (char turn : {'N', 'T'}) {
            char plain = 'N';
            if (C > I(kFew)) reinterpret_cast<Many>(trsm_)(&left, &lower, &turn, &plain, &n, &C, &one, L, &n, V, &n);
            else
                for (I c = 0; c < C; ++c) reinterpret_cast<One>(trsv_)(&lower, &turn, &plain, &n, L, &n, V + c * n, &step);
        }
    }

    template <class I>
    bool potrf(I n, T* A, I ld) const {
        using F = void (*)(char*, I*, T*, I*, I*);
        char lower = 'L';
        I failed = 0;
        reinterpret_cast<F>(potrf_)(&lower, &n, A, &ld, &failed);
        return failed == 0;
    }
};

}  // namespace ks
