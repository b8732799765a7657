// A vector that leaves is passed on to weights of random features: the twin of kernelstream/budgets/transfer.py.
#pragma once

#include <cstring>

#include "parts/support.hpp"

namespace ks {

template <class T>
struct Transfer : Budget<T> {
    Transfer() { this->features = true; }
    void absorb(Support<T>& S, const Newcomer<T>& row) const override {
        const std::size_t r = S.full() ? S.smallest(row) : S.n;
        const T* features = S.Z + row.i * S.P;
        for (int c = 0; c < S.C && S.full(); ++c) {
            const double share = r < S.n ? double(S.alpha[c * S.capacity + r]) : row.tau[c] / S.scale[c];
            axpy(S.P, T(share), r < S.n ? S.z + r * S.P : features, S.w + c * S.P);
        }
        if (r == S.capacity) return;
        std::memcpy(S.z + r * S.P, features, S.P * sizeof(T));
        S.place(r, row, row.tau);
    }
};

}  // namespace ks
