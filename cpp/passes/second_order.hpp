// Second-order learning over one block, rows in order, on scalars only: the twins of kernelstream/second_order/rules.py.
//
// A row acts by two numbers (c, beta): A += c z z', b += beta z, w = A^-1 b. With f = w'z and s = z'A^-1 z before the row,
// w += tau A^-1 z, tau = (beta - c f)/(1 + c s), and A^-1 loses kappa = c/(1 + c s) times its rank-one term.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/known.hpp"
#include "parts/losses.hpp"
#include "base/vecmath.hpp"

namespace ks::second {

struct Rule {
    bool always = false;  // whether rows of weight 0 act too
    virtual ~Rule() = default;
    // y, f and beta have one entry per output.
    virtual void step(const double* y, const double* f, double s, double weight, int k, double& c, double* beta) const = 0;
};

struct LeastSquares : Rule {
    void step(const double* y, const double*, double, double weight, int k, double& c, double* beta) const override {
        c = weight;
        for (int o = 0; o < k; ++o) beta[o] = weight * y[o];
    }
};

// Rows of an earlier pass: c is the weight, beta the target.
struct Known : Rule {
    Known() { always = true; }
    void step(const double* y, const double*, double, double weight, int k, double& c, double* beta) const override {
        c = weight;
        for (int o = 0; o < k; ++o) beta[o] = y[o];
    }
};

struct Margin : Rule {
    void step(const double* y, const double* f, double, double weight, int, double& c, double* beta) const override {
        c = y[0] * f[0] < 1.0 ? weight : 0.0;
        beta[0] = c * y[0];
    }
};

struct Newton : Rule {
    double curvature, bound;
    std::unique_ptr<Loss> loss;
    Newton(double a, double b, std::unique_ptr<Loss> l) : curvature(a), bound(b), loss(std::move(l)) {}
    void step(const double* y, const double* f, double s, double weight, int, double& c, double* beta) const override {
        const double inside = std::min(std::max(f[0], -bound), bound);
        double slope;
        loss->gradient(y[0], &inside, 1, &slope);
        c = curvature * weight * slope * slope;
        const double beyond = f[0] != inside && s > 0.0 ? (f[0] - inside) / s : 0.0;  // s is 0: no step moves f
        beta[0] = c * inside - beyond - weight * slope;
    }
};

// What a row does, found by name once and used for many blocks.
inline std::unique_ptr<Rule> make_rule(const std::string& name, const std::vector<double>& p, const std::string& loss_name,
                                       const std::vector<double>& loss_parameters) {
    if (name == "least_squares") return std::make_unique<LeastSquares>();
    if (name == "known") return std::make_unique<Known>();
    if (name == "margin") return std::make_unique<Margin>();
    if (name == "newton") return std::make_unique<Newton>(p.at(0), p.at(1), known(make_loss(loss_name, loss_parameters), "loss", loss_name));
    return known(std::unique_ptr<Rule>(), "second-order rule", name);
}

// The recursion with a diagonal A, one for every output: s = sum z_i^2/A_i, w_i += tau z_i/A_i, A_i += c z_i^2.
// In:  Z (n, r), y (n, k), weight (n) or null, A (k, r), W (k, r).  Out: F (n, k) scores before each update; A, W changed.
KS_CLONES inline void diagonal_pass(std::size_t n, std::size_t r, int k, const double* Z, const double* y,
                                    const double* weight, const Rule& rule, double* A, double* W, double* F) {
    for (std::size_t t = 0; t < n; ++t) {
        const double* z = Z + t * r;
        for (int o = 0; o < k; ++o) {
            double* a = A + o * r;
            double* w = W + o * r;
            double s = 0.0, f = 0.0;
#pragma omp simd reduction(+ : s, f)
            for (std::size_t i = 0; i < r; ++i) s += z[i] * z[i] / a[i], f += w[i] * z[i];
            F[t * k + o] = f;
            const double importance = weight ? weight[t] : 1.0;
            if (importance == 0.0) continue;
            double c = 0.0, beta = 0.0;
            rule.step(y + t * k + o, &f, s, importance, 1, c, &beta);
            const double tau = (beta - c * f) / (1.0 + c * s);
            if (c == 0.0 && tau == 0.0) continue;
#pragma omp simd
            for (std::size_t i = 0; i < r; ++i) w[i] += tau * z[i] / a[i], a[i] += c * z[i] * z[i];
        }
    }
}

}  // namespace ks::second
