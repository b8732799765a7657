// Losses l(y, f) and their derivatives: the twins of kernelstream/losses/, found by name.
//
// binary: y = -1 or +1, C = 1;  regression: y a number, C = 1;  multi-class: y a column index, f has C entries.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace ks {

enum class Kind { binary, regression, multiclass };

struct Loss {
    Kind kind;
    bool bounded = true;  // whether the derivative is
    explicit Loss(Kind k) : kind(k) {}
    virtual ~Loss() = default;
    virtual double value(double y, const double* f, int C) const = 0;
    virtual void gradient(double y, const double* f, int C, double* g) const = 0;
};

// A loss of one score: subclasses give l(y, f) and its derivative as functions of two numbers.
struct ScalarLoss : Loss {
    using Loss::Loss;
    virtual double at(double y, double f) const = 0;
    virtual double slope(double y, double f) const = 0;
    double value(double y, const double* f, int) const override { return at(y, f[0]); }
    void gradient(double y, const double* f, int, double* g) const override { g[0] = slope(y, f[0]); }
};

inline double sign(double r) { return r > 0 ? 1.0 : r < 0 ? -1.0 : 0.0; }

inline double sigmoid(double f) {
    const double e = std::exp(-std::abs(f));  // never overflows
    return (f >= 0 ? 1.0 : e) / (1.0 + e);
}

struct Hinge : ScalarLoss {
    bool closed;  // whether the kink has the slope of the loss
    explicit Hinge(bool c) : ScalarLoss(Kind::binary), closed(c) {}
    double at(double y, double f) const override { return std::max(0.0, 1.0 - y * f); }
    double slope(double y, double f) const override { return (closed ? y * f <= 1.0 : y * f < 1.0) ? -y : 0.0; }
};

struct SquaredHinge final : ScalarLoss {
    static constexpr double steepest = 1.0;  // bound of the second derivative, where there is one
    SquaredHinge() : ScalarLoss(Kind::binary) { bounded = false; }
    double at(double y, double f) const override {
        const double gap = std::max(0.0, 1.0 - y * f);
        return 0.5 * gap * gap;
    }
    double slope(double y, double f) const override { return -y * std::max(0.0, 1.0 - y * f); }
    double curvature(double y, double f) const { return y * f < 1.0 ? 1.0 : 0.0; }
};

struct Logistic final : ScalarLoss {
    static constexpr double steepest = 0.25;
    Logistic() : ScalarLoss(Kind::binary) {}
    double at(double y, double f) const override {
        return std::max(0.0, -y * f) + std::log1p(std::exp(-std::abs(y * f)));
    }
    double slope(double y, double f) const override { return -y * sigmoid(-y * f); }
    double curvature(double y, double f) const { return sigmoid(-y * f) * (1.0 - sigmoid(-y * f)); }
};

struct PerceptronLoss : ScalarLoss {
    PerceptronLoss() : ScalarLoss(Kind::binary) {}
    double at(double y, double f) const override { return std::max(0.0, -y * f); }
    double slope(double y, double f) const override { return (f >= 0) != (y > 0) ? -y : 0.0; }
};

struct Squared final : ScalarLoss {
    static constexpr double steepest = 1.0;
    double epsilon;
    explicit Squared(double e) : ScalarLoss(Kind::regression), epsilon(e) { bounded = false; }
    double at(double y, double f) const override {
        const double r = f - y;
        return std::max(0.0, 0.5 * (r * r - epsilon * epsilon));
    }
    double slope(double y, double f) const override { return std::abs(f - y) > epsilon ? f - y : 0.0; }
    double curvature(double, double) const { return 1.0; }
};

struct Absolute : ScalarLoss {
    Absolute() : ScalarLoss(Kind::regression) {}
    double at(double y, double f) const override { return std::abs(f - y); }
    double slope(double y, double f) const override { return sign(f - y); }
};

struct EpsilonInsensitive : ScalarLoss {
    double epsilon;
    explicit EpsilonInsensitive(double e) : ScalarLoss(Kind::regression), epsilon(e) {}
    double at(double y, double f) const override { return std::max(0.0, std::abs(f - y) - epsilon); }
    double slope(double y, double f) const override { return std::abs(f - y) > epsilon ? sign(f - y) : 0.0; }
};

struct Huber : ScalarLoss {
    double delta;
    explicit Huber(double d) : ScalarLoss(Kind::regression), delta(d) {}
    double at(double y, double f) const override {
        const double r = std::abs(f - y), near = std::min(r, delta);
        return 0.5 * near * near + delta * (r - near);
    }
    double slope(double y, double f) const override { return std::max(-delta, std::min(delta, f - y)); }
};

struct Quantile : ScalarLoss {
    double tau;
    explicit Quantile(double t) : ScalarLoss(Kind::regression), tau(t) {}
    double at(double y, double f) const override { return std::max((1.0 - tau) * (f - y), -tau * (f - y)); }
    double slope(double y, double f) const override { return f >= y ? 1.0 - tau : -tau; }
};

// Best wrong class, the lowest index among ties.
inline int rival(int y, const double* f, int C) {
    int s = y == 0 ? 1 : 0;
    for (int c = s + 1; c < C; ++c)
        if (c != y && f[c] > f[s]) s = c;
    return s;
}

struct MulticlassLoss : Loss {
    MulticlassLoss() : Loss(Kind::multiclass) {}
    virtual double rows_value(int y, const double* f, int C) const = 0;
    virtual void rows_gradient(int y, const double* f, int C, double* g) const = 0;
    double value(double y, const double* f, int C) const override { return C < 2 ? 0.0 : rows_value(int(y), f, C); }
    void gradient(double y, const double* f, int C, double* g) const override {
        for (int c = 0; c < C; ++c) g[c] = 0.0;
        if (C > 1) rows_gradient(int(y), f, C, g);
    }
};

struct CrammerSinger : MulticlassLoss {
    bool closed;
    explicit CrammerSinger(bool c) : closed(c) {}
    double rows_value(int y, const double* f, int C) const override {
        return std::max(0.0, 1.0 - (f[y] - f[rival(y, f, C)]));
    }
    void rows_gradient(int y, const double* f, int C, double* g) const override {
        const int s = rival(y, f, C);
        if (closed ? f[y] - f[s] <= 1.0 : f[y] - f[s] < 1.0) g[s] = 1.0, g[y] = -1.0;
    }
};

struct MulticlassPerceptron : MulticlassLoss {
    double rows_value(int y, const double* f, int C) const override {
        return std::max(0.0, f[rival(y, f, C)] - f[y]);
    }
    void rows_gradient(int y, const double* f, int C, double* g) const override {
        const int s = rival(y, f, C);
        if (f[s] > f[y] || (f[s] == f[y] && s < y)) g[s] = 1.0, g[y] = -1.0;
    }
};

struct Softmax : MulticlassLoss {
    double rows_value(int y, const double* f, int C) const override {
        double top = f[0], sum = 0.0;
        for (int c = 1; c < C; ++c) top = std::max(top, f[c]);
        for (int c = 0; c < C; ++c) sum += std::exp(f[c] - top);
        return std::log(sum) + top - f[y];
    }
    void rows_gradient(int y, const double* f, int C, double* g) const override {
        double top = f[0], sum = 0.0;
        for (int c = 1; c < C; ++c) top = std::max(top, f[c]);
        for (int c = 0; c < C; ++c) sum += g[c] = std::exp(f[c] - top);
        for (int c = 0; c < C; ++c) g[c] /= sum;
        g[y] -= 1.0;
    }
};

// A binary loss for each class against all others.
struct OneVsRest : Loss {
    std::unique_ptr<Loss> inner;
    explicit OneVsRest(std::unique_ptr<Loss> loss) : Loss(Kind::multiclass), inner(std::move(loss)) { bounded = inner->bounded; }
    double value(double y, const double* f, int C) const override {
        double sum = 0.0;
        for (int c = 0; c < C && C > 1; ++c) sum += inner->value(c == int(y) ? 1.0 : -1.0, f + c, 1);
        return sum;
    }
    void gradient(double y, const double* f, int C, double* g) const override {
        g[0] = 0.0;
        for (int c = 0; c < C && C > 1; ++c) inner->gradient(c == int(y) ? 1.0 : -1.0, f + c, 1, g + c);
    }
};

// By name; null where there is no such loss.
inline std::unique_ptr<Loss> make_loss(const std::string& name, const std::vector<double>& p) {
    const std::string wrapper = "one_vs_rest:";
    if (name.compare(0, wrapper.size(), wrapper) == 0)
        if (auto inner = make_loss(name.substr(wrapper.size()), p)) return std::make_unique<OneVsRest>(std::move(inner));
    if (name == "hinge") return std::make_unique<Hinge>(p.at(0) != 0.0);
    if (name == "squared_hinge") return std::make_unique<SquaredHinge>();
    if (name == "logistic") return std::make_unique<Logistic>();
    if (name == "perceptron") return std::make_unique<PerceptronLoss>();
    if (name == "squared") return std::make_unique<Squared>(p.at(0));
    if (name == "absolute") return std::make_unique<Absolute>();
    if (name == "epsilon_insensitive") return std::make_unique<EpsilonInsensitive>(p.at(0));
    if (name == "huber") return std::make_unique<Huber>(p.at(0));
    if (name == "quantile") return std::make_unique<Quantile>(p.at(0));
    if (name == "crammer_singer") return std::make_unique<CrammerSinger>(p.at(0) != 0.0);
    if (name == "multiclass_perceptron") return std::make_unique<MulticlassPerceptron>();
    if (name == "softmax") return std::make_unique<Softmax>();
    return nullptr;
}

}  // namespace ks
