// Targets that are wild, and runs of targets outside the range so far: the twin of core/targets.py, which explains the rules.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/ranges.hpp"

namespace ks {

constexpr double target_run = 12.0;      // targets outside, one after the other, that tell a new level
constexpr std::size_t target_block = 128;  // targets after which the usual ones are looked at
constexpr std::size_t target_rows = 16;    // of what is remembered of each output

// Where the next target goes among the last ones; a file may say anything.
KS_INLINE std::size_t target_place(const double* seen, std::size_t k) {
    return std::size_t(std::min(std::max(seen[5 * k], 0.0), double(target_block - 1)));
}

struct Taken {
    std::size_t rows;  // that were entered
    bool due;          // whether a look is due
    std::size_t wild;  // rows that are not to be learned
};

// Targets y (n, k) up to the next one after which a look is due. Rows whose target is wild get the weight 0; weight may be null. `seen`
// (target_rows, k) and `last` (target_block, k), the last targets, are changed.
inline Taken take_targets(std::size_t n, std::size_t k, const double* y, const double* weight, double* seen, double* last, double* out) {
    double *count = seen, *low = seen + k, *high = seen + 2 * k, *doubt = seen + 3 * k, *total = seen + 4 * k, *place = seen + 5 * k,
           *run = seen + 6 * k, *below = seen + 7 * k, *above = seen + 8 * k;
    std::size_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = weight ? weight[i] : 1.0;
        if (out[i] == 0.0) continue;
        const double* row = y + i * k;
        bool wild = false, due = false;
        for (std::size_t o = 0; o < k; ++o) {
            if (run[o] == 0.0) below[o] = low[o], above[o] = high[o];
            const double widths = std::max(far_widths * double(target_block) / std::max(count[o], 1.0), 1.0);
            const bool outside = count[o] >= double(target_block) && lies_outside(row[o], below[o], above[o], widths);
            run[o] = outside ? run[o] + 1.0 : 0.0;
            due |= run[o] >= target_run;
            wild |= is_far(row[o], count[o], low[o], high[o]) && doubt[o] < enough;
        }
        for (std::size_t o = 0; o < k; ++o) {
            const bool far = is_far(row[o], count[o], low[o], high[o]);
            if (wild) {
                if (far && doubt[o] < enough) doubt[o] += 1.0;
                continue;
            }
            low[o] = count[o] > 0.0 ? std::min(low[o], row[o]) : row[o];
            high[o] = count[o] > 0.0 ? std::max(high[o], row[o]) : row[o];
            doubt[o] = far ? 0.0 : std::max(doubt[o] - forgiven, 0.0);
            count[o] += 1.0;
        }
        if (wild) {
            out[i] = 0.0;
            total[0] += 1.0;
            ++found;
        }
        const std::size_t at = target_place(seen, k);
        std::copy_n(row, k, last + at * k);
        place[0] = double(at + 1);
        if (due || at + 1 == target_block) return {i + 1, true, found};
    }
    return {n, false, found};
}

}  // namespace ks
