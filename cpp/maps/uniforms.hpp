// Uniform numbers from counters, those of kernelstream.random.uniforms: Philox4x64-10 (Salmon, Moraes, Dror, Shaw: Parallel random
// numbers: as easy as 1, 2, 3, SC 2011) in the form that numpy has it.
#pragma once

#include <cstdint>

namespace ks {

// High half of the product of two words; the low half is a * b.
inline std::uint64_t high_half(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t low = 0xFFFFFFFFu, a0 = a & low, a1 = a >> 32, b0 = b & low, b1 = b >> 32;
    const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32), other = a0 * b1 + (middle & low);
    return a1 * b1 + (middle >> 32) + (other >> 32);
}

// Number `place` of stream `stream` of a seed, in [0, 1).
inline double uniform(std::uint64_t seed, std::uint64_t place, std::uint64_t stream) {
    // four numbers to a counter, and numpy counts before it draws
    std::uint64_t x[4] = {place / 4 + 1, 0, 0, stream}, k0 = seed, k1 = 0;
    for (int round = 0; round < 10; ++round) {
        constexpr std::uint64_t first = 0xD2E7470EE14C6C93u, second = 0xCA5A826395121157u;
        const std::uint64_t h0 = high_half(first, x[0]), l0 = first * x[0], h1 = high_half(second, x[2]), l1 = second * x[2];
        x[0] = h1 ^ x[1] ^ k0;
        x[1] = l1;
        x[2] = h0 ^ x[3] ^ k1;
        x[3] = l0;
        k0 += 0x9E3779B97F4A7C15u;
        k1 += 0xBB67AE8584CAA73Bu;
    }
    return double(x[place % 4] >> 11) * 0x1p-53;
}

}  // namespace ks
