// Features less what lies along some directions: z~ = z - psi B, for a few rows at once.
#pragma once

#include <cstddef>
#include <cstring>

#include "base/vecmath.hpp"

namespace ks {

// B (k, 2 D) in strips of a line of the cache: for the cosines and then for the sines of D frequencies, strips that the last of is filled
// up with zeros, each (k, width).
template <class T>
struct Directions {
    static constexpr std::size_t width = 64 / sizeof(T);
    const T *psi, *strips;  // psi (n, k)
    std::size_t k, D;
    static std::size_t count(std::size_t D) { return (D + width - 1) / width; }
};

#if defined(__aarch64__)
constexpr std::size_t strip_vector = 16;
#else
constexpr std::size_t strip_vector = 64;
#endif

// z[r][0 ... width - 1] -= sum_j psi[r][j] B[j] for R rows that are `apart`, and the squares of what is left are added to size[r].
template <class T, int R, class V>
KS_INLINE void take_off_strip(std::size_t k, const T* KS_RESTRICT B, const T* KS_RESTRICT psi, T* KS_RESTRICT z, std::size_t apart,
                              V (&size)[R]) {
    constexpr std::size_t lane = sizeof(V) / sizeof(T);
    constexpr int parts = Directions<T>::width / lane;
    V sum[R][parts];
    KS_UNROLL
    for (int r = 0; r < R; ++r) {
        KS_UNROLL
        for (int u = 0; u < parts; ++u) std::memcpy(&sum[r][u], z + r * apart + u * lane, sizeof(V));
    }
    for (std::size_t j = 0; j < k; ++j) {
        V b[parts];
        KS_UNROLL
        for (int u = 0; u < parts; ++u) std::memcpy(&b[u], B + j * Directions<T>::width + u * lane, sizeof(V));
        KS_UNROLL
        for (int r = 0; r < R; ++r) {
            const T p = psi[r * k + j];
            KS_UNROLL
            for (int u = 0; u < parts; ++u) sum[r][u] -= p * b[u];
        }
    }
    KS_UNROLL
    for (int r = 0; r < R; ++r) {
        KS_UNROLL
        for (int u = 0; u < parts; ++u) {
            size[r] += sum[r][u] * sum[r][u];
            std::memcpy(z + r * apart + u * lane, &sum[r][u], sizeof(V));
        }
    }
}

// R rows z (R, 2 D) of features; psi (R, k). Afterwards z'z of each row in norms (R).
template <class T, int R>
KS_INLINE void take_off(const Directions<T>& map, const T* psi, T* z, double* norms) {
    constexpr std::size_t width = Directions<T>::width;
    const std::size_t count = map.D, apart = 2 * count;
#if defined(__GNUC__)
    typedef T V __attribute__((vector_size(strip_vector)));
#else
    typedef T V;
#endif
    V size[R] = {};
    for (int half = 0; half < 2; ++half) {
        const T* B = map.strips + half * Directions<T>::count(count) * map.k * width;
        T* at = z + half * count;
        std::size_t f = 0;
        for (; f + width <= count; f += width, B += map.k * width) take_off_strip<T, R>(map.k, B, psi, at + f, apart, size);
        if (f == count) continue;
        T rest[R * width] = {};  // the last strip is not full
        for (int r = 0; r < R; ++r) std::memcpy(rest + r * width, at + r * apart + f, (count - f) * sizeof(T));
        take_off_strip<T, R>(map.k, B, psi, rest, width, size);
        for (int r = 0; r < R; ++r) std::memcpy(at + r * apart + f, rest + r * width, (count - f) * sizeof(T));
    }
    for (int r = 0; r < R; ++r) {
        T lanes[sizeof(V) / sizeof(T)];
        std::memcpy(lanes, &size[r], sizeof(V));
        norms[r] = 0.0;
        for (T x : lanes) norms[r] += double(x);
    }
}

}  // namespace ks
