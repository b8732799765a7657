// Quantiles of the targets of rows, around their forecasts: the loops of passes/quantiles/python.py, which explains them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace ks::quantiles {

constexpr std::size_t KNOTS = 11;    // of the forecast
constexpr std::int64_t RECENT = 4096;  // rows whose forecasts and scaled errors are kept
constexpr std::int64_t SAMPLE = 128;   // of them, the knots are drawn from
constexpr std::int64_t FIRST_KNOTS = 16, RENEWED = 256;  // rows after which they are
constexpr std::size_t CELLS = 5;      // knots of a column
constexpr double REACH = 1.5;         // deviations at the outer ones
constexpr double STEP = 0.05, COMMON = 0.02;  // of the quantiles at the knots near by, and of those at all
constexpr double MEMORY = 300.0;      // rows over which the size of errors is averaged
constexpr double FAR = 10.0;          // most times the mean error that an error counts for in this mean
constexpr double CAP = 5.0;           // most times the spread that one counts for in the spread
constexpr double FIRST = 0.5, EARLY = 200.0, LEAST = 0.005;  // lengths of the steps of the spread
constexpr double WIDEST = 8.0;        // largest logarithm of the spread
constexpr double LARGEST = 1e6;       // most times the spread that an error is

// Everything learned, and the levels (L) that are followed.
struct Model {
    std::size_t L, d;
    const double* levels;
    double *size, *recent, *knots;  // (2), (2, RECENT), (KNOTS)
    double *spread, *columns;       // (KNOTS), (d, CELLS): logarithms that add up to that of the spread
    double* quantiles;              // (L, KNOTS): of scaled errors
};

// Two neighbours of knots, the first of which is `at`; the second counts `part`, the first the rest.
struct Between {
    std::size_t at;
    double part;
};

inline Between in_forecasts(double f, const double* knots) {
    const std::size_t above = std::size_t(std::upper_bound(knots, knots + KNOTS, f) - knots);
    if (above == 0) return {0, 0.0};
    if (above == KNOTS) return {KNOTS - 2, 1.0};
    return {above - 1, (f - knots[above - 1]) / (knots[above] - knots[above - 1])};
}

inline Between in_column(double x) {
    const double place = std::min(std::max((x + REACH) * (double(CELLS - 1) / (2 * REACH)), 0.0), double(CELLS - 1));
    const std::size_t at = std::min(std::size_t(place), CELLS - 2);
    return {at, place - double(at)};
}

class Pass {
    Model m_;
    std::vector<Between> at_;
    std::vector<double> u_, known_, unasked_;

    // Rows learned; a file may say more than there are whole numbers.
    std::int64_t rows() const { return std::int64_t(std::min(m_.size[0], 0x1p53)); }

    void count(double f, double error, double u) {
        double *size = m_.size, *recent = m_.recent;
        std::int64_t t = rows();
        recent[t % RECENT] = f;
        recent[RECENT + t % RECENT] = u;
        size[0] += 1.0;
        error = std::abs(error);
        const double counted = size[1] > 0.0 ? std::min(error, FAR * size[1]) : error;
        size[1] += (counted - size[1]) / std::min(size[0], MEMORY);
        ++t;
        if (t % RENEWED && !(t < RENEWED && t >= FIRST_KNOTS && (t & (t - 1)) == 0)) return;
        const std::int64_t n = std::min(t, RECENT);
        known_.clear();
        for (std::int64_t i = 0; i < n; i += std::max<std::int64_t>(1, n / SAMPLE)) known_.push_back(recent[i]);
        std::sort(known_.begin(), known_.end());
        for (std::size_t k = 0; k < KNOTS; ++k) {
            const double place = double(k) * double(known_.size() - 1) / double(KNOTS - 1);
            const std::size_t at = std::min(std::size_t(place), known_.size() - 2);
            m_.knots[k] = known_[at] + (place - double(at)) * (known_[at + 1] - known_[at]);
        }
    }

  public:
    explicit Pass(const Model& model) : m_(model), at_(model.d), u_(model.L), unasked_(model.L) {}

    void learn(double f, const double* x, double y) { row(f, x, &y, unasked_.data()); }

    // The place among the rows kept that the next one takes.
    double* next() const { return m_.recent + rows() % RECENT; }

    // Quantiles out (L) of the target of a row x (d) with forecast f; it is then learned where there is a target.
    void row(double f, const double* x, const double* y, double* out) {
        const std::size_t L = m_.L, d = m_.d;
        const Between k = in_forecasts(f, m_.knots);
        double log = (1.0 - k.part) * m_.spread[k.at] + k.part * m_.spread[k.at + 1];
        for (std::size_t j = 0; j < d; ++j) {
            at_[j] = in_column(x[j]);
            const double* b = m_.columns + j * CELLS + at_[j].at;
            log += (1.0 - at_[j].part) * b[0] + at_[j].part * b[1];
        }
        const double unit = m_.size[1] * std::exp(std::min(std::max(log, -WIDEST), WIDEST));
        const double* q = m_.quantiles + k.at;
        for (std::size_t l = 0; l < L; ++l) {  // the answers in order: they seldom cross
            u_[l] = (1.0 - k.part) * q[l * KNOTS] + k.part * q[l * KNOTS + 1];
            std::size_t place = l;
            for (; place > 0 && out[place - 1] > u_[l]; --place) out[place] = out[place - 1];
            out[place] = u_[l];
        }
        constexpr double infinity = std::numeric_limits<double>::infinity();
        for (std::size_t l = 0; l < L; ++l) {
            if (m_.size[0] > 0.0) out[l] = f + unit * out[l];
            else out[l] = m_.levels[l] < 0.5 ? -infinity : m_.levels[l] > 0.5 ? infinity : f;
        }
        if (!y) return;
        const double error = *y - f;
        const double u = unit > 0.0 ? std::min(std::max(error / unit, -LARGEST), LARGEST) : double((error > 0.0) - (error < 0.0));
        if (unit > 0.0) follow(k, u);
        count(f, error, u);
    }

  private:
    void follow(const Between& k, double u) {
        const std::size_t L = m_.L, d = m_.d;
        const double part[2] = {1.0 - k.part, k.part};
        for (std::size_t l = 0; l < L; ++l) {
            double* q = m_.quantiles + l * KNOTS;
            const double change = m_.levels[l] - (u <= u_[l] ? 1.0 : 0.0), common = COMMON * change;
            for (std::size_t knot = 0; knot < KNOTS; ++knot) q[knot] += common;
            for (int e = 0; e < 2; ++e) q[k.at + e] += STEP * part[e] * change;
        }
        const double own = std::max(1.0, double(d) / 2);
        double squares = own * (part[0] * part[0] + part[1] * part[1]);
        for (const Between& place : at_) squares += (1.0 - place.part) * (1.0 - place.part) + place.part * place.part;
        const double length = std::max(FIRST * EARLY / (EARLY + m_.size[0]), LEAST);
        const double step = length * (std::min(std::abs(u), CAP) - 1.0) / squares;
        for (int e = 0; e < 2; ++e) m_.spread[k.at + e] += step * own * part[e];
        for (std::size_t j = 0; j < d; ++j) {
            double* b = m_.columns + j * CELLS + at_[j].at;
            b[0] += step * (1.0 - at_[j].part);
            b[1] += step * at_[j].part;
        }
    }
};

}  // namespace ks::quantiles
