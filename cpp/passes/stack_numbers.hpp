// Combination of learners of numbers; see stack_level.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/stack_level.hpp"

namespace ks::stack {

constexpr double number_ridge = 15.0, constant_ridge = 20.0, huber = 3.0, slow = 0.9995, quick = 0.99, number_share = 0.01;
constexpr double few = 10.0;  // rows that only the base predicts

struct NumberLevel {
    std::size_t N, K, B;   // inputs, a constant is added; memories, with the function of a batch; inputs without it
    double *A, *b, *w;     // (G, N + 1, N + 1), (G, N + 1), (G, N + 1)
    double *logs, *loss;   // (K), (B): running squared errors of the inputs that the base is of
    double* numbers;       // (6): rows; mass and sum of squared residuals of the base; count, mean and squares of the targets
    Curvature curvature;
    std::vector<double> sums, weights;  // b and w side by side, (N + 1, 4)
    std::vector<double> z, part, ridge;
    double own[4] = {}, share[4] = {}, base = 0.0, s = 1.0;

    NumberLevel(std::size_t n, double* a, double* rhs, double* held, double* l, double* ml, double* numbers_, std::size_t memories = G)
        : N(n), K(memories), B(memories > G ? n - 1 : n), A(a), b(rhs), w(held), logs(l), loss(ml), numbers(numbers_), curvature(n + 1), sums(4 * n + 4), weights(4 * n + 4),
          z(n + 1), part(n), ridge(n + 1, number_ridge) {
        ridge[n] = constant_ridge;
    }

    // Between a pass and the state.
    void load(bool learns) {
        if (learns) curvature.load(A), load_lanes(N + 1, b, sums.data());
        load_weights(K, N + 1, w, weights.data());
    }
    void store() {
        curvature.store(A);
        store_lanes(N + 1, sums.data(), b);
        store_lanes(N + 1, weights.data(), w);
    }

    // What mean_weights looks at, into the state.
    void tell_weights() { store_lanes(N + 1, weights.data(), w); }

    // Weights (N) of the inputs over the memories, with those that the base gives them; from the state.
    void mean_weights(double* out) const {
        double parts[4], sum = 0.0, total = 0.0, best = INFINITY;
        shares(K, logs, number_share, parts);
        for (std::size_t i = 0; i < N; ++i) {
            out[i] = parts[0] * w[i] + parts[1] * w[N + 1 + i] + parts[2] * w[2 * (N + 1) + i];
            if (K > G && i + 1 == N) out[i] += parts[G];
            sum += out[i];
        }
        for (std::size_t i = 0; i < B; ++i) best = std::min(best, loss[i]);
        const auto of_base = [&](std::size_t i) { return best > 0 ? (best / loss[i]) * (best / loss[i]) : 1.0; };
        for (std::size_t i = 0; i < B; ++i) total += of_base(i);
        for (std::size_t i = 0; i < B; ++i) out[i] += of_base(i) / total * (1.0 - sum);
    }

    KS_INLINE double forecast(const double* p) {
        const double dev = numbers[3] > 1 ? std::sqrt(numbers[5] / numbers[3]) : 1.0;
        double best = INFINITY, total = 0.0;
        for (std::size_t i = 0; i < B; ++i) best = std::min(best, loss[i]);
        for (std::size_t i = 0; i < B; ++i) total += part[i] = best > 0 ? (best / loss[i]) * (best / loss[i]) : 1.0;
        base = 0.0;
        for (std::size_t i = 0; i < B; ++i) base += part[i] / total * p[i];
        s = numbers[1] > 1 ? std::sqrt(numbers[2] / numbers[1]) : dev;
        if (!(s > 0)) s = 1.0;
        s = std::max(s, 1e-9 * dev + 1e-300);
        double low = INFINITY, high = -INFINITY;
        for (std::size_t i = 0; i < N; ++i) {
            z[i] = std::min(std::max((p[i] - base) / s, -20.0), 20.0);
            low = std::min(low, p[i]), high = std::max(high, p[i]);
        }
        z[N] = 1.0;
        if (numbers[0] < few) {
            std::fill_n(own, 4, base);
            return base;
        }
        shares(K, logs, number_share, share);
        Four inner = four(0.0);
        for (std::size_t i = 0; i <= N; ++i) inner = inner + load_four(&weights[4 * i]) * four(z[i]);
        double mixed = 0.0, a[4];
        store_four(a, inner);
        for (std::size_t k = 0; k < G; ++k) {
            own[k] = std::min(std::max(base + s * a[k], low - 2 * s), high + 2 * s);
            mixed += share[k] * own[k];
        }
        if (K == G) return mixed;
        own[G] = std::min(std::max(base + s * a[G], low - 2 * s), high + 2 * s);
        return mixed + share[G] * own[G];
    }

    KS_INLINE void learn(const double* p, double y, double importance) {
        const std::size_t M = N + 1;
        const double target = (y - base) / s;
        double miss = std::abs(y - base);
        if (numbers[0] >= few) {
            double heft[4] = {};
            for (std::size_t k = 0; k < G; ++k) {
                const double e = target - (own[k] - base) / s;
                heft[k] = importance * (std::abs(e) > huber ? huber / std::abs(e) : 1.0);
                logs[k] = quick * std::log(share[k]) - 0.5 * importance * std::min(e * e, huber * huber);
            }
            if (K > G) {
                const double e = target - (own[G] - base) / s;
                logs[G] = quick * std::log(share[G]) - 0.5 * importance * std::min(e * e, huber * huber);
            }
            const Four h = load_four(heft);
            curvature.fade();
            curvature.add(h, z.data());
            const Four fade = load_four(memory), pull = h * four(target);
            for (std::size_t i = 0; i < M; ++i) store_four(&sums[4 * i], fade * load_four(&sums[4 * i]) + pull * four(z[i]));
            bool fine[4];
            const double* x = curvature.solve(ridge.data(), sums.data(), fine);
            for (std::size_t i = 0; i < M; ++i)
                for (std::size_t k = 0; k < G; ++k)
                    if (fine[k]) weights[4 * i + k] = x[4 * i + k];
            const double most = numbers[0] < 2 * few ? INFINITY : 3.0 * huber * s;
            miss = std::min(miss, most);
            numbers[1] = slow * numbers[1] + importance;
            numbers[2] = slow * numbers[2] + importance * miss * miss;
            for (std::size_t i = 0; i < B; ++i) {
                const double e = std::min(std::abs(y - p[i]), 10.0 * most);
                loss[i] = slow * loss[i] + importance * e * e;
            }
        } else if (numbers[0] >= 2) {
            numbers[1] += importance;
            numbers[2] += importance * miss * miss;
            for (std::size_t i = 0; i < B; ++i) loss[i] += importance * (y - p[i]) * (y - p[i]);
        }
        numbers[0] += 1.0;
        follow(numbers + 3, y);
    }
};

constexpr std::size_t LAST = 6;  // inputs of the second level, and numbers kept of the last rows

// f, the last target, f corrected by the last residual and by running means of residuals, a running mean of targets.
KS_INLINE void recent_numbers(double f, const double* kept, double* p) {
    const bool any = kept[5] > 0;
    p[0] = f;
    p[1] = any ? kept[0] : f;
    p[2] = f + kept[1];
    p[3] = f + kept[2];
    p[4] = f + kept[3];
    p[5] = any ? kept[4] : f;
}

KS_INLINE void remember_number(double f, double y, double* kept) {
    const double e = y - f;
    if (!(kept[5] > 0)) kept[4] = y;
    kept[0] = y;
    kept[1] = e;
    fade_to(kept[2], 0.8, e);
    fade_to(kept[3], 0.98, e);
    fade_to(kept[4], 0.8, y);
    kept[5] += 1.0;
}

struct Numbers {
    std::size_t N;
    NumberLevel first, second;
    double *kept, *finals, *errors;  // (LAST), (2), (3, N): squared errors of members, all and lately; rows
    bool recent;

    KS_CLONES void pass(std::size_t n, const double* F, const double* y, const double* weight, double* scores, Notes notes = {}) {
        std::vector<double> p(N), last(LAST);
        first.load(y != nullptr);
        second.load(y != nullptr);
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t i = 0; i < N; ++i) p[i] = F[i * n + t];
            const double f = first.forecast(p.data());
            double part[2] = {1.0, 0.0}, g = f;
            if (recent) {
                recent_numbers(f, kept, last.data());
                g = second.forecast(last.data());
                shares(2, finals, number_share, part);
            }
            scores[t] = part[0] * f + part[1] * g;
            const double importance = weight ? weight[t] : 1.0;
            if (!y || importance == 0.0) continue;
            if (recent) {
                const double a = (y[t] - f) / first.s, c = (y[t] - g) / first.s, most = huber * huber;
                if (first.numbers[3] > 1) {  // one target has no unit
                    finals[0] = quick * std::log(part[0]) - 0.5 * importance * std::min(a * a, most);
                    finals[1] = quick * std::log(part[1]) - 0.5 * importance * std::min(c * c, most);
                }
                second.learn(last.data(), y[t], importance);
                remember_number(f, y[t], kept);
            }
            first.learn(p.data(), y[t], importance);
            for (std::size_t i = 0; i < N; ++i) {
                const double e2 = (y[t] - p[i]) * (y[t] - p[i]);
                errors[i] += e2;
                errors[N + i] = 0.999 * errors[N + i] + e2;
                errors[2 * N + i] = 0.999 * errors[2 * N + i] + 1.0;
            }
            notes.after(first, N);
        }
        if (!y) return;
        first.store();
        if (recent) second.store();
    }
};

}  // namespace ks::stack
