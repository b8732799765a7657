// Normal numbers from counters, bit for bit those of kernelstream/core/philox.py, where the formulas are explained.
//
// Philox4x32-10 on the counter (group, row, block, stream) with the seed as key, then Box and Muller in float32. The file
// that includes this must be compiled without fused multiply-adds (-ffp-contract=off): every operation is rounded by
// itself, so that all machines give the same bits.
#pragma once

#include "base/vecmath.hpp"

namespace ks {

constexpr std::size_t philox_lanes = 16;  // groups made together: several vectors, to keep the multipliers busy

// Two words a, b -> two normals.
KS_INLINE void box_muller(std::uint32_t a, std::uint32_t b, float& first, float& second) {
    constexpr std::int32_t sqrt_half = 0x3F3504F3;
    const float v = float(a) + 0.5f;
    const std::int32_t shifted = bit_cast<std::int32_t>(v) - sqrt_half;
    const float exponent = float(shifted >> 23);
    const float x = bit_cast<float>((shifted & 0x7FFFFF) + sqrt_half) - 1.0f;
    float p = 0.08787265419960022f;
    p = p * x + -0.1415964663028717f;
    p = p * x + 0.148347869515419f;
    p = p * x + -0.16588488221168518f;
    p = p * x + 0.19972050189971924f;
    p = p * x + -0.25001147389411926f;
    p = p * x + 0.3333367109298706f;
    p = p * x + -0.4999999701976776f;
    const float log_m = x + (x * x) * p;
    const float radius = std::sqrt((exponent - 32.0f) * -1.3862943611198906f + -2.0f * log_m);
    const float r = float(bit_cast<std::int32_t>(b << 1)) * 7.314590396335798e-10f;
    const float z = r * r;
    float s = 2.599903382360935e-06f;
    s = s * z + -0.00019806547788903117f;
    s = s * z + 0.008333016186952591f;
    s = s * z + -0.16666656732559204f;
    float c = -2.619248391511064e-07f;
    c = c * z + 2.4769240553723648e-05f;
    c = c * z + -0.0013888567918911576f;
    c = c * z + 0.041666656732559204f;
    const float length = bit_cast<float>(bit_cast<std::uint32_t>(radius) | (b & 0x80000000u));
    first = length * ((1.0f - 0.5f * z) + (z * z) * c);
    second = length * (r + (r * z) * s);
}

// One row: D numbers scaled, in T. Number q G + g comes from word pair q / 2 of group g, G = ceil(D / 4); a group's four
// numbers lie a quarter of the row apart, so that neighbouring groups write neighbouring numbers.
template <class T>
KS_INLINE void philox_row(std::uint64_t seed, std::uint32_t row, std::uint32_t block, std::uint32_t stream, std::size_t D,
                          T scale, T* KS_RESTRICT out) {
    constexpr std::size_t L = philox_lanes;
    const std::size_t G = (D + 3) / 4;
    for (std::size_t start = 0; start < G; start += L) {
        std::uint32_t x0[L], x1[L], x2[L], x3[L];
        for (std::size_t l = 0; l < L; ++l) {
            x0[l] = std::uint32_t(start + l);
            x1[l] = row;
            x2[l] = block;
            x3[l] = stream;
        }
        std::uint32_t k0 = std::uint32_t(seed), k1 = std::uint32_t(seed >> 32);
        for (int round = 0; round < 10; ++round) {
#pragma omp simd
            for (std::size_t l = 0; l < L; ++l) {
                const std::uint64_t p = std::uint64_t(0xD2511F53u) * x0[l], q = std::uint64_t(0xCD9E8D57u) * x2[l];
                const std::uint32_t y0 = std::uint32_t(q >> 32) ^ x1[l] ^ k0, y2 = std::uint32_t(p >> 32) ^ x3[l] ^ k1;
                x1[l] = std::uint32_t(q);
                x3[l] = std::uint32_t(p);
                x0[l] = y0;
                x2[l] = y2;
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        float n0[L], n1[L], n2[L], n3[L];
#pragma omp simd
        for (std::size_t l = 0; l < L; ++l) {
            box_muller(x0[l], x1[l], n0[l], n1[l]);
            box_muller(x2[l], x3[l], n2[l], n3[l]);
        }
        const float* parts[4] = {n0, n1, n2, n3};
        const std::size_t count = G - start < L ? G - start : L;
        for (std::size_t q = 0; q < 4; ++q) {
            const std::size_t first = q * G + start;
            if (first >= D) break;
            const std::size_t n = D - first < count ? D - first : count;
            for (std::size_t l = 0; l < n; ++l) out[first + l] = T(parts[q][l]) * scale;
        }
    }
}

// out (n, D) = scale * rows rows[0 … n) of a block.
template <class T>
KS_CLONES void philox_normals(std::uint64_t seed, std::uint32_t block, std::uint32_t stream, std::size_t n,
                              const std::int64_t* rows, std::size_t D, T scale, T* out) {
    for (std::size_t i = 0; i < n; ++i) philox_row<T>(seed, std::uint32_t(rows[i]), block, stream, D, scale, out + i * D);
}

}  // namespace ks
