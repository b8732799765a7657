// Combination of learners by second-order recursions on their forecasts; the twin of kernelstream/passes/stack/python.py, which has
// the formulas.
//
// A Level turns N inputs into one forecast: a weight vector for each of G memories (factors by which the past fades), mixed by how
// well each has predicted. The first level has the members' forecasts as inputs, the second one the first level's forecast and what
// happened in the last rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/vecmath.hpp"

namespace ks::stack {

constexpr std::size_t G = 3;
constexpr double memory[G] = {1.0, 0.9995, 0.995};

// x = (A + diag(ridge))^-1 b, A (N, N) by its lower triangle, L (N, N) scratch; false if A has no such inverse.
inline bool solve(std::size_t N, const double* A, const double* ridge, const double* b, double* L, double* x) {
    for (std::size_t i = 0; i < N; ++i)
        for (std::size_t j = 0; j <= i; ++j) {
            double s = A[i * N + j] + (i == j ? ridge[i] : 0.0);
            for (std::size_t k = 0; k < j; ++k) s -= L[i * N + k] * L[j * N + k];
            if (i == j && !(s > 0.0)) return false;
            L[i * N + j] = i == j ? std::sqrt(s) : s / L[j * N + j];
        }
    for (std::size_t i = 0; i < N; ++i) {
        double s = b[i];
        for (std::size_t k = 0; k < i; ++k) s -= L[i * N + k] * x[k];
        x[i] = s / L[i * N + i];
    }
    for (std::size_t i = N; i-- > 0;) {
        double s = x[i];
        for (std::size_t k = i + 1; k < N; ++k) s -= L[k * N + i] * x[k];
        x[i] = s / L[i * N + i];
    }
    return true;
}

// Shares of M forecasters with the given log weights: (1 - share) of what they have earned, the rest spread evenly.
inline void shares(std::size_t M, const double* logs, double share, double* out) {
    const double top = *std::max_element(logs, logs + M);
    double total = 0.0;
    for (std::size_t k = 0; k < M; ++k) total += out[k] = std::exp(logs[k] - top);
    for (std::size_t k = 0; k < M; ++k) out[k] = (1.0 - share) * out[k] / total + share / double(M);
}

// ------------------------------------------------------------------------------------------------ labels
constexpr double label_ridge = 5.0, label_share = 0.001, least = 1e-7;

inline double sigmoid(double f) { return 1.0 / (1.0 + std::exp(-f)); }

// p (C) from scores f (C); of two classes p[0] is the probability of the second.
inline void probabilities(std::size_t C, const double* f, double* p) {
    if (C == 1) {
        p[0] = sigmoid(f[0]);
        return;
    }
    const double top = *std::max_element(f, f + C);
    double total = 0.0;
    for (std::size_t c = 0; c < C; ++c) total += p[c] = std::exp(f[c] - top);
    for (std::size_t c = 0; c < C; ++c) p[c] /= total;
}

inline double likelihood(std::size_t C, const double* p, double y) {
    return std::max(least, C == 1 ? (y > 0 ? p[0] : 1.0 - p[0]) : p[std::size_t(y)]);
}

// Scores of probabilities: log-odds, or logarithms.
inline void scores_of(std::size_t C, const double* p, double* f) {
    if (C == 1) {
        const double q = std::min(std::max(p[0], least), 1.0 - least);
        f[0] = std::log(q / (1.0 - q));
        return;
    }
    for (std::size_t c = 0; c < C; ++c) f[c] = std::log(p[c] + 1e-9);
}

struct LabelLevel {
    std::size_t N, C;
    double *A, *w, *logs;  // (G, N, N), (G, N), (G)
    std::vector<double> p, share, work, ridge;

    LabelLevel(std::size_t n, std::size_t c, double* a, double* weights, double* l)
        : N(n), C(c), A(a), w(weights), logs(l), p(G * c), share(G), work(n * n + 4 * n + c), ridge(n, label_ridge) {}

    // z (N, C); out (C), the probabilities.
    void forecast(const double* z, double* out) {
        double* f = work.data();
        shares(G, logs, label_share, share.data());
        std::fill_n(out, C, 0.0);
        for (std::size_t k = 0; k < G; ++k) {
            std::fill_n(f, C, 0.0);
            for (std::size_t i = 0; i < N; ++i)
                for (std::size_t c = 0; c < C; ++c) f[c] += w[k * N + i] * z[i * C + c];
            probabilities(C, f, p.data() + k * C);
            for (std::size_t c = 0; c < C; ++c) out[c] += share[k] * p[k * C + c];
        }
    }

    // After `forecast` of the same z: y is -1 or 1, or a class.
    void learn(const double* z, double y, double importance) {
        double *g = work.data(), *mean = g + N, *v = mean + N, *x = v + N, *L = x + N;
        for (std::size_t k = 0; k < G; ++k) {
            double *Ak = A + k * N * N, *q = p.data() + k * C;
            if (memory[k] < 1.0)
                for (std::size_t i = 0; i < N * N; ++i) Ak[i] *= memory[k];
            if (C == 1) {
                const double h = importance * q[0] * (1.0 - q[0]), r = importance * (q[0] - (y > 0 ? 1.0 : 0.0));
                for (std::size_t i = 0; i < N; ++i) {
                    for (std::size_t j = 0; j <= i; ++j) Ak[i * N + j] += h * z[i] * z[j];
                    g[i] = r * z[i];
                }
            } else {
                for (std::size_t i = 0; i < N; ++i) {
                    mean[i] = 0.0;
                    for (std::size_t c = 0; c < C; ++c) mean[i] += q[c] * z[i * C + c];
                    g[i] = importance * (mean[i] - z[i * C + std::size_t(y)]);
                }
                for (std::size_t c = 0; c < C; ++c) {
                    if (q[c] <= 1e-4) continue;
                    const double h = importance * q[c];
                    for (std::size_t i = 0; i < N; ++i) v[i] = z[i * C + c] - mean[i];
                    for (std::size_t i = 0; i < N; ++i)
                        for (std::size_t j = 0; j <= i; ++j) Ak[i * N + j] += h * v[i] * v[j];
                }
            }
            if (solve(N, Ak, ridge.data(), g, L, x))
                for (std::size_t i = 0; i < N; ++i) w[k * N + i] -= x[i];
            logs[k] = std::log(share[k]) + importance * std::log(likelihood(C, q, y));
        }
    }
};

constexpr std::size_t RECENT = 9, KEPT = 7;  // inputs of the second level; rows of what is remembered of the last labels

// Inputs (RECENT, C) of the second level: the first one's scores, the last two labels, their shares and the residuals lately.
inline void recent_inputs(std::size_t C, const double* f, const double* kept, double* z) {
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

inline void fade_to(double& held, double part, double value) { held = part * held + (1.0 - part) * value; }

// The label y, of which the first level had thought p.
inline void remember_label(std::size_t C, const double* p, double y, double* kept) {
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
inline void label_inputs(std::size_t N, std::size_t C, const double* F, std::size_t stride, double* z) {
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
    double *kept, *finals, *errors;  // (KEPT, C), (2): log weights of the two levels, (3, N): mistakes of members, all and lately; rows
    bool recent;

    // F (N, n, C). learns: y (n), weight (n) or null. Out: scores (n, C).
    void pass(std::size_t n, const double* F, const double* y, const double* weight, bool learns, double* scores) {
        std::vector<double> buffer((N + 1 + RECENT) * C + 4 * C);
        double *z = buffer.data(), *zr = z + (N + 1) * C, *p = zr + RECENT * C, *pr = p + C, *f = pr + C, *mix = f + C;
        for (std::size_t t = 0; t < n; ++t) {
            label_inputs(N, C, F + t * C, n * C, z);
            first.forecast(z, p);
            const bool second_too = recent && (learns || t == 0);  // only of the next row is it known what came just before
            double part[2] = {1.0, 0.0};
            if (second_too) {
                scores_of(C, p, f);
                recent_inputs(C, f, kept, zr);
                second.forecast(zr, pr);
                shares(2, finals, label_share, part);
                for (std::size_t c = 0; c < C; ++c) mix[c] = part[0] * p[c] + part[1] * pr[c];
                scores_of(C, mix, scores + t * C);
            } else {
                scores_of(C, p, scores + t * C);
            }
            const double importance = weight ? weight[t] : 1.0;
            if (!learns || importance == 0.0) continue;
            first.learn(z, y[t], importance);
            if (recent) {
                second.learn(zr, y[t], importance);
                finals[0] = std::log(part[0]) + importance * std::log(likelihood(C, p, y[t]));
                finals[1] = std::log(part[1]) + importance * std::log(likelihood(C, pr, y[t]));
                remember_label(C, p, y[t], kept);
            }
            count_mistakes(z, y[t]);
        }
    }

    void count_mistakes(const double* z, double y) {
        for (std::size_t i = 0; i < N; ++i) {
            const double* f = z + i * C;
            const bool wrong = C == 1 ? (f[0] >= 0) != (y > 0) : std::size_t(std::max_element(f, f + C) - f) != std::size_t(y);
            errors[i] += wrong;
            errors[N + i] = 0.999 * errors[N + i] + wrong;
            errors[2 * N + i] = 0.999 * errors[2 * N + i] + 1.0;
        }
    }
};

// ------------------------------------------------------------------------------------------------ numbers
constexpr double number_ridge = 15.0, constant_ridge = 20.0, huber = 3.0, slow = 0.9995, quick = 0.99, number_share = 0.01;
constexpr double few = 10.0;  // rows that only the base predicts

struct NumberLevel {
    std::size_t N;         // inputs; a constant is added
    double *A, *b, *w;     // (G, N + 1, N + 1), (G, N + 1), (G, N + 1)
    double *logs, *loss;   // (G), (N): running squared errors of the inputs
    double* numbers;       // (6): rows; mass and sum of squared residuals of the base; count, mean and squares of the targets
    std::vector<double> z, own, part, share, ridge, work;
    double base = 0.0, s = 1.0;

    NumberLevel(std::size_t n, double* a, double* rhs, double* weights, double* l, double* ml, double* held)
        : N(n), A(a), b(rhs), w(weights), logs(l), loss(ml), numbers(held), z(n + 1), own(G), part(n), share(G),
          ridge(n + 1, number_ridge), work((n + 1) * (n + 2)) {
        ridge[n] = constant_ridge;
    }

    double forecast(const double* p) {
        const double dev = numbers[3] > 1 ? std::sqrt(numbers[5] / numbers[3]) : 1.0;
        double best = INFINITY, total = 0.0;
        for (std::size_t i = 0; i < N; ++i) best = std::min(best, loss[i]);
        for (std::size_t i = 0; i < N; ++i) total += part[i] = best > 0 ? (best / loss[i]) * (best / loss[i]) : 1.0;
        base = 0.0;
        for (std::size_t i = 0; i < N; ++i) base += part[i] / total * p[i];
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
            std::fill(own.begin(), own.end(), base);
            return base;
        }
        shares(G, logs, number_share, share.data());
        double mixed = 0.0;
        for (std::size_t k = 0; k < G; ++k) {
            double a = 0.0;
            for (std::size_t i = 0; i <= N; ++i) a += w[k * (N + 1) + i] * z[i];
            own[k] = std::min(std::max(base + s * a, low - 2 * s), high + 2 * s);
            mixed += share[k] * own[k];
        }
        return mixed;
    }

    void learn(const double* p, double y, double importance) {
        const std::size_t M = N + 1;
        const double target = (y - base) / s;
        double miss = std::abs(y - base);
        if (numbers[0] >= few) {
            double *x = work.data(), *L = x + M;
            for (std::size_t k = 0; k < G; ++k) {
                const double e = target - (own[k] - base) / s;
                const double h = importance * (std::abs(e) > huber ? huber / std::abs(e) : 1.0);
                double *Ak = A + k * M * M, *bk = b + k * M;
                if (memory[k] < 1.0) {
                    for (std::size_t i = 0; i < M * M; ++i) Ak[i] *= memory[k];
                    for (std::size_t i = 0; i < M; ++i) bk[i] *= memory[k];
                }
                for (std::size_t i = 0; i < M; ++i) {
                    for (std::size_t j = 0; j <= i; ++j) Ak[i * M + j] += h * z[i] * z[j];
                    bk[i] += h * z[i] * target;
                }
                if (solve(M, Ak, ridge.data(), bk, L, x)) std::copy_n(x, M, w + k * M);
                logs[k] = quick * std::log(share[k]) - 0.5 * importance * std::min(e * e, huber * huber);
            }
            const double most = numbers[0] < 2 * few ? INFINITY : 3.0 * huber * s;
            miss = std::min(miss, most);
            numbers[1] = slow * numbers[1] + importance;
            numbers[2] = slow * numbers[2] + importance * miss * miss;
            for (std::size_t i = 0; i < N; ++i) {
                const double e = std::min(std::abs(y - p[i]), 10.0 * most);
                loss[i] = slow * loss[i] + importance * e * e;
            }
        } else if (numbers[0] >= 2) {
            numbers[1] += importance;
            numbers[2] += importance * miss * miss;
            for (std::size_t i = 0; i < N; ++i) loss[i] += importance * (y - p[i]) * (y - p[i]);
        }
        numbers[0] += 1.0;
        follow(y);
    }

    void follow(double y) {
        double *count = numbers + 3, *mean = numbers + 4, *squares = numbers + 5;
        if (*count >= 30) {
            const double most = 20.0 * std::sqrt(*squares / *count);
            if (most > 0 && std::abs(y - *mean) > most) y = *mean + std::copysign(most, y - *mean);
        }
        const double delta = y - *mean;
        *count += 1;
        *mean += delta / *count;
        *squares += delta * (y - *mean);
    }
};

constexpr std::size_t LAST = 6;  // inputs of the second level, and numbers kept of the last rows

// f, the last target, f corrected by the last residual and by running means of residuals, a running mean of targets.
inline void recent_numbers(double f, const double* kept, double* p) {
    const bool any = kept[5] > 0;
    p[0] = f;
    p[1] = any ? kept[0] : f;
    p[2] = f + kept[1];
    p[3] = f + kept[2];
    p[4] = f + kept[3];
    p[5] = any ? kept[4] : f;
}

inline void remember_number(double f, double y, double* kept) {
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

    void pass(std::size_t n, const double* F, const double* y, const double* weight, bool learns, double* scores) {
        std::vector<double> p(N), last(LAST);
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t i = 0; i < N; ++i) p[i] = F[i * n + t];
            const double f = first.forecast(p.data());
            double part[2] = {1.0, 0.0}, g = f;
            if (recent && (learns || t == 0)) {
                recent_numbers(f, kept, last.data());
                g = second.forecast(last.data());
                shares(2, finals, number_share, part);
            }
            scores[t] = part[0] * f + part[1] * g;
            const double importance = weight ? weight[t] : 1.0;
            if (!learns || importance == 0.0) continue;
            if (recent) {
                const double a = (y[t] - f) / first.s, c = (y[t] - g) / first.s, most = huber * huber;
                finals[0] = quick * std::log(part[0]) - 0.5 * importance * std::min(a * a, most);
                finals[1] = quick * std::log(part[1]) - 0.5 * importance * std::min(c * c, most);
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
        }
    }
};

}  // namespace ks::stack
