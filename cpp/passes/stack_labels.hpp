// Combination of learners of labels; see stack_level.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/stack_level.hpp"

namespace ks::stack {

constexpr double label_ridge = 5.0, label_share = 0.001, least = 1e-7;
constexpr double curved = 1e-4, reached = 1e-13;  // see the search for the length of a step
constexpr double counted = 1.0 - 1.0 / 16000.0;  // factor by which counts of labels fade with every row
constexpr int rounds = 60;

KS_INLINE double likelihood(std::size_t C, const double* p, double y) {
    return std::max(least, C == 1 ? (y > 0 ? p[0] : 1.0 - p[0]) : p[std::size_t(y)]);
}

// Scores of probabilities: log-odds, or logarithms.
KS_INLINE void scores_of(std::size_t C, const double* p, double* f) {
    if (C == 1) {
        const double q = std::min(std::max(p[0], least), 1.0 - least);
        f[0] = std::log(q / (1.0 - q));
        return;
    }
    for (std::size_t c = 0; c < C; ++c) f[c] = std::log(p[c] + 1e-9);
}

struct LabelLevel {
    std::size_t N, C;
    double *A, *w;  // (G, N, N), (G, N)
    Earned earned;
    Curvature curvature;
    std::vector<double> weights, f, p, q, work, ridge;  // (N, 4); scores, probabilities and room for more, (C, 4)
    double share[4] = {};

    LabelLevel(std::size_t n, std::size_t c, double* a, double* held, double* logs, std::size_t memories = G)
        : N(n), C(c), A(a), w(held), earned(logs, memories), curvature(n), weights(4 * n), f(4 * c), p(4 * c), q(8 * c), work(12 * n), ridge(n, label_ridge) {}

    // Between a pass and the state.
    void load(bool learns) {
        if (learns) curvature.load(A);
        load_weights(earned.M, N, w, weights.data());
        earned.load();
    }
    void store() {
        curvature.store(A);
        store_lanes(N, weights.data(), w);
        earned.store();
    }

    // What mean_weights looks at, into the state.
    void tell_weights() {
        store_lanes(N, weights.data(), w);
        earned.store();
    }

    // Weights (N - 1) of the inputs but the last, a constant, over the memories; from the state.
    void mean_weights(double* out) const {
        double part[4];
        shares(earned.M, earned.logs, label_share, part);
        for (std::size_t i = 0; i + 1 < N; ++i) out[i] = part[0] * w[i] + part[1] * w[N + i] + part[2] * w[2 * N + i];
        if (earned.M > G) out[N - 2] += part[G];
    }

    // z (N, C); out (C), the probabilities; of two classes that of the second.
    KS_INLINE void forecast(const double* z, double* out) {
        earned.parts(label_share, share);
        for (std::size_t c = 0; c < C; ++c) {
            Four s = four(0.0);
            for (std::size_t i = 0; i < N; ++i) s = s + load_four(&weights[4 * i]) * four(z[i * C + c]);
            store_four(&f[4 * c], s);
        }
        probabilities(f.data(), p.data());
        for (std::size_t c = 0; c < C; ++c) {
            const double* own = &p[4 * c];
            out[c] = share[0] * own[0] + share[1] * own[1] + share[2] * own[2];
            if (earned.M > G) out[c] += share[G] * own[G];
        }
    }

    // After `forecast` of the same z: y is -1 or 1, or a class.
    KS_INLINE void learn(const double* z, double y, double importance) {
        double *b = work.data(), *mean = b + 4 * N, *v = mean + 4 * N;
        const Four weight = four(importance);
        curvature.fade();
        if (C == 1) {
            const Four q = load_four(p.data()), r = weight * (q - four(y > 0 ? 1.0 : 0.0));
            curvature.add(weight * q * (four(1.0) - q), z);
            for (std::size_t i = 0; i < N; ++i) store_four(b + 4 * i, r * four(z[i]));
        } else {
            for (std::size_t i = 0; i < N; ++i) {
                Four middle = four(0.0);
                for (std::size_t c = 0; c < C; ++c) middle = middle + load_four(&p[4 * c]) * four(z[i * C + c]);
                store_four(mean + 4 * i, middle);
                store_four(b + 4 * i, weight * (middle - four(z[i * C + std::size_t(y)])));
            }
            for (std::size_t c = 0; c < C; ++c) {
                double h[4] = {};
                bool any = false;
                for (std::size_t k = 0; k < G; ++k)
                    if (p[4 * c + k] > curved) any = true, h[k] = importance * p[4 * c + k];
                if (!any) continue;
                for (std::size_t i = 0; i < N; ++i) store_four(v + 4 * i, four(z[i * C + c]) - load_four(mean + 4 * i));
                curvature.add_lanes(load_four(h), v);
            }
        }
        bool fine[4];
        const double* x = curvature.solve(ridge.data(), b, fine);
        double part[4];
        reach(x, z, y, part);
        for (std::size_t k = 0; k < G; ++k)
            if (!fine[k]) part[k] = 0.0;
        part[G] = 0.0;
        const Four a = load_four(part);
        for (std::size_t i = 0; i < N; ++i) store_four(&weights[4 * i], load_four(&weights[4 * i]) - a * load_four(x + 4 * i));
        double likely[4];
        const double* own = &p[C == 1 ? 0 : 4 * std::size_t(y)];
        for (std::size_t k = 0; k < earned.M; ++k) likely[k] = std::max(least, C > 1 || y > 0 ? own[k] : 1.0 - own[k]);
        earned.learn(share, likely, importance);
    }

  private:
    // Parts of the steps x (N, 4) that are taken, see _reach of the twin.
    KS_INLINE void reach(const double* x, const double* z, double y, double* part) {
        double *d = q.data() + 4 * C, D[4], V[4], bend[4];
        for (std::size_t c = 0; c < C; ++c) {
            Four s = four(0.0);
            for (std::size_t i = 0; i < N; ++i) s = s + load_four(x + 4 * i) * four(z[i * C + c]);
            store_four(d + 4 * c, s);
        }
        std::fill_n(part, 4, 1.0);
        slopes(p.data(), d, y, D, V);
        for (std::size_t k = 0; k < G; ++k) bend[k] = std::max(D[k] - V[k], 0.0);
        double low[G] = {}, high[G] = {1.0, 1.0, 1.0}, last[G] = {1.0, 1.0, 1.0};
        bool done[G] = {};
        for (int round = 0; round < rounds && !(done[0] && done[1] && done[2]); ++round) {
            for (std::size_t c = 0; c < C; ++c) store_four(&q[4 * c], load_four(&f[4 * c]) - load_four(part) * load_four(d + 4 * c));
            probabilities(q.data(), q.data());
            slopes(q.data(), d, y, D, V);
            for (std::size_t k = 0; k < G; ++k) {
                if (done[k]) continue;
                double& a = part[k];
                const double slope = a * bend[k] - D[k];
                if (slope > 0.0) high[k] = a;
                else if (a == 1.0) {
                    done[k] = true;
                    continue;
                } else low[k] = a;
                const double step = bend[k] + V[k] > 0.0 ? slope / (bend[k] + V[k]) : INFINITY;
                const bool found = std::abs(step) <= reached * a;  // such a short step may not leave low or high
                const bool inside = found || (low[k] < a - step && a - step < high[k] && 2.0 * std::abs(step) < last[k]);
                const double next = inside ? a - step : 0.5 * (low[k] + high[k]);
                last[k] = std::abs(next - a);
                a = next;
                done[k] = last[k] <= reached * a;
            }
        }
    }

    // D = (q - e_y)'d and V = var_q d of probabilities q (C, 4) and changes d (C, 4).
    KS_INLINE void slopes(const double* at, const double* d, double y, double* D, double* V) const {
        if (C == 1) {
            const Four r = load_four(at), change = load_four(d);
            store_four(D, (r - four(y > 0 ? 1.0 : 0.0)) * change);
            store_four(V, r * (four(1.0) - r) * change * change);
            return;
        }
        Four mean = four(0.0), spread = four(0.0);
        for (std::size_t c = 0; c < C; ++c) mean = mean + load_four(at + 4 * c) * load_four(d + 4 * c);
        for (std::size_t c = 0; c < C; ++c) {
            double counted[4];
            for (int k = 0; k < 4; ++k) counted[k] = at[4 * c + k] > curved ? at[4 * c + k] : 0.0;
            const Four away = load_four(d + 4 * c) - mean;
            spread = spread + load_four(counted) * away * away;
        }
        store_four(D, mean - load_four(d + 4 * std::size_t(y)));
        store_four(V, spread);
    }

    // Probabilities (C, 4) of scores (C, 4), which may be the same numbers.
    KS_INLINE void probabilities(const double* from, double* p) const {
        if (C == 1) return store_four(p, sigmoid(load_four(from)));
        std::copy_n(from, from == p ? 0 : 4 * C, p);
        double top[4], total[4] = {};
        for (int k = 0; k < 4; ++k) top[k] = p[k];
        for (std::size_t c = 1; c < C; ++c)
            for (int k = 0; k < 4; ++k) top[k] = std::max(top[k], p[4 * c + k]);
        for (std::size_t c = 0; c < C; ++c)
            for (int k = 0; k < 4; ++k) p[4 * c + k] -= top[k];
#pragma omp simd
        for (std::size_t i = 0; i < 4 * C; ++i) p[i] = exp(p[i]);
        for (std::size_t c = 0; c < C; ++c)
            for (int k = 0; k < 4; ++k) total[k] += p[4 * c + k];
        for (std::size_t c = 0; c < C; ++c)
            for (int k = 0; k < 4; ++k) p[4 * c + k] /= total[k];
    }
};

constexpr std::size_t RECENT = 9, KEPT = 7;  // inputs of the second level; rows of what is remembered of the last labels

// Inputs (RECENT, C) of the second level: the first one's scores, the last two labels, their shares and the residuals lately.
KS_INLINE void recent_inputs(std::size_t C, const double* f, const double* kept, double* z) {
    std::fill_n(z, RECENT * C, 0.0);
    if (C == 1) {
        z[0] = std::min(std::max(f[0], -8.0), 8.0);
        for (std::size_t i = 0; i < 4; ++i) z[1 + i] = kept[i];
        for (std::size_t i = 4; i < 7; ++i) z[1 + i] = 4.0 * kept[i];
        z[8] = 1.0;
        return;
    }
    double middle = 0.0;
    for (std::size_t c = 0; c < C; ++c) middle += f[c];
    for (std::size_t c = 0; c < C; ++c) {
        z[c] = std::min(std::max(f[c] - middle / double(C), -12.0), 12.0);
        z[C + c] = kept[c];
        z[2 * C + c] = kept[C + c];
        z[3 * C + c] = std::log(kept[2 * C + c] + 0.01);
        z[4 * C + c] = std::log(kept[3 * C + c] + 0.001);
        z[5 * C + c] = 4.0 * kept[4 * C + c];
        z[6 * C + c] = 4.0 * kept[5 * C + c];
    }
    for (std::size_t i = 0; i < 7; ++i) {
        double mean = 0.0;
        for (std::size_t c = 0; c < C; ++c) mean += z[i * C + c];
        for (std::size_t c = 0; c < C; ++c) z[i * C + c] -= mean / double(C);
    }
}

KS_INLINE void fade_to(double& held, double part, double value) { held = part * held + (1.0 - part) * value; }

// The label y, of which the first level had thought p.
KS_INLINE void remember_label(std::size_t C, const double* p, double y, double* kept) {
    for (std::size_t c = 0; c < C; ++c) {
        const double is = C == 1 ? y : (std::size_t(y) == c ? 1.0 : 0.0), hit = C == 1 ? (y > 0 ? 1.0 : 0.0) : is;
        kept[C + c] = kept[c];
        kept[c] = is;
        fade_to(kept[2 * C + c], 0.8, is);
        fade_to(kept[3 * C + c], 0.98, is);
        fade_to(kept[4 * C + c], 0.5, hit - p[c]);
        fade_to(kept[5 * C + c], 0.9, hit - p[c]);
        fade_to(kept[6 * C + c], 0.99, hit - p[c]);
    }
}

// Members' scores as inputs (N + 1, C): within +-8, those of several classes centred; and a constant for two classes.
KS_INLINE void label_inputs(std::size_t N, std::size_t C, const double* F, std::size_t stride, double* z) {
    for (std::size_t i = 0; i < N; ++i) {
        const double* f = F + i * stride;
        double mean = 0.0;
        for (std::size_t c = 0; c < C && C > 1; ++c) mean += f[c] / double(C);
        for (std::size_t c = 0; c < C; ++c) z[i * C + c] = std::min(std::max(f[c] - mean, -8.0), 8.0);
    }
    std::fill_n(z + N * C, C, C == 1 ? 1.0 : 0.0);
}

struct Labels {
    std::size_t N, C;
    LabelLevel first, second;
    double* kept;         // (KEPT, C)
    Earned levels;        // what the two levels have earned
    double* errors;       // (3, N): mistakes of members, all and lately; rows
    double* counts;       // (2): rows, and those of the second label of two, lately
    bool recent;

    // F (N, n, C); y (n), null learns nothing, weight (n) or null. Out: scores (n, C).
    KS_CLONES void pass(std::size_t n, const double* F, const double* y, const double* weight, double* scores, Notes notes = {}) {
        std::vector<double> buffer((N + 1 + RECENT) * C + 4 * C);
        double *z = buffer.data(), *zr = z + (N + 1) * C, *p = zr + RECENT * C, *pr = p + C, *f = pr + C, *mix = f + C;
        first.load(y != nullptr);
        second.load(y != nullptr);
        levels.load();
        for (std::size_t t = 0; t < n; ++t) {
            label_inputs(N, C, F + t * C, n * C, z);
            first.forecast(z, p);
            double part[2] = {1.0, 0.0};
            if (recent) {
                scores_of(C, p, f);
                recent_inputs(C, f, kept, zr);
                second.forecast(zr, pr);
                levels.parts(label_share, part);
                for (std::size_t c = 0; c < C; ++c) mix[c] = part[0] * p[c] + part[1] * pr[c];
                scores_of(C, mix, scores + t * C);
            } else {
                scores_of(C, p, scores + t * C);
            }
            const double importance = weight ? weight[t] : 1.0;
            if (!y || importance == 0.0) continue;
            first.learn(z, y[t], importance);
            if (recent) {
                second.learn(zr, y[t], importance);
                const double likely[2] = {likelihood(C, p, y[t]), likelihood(C, pr, y[t])};
                levels.learn(part, likely, importance);
                remember_label(C, p, y[t], kept);
            }
            count_mistakes(z, y[t]);
            counts[0] = counted * counts[0] + 1.0;
            counts[1] = counted * counts[1] + (C == 1 && y[t] > 0 ? 1.0 : 0.0);
            notes.after(first, N);
        }
        if (!y) return;
        first.store();
        if (recent) second.store(), levels.store();
    }

    KS_INLINE void count_mistakes(const double* z, double y) {
        for (std::size_t i = 0; i < N; ++i) {
            const double* f = z + i * C;
            const bool wrong = C == 1 ? (f[0] >= 0) != (y > 0) : std::size_t(std::max_element(f, f + C) - f) != std::size_t(y);
            errors[i] += wrong;
            errors[N + i] = 0.999 * errors[N + i] + wrong;
            errors[2 * N + i] = 0.999 * errors[2 * N + i] + 1.0;
        }
    }
};

}  // namespace ks::stack
