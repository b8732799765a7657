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

#include "base/four.hpp"
#include "base/vecmath.hpp"

namespace ks::stack {

constexpr std::size_t G = 3;  // and one lane that is not used
constexpr double memory[4] = {1.0, 0.9995, 0.995, 1.0};

// The matrices A (G, N, N) of the memories, by their lower triangles, side by side.
class Curvature {
  public:
    explicit Curvature(std::size_t n) : N_(n), A_(2 * n * (n + 1)), L_(2 * n * (n + 1)), x_(4 * n) {}

    void load(const double* A) {
        for (std::size_t i = 0, at = 0; i < N_; ++i)
            for (std::size_t j = 0; j <= i; ++j, at += 4) {
                for (std::size_t k = 0; k < G; ++k) A_[at + k] = A[(k * N_ + i) * N_ + j];
                A_[at + G] = 0.0;
            }
    }
    void store(double* A) const {
        for (std::size_t i = 0, at = 0; i < N_; ++i)
            for (std::size_t j = 0; j <= i; ++j, at += 4)
                for (std::size_t k = 0; k < G; ++k) A[(k * N_ + i) * N_ + j] = A_[at + k];
    }

    KS_INLINE void fade() {
        const Four part = load_four(memory);
        for (std::size_t at = 0; at < A_.size(); at += 4) store_four(&A_[at], part * load_four(&A_[at]));
    }
    // A <- A + h z z', z (N) the same for all memories.
    KS_INLINE void add(const Four& h, const double* z) {
        for (std::size_t i = 0, at = 0; i < N_; ++i) {
            const Four hz = h * four(z[i]);
            for (std::size_t j = 0; j <= i; ++j, at += 4) store_four(&A_[at], load_four(&A_[at]) + hz * four(z[j]));
        }
    }
    // A <- A + h v v', v (N, 4).
    KS_INLINE void add_lanes(const Four& h, const double* v) {
        for (std::size_t i = 0, at = 0; i < N_; ++i) {
            const Four hv = h * load_four(v + 4 * i);
            for (std::size_t j = 0; j <= i; ++j, at += 4) store_four(&A_[at], load_four(&A_[at]) + hv * load_four(v + 4 * j));
        }
    }

    // x = (A + diag(ridge))^-1 b for all memories, b (N, 4), by Cholesky; `fine` says which have such an inverse.
    KS_INLINE const double* solve(const double* ridge, const double* b, bool* fine) {
        for (int k = 0; k < 4; ++k) fine[k] = true;
        std::size_t row = 0;  // of the triangle L, whose diagonal holds inverses
        for (std::size_t i = 0; i < N_; row += 4 * ++i) {
            double *Li = &L_[row], *other = L_.data();
            Four y = load_four(b + 4 * i), pivot = load_four(&A_[row + 4 * i]) + four(ridge[i]);
            for (std::size_t j = 0; j < i; other += 4 * ++j) {
                Four s = load_four(&A_[row + 4 * j]);
                for (std::size_t k = 0; k < j; ++k) s = s - load_four(Li + 4 * k) * load_four(other + 4 * k);
                s = s * load_four(other + 4 * j);
                store_four(Li + 4 * j, s);
                pivot = pivot - s * s;
                y = y - s * load_four(&x_[4 * j]);
            }
            double pivots[4];
            store_four(pivots, pivot);
            for (int k = 0; k < 4; ++k)
                if (!(pivots[k] > 0.0)) fine[k] = false, pivots[k] = 1.0;
            const Four inverse = inverse_root(load_four(pivots));
            store_four(Li + 4 * i, inverse);
            store_four(&x_[4 * i], y * inverse);
        }
        for (std::size_t i = N_; i-- > 0;) {
            row -= 4 * (i + 1);
            const Four x = load_four(&x_[4 * i]) * load_four(&L_[row + 4 * i]);
            store_four(&x_[4 * i], x);
            for (std::size_t j = 0; j < i; ++j) store_four(&x_[4 * j], load_four(&x_[4 * j]) - x * load_four(&L_[row + 4 * j]));
        }
        return x_.data();
    }

  private:
    std::size_t N_;
    std::vector<double> A_, L_, x_;  // (N (N + 1) / 2, 4) twice, (N, 4)
};

// Shares of M forecasters with the given log weights: (1 - share) of what they have earned, the rest spread evenly.
KS_INLINE void shares(std::size_t M, const double* logs, double share, double* out) {
    const double top = *std::max_element(logs, logs + M);
    double total = 0.0;
    for (std::size_t k = 0; k < M; ++k) total += out[k] = std::exp(logs[k] - top);
    for (std::size_t k = 0; k < M; ++k) out[k] = (1.0 - share) * out[k] / total + share / double(M);
}

// The same where the weights are likelihoods. Between the rows of a pass they are kept as they are, and their logarithms, which are
// what a state has, only at its end.
template <std::size_t M>
struct Earned {
    double* logs;  // (M)
    double weight[M] = {};
    bool told = true;  // whether the logarithms are those of the weights

    explicit Earned(double* l) : logs(l) {}

    void load() {
        const double top = *std::max_element(logs, logs + M);
        for (std::size_t k = 0; k < M; ++k) weight[k] = std::exp(logs[k] - top);
        told = true;
    }
    void store() {
        for (std::size_t k = 0; k < M && !told; ++k) logs[k] = std::log(weight[k]);
        told = true;
    }
    KS_INLINE void parts(double share, double* out) const {
        double total = 0.0;
        for (std::size_t k = 0; k < M; ++k) total += weight[k];
        const double factor = (1.0 - share) / total;
        for (std::size_t k = 0; k < M; ++k) out[k] = factor * weight[k] + share / double(M);
    }
    // After a row to which they gave these likelihoods.
    KS_INLINE void learn(const double* part, const double* likelihood, double importance) {
        if (importance == 1.0) {
            for (std::size_t k = 0; k < M; ++k) weight[k] = part[k] * likelihood[k];
            told = false;
            return;
        }
        for (std::size_t k = 0; k < M; ++k) logs[k] = std::log(part[k]) + importance * std::log(likelihood[k]);
        load();
    }
};

// Weights w (G, N) of the memories, side by side, (N, 4).
inline void load_lanes(std::size_t N, const double* w, double* lanes) {
    for (std::size_t i = 0; i < N; ++i) {
        for (std::size_t k = 0; k < G; ++k) lanes[4 * i + k] = w[k * N + i];
        lanes[4 * i + G] = 0.0;
    }
}
inline void store_lanes(std::size_t N, const double* lanes, double* w) {
    for (std::size_t i = 0; i < N; ++i)
        for (std::size_t k = 0; k < G; ++k) w[k * N + i] = lanes[4 * i + k];
}

// The weights of the inputs after every `stride` rows that count, of which there were t.
struct Notes {
    std::int64_t t = 0, stride = 0;
    double* out = nullptr;  // (notes, inputs), or nobody asks

    template <class Level> KS_INLINE void after(Level& level, std::size_t inputs) {
        if (!out || ++t % stride) return;
        level.tell_weights();
        level.mean_weights(out);
        out += inputs;
    }
};

// ------------------------------------------------------------------------------------------------ labels
constexpr double label_ridge = 5.0, label_share = 0.001, least = 1e-7;

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
    Earned<G> earned;
    Curvature curvature;
    std::vector<double> weights, p, work, ridge;  // (N, 4), (C, 4)
    double share[4] = {};

    LabelLevel(std::size_t n, std::size_t c, double* a, double* held, double* logs)
        : N(n), C(c), A(a), w(held), earned(logs), curvature(n), weights(4 * n), p(4 * c), work(12 * n), ridge(n, label_ridge) {}

    // Between a pass and the state.
    void load(bool learns) {
        if (learns) curvature.load(A);
        load_lanes(N, w, weights.data());
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
        double part[G];
        shares(G, earned.logs, label_share, part);
        for (std::size_t i = 0; i + 1 < N; ++i) out[i] = part[0] * w[i] + part[1] * w[N + i] + part[2] * w[2 * N + i];
    }

    // z (N, C); out (C), the probabilities; of two classes that of the second.
    KS_INLINE void forecast(const double* z, double* out) {
        earned.parts(label_share, share);
        for (std::size_t c = 0; c < C; ++c) {
            Four f = four(0.0);
            for (std::size_t i = 0; i < N; ++i) f = f + load_four(&weights[4 * i]) * four(z[i * C + c]);
            store_four(&p[4 * c], C == 1 ? sigmoid(f) : f);
        }
        if (C > 1) softmax();
        for (std::size_t c = 0; c < C; ++c) {
            const double* own = &p[4 * c];
            out[c] = share[0] * own[0] + share[1] * own[1] + share[2] * own[2];
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
                    if (p[4 * c + k] > 1e-4) any = true, h[k] = importance * p[4 * c + k];
                if (!any) continue;
                for (std::size_t i = 0; i < N; ++i) store_four(v + 4 * i, four(z[i * C + c]) - load_four(mean + 4 * i));
                curvature.add_lanes(load_four(h), v);
            }
        }
        bool fine[4];
        const double* x = curvature.solve(ridge.data(), b, fine);
        if (fine[0] && fine[1] && fine[2]) {
            for (std::size_t i = 0; i < N; ++i) store_four(&weights[4 * i], load_four(&weights[4 * i]) - load_four(x + 4 * i));
        } else {
            for (std::size_t k = 0; k < G; ++k)
                for (std::size_t i = 0; i < N && fine[k]; ++i) weights[4 * i + k] -= x[4 * i + k];
        }
        double likely[G];
        const double* own = &p[C == 1 ? 0 : 4 * std::size_t(y)];
        for (std::size_t k = 0; k < G; ++k) likely[k] = std::max(least, C > 1 || y > 0 ? own[k] : 1.0 - own[k]);
        earned.learn(share, likely, importance);
    }

  private:
    // Scores (C, 4) in p become probabilities.
    KS_INLINE void softmax() {
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
    Earned<2> levels;     // what the two levels have earned
    double* errors;       // (3, N): mistakes of members, all and lately; rows
    bool recent;

    // F (N, n, C). learns: y (n), weight (n) or null. Out: scores (n, C).
    KS_CLONES void pass(std::size_t n, const double* F, const double* y, const double* weight, bool learns, double* scores,
                        Notes notes = {}) {
        std::vector<double> buffer((N + 1 + RECENT) * C + 4 * C);
        double *z = buffer.data(), *zr = z + (N + 1) * C, *p = zr + RECENT * C, *pr = p + C, *f = pr + C, *mix = f + C;
        first.load(learns);
        second.load(learns);
        levels.load();
        for (std::size_t t = 0; t < n; ++t) {
            label_inputs(N, C, F + t * C, n * C, z);
            first.forecast(z, p);
            const bool second_too = recent && (learns || t == 0);  // only of the next row is it known what came just before
            double part[2] = {1.0, 0.0};
            if (second_too) {
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
            if (!learns || importance == 0.0) continue;
            first.learn(z, y[t], importance);
            if (recent) {
                second.learn(zr, y[t], importance);
                const double likely[2] = {likelihood(C, p, y[t]), likelihood(C, pr, y[t])};
                levels.learn(part, likely, importance);
                remember_label(C, p, y[t], kept);
            }
            count_mistakes(z, y[t]);
            notes.after(first, N);
        }
        if (!learns) return;
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

// ------------------------------------------------------------------------------------------------ numbers
constexpr double number_ridge = 15.0, constant_ridge = 20.0, huber = 3.0, slow = 0.9995, quick = 0.99, number_share = 0.01;
constexpr double few = 10.0;  // rows that only the base predicts

struct NumberLevel {
    std::size_t N;         // inputs; a constant is added
    double *A, *b, *w;     // (G, N + 1, N + 1), (G, N + 1), (G, N + 1)
    double *logs, *loss;   // (G), (N): running squared errors of the inputs
    double* numbers;       // (6): rows; mass and sum of squared residuals of the base; count, mean and squares of the targets
    Curvature curvature;
    std::vector<double> sums, weights;  // b and w side by side, (N + 1, 4)
    std::vector<double> z, part, ridge;
    double own[4] = {}, share[4] = {}, base = 0.0, s = 1.0;

    NumberLevel(std::size_t n, double* a, double* rhs, double* held, double* l, double* ml, double* numbers_)
        : N(n), A(a), b(rhs), w(held), logs(l), loss(ml), numbers(numbers_), curvature(n + 1), sums(4 * n + 4), weights(4 * n + 4),
          z(n + 1), part(n), ridge(n + 1, number_ridge) {
        ridge[n] = constant_ridge;
    }

    // Between a pass and the state.
    void load(bool learns) {
        if (learns) curvature.load(A), load_lanes(N + 1, b, sums.data());
        load_lanes(N + 1, w, weights.data());
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
        double parts[G], sum = 0.0, total = 0.0, best = INFINITY;
        shares(G, logs, number_share, parts);
        for (std::size_t i = 0; i < N; ++i) {
            sum += out[i] = parts[0] * w[i] + parts[1] * w[N + 1 + i] + parts[2] * w[2 * (N + 1) + i];
            best = std::min(best, loss[i]);
        }
        const auto of_base = [&](std::size_t i) { return best > 0 ? (best / loss[i]) * (best / loss[i]) : 1.0; };
        for (std::size_t i = 0; i < N; ++i) total += of_base(i);
        for (std::size_t i = 0; i < N; ++i) out[i] += of_base(i) / total * (1.0 - sum);
    }

    KS_INLINE double forecast(const double* p) {
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
            std::fill_n(own, 4, base);
            return base;
        }
        shares(G, logs, number_share, share);
        Four inner = four(0.0);
        for (std::size_t i = 0; i <= N; ++i) inner = inner + load_four(&weights[4 * i]) * four(z[i]);
        double mixed = 0.0, a[4];
        store_four(a, inner);
        for (std::size_t k = 0; k < G; ++k) {
            own[k] = std::min(std::max(base + s * a[k], low - 2 * s), high + 2 * s);
            mixed += share[k] * own[k];
        }
        return mixed;
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

    KS_INLINE void follow(double y) {
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

    KS_CLONES void pass(std::size_t n, const double* F, const double* y, const double* weight, bool learns, double* scores,
                        Notes notes = {}) {
        std::vector<double> p(N), last(LAST);
        first.load(learns);
        second.load(learns);
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
            notes.after(first, N);
        }
        if (!learns) return;
        first.store();
        if (recent) second.store();
    }
};

}  // namespace ks::stack
