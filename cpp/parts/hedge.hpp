// Weights of m learners over one block, rows in order:
//   theta_i <- theta_i exp(-rate w_t loss_i);  theta_i <- (1 - share) theta_i + share / m   (in logarithms).
// In:  F (m, n, C) scores of the learners before each update, y (n), drawn (n, m) or null: for whom a row counts, null is everybody.
// Changed: log_theta (m), history, range.
// Out: scores (n, C) of the whole before each update. The twin of passes/ensemble/python.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ks {

struct HedgeRule {
    double rate, share;
    bool votes, regression;
};

constexpr double vote_grid = 1.0 / (std::int64_t(1) << 40);
constexpr double no_vote = 1e-300;  // smaller scores are no vote: rounding decides their sign

class Hedge {
  public:
    Hedge(std::size_t m, const HedgeRule& rule, double* log_theta)
        : m_(m), rule_(rule), log_theta_(log_theta), theta_(m), f_(m) {
        refresh();
    }

    // Score of row i of n; F points at the first score of the first learner.
    void score(const double* F, std::size_t n, std::size_t i, int C, const double* range, double* out) {
        std::fill_n(out, C, 0.0);
        for (std::size_t k = 0; k < m_; ++k) {
            const double* f = F + (k * n + i) * C;
            const double v = theta_[k];
            if (rule_.regression) {
                f_[k] = range ? std::min(std::max(f[0], range[0]), range[1]) : f[0];
                out[0] += v * f_[k];
            } else if (!rule_.votes) {
                for (int c = 0; c < C; ++c) out[c] += v * f[c];
            } else if (C == 1) {
                out[0] += f[0] > no_vote ? v : f[0] < -no_vote ? -v : 0.0;
            } else {
                const double* best = std::max_element(f, f + C);
                if (std::count_if(f, f + C, [&](double other) { return *best - other <= no_vote; }) == 1) out[best - f] += v;
            }
        }
        for (int c = 0; c < C && rule_.votes; ++c) out[c] = std::nearbyint(out[c] / sum_ / vote_grid) * vote_grid;
        for (int c = 0; c < C && !rule_.votes; ++c) out[c] /= sum_;
    }

    // What row i does to the weights; in regression after score(), which keeps the forecasts, and with y already in the range.
    void learn(const double* F, std::size_t n, std::size_t i, int C, double y, double importance, const double* range, const bool* drawn) {
        if (rule_.rate == 0.0) return;
        bool moved = largest_ != 0.0;  // whether the largest logarithm is no longer 0
        for (std::size_t k = 0; k < m_; ++k) {
            if (drawn && !drawn[k]) continue;
            const double before = log_theta_[k];
            const double step = rule_.rate * importance * loss(F + (k * n + i) * C, k, C, y, range);
            if (step == 0.0) continue;
            log_theta_[k] = before - step;
            moved |= before == largest_;
            theta_[k] = std::exp(log_theta_[k]);
        }
        if (moved) {
            refresh();
            for (std::size_t k = 0; k < m_; ++k) log_theta_[k] -= largest_;
            largest_ = 0.0;
        } else {
            sum();
        }
        if (rule_.share == 0.0) return;
        for (std::size_t k = 0; k < m_; ++k)
            log_theta_[k] = std::log((1 - rule_.share) * theta_[k] / sum_ + rule_.share / double(m_));
        refresh();
    }

    double weight(std::size_t k) const { return theta_[k] / sum_; }
    double relative(std::size_t k) const { return theta_[k]; }  // to the largest

  private:
    // Learner k's loss in [0, 1].
    double loss(const double* f, std::size_t k, int C, double y, const double* range) const {
        if (rule_.regression) {
            const double width = range[1] - range[0], gap = f_[k] - y;
            return width > 0 ? (gap / width) * (gap / width) : 0.0;
        }
        if (C == 1) return y * f[0] <= no_vote ? 1.0 : 0.0;
        const int right = int(y);
        for (int c = 0; c < C; ++c)
            if (c != right && f[right] - f[c] <= no_vote) return 1.0;
        return 0.0;
    }

    void refresh() {
        largest_ = *std::max_element(log_theta_, log_theta_ + m_);
        for (std::size_t k = 0; k < m_; ++k) theta_[k] = std::exp(log_theta_[k] - largest_);
        sum();
    }

    void sum() {
        sum_ = 0.0;
        for (double v : theta_) sum_ += v;
    }

    std::size_t m_;
    HedgeRule rule_;
    double* log_theta_;
    std::vector<double> theta_, f_;  // weights up to a factor; forecasts of the row
    double sum_ = 0.0, largest_ = 0.0;
};

// Weights remembered at evenly spaced rows: row j of (size, m) after row (j + 1) stride; every second goes when it is full.
struct History {
    float* rows;
    std::size_t size, m;
    std::int64_t stride;

    void remember(std::int64_t t, const Hedge& hedge) {
        if (t % stride) return;
        if (t / stride > std::int64_t(size)) {
            for (std::size_t j = 0; j < size / 2; ++j) std::copy_n(rows + (2 * j + 1) * m, m, rows + j * m);
            stride *= 2;
        }
        if (t % stride) return;
        float* row = rows + std::size_t(t / stride - 1) * m;
        for (std::size_t k = 0; k < m; ++k) row[k] = float(hedge.weight(k));
    }
};

// Whether weights after every `stride` of t rows have their places in a history of so many rows, and the next one too.
inline bool history_fits(std::size_t size, std::int64_t t, std::int64_t stride) {
    return size > 0 && size % 2 == 0 && stride > 0 && t >= 0 && t / stride <= std::int64_t(size);
}

// Row i of n: the score of the whole, and what the row does to the weights; drawn (m) or null. Returns t, the rows of positive weight
// so far.
inline std::int64_t hedge_row(const double* F, std::size_t n, std::size_t i, int C, double y, double importance, const bool* drawn,
                              Hedge& hedge, std::int64_t t, History& history, double* range, double* score) {
    hedge.score(F, n, i, C, t ? range : nullptr, score);
    if (importance == 0.0) return t;
    if (range) {
        range[0] = t ? std::min(range[0], y) : y;
        range[1] = t ? std::max(range[1], y) : y;
    }
    ++t;
    hedge.learn(F, n, i, C, y, importance, range, drawn);
    history.remember(t, hedge);
    return t;
}

inline std::int64_t hedge_pass(std::size_t n, std::size_t m, int C, const double* F, const double* y, const double* weight,
                               const bool* drawn, Hedge& hedge, std::int64_t t, History& history, double* range, double* scores) {
    for (std::size_t i = 0; i < n; ++i)
        t = hedge_row(F, n, i, C, y[i], weight ? weight[i] : 1.0, drawn ? drawn + i * m : nullptr, hedge, t, history, range, scores + i * C);
    return t;
}

}  // namespace ks
