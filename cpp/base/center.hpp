// The mean of the targets so far, which a centred regression learns the difference from: the twin of core/center.py.
#pragma once

#include <cmath>

namespace ks {

// What is added to the scores of a row; center holds the sum of the weights and the mean of the targets, or is null.
inline double offset_of(const double* center) { return center ? center[1] : 0.0; }

// The mean after a row.
inline void follow(double* center, double y, double importance) {
    if (!center) return;
    center[0] += importance;
    center[1] += importance * (y - center[1]) / center[0];
}

// Targets so far: their number, mean and sum of squared deviations, (3).
inline double deviation(const double* target) { return target[0] > 1 ? std::sqrt(target[2] / target[0]) : 1.0; }

// The same after one more, which counts for at most 20 deviations once there are 30: a single outlier does not move it far.
inline void follow(double* target, double y) {
    if (target[0] >= 30) {
        const double most = 20.0 * deviation(target);
        if (most > 0 && std::abs(y - target[1]) > most) y = target[1] + std::copysign(most, y - target[1]);
    }
    const double delta = y - target[1];
    target[0] += 1;
    target[1] += delta / target[0];
    target[2] += delta * (y - target[1]);
}

}  // namespace ks
