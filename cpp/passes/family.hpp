// Learners on Fourier features whose frequencies are multiples of the same ones: one product P = X W for all of them, and
//   z_i = [cos(s_i P), sin(s_i P)] / sqrt(D)
// for learner i. Where s_i is twice the one before, the angles double, and with v = 1 - cos
//   v(2a) = 2 sin(a)^2,   sin(2a) = 2 sin(a) (1 - v(a))
// replace the cosines: four operations instead of twenty. Small angles keep their relative precision that way (1 - v would
// not), and large ones lose about as many digits as the rounding of P has cost them, which s_i enlarges too. Only the modulus
// would drift faster; it is brought back to 1 now and then.
#pragma once

#include <vector>

#include "passes/linear.hpp"
#include "base/parallel.hpp"

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

constexpr int checks = 6;  // doublings from one look at the modulus to the next
constexpr std::size_t tile_bytes = 48 * 1024;  // features of a tile of rows: with a learner's weights, about a second-level cache

// Features of angles twice as large. V (rows, D) is scale v, Z (rows, 2 D) has the scaled cosines and sines. With `checked`
// cos^2 + sin^2 = 1 once more: both are multiplied by 1 + h, h = (1 - cos^2 - sin^2) / 2.
template <bool checked, class T>
KS_INLINE void double_rows(std::size_t rows, std::size_t D, T scale, T* V, T* Z) {
    const T inverse = T(1) / scale, half = T(0.5) * inverse, twice = T(2) * inverse;
    for (std::size_t i = 0; i < rows; ++i) {
        T *KS_RESTRICT v = V + D * i, *KS_RESTRICT c = Z + 2 * D * i, *KS_RESTRICT s = c + D;
#pragma omp simd
        for (std::size_t j = 0; j < D; ++j) {
            const T sine = s[j], ratio = twice * sine;
            T next = T(2) * sine - ratio * v[j], away = ratio * sine;
            if (checked) {
                const T h = (away - half * (away * away + next * next)) * inverse;
                away -= h * (scale - away);
                next += h * next;
            }
            s[j] = next;
            v[j] = away;
            c[j] = scale - away;
        }
    }
}

template <class T>
KS_CLONES void double_angles(std::size_t rows, std::size_t D, T scale, bool checked, T* V, T* Z) {
    if (checked)
        double_rows<true>(rows, D, scale, V, Z);
    else
        double_rows<false>(rows, D, scale, V, Z);
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

// How many doublings lead to each member from the one whose cosines are computed directly.
template <class T>
std::vector<int> doublings(const std::vector<FamilyMember<T>>& members) {
    std::vector<int> links(members.size(), 0);
    for (std::size_t k = 1; k < members.size(); ++k)
        if (members[k].D == members[k - 1].D && members[k].stretch == 2 * members[k - 1].stretch) links[k] = links[k - 1] + 1;
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
    std::vector<double> scratch(RowRoom::size * C);
    for (std::size_t start = 0; start < n; start += tile) {
        const std::size_t rows = std::min(tile, n - start);
        for (std::size_t k = share.begin; k < share.end; ++k) {
            FamilyMember<T>& member = members[k];
            const T scale = T(1 / std::sqrt(double(member.D)));
            const bool direct = links[k] == 0 || k == share.begin;
            if (direct)
                stretched(rows, member.D, stride, P + start * stride, members[k - links[k]].stretch, scale, V.data(), Z.data());
            for (int link = direct ? 1 : links[k]; link <= links[k]; ++link)
                double_angles(rows, member.D, scale, link % checks == 0, V.data(), Z.data());
            member.t = linear_pass<T>(rows, 2 * member.D, C, Z.data(), y + start,
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
