// Learners of single rows, bound to the arrays of a state.
#pragma once

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include "bind/rows.hpp"
#include "passes/row_learners.hpp"

namespace ks::rows {

// Values that some dicts had when pointers were taken, held as long as the pointers are in use.
class PinnedArrays {
    struct Entry {
        nb::dict where;
        nb::object name, value;  // which is null where there is none
    };
    std::vector<Entry> entries_;
    std::vector<std::shared_ptr<void>> kept_;

  public:
    void add(nb::dict where, nb::object name) {
        PyObject* key = name.release().ptr();
        if (PyUnicode_CheckExact(key)) PyUnicode_InternInPlace(&key);
        entries_.push_back({where, nb::steal(key), nb::borrow(PyDict_GetItem(where.ptr(), key))});
    }
    // Arrays that are in no dict.
    template <class... A> void keep(const A&... arrays) { (kept_.push_back(std::make_shared<A>(arrays)), ...); }
    bool same() const {
        for (const Entry& entry : entries_)
            if (PyDict_GetItem(entry.where.ptr(), entry.name.ptr()) != entry.value.ptr()) return false;
        return true;
    }
};

// A learner and the state that it learns into.
template <class T>
struct BoundLearner {
    nb::dict state;
    PinnedArrays held;
    std::size_t d, C;
    std::unique_ptr<Learner<T>> learner;
    nb::object head;  // of least squares: what has the number of waiting rows too

    // `others` (dict, name): what must stay the same besides the arrays.
    BoundLearner(nb::dict where, nb::list others, std::size_t columns, std::size_t outputs) : state(where), d(columns), C(outputs) {
        for (nb::handle pair : others) held.add(nb::cast<nb::dict>(pair[0]), nb::borrow(pair[1]));
    }

    // The learner has pointers to these entries of the state.
    template <class... Names> void pin(Names... names) { (held.add(state, nb::str(names)), ...); }
    template <class N> N* numbers(const char* name, std::size_t size) {
        pin(name);
        return numbers_of<N>(state, name, size, true);
    }

    // The counts of the state; false when they contradict each other.
    bool begin() {
        learner->t = number<std::int64_t>(state, "t");
        if (!head.is_valid()) return true;
        learner->waiting = nb::cast<std::int64_t>(state["n_window"]);
        learner->mass = number<double>(state, "mass");
        return learner->waiting >= 0 && number<std::int64_t>(head, "n") == learner->waiting;
    }
    void settle() {
        set_number(state, "t", learner->t);
        if (!head.is_valid()) return;
        state["n_window"] = nb::int_(learner->waiting);
        set_number(state, "mass", learner->mass);
        set_number(head, "n", learner->waiting);
    }

    // A row X (1, d) with its target and weight; F (1, C): the scores before it. False, and nothing changes, when the state has other
    // arrays by now.
    bool learn(Matrix<const T> X, Vector<const double> y, Maybe<Vector<const double>> weight, Matrix<double> F) {
        if (!held.same() || !begin()) return false;
        require(fits(X, 1, d), "one row of the learner's width");
        require(fits(y, 1) && fits(weight, 1), "y and weight need one entry per row of Z");
        require(fits(F, 1, C), "scores must be (rows, outputs)");
        if (C > 1) require_codes(1, C, y.data(), data_or_null(weight));
        Journal none;
        none.keeps = false;  // a call of `learn` that fails is undone as a whole
        require_finite(learner->pass({X.data(), nullptr, y.data()[0], data_or_null(weight)}, F.data(), &none));
        settle();
        return true;
    }

    // Scores F (n, C) of rows X (n, d), whose bits do not depend on the other rows; nothing changes. False where it cannot be done here.
    bool score(Matrix<const T> X, Matrix<double> F) {
        constexpr std::size_t AT_ONCE = 64;  // rows whose features stay in the cache
        const std::size_t n = X.shape(0);
        require(fits(X, n, d) && fits(F, n, C), "rows do not fit");
        if (!held.same() || !begin()) return false;
        nb::gil_scoped_release release;
        const std::vector<double> wide(X.data(), X.data() + n * d);
        std::vector<Row<T>> rows;
        for (std::size_t i = 0; i < n; ++i) rows.push_back({X.data() + i * d, wide.data() + i * d, 0.0});
        for (std::size_t i = 0; i < n; i += AT_ONCE)
            if (!learner->score(std::min(AT_ONCE, n - i), rows.data() + i, C, F.data() + i * C)) return false;
        return true;
    }
};

template <class T> using LearnerPtr = std::unique_ptr<BoundLearner<T>>;

template <class T>
LearnerPtr<T> begin(nb::dict state, nb::list others) {
    return std::make_unique<BoundLearner<T>>(state, others, nb::cast<std::size_t>(state["n_features"]), nb::cast<std::size_t>(state["n_outputs"]));
}

// W (d, D): frequencies of Fourier features; none for the columns themselves.
template <class T>
Features<T> features_of(BoundLearner<T>& made, const Maybe<Matrix<const T>>& W) {
    require(!W || W->shape(0) == made.d, "the frequencies do not fit the columns");
    if (W) made.held.keep(*W);
    return Features<T>(made.d, W ? W->shape(1) : 0, data_or_null(W));
}

// The name of what exists for both types of numbers.
template <class T> std::string named(const char* stem) { return std::string(stem) + (sizeof(T) == 4 ? "32" : "64"); }

}  // namespace ks::rows
