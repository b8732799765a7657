// Four numbers side by side: small recursions that differ only in a few constants run as one.
//
// They are two pairs, which every processor has registers for; the two chains of operations hardly wait for each other. Pairs are copied
// one by one: a copy of both goes through memory.
#pragma once

#include <cmath>

#include "base/vecmath.hpp"

namespace ks {

using Two = Line<double, 2>::type;

struct Four {
    Two low, high;
};

KS_INLINE Four operator+(const Four& a, const Four& b) { return {a.low + b.low, a.high + b.high}; }
KS_INLINE Four operator-(const Four& a, const Four& b) { return {a.low - b.low, a.high - b.high}; }
KS_INLINE Four operator*(const Four& a, const Four& b) { return {a.low * b.low, a.high * b.high}; }
KS_INLINE Four operator/(const Four& a, const Four& b) { return {a.low / b.low, a.high / b.high}; }

KS_INLINE Four four(double x) { return {Two{x, x}, Two{x, x}}; }

KS_INLINE Four load_four(const double* from) {
    Four x;
    std::memcpy(&x.low, from, sizeof x.low);
    std::memcpy(&x.high, from + 2, sizeof x.high);
    return x;
}

KS_INLINE void store_four(double* to, const Four& x) {
    std::memcpy(to, &x.low, sizeof x.low);
    std::memcpy(to + 2, &x.high, sizeof x.high);
}

// 1 / sqrt(x)
KS_INLINE Four inverse_root(const Four& x) {
    double at[4];
    store_four(at, x);
    KS_UNROLL
    for (int l = 0; l < 4; ++l) at[l] = 1.0 / std::sqrt(at[l]);
    return load_four(at);
}

// 1 / (1 + e^-f)
KS_INLINE Four sigmoid(const Four& f) {
    double e[4];
    store_four(e, f);
    KS_UNROLL
    for (int l = 0; l < 4; ++l) e[l] = exp(-e[l]);
    return four(1.0) / (four(1.0) + load_four(e));
}

}  // namespace ks
