// The mean of the targets so far, which a centred regression learns the difference from: the twin of core/center.py.
#pragma once

namespace ks {

// What is added to the scores of a row; center holds the sum of the weights and the mean of the targets, or is null.
inline double offset_of(const double* center) { return center ? center[1] : 0.0; }

// The mean after a row.
inline void follow(double* center, double y, double importance) {
    if (!center) return;
    center[0] += importance;
    center[1] += importance * (y - center[1]) / center[0];
}

}  // namespace ks
