// Support sets that only grow: with which coefficient does a row join? The twins of kernelstream/budgets/growing.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace ks {

struct Growing {
    virtual ~Growing() = default;
    // Changes tau (C) in place; all zero when the row stays out.
    virtual void admit(int C, double* tau, double value, const double* gradient, double k_xx, double u) const = 0;
};

inline double largest_of(int C, const double* x) {
    double top = 0.0;
    for (int c = 0; c < C; ++c) top = std::max(top, std::abs(x[c]));
    return top;
}

struct Stop : Growing {
    void admit(int, double*, double, const double*, double, double) const override {}
};

struct OSKL : Growing {
    double G;
    explicit OSKL(double g) : G(g) {}
    void admit(int C, double* tau, double, const double* gradient, double, double u) const override {
        const double size = largest_of(C, gradient), factor = u * G < size ? G / size : 0.0;
        for (int c = 0; c < C; ++c) tau[c] *= factor;
    }
};

struct SPA : Growing {
    double alpha, beta;
    SPA(double a, double b) : alpha(a), beta(b) {}
    void admit(int C, double* tau, double value, const double*, double k_xx, double u) const override {
        const double rho = std::min(alpha, value) / beta, eta = largest_of(C, tau);
        double norm = 0.0, size = 0.0;
        if (u < rho) {
            for (int c = 0; c < C; ++c) norm += tau[c] / eta * (tau[c] / eta);
            size = std::min(eta / rho, value / (norm * k_xx));
        }
        for (int c = 0; c < C; ++c) tau[c] = tau[c] / eta * size;
    }
};

// By name; null where there is no such strategy.
inline std::unique_ptr<Growing> make_growing(const std::string& name, const std::vector<double>& p) {
    if (name == "stop") return std::make_unique<Stop>();
    if (name == "oskl") return std::make_unique<OSKL>(p.at(0));
    if (name == "spa") return std::make_unique<SPA>(p.at(0), p.at(1));
    return nullptr;
}

}  // namespace ks
