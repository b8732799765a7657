// Learners that take one row at a time, each with pointers to the arrays that hold what it has learned: the loops of the blocks, for a
// block of one row, without anything around them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/journal.hpp"
#include "maps/fourier.hpp"
#include "maps/uniforms.hpp"
#include "parts/spec.hpp"
#include "passes/cell_grids.hpp"
#include "passes/cell_tables.hpp"
#include "passes/learned.hpp"
#include "passes/linear.hpp"
#include "passes/metric.hpp"
#include "passes/second_order_block.hpp"
#include "passes/window.hpp"

namespace ks::rows {

// A row as the learners see it: its numbers in the type of the model, and as doubles.
template <class T>
struct Row {
    const T* x;           // (d)
    const double* wide;   // (d)
    double y;             // encoded: -1 or 1, the number of a class, or a number
    const double* weight = nullptr;  // factor of its loss, which linear learners know
};

constexpr double unlearned = 0.0;  // the weight of a row that only asks for its scores

template <class T>
struct Learner {
    std::int64_t t = 0;         // rows learned so far
    std::int64_t waiting = 0;   // of these, rows that wait in a window, where there is one
    double mass = 0.0;          // and the weights of those that do not any more
    virtual ~Learner() = default;
    // Whether n more rows can be learned one by one; if not, something else is due among them.
    virtual bool open(std::int64_t) const { return true; }
    // Scores f (C) of the row. With a journal, which keeps what changes, it is then learned. False when a number leaves the range of
    // floats, or the scores cannot be had here.
    virtual bool pass(const Row<T>& row, double* f, Journal* journal) = 0;
    // Scores f (n, C) of n rows; nothing changes.
    virtual bool score(std::size_t n, const Row<T>* rows, std::size_t C, double* f) {
        for (std::size_t i = 0; i < n; ++i)
            if (!pass(rows[i], f + i * C, nullptr)) return false;
        return true;
    }
};

// ---- Cells -------------------------------------------------------------------------------------------------------------------

template <class T, class Grids>
struct Cells : Learner<T> {
    Grids grids;
    cells::Rule rule;
    cells::Model model;
    int unit;               // the target is in units of 2^unit
    const std::int32_t* places;  // (C): the columns of several outputs; none of a single one
    std::vector<std::int32_t> index, code;
    std::vector<double> wide, down;

    template <class Make>  // of the grids
    Cells(Make make, const cells::Rule& r, const cells::Model& m, int u, const std::int32_t* at)
        : grids(make()), rule(r), model(m), unit(u), places(at), index(m.R), code(grids.columns()), wide(m.C),
          down(std::min(m.C, cells::kept)) {}

    // The cells of a row; false when one lies outside the tables.
    bool find(const double* x) {
        grids.find(1, x, code.data(), index.data());
        return cells::inside(index.size(), index.data(), model.size);
    }

    // The unit of the target is not known before one that is not 0.
    bool open(std::int64_t) const override {
        return !rule.regression || unit != 0 || model.target[1] != 0.0 || model.target[2] != 0.0;
    }

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        const std::size_t C = model.C;
        if (!find(row.wide)) return false;
        double y = row.y;
        if (journal) {
            journal->keep(model.bias, 2 * C);
            journal->keep(model.target, 3);
            journal->keep(model.use, model.R);
            journal->keep_rows(model.tables, 2 * model.width, model.R, index.data());
            y = rule.regression ? std::ldexp(y, -unit) : places ? double(places[std::size_t(y)]) : y;
            ++this->t;
        }
        cells::pass(1, index.data(), journal ? &y : nullptr, nullptr, rule, model, wide.data(), down.data());
        if (!places) f[0] = std::ldexp(wide[0], unit);  // in the units of the target
        for (std::size_t c = 0; places && c < C; ++c) f[c] = wide[std::size_t(places[c])];
        return !journal || (all_finite(C, wide.data()) && all_finite(2 * C, model.bias) && all_finite(3, model.target));
    }
};

// Grids over few columns with edges at quantiles, and the sample of rows from which they are drawn again.
template <class T>
struct ColumnCells : Cells<T, cells::ByLevels> {
    using Base = Cells<T, cells::ByLevels>;
    double *sample_rows, *sample_down;  // (S, d), (S, sums of the derivatives)
    std::int64_t S, last;               // places of the sample; it is drawn from so many last rows
    std::uint64_t seed, slot;           // of the places drawn
    std::int64_t first, period;         // rows before the grids are looked at: first, doubled again and again, then every `period`
    using Base::Base;

    bool open(std::int64_t n) const override {
        std::int64_t look = first;
        if (this->t >= period) look = (this->t / period + 1) * period;
        else
            while (look <= this->t) look *= 2;
        return this->t + n < look && Base::open(n);
    }

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        const std::int64_t number = this->t;
        if (!Base::pass(row, f, journal)) return false;
        if (!journal) return true;
        std::int64_t place = number;
        if (number >= S) place = std::int64_t(uniform(seed, std::uint64_t(number), slot) * double(std::min(number + 1, last)));
        if (place >= S) return true;
        const std::size_t d = this->grids.columns(), few = this->down.size();
        double *x = sample_rows + place * d, *v = sample_down + place * few;
        journal->keep(x, d);
        journal->keep(v, few);
        std::copy_n(row.wide, d, x);
        std::copy_n(this->down.data(), few, v);
        return true;
    }
};

// ---- Explicit features ---------------------------------------------------------------------------------------------------------

// Fourier features, or the row itself where there are no frequencies.
template <class T>
struct Features {
    std::size_t d, D;  // columns, frequencies
    const T* W;        // (d, D), or null
    std::vector<T> p, z;
    Features(std::size_t columns, std::size_t frequencies, const T* w)
        : d(columns), D(frequencies), W(w), p(frequencies), z(2 * frequencies) {}
    std::size_t size() const { return W ? 2 * D : d; }
    const T* operator()(const T* x) {
        if (!W) return x;
        fourier_row<T>(d, D, x, W, T(1.0 / std::sqrt(double(D))), p.data(), z.data());
        return z.data();
    }
};

template <class T>
struct Linear : Learner<T> {
    Features<T> features;
    LinearModel<T> model;
    double* faded;          // (C,) factors of the squared gradients, or null
    std::size_t C, memory;  // outputs, numbers that the update remembers
    bool unit;
    const Spec& spec;
    std::vector<double> scratch;
    Linear(Features<T> map, const LinearModel<T>& m, double* factors, std::size_t outputs, std::size_t remembered, bool u, const Spec& s)
        : features(std::move(map)), model(m), faded(factors), C(outputs), memory(remembered), unit(u), spec(s),
          scratch(RowRoom::size * outputs) {}

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        const std::size_t P = features.size();
        if (journal) keep(*journal, P);
        this->t = linear_pass<T>(1, P, int(C), features(row.x), &row.y, journal ? row.weight : &unlearned, model, this->t, *spec.loss,
                                 *spec.update, unit, f, scratch.data());
        return !journal || (model.finite(C * P) && all_finite(C, f) && all_finite(memory, model.memory));
    }

    void keep(Journal& journal, std::size_t P) {
        for (T* weights : {model.W, model.G, model.mean}) journal.keep(weights, C * P);
        journal.keep(model.scale, C);
        journal.keep(model.memory, memory);
        journal.keep(model.center, 2);
        journal.keep(faded, C);
        for (std::size_t c = 0; c < C && faded; ++c) {  // sparse rows may have left them; this row has all columns
            if (faded[c] != 1.0) scale(P, T(faded[c]), model.G + c * P);
            faded[c] = 1.0;
        }
    }
};

// ---- Features whose widths are learned ---------------------------------------------------------------------------------------

template <class T>
struct LearnedWidths : Learner<T> {
    std::size_t d, D, C, memory;
    RrfModel<T> model;
    Guarded<T> theta;
    const Spec& spec;
    RrfScratch<T> scratch;
    DiagonalSpectrum<T> spectrum;

    LearnedWidths(std::size_t columns, std::size_t frequencies, std::size_t k, std::size_t remembered, const RrfModel<T>& m,
                  const Guarded<T>& p, const T* E, const Spec& s)
        : d(columns), D(frequencies), C(k), memory(remembered), model(m), theta(p), spec(s), scratch(d, D, C, d, 0),
          spectrum{d, D, 1, false, E, scratch.v, scratch.h} {}

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        if (journal) {
            for (T* weights : {model.W, model.G}) journal->keep(weights, 2 * C * D);
            for (T* widths : {theta.theta, theta.H}) journal->keep(widths, d);
            journal->keep(model.memory, memory);
            journal->keep(model.center, 2);
        }
        this->t = rrf_pass<T>(D, int(C), Dense<T>{1, d, row.x}, &row.y, journal ? nullptr : &unlearned, model, theta, spectrum, this->t,
                              *spec.loss, *spec.update, f, scratch);
        return !journal || (all_finite(2 * C * D, model.W) && all_finite(2 * C * D, model.G) && all_finite(d, theta.theta) &&
                            all_finite(d, theta.H) && all_finite(C, f) && all_finite(memory, model.memory));
    }
};

// ---- The last rows -----------------------------------------------------------------------------------------------------------

template <class T>
struct Window : Learner<T> {
    window::Rule rule;
    window::Model model;
    Window(const window::Rule& r, const window::Model& m) : rule(r), model(m) {}

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        const std::size_t place = std::size_t(model.numbers[0]) % model.W;
        if (journal) {
            journal->keep_strided(model.rows + place, model.d, model.W);
            journal->keep(model.value + place, 1);
            journal->keep(model.weight + place, 1);
            journal->keep(model.numbers, 3);
            ++this->t;
        }
        const double y = rule.kind == 1 ? double(row.y > 0) : row.y;
        window::pass(1, row.wide, journal ? &y : nullptr, nullptr, rule, model, f);
        return !journal || all_finite(model.C, f);
    }
};

// ---- Kernel functions in a learned metric ------------------------------------------------------------------------------------

template <class T, class K>
struct MetricWindow : Learner<T> {
    metric::Model<K> model;
    metric::Scratch<K> work;
    std::size_t W;                 // room for rows
    double *rows, *value, *kept;   // (W, d), (W), (W): the last rows, their targets and weights
    const std::int64_t* stop;      // rows after which a solution is begun or takes effect, by the long path
    MetricWindow(const metric::Model<K>& m, std::size_t room, double* x, double* y, double* weight, const std::int64_t* next)
        : model(m), work(m, 1), W(room), rows(x), value(y), kept(weight), stop(next) {}

    bool open(std::int64_t n) const override { return this->t + n < *stop; }

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        const std::size_t place = std::size_t(this->t) % W;
        const double y = model.labels && model.C == 1 ? double(row.y > 0) : row.y;
        if (journal) journal->keep(model.follow, metric::FOLLOWED);
        metric::pass(model, 1, row.wide, journal ? &y : nullptr, nullptr, work, f);
        if (!journal) return true;
        journal->keep(rows + place * model.d, model.d);
        journal->keep(value + place, 1);
        journal->keep(kept + place, 1);
        std::copy_n(row.wide, model.d, rows + place * model.d);
        value[place] = y;
        kept[place] = 1.0;
        ++this->t;
        return all_finite(model.C, f) && all_finite(metric::FOLLOWED, model.follow);
    }
};

// ---- A function that was learned before ---------------------------------------------------------------------------------------

template <class T>
struct Function : Learner<T> {
    using Scores = std::function<bool(std::size_t n, const Row<T>* rows, double* f)>;  // f (n, C), and whether there are any
    Scores scores;
    explicit Function(Scores of_rows) : scores(std::move(of_rows)) {}

    bool pass(const Row<T>& row, double* f, Journal*) override { return scores(1, &row, f); }
    bool score(std::size_t n, const Row<T>* rows, std::size_t, double* f) override { return scores(n, rows, f); }
};

// ---- Least squares -----------------------------------------------------------------------------------------------------------

// Rows in the window need not be kept: those that do not count as waiting are not there.
template <class T>
struct LeastSquares : Learner<T> {
    Features<T> features;
    bool intercept, labels;  // whether a constant comes first; whether targets are -1 and 1, one against the rest
    second::Head head;
    second::Statistics sums;
    double ridge;
    const Blas& blas;
    std::vector<double> z, y;
    second::Room room;
    LeastSquares(Features<T> map, bool constant, bool coded, const second::Head& h, const second::Statistics& s, double lam,
                 const Blas& products)
        : features(std::move(map)), intercept(constant), labels(coded), head(h), sums(s), ridge(lam), blas(products), z(h.features),
          y(h.k) {}

    void map(const Row<T>& row, double* to) {
        const T* from = features(row.x);
        if (intercept) to[0] = 1.0;
        for (std::size_t i = 0; i < features.size(); ++i) to[i + intercept] = double(from[i]);
    }

    bool pass(const Row<T>& row, double* f, Journal* journal) override {
        if (!journal) return score(1, &row, head.k, f);
        std::size_t j = std::size_t(this->waiting), k = head.k;
        map(row, z.data());
        for (std::size_t o = 0; o < k; ++o) y[o] = !labels || k == 1 ? row.y : double(o) == row.y ? 1.0 : -1.0;
        if (j + 1 == head.m) keep(*journal);
        sums.mass = this->mass;
        double s;
        const bool fine = second::run(blas, head, sums, ridge, j, 1, z.data(), y.data(), nullptr, f, &s, room);
        ++this->t;
        this->waiting = std::int64_t(j);
        this->mass = sums.mass;
        return fine;
    }

    // What changes when the window is full.
    void keep(Journal& journal) {
        const std::size_t n = head.features, r = head.r, k = head.k;
        journal.keep(sums.gram, n * n);
        journal.keep(sums.b, k * n);
        journal.keep(sums.yy, k);
        journal.keep(sums.zsum, n);
        journal.keep(head.R, r * r);
        journal.keep(head.D, second::panels(r) * second::PANEL * second::PANEL);
        journal.keep(head.q, k * r);
    }

    bool score(std::size_t n, const Row<T>* rows, std::size_t, double* f) override {
        std::vector<double> Z(n * head.features), s(n);
        for (std::size_t i = 0; i < n; ++i) map(rows[i], Z.data() + i * head.features);
        second::score_block(head, std::size_t(this->waiting), n, Z.data(), f, s.data(), room.work);
        return true;
    }
};

}  // namespace ks::rows
