// Learners on Fourier features whose frequencies are multiples of the same ones: one product P = X W for all of them, and
//   z_i = [cos(s_i P), sin(s_i P)] / sqrt(D)
// for learner i. Where s_i is twice the one before, the angles double, and with v = 1 - cos
//   v(2a) = 2 sin(a)^2,   sin(2a) = 2 sin(a) (1 - v(a))
// replace the cosines: four operations instead of twenty. Small angles keep their relative precision that way (1 - v would
// not), and large ones lose about as many digits as the rounding of P has cost them, which s_i enlarges too. The modulus
// drifts a little faster, so after some doublings the cosines are made anew.
#pragma once

#include <vector>

#include "linear_pass.hpp"
#include "parallel.hpp"

namespace ks {

template <class T>
struct FamilyMember {
    LinearModel<T> model;
    std::size_t D;  // takes the first D columns of P
    T stretch;
    std::int64_t t;
    const Loss* loss;
    const Update* update;
    const double* weight;  // (n,) or null
    double* F;             // (n, C)
};

constexpr int most_doublings = 8;
constexpr std::size_t tile_bytes = 48 * 1024;  // features of a tile of rows: with a learner's weights, about a second-level cache

// Features of angles twice as large. V (rows, D) is scale v, Z (rows, 2 D) has the scaled cosines and sines.
template <class T>
KS_CLONES void double_angles(std::size_t rows, std::size_t D, T scale, T* V, T* Z) {
    const T twice = T(2) / scale;
    for (std::size_t i = 0; i < rows; ++i) {
        T *KS_RESTRICT v = V + D * i, *KS_RESTRICT c = Z + 2 * D * i, *KS_RESTRICT s = c + D;
#pragma omp simd
        for (std::size_t j = 0; j < D; ++j) {
            const T sine = s[j], ratio = twice * sine;
            s[j] = T(2) * sine - ratio * v[j];
            v[j] = ratio * sine;
            c[j] = scale - v[j];
        }
    }
}

// Features of the angles stretch * P, by way of half of them, whose sines have all digits of v.
template <class T>
KS_CLONES void stretched(std::size_t rows, std::size_t D, std::size_t stride, const T* P, T stretch, T scale, T* V, T* Z) {
    const T half = stretch / 2, twice = T(2) / scale;
    for (std::size_t i = 0; i < rows; ++i) {
        const T* KS_RESTRICT from = P + i * stride;
        T *KS_RESTRICT v = V + D * i, *KS_RESTRICT c = Z + 2 * D * i, *KS_RESTRICT s = c + D;
#pragma omp simd
        for (std::size_t j = 0; j < D; ++j) v[j] = from[j] * half;
        cos_sin(D, v, scale, c, s);
#pragma omp simd
        for (std::size_t j = 0; j < D; ++j) {
            const T ratio = twice * s[j];
            v[j] = ratio * s[j];
            s[j] = ratio * c[j];
            c[j] = scale - v[j];
        }
    }
}

// How many doublings lead to each member from the one whose cosines are made anew.
template <class T>
std::vector<int> doublings(const std::vector<FamilyMember<T>>& members) {
    std::vector<int> links(members.size(), 0);
    for (std::size_t k = 1; k < members.size(); ++k) {
        const bool doubles = members[k].D == members[k - 1].D && members[k].stretch == 2 * members[k - 1].stretch;
        if (doubles && links[k - 1] < most_doublings) links[k] = links[k - 1] + 1;
    }
    return links;
}

// The members [begin, end) over all rows, a tile of rows at a time.
template <class T>
void family_share(std::size_t n, std::size_t stride, int C, const T* P, const double* y, std::vector<FamilyMember<T>>& members,
                  const std::vector<int>& links, const Share& share) {
    std::size_t widest = 1;
    for (std::size_t k = share.begin; k < share.end; ++k) widest = std::max(widest, members[k].D);
    const std::size_t tile = std::max<std::size_t>(4, std::min<std::size_t>(n, tile_bytes / (3 * widest * sizeof(T))));
    std::vector<T> Z(tile * 2 * widest), V(tile * widest);
    std::vector<double> scratch(3 * C);
    for (std::size_t start = 0; start < n; start += tile) {
        const std::size_t rows = std::min(tile, n - start);
        for (std::size_t k = share.begin; k < share.end; ++k) {
            FamilyMember<T>& member = members[k];
            const T scale = T(1 / std::sqrt(double(member.D)));
            const bool anew = links[k] == 0 || k == share.begin;
            if (anew)
                stretched(rows, member.D, stride, P + start * stride, members[k - links[k]].stretch, scale, V.data(), Z.data());
            for (int doubled = anew ? 0 : links[k] - 1; doubled < links[k]; ++doubled)
                double_angles(rows, member.D, scale, V.data(), Z.data());
            member.t = linear_pass<T>(rows, 2 * member.D, C, Source<T>{Z.data(), nullptr, scale}, y + start,
                                      member.weight ? member.weight + start : nullptr, member.model, member.t, *member.loss,
                                      *member.update, true, member.F + start * C, scratch.data());
        }
    }
}

template <class T>
void family_pass(std::size_t n, std::size_t stride, int C, const T* P, const double* y, std::vector<FamilyMember<T>>& members,
                 int threads) {
    const std::vector<int> links = doublings(members);
    parallel(threads, [&](int t) { family_share(n, stride, C, P, y, members, links, Share(members.size(), t, threads)); });
}

}  // namespace ks
