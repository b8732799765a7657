// First-order updates: the twins of kernelstream/updates/, found by name.
//
// step() writes decay[c] and tau[c] for each of the C outputs; the function becomes decay f + tau k(x, .).
// Diagonal updates write their step size to decay[0] and the gradient to tau.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "parts/losses.hpp"

namespace ks {

struct Row {  // what an update sees of a row
    double y;
    const double* f;
    int C;
    double k_xx;
    std::int64_t t;
};

struct Update {
    bool diagonal = false;
    double fade = 1.0;  // of a diagonal update: factor of the sums of squares before each row
    int n_memory = 0;
    virtual ~Update() = default;
    virtual void step(const Loss& loss, const Row& row, double* memory, double* decay, double* tau) const = 0;
};

inline void gradient_times(const Loss& loss, const Row& row, double factor, double* tau) {
    loss.gradient(row.y, row.f, row.C, tau);
    for (int c = 0; c < row.C; ++c) tau[c] *= factor;
}

// The rate, or where the derivative has no bound at most 1 / k(x, x): a longer step would overshoot, again and again.
inline double stable_rate(double rate, const Loss& loss, const Row& row) {
    return !loss.bounded && rate * row.k_xx > 1.0 ? 1.0 / row.k_xx : rate;
}

struct OGD : Update {
    double eta, lam;
    int schedule;
    OGD(double e, int s, double l) : eta(e), lam(l), schedule(s) {}
    void step(const Loss& loss, const Row& row, double*, double* decay, double* tau) const override {
        const double wanted = schedule == 0 ? eta : schedule == 1 ? eta / std::sqrt(double(row.t)) : 1.0 / (lam * row.t);
        const double rate = stable_rate(wanted, loss, row);
        std::fill_n(decay, row.C, 1.0 - rate * lam);
        gradient_times(loss, row, -rate, tau);
    }
};

struct Pegasos : Update {
    double lam;
    explicit Pegasos(double l) : lam(l) {}
    void step(const Loss& loss, const Row& row, double*, double* decay, double* tau) const override {
        if (loss.bounded) {
            std::fill_n(decay, row.C, 1.0 - 1.0 / row.t);
            return gradient_times(loss, row, -1.0 / (lam * row.t), tau);
        }
        const double rate = 1.0 / (lam * row.t + row.k_xx);
        std::fill_n(decay, row.C, 1.0 - rate * lam);
        gradient_times(loss, row, -rate, tau);
    }
};

struct NORMA : Update {
    double eta, lam, nu;
    NORMA(double e, double l, double n) : eta(e), lam(l), nu(n) { n_memory = 2; }
    void step(const Loss& loss, const Row& row, double* memory, double* decay, double* tau) const override {
        const double rate = stable_rate(eta, loss, row);
        std::fill_n(decay, row.C, 1.0 - rate * lam);
        const auto* tube = dynamic_cast<const EpsilonInsensitive*>(&loss);
        if (!tube) return gradient_times(loss, row, -rate, tau);
        double &epsilon = memory[0], &known = memory[1];
        if (known == 0.0) epsilon = tube->epsilon, known = 1.0;
        const bool outside = std::abs(row.f[0] - row.y) > epsilon;
        epsilon = std::max(0.0, epsilon + (outside ? 1.0 - nu : -nu) * eta);
        tau[0] = outside ? std::copysign(eta, row.y - row.f[0]) : 0.0;
    }
};

struct Novelty : Update {
    double eta, lam, fall, rise;  // products taken once: fused with the sum, they would round as no other program does
    Novelty(double e, double l, double nu) : eta(e), lam(l), fall((1 - nu) * e), rise(nu * e) { n_memory = 1; }
    void step(const Loss&, const Row& row, double* memory, double* decay, double* tau) const override {
        double& rho = memory[0];
        const bool novel = row.f[0] < rho;
        rho = novel ? rho - fall : rho + rise;
        decay[0] = 1.0 - eta * lam;
        tau[0] = novel ? eta : 0.0;
    }
};

struct Perceptron : Update {
    double eta;
    bool ties;  // whether f = 0 is a mistake for both labels
    Perceptron(double e, bool t) : eta(e), ties(t) {}
    void step(const Loss& loss, const Row& row, double*, double* decay, double* tau) const override {
        std::fill_n(decay, row.C, 1.0);
        std::fill_n(tau, row.C, 0.0);
        if (loss.kind == Kind::binary) {
            if (ties ? row.y * row.f[0] <= 0 : (row.f[0] >= 0) != (row.y > 0)) tau[0] = eta * row.y;
        } else if (loss.kind == Kind::regression) {
            if (loss.value(row.y, row.f, 1) > 0) tau[0] = std::copysign(eta, row.y - row.f[0]);
        } else {
            const int wrong = int(std::max_element(row.f, row.f + row.C) - row.f), y = int(row.y);
            if (wrong != y) tau[wrong] = -eta, tau[y] = eta;
        }
    }
};

struct PassiveAggressive : Update {
    double limit;  // the parameter C
    int variant;
    PassiveAggressive(double c, int v) : limit(c), variant(v) {}
    void step(const Loss& loss, const Row& row, double*, double* decay, double* tau) const override {
        std::fill_n(decay, row.C, 1.0);
        loss.gradient(row.y, row.f, row.C, tau);
        double n = 0.0;
        for (int c = 0; c < row.C; ++c) n += tau[c] * tau[c];
        n *= row.k_xx;
        double size = std::isinf(limit) ? 0.0 : limit;
        if (n != 0.0) {
            const double value = loss.value(row.y, row.f, row.C);
            const double wanted = variant == 1 ? std::min(limit, value / n) : value / (n + 0.5 / limit);
            if (std::isfinite(wanted)) size = wanted;  // a row next to 0, without a limit: out of reach
        }
        for (int c = 0; c < row.C; ++c) tau[c] *= -size;
    }
};

constexpr double reach = 10.0;   // deviations of the target up to which a residual counts, where steps are automatic
constexpr double settled = 8.0;  // rows after which the deviation is one to go by

// The step scale "auto": factor / sqrt(mean k(x, x)), in regression times 0.3 x the running deviation of the target.
// Rows of memory, of which only column 0 counts: rows so far; mean and sum of squared deviations of the target; mean k(x, x).
inline double auto_rate(double factor, const Loss& loss, const Row& row, double* memory) {
    double &count = memory[0], &mean = memory[row.C], &m2 = memory[2 * row.C], &k_mean = memory[3 * row.C];
    count += 1.0;
    if (row.k_xx != k_mean) k_mean += (row.k_xx - k_mean) / count;  // unit features: no division, no root
    const double rate = k_mean == 1.0 ? factor : k_mean > 0 ? factor / std::sqrt(k_mean) : 0.0;
    if (loss.kind != Kind::regression) return rate;
    const double delta = row.y - mean;
    mean += delta / count;
    m2 += delta * (row.y - mean);
    return rate * 0.3 * std::sqrt(m2 / count);
}

// The derivative of a row after auto_rate, at most `reach` deviations of the target where it has no bound.
inline void within_reach(const Loss& loss, const Row& row, const double* memory, double* g) {
    const double count = memory[0], squares = memory[2 * row.C];
    if (loss.kind != Kind::regression || loss.bounded || count <= settled) return;
    const double most = reach * std::sqrt(squares / count);
    g[0] = std::min(std::max(g[0], -most), most);
}

constexpr double tiny = 1e-12;

struct NormAdaGrad : Update {
    double eta;  // negative: "auto"
    explicit NormAdaGrad(double e) : eta(e) { n_memory = 5; }
    void step(const Loss& loss, const Row& row, double* memory, double* decay, double* tau) const override {
        std::fill_n(decay, row.C, 1.0);
        const double rate = eta > 0 ? eta : auto_rate(8.0, loss, row, memory);
        loss.gradient(row.y, row.f, row.C, tau);
        if (eta <= 0) within_reach(loss, row, memory, tau);
        double* squares = memory + 4 * row.C;
        for (int c = 0; c < row.C; ++c) {
            squares[c] += tau[c] * tau[c] * row.k_xx;
            tau[c] *= -rate / std::sqrt(squares[c] + tiny);
        }
    }
};

struct AdaGrad : Update {
    double eta;  // negative: "auto"
    AdaGrad(double e, double f) : eta(e) { n_memory = 5, diagonal = true, fade = f; }
    void step(const Loss& loss, const Row& row, double* memory, double* decay, double* tau) const override {
        const double factor = 14.0 / std::sqrt(std::max(1.0, memory[4 * row.C]));
        decay[0] = eta > 0 ? eta : auto_rate(factor, loss, row, memory);
        loss.gradient(row.y, row.f, row.C, tau);
        if (eta <= 0) within_reach(loss, row, memory, tau);
    }
};

struct CoinBetting : Update {
    CoinBetting() { n_memory = 4; }
    void step(const Loss& loss, const Row& row, double* memory, double* decay, double* tau) const override {
        loss.gradient(row.y, row.f, row.C, tau);
        const double root = std::sqrt(row.k_xx);
        for (int c = 0; c < row.C; ++c) {
            double &L = memory[c], &G = memory[row.C + c], &R = memory[2 * row.C + c], &s = memory[3 * row.C + c];
            const double g = tau[c], size = std::abs(g) * root;
            L = std::max(L, size);
            G += size;
            R = std::max(R - g * row.f[c], 0.0);
            const double factor = L > 0 ? (1.0 + R / L) / (G + L) : 1.0;
            decay[c] = s > 0 ? factor / s : 1.0;
            tau[c] = -factor * g;
            s = L > 0 ? factor : 0.0;
        }
    }
};

// By name; null where there is no such update.
inline std::unique_ptr<Update> make_update(const std::string& name, const std::vector<double>& p) {
    if (name == "ogd") return std::make_unique<OGD>(p.at(0), int(p.at(1)), p.at(2));
    if (name == "pegasos") return std::make_unique<Pegasos>(p.at(0));
    if (name == "norma") return std::make_unique<NORMA>(p.at(0), p.at(1), p.at(2));
    if (name == "novelty") return std::make_unique<Novelty>(p.at(0), p.at(1), p.at(2));
    if (name == "perceptron") return std::make_unique<Perceptron>(p.at(0), p.at(1) != 0.0);
    if (name == "passive_aggressive") return std::make_unique<PassiveAggressive>(p.at(0), int(p.at(1)));
    if (name == "norm_adagrad") return std::make_unique<NormAdaGrad>(p.at(0));
    if (name == "adagrad") return std::make_unique<AdaGrad>(p.at(0), p.at(1));
    if (name == "coin_betting") return std::make_unique<CoinBetting>();
    return nullptr;
}

}  // namespace ks
