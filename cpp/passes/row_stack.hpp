// One row through all of a stack: scaled columns, the members' forecasts, their combination, and what everybody learns from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>
#include <vector>

#include "base/corrupt.hpp"
#include "base/ranges.hpp"
#include "base/targets.hpp"
#include "passes/quantiles.hpp"
#include "passes/row_learners.hpp"
#include "passes/stack_labels.hpp"
#include "passes/stack_numbers.hpp"
#include "passes/trust.hpp"

namespace ks::rows {

constexpr std::int64_t KEPT_EVERY = 16;

template <class T>
struct Stack {
    struct Changing {
        double* at;
        std::size_t size;
    };
    std::size_t d, C;
    double squash;  // deviations beyond which a value counts by its logarithm
    double count;   // rows that the columns' moments are of
    Columns columns;
    std::optional<corrupt::Usual> usual;  // of rows that come as they are: what is usual in their columns, and
    double* last_rows = nullptr;          // (places, d) some of the last rows
    std::size_t places = 0;
    std::vector<Learner<T>*> learners;
    std::optional<std::variant<stack::Labels, stack::Numbers>> combination;
    std::optional<ErrorTracker> tracker;      // of labels: of what was given to wrong ones
    std::optional<quantiles::Pass> spread;    // of numbers: of their quantiles
    double* seen = nullptr;                   // of numbers: what is remembered of the targets,
    double* last = nullptr;                   // the last ones,
    const double *mean = nullptr, *unit = nullptr;  // and mean and size of the first ones, in which learners learn them
    std::vector<Changing> changing;           // arrays that every row changes
    float* history;                           // (places, learners): their weights after every so many rows
    T* kept;                                  // (n_kept, d): rows of late, as the learners saw them
    double* kept_targets;                     // (n_kept): their targets; null for labels
    std::int64_t n_kept;
    double* watched;                          // (n_watched): the errors of the last rows
    std::int64_t n_watched;
    T* recent_rows;                           // (n_recent, d): the last rows, as the learners saw them,
    double *recent_targets, *recent_weights;  // (n_recent) each: and their targets and weights
    std::int64_t n_recent;

    void prepare() {
        for (double* column : columns.all()) changing.push_back({column, d});
        if (usual) changing.push_back({&usual->outside(0), d});
        x_.resize(d);
        wide_.resize(d);
        half_.resize(tracker ? tracker->L : 0);
        F_.resize(learners.size() * C);
    }

    // Scores (n, C) before each row, of which there were t; false, and all is as it was, when a row needs more than this. The weights
    // after every `stride` rows are entered into the history.
    bool learn(std::size_t n, const T* X, const double* y, bool recent, std::int64_t t, std::int64_t stride, double* scores) {
        journal_.clear();
        const double before = count;
        const auto take_back = [&] {
            journal_.restore();
            count = before;
        };
        for (std::size_t i = 0; i < n; ++i) {
            double error;
            try {
                if (!learn_one(X + i * d, y[i], recent, scores + i * C, error)) {
                    take_back();
                    return false;
                }
            } catch (...) {  // of a learner that is a function
                take_back();
                throw;
            }
            keep_row(t, y[i]);
            watch(t, y[i], error);
            if (++t % stride == 0) note_weights(history + std::size_t(t / stride - 1) * learners.size());
        }
        return true;
    }

    // Scores (n, C) of rows that are not learned, each as if it was the only one. One learner after another takes some of them: what it
    // has learned stays in the cache.
    bool score(std::size_t n, const T* X, bool recent, double* scores) {
        constexpr std::size_t AT_ONCE = 64;
        for (std::size_t start = 0; start < n; start += AT_ONCE)
            if (!score_some(std::min(AT_ONCE, n - start), X + start * d, recent, scores + start * C)) return false;
        return all_finite(n * C, scores);
    }

  private:
    std::vector<T> x_;
    std::vector<double> wide_, F_, half_;
    Journal journal_;

    // Far values of the scaled row by their logarithms.
    Row<T> drawn_in(double y, T* x, double* wide) {
        ks::squash(d, x, T(squash));
        for (std::size_t j = 0; j < d; ++j) wide[j] = double(x[j]);
        return {x, wide, y};
    }

    bool score_some(std::size_t n, const T* X, bool recent, double* scores) {
        const std::size_t N = learners.size();
        std::vector<T> scaled(n * d);
        std::vector<double> wide(n * d), F(N * n * C);
        std::vector<Row<T>> rows;
        for (std::size_t i = 0; i < n; ++i) {
            std::copy_n(X + i * d, d, x_.data());
            if (usual) corrupt::clean(1, x_.data(), *usual);
            scale_row<T>(d, x_.data(), count, columns, scaled.data() + i * d);
            rows.push_back(drawn_in(0.0, scaled.data() + i * d, wide.data() + i * d));
        }
        for (std::size_t k = 0; k < N; ++k)
            if (!learners[k]->score(n, rows.data(), C, F.data() + k * n * C)) return false;
        for (double& f : F) {
            if (!std::isfinite(f)) f = 0.0;
            if (unit) f = f * *unit + *mean;
        }
        combine(n, F.data(), nullptr, recent, scores);
        return true;
    }

    // One row of sixteen takes the place of the oldest, once the first ones have filled all places.
    void keep_row(std::int64_t t, double y) {
        if (t >= n_kept && t % KEPT_EVERY) return;
        const std::size_t place = std::size_t(t < n_kept ? t : t / KEPT_EVERY % n_kept);
        if (kept_targets) {
            journal_.keep(kept_targets + place, 1);
            kept_targets[place] = y;
        }
        T* to = kept + place * d;
        journal_.keep(to, d);
        std::copy_n(x_.data(), d, to);
    }

    // Errors and rows that detectors will look at when there are n_watched more.
    void watch(std::int64_t t, double y, double error) {
        enter(watched + t % n_watched, error);
        const std::int64_t at = t % n_recent;
        enter(recent_targets + at, y);
        enter(recent_weights + at, 1.0);
        T* to = recent_rows + std::size_t(at) * d;
        journal_.keep(to, d);
        std::copy_n(x_.data(), d, to);
    }

    void enter(double* at, double value) {
        journal_.keep(at, 1);
        *at = value;
    }

    void note_weights(float* to) {
        const std::size_t N = learners.size();
        journal_.keep(to, N);
        std::vector<double> w(N);
        std::visit([&](const auto& all) { all.first.mean_weights(w.data()); }, *combination);
        for (std::size_t i = 0; i < N; ++i) to[i] = float(w[i]);
    }

    void combine(std::size_t n, const double* F, const double* y, bool recent, double* scores) {
        std::visit([&](auto& all) {
            all.recent = recent;
            all.pass(n, F, y, nullptr, scores);
        }, *combination);
    }

    bool learn_one(const T* x, double y, bool recent, double* scores, double& error) {
        for (const Changing& array : changing) journal_.keep(array.at, array.size);
        if (seen) {
            double weight;
            journal_.keep(last + target_place(seen, 1), 1);  // the place that the target takes
            const Taken taken = take_targets(1, 1, &y, nullptr, seen, last, &weight);
            if (taken.wild || taken.due) return false;
        }
        std::copy_n(x, d, x_.data());
        if (usual) {
            const std::size_t place = corrupt::place_of(std::size_t(count), places);
            if (place < places) journal_.keep(last_rows + place * d, d);
            corrupt::remember(x, std::size_t(count), *usual, last_rows, places);
            corrupt::clean(1, x_.data(), *usual);
        }
        count = standardize<T>(1, d, x_.data(), nullptr, count, columns);
        const Row<T> row = drawn_in(unit ? (y - *mean) / *unit : y, x_.data(), wide_.data());
        for (std::size_t i = 0; i < learners.size(); ++i) {
            if (!learners[i]->pass(row, F_.data() + i * C, &journal_)) return false;
            if (unit) F_[i] = F_[i] * *unit + *mean;
        }
        combine(1, F_.data(), &y, recent, scores);
        if (!all_finite(C, scores)) return false;
        if (tracker) {
            error = trust_doubt(C, scores, y);
            tracker->learn(1, &error, half_.data());
        } else {
            error = std::abs(y - scores[0]);
            journal_.keep_strided(spread->next(), 2, quantiles::RECENT);
            spread->learn(scores[0], row.wide, y);
        }
        return true;
    }
};

}  // namespace ks::rows
