// Rows of words and numbers as rows of numbers, each encoded with what the rows before it have taught: the twin of
// columns/_pass.py, which explains the formulas.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/ranges.hpp"

namespace ks {

constexpr std::size_t places = 3;         // columns in which a category may show
constexpr double some = 10.0, lasting = 256.0, most_shrunk = 1000.0, rare = 1e-3;  // columns/_pass.py
constexpr double a_year = 365 * 86400.0;  // columns/dates.py

struct ColumnsPass {
    std::size_t n, M, K, T, width;  // rows, numbers, categories, means per category, columns of the result
    const double* numbers;          // (n, M), NaN where missing
    const std::int64_t* since;      // (M) rows before are not there yet
    double* moments;                // (7, M) count, mean, m2, low, high, doubt, late
    const std::int32_t* number_at;  // (3, M) columns of the value, of "missing", of the sine of the year (-1: not a time, -2: without)
    const std::int32_t* codes;      // (n, K) entries of the tables below, -1: not there
    double* counts;                 // (capacity)
    double* sums;                   // (capacity, T)
    const std::int32_t* place;      // (capacity, 3) columns in which a category shows, -1: none, and
    const double* amount;           // (capacity, 3) what it shows there
    const std::int32_t* mean_at;    // (K, T) columns of the means
    double* recent;                 // (capacity, T) recent means, where they show
    double* within;                 // (2 K, T) sums of squares within categories, each above the weight of their rows,
    double* between;                // (2 K, T) and those of the first rows of categories
    const std::int32_t* recent_at;  // (K, T + 1) columns of the recent means and of the rows, -1: they do not show
    double* target;                 // (3, T) weight, mean, m2
    const double* Y;                // (n, T), null: nothing is learned of targets
    const double* weight;           // (n) or null
    double* out;                    // (n, width), zeros but for the cycles of dates
    double shrink;
    bool scale, learn, labels;

    void row(std::size_t i) const {
        double* const o = out + i * width;
        const bool counted = learn && (!weight || weight[i] > 0.0);
        for (std::size_t j = 0; j < M; ++j)
            if (std::int64_t(i) >= since[j]) number(j, numbers[i * M + j], o, counted);
        const std::int32_t* code = codes + i * K;
        const double w = weight ? weight[i] : 1.0;
        for (std::size_t k = 0; k < K; ++k) {
            if (code[k] < 0) continue;
            const std::size_t c = std::size_t(code[k]);
            for (std::size_t t = 0; t < T; ++t) o[mean_at[k * T + t]] = mean_of(c, t);
            for (std::size_t s = 0; s < places; ++s)
                if (place[c * places + s] >= 0) o[place[c * places + s]] += amount[c * places + s];
            if (recent_at[k * (T + 1) + T] >= 0) recent_row(k, c, i, w, o, counted && Y);
        }
        if (!counted) return;
        for (std::size_t k = 0; k < K; ++k) {
            if (code[k] < 0) continue;
            const std::size_t c = std::size_t(code[k]);
            counts[c] += w;
            if (Y)
                for (std::size_t t = 0; t < T; ++t) sums[c * T + t] += w * Y[i * T + t];
        }
        if (!Y) return;
        for (std::size_t t = 0; t < T; ++t) {
            double &total = target[t], &mean = target[T + t], &m2 = target[2 * T + t];
            total += w;
            const double delta = Y[i * T + t] - mean;
            mean += w * delta / total;
            m2 += w * delta * (Y[i * T + t] - mean);
        }
    }

    void recent_row(std::size_t k, std::size_t c, std::size_t i, double w, double* o, bool counted) const {
        const double n = std::min(counts[c], lasting);
        const std::int32_t* const at = recent_at + k * (T + 1);
        for (std::size_t t = 0; t < T; ++t) {
            double* const v = within + 2 * k * T + t;
            double* const b = between + 2 * k * T + t;
            double& mean = recent[c * T + t];
            o[at[t]] = recent_mean(n, mean, t, shrinkage(v, b));
            if (!counted) continue;
            const double y = Y[i * T + t];
            if (n > 0.0 || target[t] > 0.0) {
                double* const squares = n > 0.0 ? v : b;
                const double delta = y - (n > 0.0 ? mean : target[T + t]);
                squares[0] += w * (delta * delta) * (n > 0.0 ? n / (n + w) : 1.0);
                squares[T] += w;
            }
            mean += w / std::max(w, std::min(counts[c] + w, lasting)) * (y - mean);
        }
        o[at[T]] = std::log1p(n);
    }

    double shrinkage(const double* within, const double* between) const {
        if (within[T] < some || between[T] < some) return shrink;
        const double v = within[0] / within[T], b = between[0] / between[T] - v;
        return v < most_shrunk * b ? v / b : most_shrunk;
    }

    double recent_mean(double n, double mean, std::size_t t, double a) const {
        const double total = target[t], prior = target[T + t], m2 = target[2 * T + t];
        if (total <= 0.0) return 0.0;
        const double difference = n > 0.0 ? n / (n + a) * (mean - prior) : 0.0;
        if (labels) return log_odds(prior + difference) - (scale ? log_odds(prior) : 0.0);
        if (!scale) return prior + difference;
        return m2 > 0.0 ? difference / std::sqrt(m2 / total) : 0.0;
    }

    static double log_odds(double share) {
        const double p = std::min(std::max(share, rare), 1.0 - rare);
        return std::log(p / (1.0 - p));
    }

    double mean_of(std::size_t c, std::size_t t) const {
        const double total = target[t], prior = target[T + t], m2 = target[2 * T + t];
        if (total <= 0.0) return 0.0;
        const bool all = counts[c] == total;  // rounding must not make a difference, which a learner would scale up
        const double p = all ? prior : (sums[c * T + t] + shrink * prior) / (counts[c] + shrink);
        if (!scale) return p;
        return m2 > 0.0 ? (p - prior) / std::sqrt(m2 / total) : 0.0;
    }

    void number(std::size_t j, double x, double* o, bool counted) const {
        double &count = moments[j], &mean = moments[M + j], &m2 = moments[2 * M + j];
        double &low = moments[3 * M + j], &high = moments[4 * M + j], &doubt = moments[5 * M + j], &late = moments[6 * M + j];
        if (std::isnan(x)) {
            if (number_at[M + j] >= 0) o[number_at[M + j]] = 1.0;
            if (!scale) o[number_at[j]] = mean;
            return;
        }
        double v = x;
        const bool far = is_far(v, count, low, high), glitch = far && doubt < enough;
        if (glitch) v = v < low ? low : high;
        const double more = count + 1.0, delta = v - mean, centre = mean + delta / more, spread = m2 + delta * (v - centre);
        const double earliest = count > 0.0 ? std::min(low, v) : v, latest = count > 0.0 ? std::max(high, v) : v;
        const std::int32_t year = number_at[2 * M + j];
        if (year >= 0 && latest - earliest < a_year) o[year] = o[year + 1] = 0.0;
        const double from = year != -1 ? latest : centre;
        const bool of_now = year != -1 && late == 0.0;
        o[number_at[j]] = !scale ? x : spread > 0.0 && !of_now ? (v - from) / std::sqrt(spread / more) : 0.0;
        if (!counted) return;
        doubt = glitch ? doubt + 1.0 : far ? 0.0 : std::max(doubt - forgiven, 0.0);
        low = earliest, high = latest;
        late += v < latest;
        count = more, mean = centre, m2 = spread;
    }
};

}  // namespace ks
