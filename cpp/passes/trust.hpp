// Probabilities and intervals that follow a stream: the loops of passes/trust/python.py, which explains them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/vecmath.hpp"
#include "parts/losses.hpp"

namespace ks {

constexpr double TRUST_WIDEST = 30.0;   // scores and log-odds are kept within
constexpr double TRUST_PRIOR = 5.0;     // curvature at the start, and the least there is
constexpr double TRUST_SHARE = 1e-4;    // part of all weight that is spread evenly after a row
constexpr double TRUST_MEMORY = 1e4;    // rows over which the size of scores is averaged
constexpr double TRUST_LARGEST = 1e300;  // square of a score that is counted
constexpr double TRUST_RAW = 2.0;       // log-odds of a score of usual size, where scores are not log-odds
constexpr std::size_t TRUST_MOST = 16;  // answers, at most
constexpr double TRUST_FLAT = 0.01;     // least slope of an answer: a larger score is never less probable

inline double trust_clip(double x) { return std::min(std::max(x, -TRUST_WIDEST), TRUST_WIDEST); }

// Factor of scores that makes log-odds of them.
inline double trust_unit(const double* size, bool own) {
    if (own) return 1.0;
    return size[1] > 0.0 ? TRUST_RAW / std::sqrt(size[1]) : 0.0;
}

// Coefficients of softplus(s), -softplus(-s) and tanh(s) whose sum rises with s.
inline void trust_rise(double* t) {
    t[0] = std::max(t[0], TRUST_FLAT);
    t[1] = std::max(t[1], TRUST_FLAT);
    t[2] = std::max(t[2], TRUST_FLAT - std::min(t[0], t[1]));
}

// What a forecast left to all labels but the truth, 1 - P(y): scores are log-odds for C = 1, where y is -1 or 1, else logarithms
// of probabilities up to a constant.
inline double trust_doubt(std::size_t C, const double* scores, double y) {
    if (C == 1) return sigmoid(-y * scores[0]);
    const double most = *std::max_element(scores, scores + C);
    double total = 0.0, others = 0.0;
    for (std::size_t c = 0; c < C; ++c) {
        const double e = std::exp(scores[c] - most);
        total += e;
        if (c != std::size_t(y)) others += e;
    }
    return others / total;
}

// Enter a row into the running means, size (3); returns its weight next to their mean, which is never more than the rows so far.
inline double trust_count(double* size, double square, double importance) {
    size[0] += 1.0;
    size[1] += (std::min(square, TRUST_LARGEST) - size[1]) / std::min(size[0], TRUST_MEMORY);
    size[2] += (importance - size[2]) / size[0];
    return importance / size[2];
}

// Weights of the answers after a row: by the probability each gave to the truth, then the fixed share.
inline void trust_weigh(double* weights, const double* truth, std::size_t n, double importance) {
    const double most = *std::max_element(truth, truth + n);
    double total = 0.0;
    for (std::size_t e = 0; e < n; ++e) {
        const double t = truth[e];
        total += weights[e] *= importance == 1.0 ? t : importance == 2.0 ? t * t : std::pow(t / most, importance);
    }
    for (std::size_t e = 0; e < n; ++e) weights[e] = (1.0 - TRUST_SHARE) * weights[e] / total + TRUST_SHARE / double(n);
}

// A Newton step of an answer p to a row of two classes. theta (4), curvature (10).
KS_INLINE void trust_step(const double* z, double y, double w, double p, double keep, double* theta, double* curvature) {
    constexpr double start[4] = {1.0, 1.0, 0.0, 0.0};
    double L[4][4], part[4], v[4];  // H = L D L' with 1/D in `part`, then L u = g and D L' v = u, in place
    const double wrong = p - y, c = w * wrong * wrong, pull = (1.0 - keep) * TRUST_PRIOR;
    KS_UNROLL
    for (int a = 0; a < 4; ++a) {
        v[a] = w * wrong * z[a] + pull * (theta[a] - start[a]);
        KS_UNROLL
        for (int b = 0; b <= a; ++b) {
            double& entry = curvature[a * (a + 1) / 2 + b];
            entry = keep * entry + c * z[a] * z[b] + (a == b ? pull : 0.0);
            L[a][b] = entry;  // L[a][b] D[b] until the row is done
            KS_UNROLL
            for (int k = 0; k < b; ++k) L[a][b] -= a == b ? L[a][k] * L[a][k] * part[k] : L[a][k] * L[b][k];
        }
        // here L[a][k] is L D; rows above hold L itself
        part[a] = 1.0 / L[a][a];
        KS_UNROLL
        for (int b = 0; b < a; ++b) {
            L[a][b] *= part[b];
            v[a] -= L[a][b] * v[b];
        }
    }
    KS_UNROLL
    for (int a = 3; a >= 0; --a) {
        v[a] *= part[a];
        KS_UNROLL
        for (int b = a + 1; b < 4; ++b) v[a] -= L[b][a] * v[b];
        theta[a] -= v[a];
    }
    trust_rise(theta);
}

// What E answers and their mixture have learned: size (3), weights (E + 1); of two classes theta (E, 4), curvature (E, 10: lower
// triangle), of C theta (E, C, 2), curvature (E, C, 3).
struct Calibration {
    std::size_t E;
    const double* keep;  // (E)
    double *size, *weights, *theta, *curvature;
};

// Two classes; a row stands for `times` rows. y is 0 or 1, null learns nothing. Nobody asks for the answers where out is null.
inline void calibrate_two(const Calibration& held, std::size_t n, const double* scores, const double* y, const double* importance,
                          double times, bool own, double* out) {
    const auto& [E, keep, size, weights, theta, curvature] = held;
    double p[TRUST_MOST], truth[TRUST_MOST];
    for (std::size_t i = 0; i < n; ++i) {
        const double s = trust_clip(scores[i] * trust_unit(size, own));
        const double small = std::exp(-std::abs(s)), log = std::log1p(small), square = small * small;
        const double bend = (1.0 - square) / (1.0 + square);  // tanh |s|
        const double z[4] = {std::max(s, 0.0) + log, std::min(s, 0.0) - log, s < 0.0 ? -bend : bend, 1.0};
        double yes = 0.0, no = 0.0;
        for (std::size_t e = 0; e <= E; ++e) {
            const double* t = theta + 4 * (e - 1);
            const double q = e == 0 ? s : trust_clip(t[0] * z[0] + t[1] * z[1] + t[2] * z[2] + t[3] * z[3]);
            const double tail = e == 0 ? small : std::exp(-std::abs(q)), large = 1.0 / (1.0 + tail), rest = tail * large;
            p[e] = q >= 0.0 ? large : rest;
            const double other = q >= 0.0 ? rest : large;
            yes += weights[e] * p[e];
            no += weights[e] * other;
            truth[e] = y && y[i] > 0.5 ? p[e] : other;
        }
        if (out) out[i] = std::log(yes) - std::log(no);
        const double given = !y ? 0.0 : importance ? importance[i] : 1.0;
        if (given == 0.0) continue;
        const double w = times * trust_count(size, scores[i] * scores[i], given);
        trust_weigh(weights, truth, E + 1, w);
        for (std::size_t e = 0; e < E; ++e) trust_step(z, y[i], w, p[1 + e], keep[e], theta + 4 * e, curvature + 10 * e);
    }
}

// C classes; y is the number of the class, out (n, C).
inline void calibrate_several(const Calibration& held, std::size_t n, std::size_t C, const double* scores, const double* y,
                              const double* importance, double times, bool own, double* out) {
    const auto& [E, keep, size, weights, theta, curvature] = held;
    std::vector<double> room((E + 3) * C);
    double truth[TRUST_MOST], *const s = room.data(), *const unasked = s + C, *const p = unasked + C;
    for (std::size_t i = 0; i < n; ++i) {
        const double* row = scores + i * C;
        double mean = 0.0, square = 0.0;
        for (std::size_t c = 0; c < C; ++c) mean += row[c];
        mean /= double(C);
        for (std::size_t c = 0; c < C; ++c) square += (row[c] - mean) * (row[c] - mean);
        const double unit = trust_unit(size, own);
        for (std::size_t c = 0; c < C; ++c) s[c] = trust_clip((row[c] - mean) * unit);
        double* mixed = out ? out + i * C : unasked;
        std::fill(mixed, mixed + C, 0.0);
        for (std::size_t e = 0; e <= E; ++e) {
            double* pe = p + e * C;
            double most = -std::numeric_limits<double>::infinity(), total = 0.0;
            for (std::size_t c = 0; c < C; ++c) {
                const double* t = theta + 2 * ((e - 1) * C + c);
                pe[c] = e == 0 ? s[c] : trust_clip(t[0] * s[c] + t[1]);
                most = std::max(most, pe[c]);
            }
            for (std::size_t c = 0; c < C; ++c) total += pe[c] = std::exp(pe[c] - most);
            for (std::size_t c = 0; c < C; ++c) mixed[c] += weights[e] * (pe[c] /= total);
        }
        for (std::size_t c = 0; c < C && out; ++c) mixed[c] = std::log(mixed[c]);
        const double given = !y ? 0.0 : importance ? importance[i] : 1.0;
        if (given == 0.0) continue;
        const double w = times * trust_count(size, square / double(C), given);
        const std::size_t label = std::size_t(y[i]);
        for (std::size_t e = 0; e <= E; ++e) truth[e] = p[e * C + label];
        trust_weigh(weights, truth, E + 1, w);
        for (std::size_t e = 0; e < E; ++e) {
            const double pull = (1.0 - keep[e]) * TRUST_PRIOR;
            for (std::size_t c = 0; c < C; ++c) {
                double* t = theta + 2 * (e * C + c);
                double* h = curvature + 3 * (e * C + c);
                const double wrong = p[(e + 1) * C + c] - (c == label ? 1.0 : 0.0), k = w * wrong * wrong;
                h[0] = keep[e] * h[0] + k * s[c] * s[c] + pull;
                h[1] = keep[e] * h[1] + k * s[c];
                h[2] = keep[e] * h[2] + k + pull;
                const double g0 = w * wrong * s[c] + pull * (t[0] - 1.0), g1 = w * wrong + pull * t[1];
                // half a Newton step: the blocks of the classes are half of the whole curvature at worst
                const double half = 0.5 / (h[0] * h[2] - h[1] * h[1]);
                t[0] = std::max(t[0] - half * (h[2] * g0 - h[1] * g1), TRUST_FLAT);
                t[1] -= half * (h[0] * g1 - h[1] * g0);
            }
        }
    }
}

constexpr int LINK_EVERY = 2;  // one row in LINK_EVERY is learned, and counts for all of them

// Numbers of a link: rows seen, then size, weights, theta and curvature of a calibration of C classes, one after the other.
inline std::size_t link_length(std::size_t E, std::size_t C) { return 5 + E + (C == 2 ? 14 * E : 5 * C * E); }

// Learn the scores (n, outputs) that rows had before they were learned; y is -1 or 1 for one output, else the number of the class.
inline void follow_link(std::size_t n, std::size_t E, std::size_t outputs, std::size_t C, const double* scores, const double* y,
                        const double* importance, const double* keep, double* link) {
    double *weights = link + 4, *theta = weights + E + 1;
    const Calibration held{E, keep, link + 1, weights, theta, theta + (C == 2 ? 4 * E : 2 * C * E)};
    for (std::size_t i = 0; i < n; ++i) {
        if (importance && importance[i] == 0.0) continue;
        const bool passed = static_cast<long long>(link[0]) % LINK_EVERY != 0;
        link[0] += 1.0;
        if (passed) continue;
        const double *row = scores + i * outputs, *factor = importance ? importance + i : nullptr;
        if (C > 2) {
            calibrate_several(held, 1, C, row, y + i, factor, LINK_EVERY, false, nullptr);
            continue;
        }
        const double s = outputs == 1 ? row[0] : row[1] - row[0], label = outputs == 1 ? double(y[i] > 0.0) : y[i];
        calibrate_two(held, 1, &s, &label, factor, LINK_EVERY, false, nullptr);
    }
}

constexpr double TRACK_STEP = 0.005;     // of the factor that corrects the coverage
constexpr double TRACK_MEMORY = 1000.0;  // rows over which the size of errors is averaged
constexpr double TRACK_FAR = 10.0;       // most times the usual error that an error counts for
constexpr double TRACK_RATE = 5.0;       // of the weights of the trackers
constexpr double TRACK_SHARE = 1e-3;

// What follows the errors of forecasts: levels (L), steps (E), size (2), quantiles and weights (L, E), factors (L).
struct ErrorTracker {
    std::size_t L, E;
    const double *levels, *steps;
    double *size, *quantiles, *weights, *factors;

    // half (n, L): half-widths of intervals before each error.
    void learn(std::size_t n, const double* errors, double* half) const {
        for (std::size_t i = 0; i < n; ++i) {
            const double r = errors[i], usual = size[1];
            const double u = usual > 0.0 ? std::min(r / usual, 1e6) : (r > 0.0 ? 1e6 : 0.0);
            for (std::size_t l = 0; l < L; ++l) {
                double* q = quantiles + l * E;
                double* w = weights + l * E;
                double mixed = 0.0;
                for (std::size_t e = 0; e < E; ++e) mixed += w[e] * q[e];
                half[i * L + l] = size[0] > 0.0 ? std::max(factors[l], 0.0) * mixed * usual
                                                : std::numeric_limits<double>::infinity();
                if (size[0] == 0.0) continue;
                const double miss = 1.0 - levels[l];
                factors[l] += TRACK_STEP * ((r > half[i * L + l] ? 1.0 : 0.0) - miss);
                double total = 0.0;
                for (std::size_t e = 0; e < E; ++e) {
                    const double over = u - q[e];
                    const double loss = std::min(over > 0.0 ? levels[l] * over : -miss * over, TRACK_FAR);
                    total += w[e] *= std::exp(-TRACK_RATE * loss);
                    q[e] = std::max(q[e] + steps[e] * ((over > 0.0 ? 1.0 : 0.0) - miss), 0.0);
                }
                for (std::size_t e = 0; e < E; ++e) w[e] = (1.0 - TRACK_SHARE) * w[e] / total + TRACK_SHARE / double(E);
            }
            size[0] += 1.0;
            const double counted = usual > 0.0 ? std::min(r, TRACK_FAR * usual) : r;
            size[1] += (counted - usual) / std::min(size[0], TRACK_MEMORY);
        }
    }
};

}  // namespace ks
