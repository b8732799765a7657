// Four numbers side by side: small recursions that differ only in a few constants run as one.
#pragma once

#include <cmath>

#include "base/vecmath.hpp"

namespace ks {

#if defined(__GNUC__)
typedef double Four __attribute__((vector_size(32)));
#else
struct Four {
    double at[4];
    double operator[](int l) const { return at[l]; }
    double& operator[](int l) { return at[l]; }
};
#define KS_FOUR(op)                                                                    \
    inline Four operator op(const Four& a, const Four& b) {                            \
        return {{a.at[0] op b.at[0], a.at[1] op b.at[1], a.at[2] op b.at[2], a.at[3] op b.at[3]}}; \
    }                                                                                  \
    inline Four& operator op##=(Four& a, const Four& b) { return a = a op b; }
KS_FOUR(+)
KS_FOUR(-)
KS_FOUR(*)
KS_FOUR(/)
#undef KS_FOUR
#endif

KS_INLINE Four four(double x) {
    Four all;
    for (int l = 0; l < 4; ++l) all[l] = x;
    return all;
}

KS_INLINE Four load_four(const double* from) {
    Four x;
    std::memcpy(&x, from, sizeof x);
    return x;
}

KS_INLINE void store_four(double* to, const Four& x) { std::memcpy(to, &x, sizeof x); }

KS_INLINE Four sqrt_four(Four x) {
    for (int l = 0; l < 4; ++l) x[l] = std::sqrt(x[l]);
    return x;
}

// 1 / (1 + e^-f)
KS_INLINE Four sigmoid_four(const Four& f) {
    double e[4];
    store_four(e, four(0.0) - f);
#pragma omp simd
    for (int l = 0; l < 4; ++l) e[l] = exp(e[l]);
    return four(1.0) / (four(1.0) + load_four(e));
}

}  // namespace ks
