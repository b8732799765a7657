// Features less what lies along some directions: z~ = z - psi B, for a few rows at once.
#pragma once

#include <cstring>

#include "base/vecmath.hpp"

namespace ks {

// B (k, 2 D) in strips of a line of the cache: for the cosines and then for the sines of D frequencies, strips that the last of is filled
// up with zeros, each (k, width).
template <class T>
struct Directions {
    static constexpr std::size_t width = 64 / sizeof(T);
    const T *psi, *strips;  // psi (n, k)
    std::size_t k;
    static std::size_t count(std::size_t D) { return (D + width - 1) / width; }
};

#if defined(__GNUC__)
#if defined(__aarch64__)
constexpr std::size_t strip_vector = 16;
#else
constexpr std::size_t strip_vector = 64;
#endif
// z[r][0 ... width - 1] -= sum_j psi[r][j] B[j], for R rows that are `apart`; `last` numbers of them where the strip is not full.
template <class T, int R>
KS_INLINE void take_off_strip(std::size_t k, const T* KS_RESTRICT B, const T* KS_RESTRICT psi, T* KS_RESTRICT z, std::size_t apart,
                              std::size_t last) {
    typedef T V __attribute__((vector_size(strip_vector)));
    constexpr int parts = 64 / strip_vector;
    constexpr std::size_t lane = strip_vector / sizeof(T);
    V sum[R][parts] = {};
    for (std::size_t j = 0; j < k; ++j) {
        V b[parts];
        KS_UNROLL
        for (int u = 0; u < parts; ++u) std::memcpy(&b[u], B + j * Directions<T>::width + u * lane, sizeof(V));
        KS_UNROLL
        for (int r = 0; r < R; ++r) {
            const T p = psi[r * k + j];
            KS_UNROLL
            for (int u = 0; u < parts; ++u) sum[r][u] += p * b[u];
        }
    }
    if (last == Directions<T>::width) {
        KS_UNROLL
        for (int r = 0; r < R; ++r) {
            KS_UNROLL
            for (int u = 0; u < parts; ++u) {
                V x;
                std::memcpy(&x, z + r * apart + u * lane, sizeof(V));
                x -= sum[r][u];
                std::memcpy(z + r * apart + u * lane, &x, sizeof(V));
            }
        }
        return;
    }
    for (int r = 0; r < R; ++r) {
        T some[Directions<T>::width];
        std::memcpy(some, sum[r], sizeof(some));
        for (std::size_t l = 0; l < last; ++l) z[r * apart + l] -= some[l];
    }
}
#else
template <class T, int R>
inline void take_off_strip(std::size_t k, const T* B, const T* psi, T* z, std::size_t apart, std::size_t last) {
    for (int r = 0; r < R; ++r)
        for (std::size_t l = 0; l < last; ++l) {
            T sum = 0;
            for (std::size_t j = 0; j < k; ++j) sum += psi[r * k + j] * B[j * Directions<T>::width + l];
            z[r * apart + l] -= sum;
        }
}
#endif

// R rows z (2 count numbers each, `apart`) of the features of `count` of D frequencies, from number `begin` on; psi (R, k).
template <class T, int R>
KS_INLINE void take_off(const Directions<T>& map, std::size_t D, std::size_t begin, std::size_t count, const T* psi, T* z, std::size_t apart) {
    constexpr std::size_t width = Directions<T>::width;
    for (int half = 0; half < 2; ++half) {
        const T* B = map.strips + (half * Directions<T>::count(D) + begin / width) * map.k * width;
        T* at = z + half * count;
        for (std::size_t f = 0; f < count; f += width, B += map.k * width)
            take_off_strip<T, R>(map.k, B, psi, at + f, apart, std::min(width, count - f));
    }
}

}  // namespace ks
