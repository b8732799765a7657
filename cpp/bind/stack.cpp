// Bindings of the combination of learners: of forecasts that were made, and of few rows through all of a stack.
#include <algorithm>
#include <utility>

#include "bind/group.hpp"
#include "bind/row_learner.hpp"
#include "passes/row_stack.hpp"

using namespace ks;
using namespace ks::stack;

namespace {

// The combination of N members that forecast numbers, or labels with C outputs, by the entries of a state; find(name, size) gives the
// numbers of one.
template <class Find>
std::variant<Labels, Numbers> combination_by(nb::dict state, bool regression, std::size_t N, std::size_t C, bool recent, Find find) {
    constexpr std::size_t K = LAST + 1;
    const std::size_t M = N + 1, memories = entry<Vector<const double>>(state, "stack_logs").size();
    require(memories == G || memories == G + 1, "there must be a logarithm for each memory");
    require(!regression || C == 1, "a combination of numbers has one output");
    if (regression)
        return Numbers{N,
                       NumberLevel(N, find("stack_A", G * M * M), find("stack_b", G * M), find("stack_w", G * M),
                                   find("stack_logs", memories), find("stack_loss", N + G - memories), find("stack_numbers", 6), memories),
                       NumberLevel(LAST, find("recent_A", G * K * K), find("recent_b", G * K), find("recent_w", G * K),
                                   find("recent_logs", G), find("recent_loss", LAST), find("recent_numbers", 6)),
                       find("recent_kept", LAST), find("level_logs", 2), find("member_errors", 3 * N), recent};
    return Labels{N, C, LabelLevel(M, C, find("stack_A", G * M * M), find("stack_w", G * M), find("stack_logs", memories), memories),
                  LabelLevel(RECENT, C, find("recent_A", G * RECENT * RECENT), find("recent_w", G * RECENT), find("recent_logs", G)),
                  find("recent_kept", KEPT * C), Earned(find("level_logs", 2), 2), find("member_errors", 3 * N), find("label_counts", 2),
                  recent};
}

// spec: (regression, recent); y null learns nothing. notes: (rows that counted before, rows between two notes, weights (notes, N)).
void bound_stack_pass(nb::dict state, Cube<const double> F, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight,
                      nb::tuple spec, Matrix<double> scores, nb::object notes) {
    const std::size_t N = F.shape(0), n = F.shape(1), C = F.shape(2);
    const bool regression = nb::cast<bool>(spec[0]), recent = nb::cast<bool>(spec[1]), learns = y.has_value();
    require(N > 0 && fits(scores, n, C), "scores must be (rows, outputs)");
    require(fits(y, n) && fits(weight, n), "y and weight need one entry per row");
    const auto numbers = [&](const char* name, std::size_t size) { return numbers_of<double>(state, name, size, learns); };
    Notes asked;
    if (!notes.is_none()) {
        const auto out = nb::cast<Matrix<double>>(notes[2]);
        asked = {nb::cast<std::int64_t>(notes[0]), nb::cast<std::int64_t>(notes[1]), out.data()};
        require(learns && asked.t >= 0 && asked.stride > 0 && out.shape(1) == N, "notes are of learning, a weight for each member");
        std::int64_t rows = std::int64_t(n);
        for (std::size_t i = 0; weight && i < n; ++i) rows -= weight->data()[i] == 0.0;
        require(std::int64_t(out.shape(0)) == (asked.t + rows) / asked.stride - asked.t / asked.stride, "there must be room for all notes");
    }
    auto combination = combination_by(state, regression, N, C, recent, numbers);
    if (y && C > 1) require_codes(n, C, y->data());
    std::visit([&](auto& all) {
        nb::gil_scoped_release release;
        all.pass(n, F.data(), data_or_null(y), data_or_null(weight), scores.data(), asked);
    }, combination);
    if (learns) require_finite(scores.size(), scores.data());
}

// ---- Few rows through all of it: learners that hold pointers to their arrays, in one call

template <class T>
class BoundStack {
    nb::dict state_;
    rows::PinnedArrays held_;
    std::vector<nb::object> objects_;
    std::vector<rows::BoundLearner<T>*> members_;
    rows::Stack<T> stack_;
    std::int64_t places_ = 0;  // of the history
    bool ready_ = false;

    template <class N> N* numbers(const char* name, std::size_t size) { return numbers<N>(state_, name, size); }
    template <class N> N* numbers(nb::dict part, const char* name, std::size_t size) {
        N* found = numbers_of<N>(part, name, size, true);
        held_.add(part, nb::str(name));
        return found;
    }

    // A state inside the state, which must stay the one it is.
    nb::dict inside(nb::dict whole, const char* name) {
        require(whole.contains(name), "the state lacks a part");
        held_.add(whole, nb::str(name));
        return nb::cast<nb::dict>(whole[name]);
    }

    // Numbers that every row changes.
    double* changing(nb::dict part, const char* name, std::size_t size) {
        double* found = numbers<double>(part, name, size);
        stack_.changing.push_back({found, size});
        return found;
    }

    void take_combination(bool regression) {
        nb::dict own = inside(state_, "o0");
        const auto find = [&](const char* name, std::size_t size) { return changing(own, name, size); };
        stack_.combination.emplace(combination_by(own, regression, members_.size(), stack_.C, true, find));
    }

    // steps: of the trackers of labels; numbers have none.
    void take_tracker(bool regression, Vector<const double> levels, Maybe<Vector<const double>> steps) {
        const std::size_t L = levels.size();
        held_.keep(levels);
        nb::dict own = inside(inside(state_, "intervals"), "o0");
        const auto number = [&](const char* name, std::size_t size) { return changing(own, name, size); };
        if (regression) {
            namespace spread = ks::quantiles;
            const std::size_t d = stack_.d;
            stack_.spread.emplace(
                spread::Model{L, d, levels.data(), number("size", 2), numbers<double>(own, "recent", 2 * spread::RECENT),
                              number("knots", spread::KNOTS), number("spread", spread::KNOTS), number("columns", d * spread::CELLS),
                              number("quantiles", L * spread::KNOTS)});
            stack_.seen = changing(state_, "target_range", target_rows);
            stack_.last = numbers<double>("target_last", target_block);
            stack_.mean = numbers<double>("target_mean", 1);
            stack_.unit = numbers<double>("target_unit", 1);
            return;
        }
        require(bool(steps), "labels need steps");
        const std::size_t E = steps->size();
        held_.keep(*steps);
        stack_.tracker = ErrorTracker{L, E, levels.data(), steps->data(), number("size", 2), number("quantiles", L * E),
                                      number("weights", L * E), number("factors", L)};
    }

    bool same() const {
        if (!held_.same()) return false;
        for (const rows::BoundLearner<T>* member : members_)
            if (!member->held.same()) return false;
        return true;
    }

    // Work on n rows while other threads may use the interpreter; for one row it is not worth waiting for one's turn afterwards.
    template <class Work> static bool beside(std::size_t n, Work work) {
        if (n == 1) return work();
        nb::gil_scoped_release release;
        return work();
    }

  public:
    BoundStack(nb::dict state, nb::list members, bool regression, double squash, Vector<const double> levels,
          Maybe<Vector<const double>> steps)
        : state_(state) {
        stack_.d = nb::cast<std::size_t>(state["n_features"]);
        stack_.C = nb::cast<std::size_t>(state["n_outputs"]);
        stack_.squash = squash;
        for (nb::handle item : members) {
            rows::BoundLearner<T>* member = nb::cast<rows::BoundLearner<T>*>(item);
            require(member->d == stack_.d && member->C == stack_.C, "the learners differ in their rows or outputs");
            objects_.push_back(nb::borrow(item));
            members_.push_back(member);
            stack_.learners.push_back(member->learner.get());
        }
        require(!members_.empty(), "there is nothing to combine");
        const std::size_t d = stack_.d;
        double* usual = find(state, "x_usual").is_valid() ? numbers<double>("x_usual", 7 * d) : nullptr;
        stack_.columns = columns_by(d, usual, [&](const char* name, std::size_t size) { return numbers<double>(name, size); });
        if (usual) {
            const auto recent = entry<Matrix<const double>>(state, "x_recent");
            require(recent.shape(0) > 0 && recent.shape(1) == d, "the rows kept do not fit the columns");
            stack_.places = recent.shape(0);
            stack_.last_rows = numbers<double>("x_recent", recent.size());
            stack_.usual = corrupt::Usual{d, usual};
        }
        const auto history = entry<Matrix<const float>>(state, "history");
        require(history.shape(1) == members_.size(), "the history does not fit the learners");
        places_ = std::int64_t(history.shape(0));
        stack_.history = numbers<float>("history", history.size());
        nb::dict reasons = inside(state, "reasons"), watch = inside(state, "watch");
        const auto kept = entry<Matrix<const T>>(reasons, "X");
        require(kept.shape(0) > 0 && kept.shape(1) == d, "the rows kept do not fit the columns");
        stack_.n_kept = std::int64_t(kept.shape(0));
        stack_.kept = numbers<T>(reasons, "X", kept.size());
        stack_.kept_targets = regression ? numbers<double>(reasons, "y", kept.shape(0)) : nullptr;
        const auto recent = entry<Matrix<const T>>(watch, "ring_rows");
        require(recent.shape(0) > 0 && recent.shape(1) == d, "the rows watched do not fit the columns");
        stack_.n_recent = std::int64_t(recent.shape(0));
        stack_.recent_rows = numbers<T>(watch, "ring_rows", recent.size());
        stack_.recent_targets = numbers<double>(watch, "ring_targets", recent.shape(0));
        stack_.recent_weights = numbers<double>(watch, "ring_weights", recent.shape(0));
        stack_.n_watched = std::int64_t(entry<Vector<const double>>(watch, "errors").size());
        require(stack_.n_watched > 0, "there must be errors to watch");
        stack_.watched = numbers<double>(watch, "errors", std::size_t(stack_.n_watched));
        take_combination(regression);
        take_tracker(regression, levels, steps);
        stack_.prepare();
    }

    // Takes the counts of the states, before each call of learn or score; false when the states hold other arrays by now.
    bool ready() {
        ready_ = same() && std::all_of(members_.begin(), members_.end(), [](auto* member) { return member->begin(); });
        if (ready_) stack_.count = number<double>(state_, "x_count");
        return ready_;
    }

    // Scores (n, C) before each row, which is then learned; false, and nothing changes, where the passes must do it.
    bool learn(Matrix<const T> X, Vector<const double> y, bool recent, Matrix<double> scores) {
        const std::size_t n = X.shape(0), C = stack_.C;
        require(X.shape(1) == stack_.d && fits(y, n) && fits(scores, n, C), "rows do not fit");
        require(std::exchange(ready_, false), "ready comes first");
        const auto t = number<std::int64_t>(state_, "t"), stride = number<std::int64_t>(state_, "history_stride");
        if (stride < 1 || (t + std::int64_t(n)) / stride > places_) return false;  // the history is full
        for (const rows::BoundLearner<T>* member : members_)
            if (!member->learner->open(std::int64_t(n))) return false;
        for (std::size_t i = 0; i < n && C > 1; ++i)
            if (!(y.data()[i] >= 0 && y.data()[i] < double(C))) return false;
        if (!beside(n, [&] { return stack_.learn(n, X.data(), y.data(), recent, t, stride, scores.data()); })) return false;
        for (rows::BoundLearner<T>* member : members_) member->settle();
        set_number(state_, "x_count", stack_.count);
        set_number(state_, "t", t + std::int64_t(n));
        set_number(state_, "recent_on", int(recent));
        return true;
    }

    // Scores (n, C) of rows, any of which may come next.
    bool score(Matrix<const T> X, bool recent, Matrix<double> scores) {
        const std::size_t n = X.shape(0);
        require(X.shape(1) == stack_.d && fits(scores, n, stack_.C), "rows do not fit");
        require(std::exchange(ready_, false), "ready comes first");
        return beside(n, [&] { return stack_.score(n, X.data(), recent, scores.data()); });
    }
};

// A function of rows X (n, d) that gives scores (n, C); its state is only read.
template <class T>
rows::LearnerPtr<T> row_function(nb::dict state, nb::list others, std::size_t d, std::size_t C, nb::callable function) {
    auto made = std::make_unique<rows::BoundLearner<T>>(state, others, d, C);
    made->learner = std::make_unique<rows::Function<T>>([=](std::size_t n, const rows::Row<T>* rows, double* f) {
        nb::gil_scoped_acquire hold;
        std::vector<T> X(n * d);
        for (std::size_t i = 0; i < n; ++i) std::copy_n(rows[i].x, d, X.data() + i * d);
        const auto scores = nb::cast<Matrix<const double>>(function(nb::ndarray<nb::numpy, T>(X.data(), {n, d}, nb::handle())));
        require(fits(scores, n, C), "scores must be (rows, outputs)");
        std::copy_n(scores.data(), n * C, f);
        return true;
    });
    return made;
}

const Group typed([](nb::module_& m, auto type) {
    using T = decltype(type);
    m.def(rows::named<T>("row_function").c_str(), &row_function<T>);
    nb::class_<rows::BoundLearner<T>>(m, rows::named<T>("RowLearner").c_str(), "A learner of single rows.")
        .def("learn", &rows::BoundLearner<T>::learn, plain, plain, maybe, plain)
        .def("score", &rows::BoundLearner<T>::score, plain, plain);
    nb::class_<BoundStack<T>>(m, rows::named<T>("RowStack").c_str(), "All learners of a stack, and what combines them.")
        .def(nb::init<nb::dict, nb::list, bool, double, Vector<const double>, Maybe<Vector<const double>>>(), value, value, value, value,
             plain, maybe)
        .def("ready", &BoundStack<T>::ready)
        .def("learn", &BoundStack<T>::learn, plain, plain, value, plain)
        .def("score", &BoundStack<T>::score, plain, value, plain);
});

const Group group([](nb::module_& m) {
    m.def("stack_pass", &bound_stack_pass, value, plain, maybe, maybe, value, plain, nb::arg().none());
});

}  // namespace
