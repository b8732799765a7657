// BLAS as scipy ships it: the pointers come out of scipy.linalg.cython_blas, so nothing has to be linked.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

namespace ks {

// Column-major products; `wide` when BLAS counts in 64 bits.
class Blas {
  public:
    Blas(nanobind::capsule dgemm, nanobind::capsule dsyrk, nanobind::capsule dtrsm, nanobind::capsule sgemm)
        : dgemm_(dgemm.data()), dsyrk_(dsyrk.data()), dtrsm_(dtrsm.data()), sgemm_(sgemm.data()) {
        const std::string signature = dgemm.name() ? dgemm.name() : "";
        wide_ = signature.find("int64") != std::string::npos || signature.find("long") != std::string::npos;
    }

    // C (m, n) = alpha A B + beta C, with k terms in each sum.
    template <class T>
    void gemm(std::size_t m, std::size_t n, std::size_t k, T alpha, const T* A, std::size_t lda, const T* B, std::size_t ldb, T beta, T* C,
              std::size_t ldc) const {
        if (m && n) wide_ ? call_gemm<std::int64_t>(m, n, k, alpha, A, lda, B, ldb, beta, C, ldc)
                          : call_gemm<int>(m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);
    }

    // Lower triangle of C (n, n) += A A', A (n, k).
    void syrk(std::size_t n, std::size_t k, const double* A, double* C) const {
        if (n) wide_ ? call_syrk<std::int64_t>(n, k, A, C) : call_syrk<int>(n, k, A, C);
    }

    // B (n, m) <- U'^-1 B, U (n, n) upper triangular.
    void trsm(std::size_t n, std::size_t m, const double* U, std::size_t ldu, double* B, std::size_t ldb) const {
        if (m && n) wide_ ? call_trsm<std::int64_t>(n, m, U, ldu, B, ldb) : call_trsm<int>(n, m, U, ldu, B, ldb);
    }

  private:
    void *dgemm_, *dsyrk_, *dtrsm_, *sgemm_;
    bool wide_;

    template <class I, class T>
    void call_gemm(I m, I n, I k, T alpha, const T* A, I lda, const T* B, I ldb, T beta, T* C, I ldc) const {
        using F = void (*)(char*, char*, I*, I*, I*, T*, T*, I*, T*, I*, T*, T*, I*);
        char plain = 'N';
        reinterpret_cast<F>(sizeof(T) == 4 ? sgemm_ : dgemm_)(&plain, &plain, &m, &n, &k, &alpha, const_cast<T*>(A), &lda, const_cast<T*>(B),
                                                              &ldb, &beta, C, &ldc);
    }

    template <class I>
    void call_syrk(I n, I k, const double* A, double* C) const {
        using F = void (*)(char*, char*, I*, I*, double*, double*, I*, double*, double*, I*);
        char lower = 'L', plain = 'N';
        double one = 1.0;
        reinterpret_cast<F>(dsyrk_)(&lower, &plain, &n, &k, &one, const_cast<double*>(A), &n, &one, C, &n);
    }

    template <class I>
    void call_trsm(I n, I m, const double* U, I ldu, double* B, I ldb) const {
        using F = void (*)(char*, char*, char*, char*, I*, I*, double*, double*, I*, double*, I*);
        char left = 'L', upper = 'U', transposed = 'T', plain = 'N';
        double one = 1.0;
        reinterpret_cast<F>(dtrsm_)(&left, &upper, &transposed, &plain, &n, &m, &one, const_cast<double*>(U), &ldu, B, &ldb);
    }
};

}  // namespace ks
