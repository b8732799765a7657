// Bindings of learning row by row: learners that hold pointers to their arrays, and the whole that combines them. A call has one
// crossing from Python for all of them.
#include "base/arrays.hpp"
#include "base/states.hpp"
#include "bind/metric.hpp"
#include "passes/row_learners.hpp"
#include "passes/row_stack.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>

#include <tuple>

using namespace ks;
using namespace ks::rows;

namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Values that some dicts had when pointers were taken, held as long as the pointers are in use.
class PinnedArrays {
    struct Entry {
        nb::dict where;
        nb::object name, value;
    };
    std::vector<Entry> entries_;
    std::vector<std::shared_ptr<void>> kept_;

  public:
    void add(nb::dict where, nb::object name) {
        nb::object value = where[name];
        PyObject* key = name.release().ptr();
        if (PyUnicode_CheckExact(key)) PyUnicode_InternInPlace(&key);
        entries_.push_back({where, nb::steal(key), value});
    }
    // Arrays that are in no dict.
    template <class... A> void keep(const A&... arrays) { (kept_.push_back(std::make_shared<A>(arrays)), ...); }
    bool same() const {
        for (const Entry& entry : entries_)
            if (PyDict_GetItem(entry.where.ptr(), entry.name.ptr()) != entry.value.ptr()) return false;
        return true;
    }
};

// A count in a state.
struct Count {
    nb::dict state;
    nb::object name;
    Count(nb::dict where, const char* key) : state(where) {
        PyObject* text = PyUnicode_InternFromString(key);
        if (!text) throw nb::python_error();
        name = nb::steal(text);
    }
    std::int64_t read() const { return nb::cast<std::int64_t>(state[name]); }
    void write(std::int64_t value) const { state[name] = nb::int_(value); }
};

// A learner and the state that it learns into.
template <class T>
struct BoundLearner {
    nb::dict state;
    PinnedArrays held;
    Count t;
    std::size_t d = 0, C = 1;
    std::unique_ptr<Learner<T>> learner;
    nb::object head;  // of least squares: what has the number of waiting rows too
    explicit BoundLearner(nb::dict where) : state(where), t(where, "t") {}

    template <class N> N* numbers(const char* name, std::size_t size, bool writes = true) {
        N* found = numbers_of<N>(state, name, size, writes);
        held.add(state, nb::str(name));
        return found;
    }
    template <class N> N* maybe_numbers(const char* name, std::size_t size) {
        return state.contains(name) ? numbers<N>(name, size) : nullptr;
    }
    // The counts of the state; false when they contradict each other.
    bool begin() {
        learner->t = t.read();
        if (!head.is_valid()) return true;
        learner->waiting = nb::cast<std::int64_t>(state["n_window"]);
        learner->mass = nb::cast<double>(state["mass"]);
        return learner->waiting >= 0 && nb::cast<std::int64_t>(head["n"]) == learner->waiting;
    }
    void settle() {
        t.write(learner->t);
        if (!head.is_valid()) return;
        const nb::int_ waiting(learner->waiting);
        state["n_window"] = waiting;
        state["mass"] = nb::float_(learner->mass);
        head["n"] = waiting;
    }
    // `others` (dict, name): what must stay the same besides the arrays.
    void watch(nb::list others) {
        for (nb::handle pair : others) held.add(nb::cast<nb::dict>(pair[0]), nb::borrow(pair[1]));
    }
};

template <class T> using LearnerPtr = std::unique_ptr<BoundLearner<T>>;

template <class T>
LearnerPtr<T> begin(nb::dict state, nb::list others) {
    auto made = std::make_unique<BoundLearner<T>>(state);
    made->watch(others);
    made->d = nb::cast<std::size_t>(state["n_features"]);
    made->C = nb::cast<std::size_t>(state["n_outputs"]);
    return made;
}

template <class T>
cells::Model tables_of(BoundLearner<T>& made, std::size_t R, std::size_t& size) {
    const auto tables = entry<Cube<const float>>(made.state, "tables");
    const std::size_t width = tables.shape(2), C = made.C;
    size = tables.shape(0);
    require(tables.shape(1) == 2 && (C == 1 ? width == 1 : width >= C), "tables do not fit the outputs");
    return {R, C, width, made.template numbers<float>("tables", size * 2 * width), made.template numbers<double>("bias", 2 * C),
            made.template numbers<double>("target", 3), made.template numbers<double>("use", R)};
}

// The columns of the tables that several outputs have; none of a single one.
template <class T>
const std::int32_t* places_of(BoundLearner<T>& made) {
    const std::int32_t* places = made.template numbers<std::int32_t>("places", made.C, false);
    for (std::size_t c = 0; c < made.C; ++c)
        require(places[c] >= 0 && std::size_t(places[c]) < made.C, "an output has a column that there is not");
    return made.C > 1 ? places : nullptr;
}

cells::Rule rule_of(nb::tuple spec) { return {nb::cast<bool>(spec[0]), nb::cast<double>(spec[1]), nb::cast<double>(spec[2])}; }

// grids: columns (R, K), offset, density (R, K), salt (R), bits
using Hashing = std::tuple<Matrix<const std::int32_t>, Matrix<const double>, Matrix<const double>, Vector<const std::uint64_t>, int>;

template <class T>
LearnerPtr<T> hashed_cells(nb::dict state, nb::list others, nb::tuple spec, const Hashing& grids) {
    const auto& [columns, offset, density, salt, bits] = grids;
    auto made = begin<T>(state, others);
    const std::size_t R = columns.shape(0), K = columns.shape(1);
    require(offset.size() == R * K && density.size() == R * K && salt.size() == R && bits >= 1 && bits <= 28, "the grids' arrays differ");
    for (std::size_t i = 0; i < R * K; ++i)
        require(columns.data()[i] >= -1 && columns.data()[i] < std::int64_t(made->d), "a grid has a column that there is not");
    std::size_t size;
    const cells::Model model = tables_of(*made, R, size);
    auto learner = std::make_unique<HashedCells<T>>(rule_of(spec), model, size, nb::cast<int>(state["unit"]),
                                                    places_of(*made));
    made->held.add(state, nb::str("unit"));
    made->held.keep(columns, offset, density, salt);
    learner->d = made->d, learner->K = K, learner->columns = columns.data(), learner->offset = offset.data();
    learner->density = density.data(), learner->salt = salt.data(), learner->bits = bits;
    made->learner = std::move(learner);
    return made;
}

// sample: (seed, slot, last rows that it is drawn from); looks: (first, period)
using Sample = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;

template <class T>
LearnerPtr<T> column_cells(nb::dict state, nb::list others, nb::tuple spec, Cube<const std::int32_t> maps, std::size_t cells, Sample sample,
                     std::pair<std::int64_t, std::int64_t> looks) {
    const auto [seed, slot, last] = sample;
    const auto [first, period] = looks;
    auto made = begin<T>(state, others);
    const auto levels = entry<Matrix<const double>>(state, "levels");
    const auto columns = entry<Matrix<const std::int32_t>>(state, "columns");
    const auto rows = entry<Matrix<const double>>(state, "sample_rows");
    const std::size_t d = made->d, L = levels.shape(1), R = columns.shape(0), K = columns.shape(1), S = rows.shape(0);
    require(levels.shape(0) == d && rows.shape(1) == d && first > 0 && period >= first, "levels do not fit the columns");
    require(maps.shape(0) == R && maps.shape(1) == K && maps.shape(2) == L + 1, "maps do not fit the grids");
    std::size_t size;
    const cells::Model model = tables_of(*made, R, size);
    auto learner = std::make_unique<ColumnCells<T>>(rule_of(spec), model, size, nb::cast<int>(state["unit"]),
                                                    places_of(*made));
    made->held.add(state, nb::str("unit"));
    made->held.keep(maps);
    learner->d = d, learner->L = L, learner->K = K, learner->cells_of_grid = cells;
    learner->levels = made->template numbers<double>("levels", d * L, false);
    learner->n_levels = made->template numbers<std::int32_t>("n_levels", d, false);
    learner->columns = made->template numbers<std::int32_t>("columns", R * K, false);
    for (std::size_t j = 0; j < d; ++j)
        require(learner->n_levels[j] >= 0 && std::size_t(learner->n_levels[j]) <= L, "more levels than there is room for");
    for (std::size_t i = 0; i < R * K; ++i)
        require(learner->columns[i] >= 0 && std::size_t(learner->columns[i]) < d, "a grid has a column that there is not");
    learner->maps = maps.data();
    learner->sample_rows = made->template numbers<double>("sample_rows", S * d);
    learner->sample_down = made->template numbers<double>("sample_down", S * learner->down.size());
    learner->S = std::int64_t(S), learner->last = last, learner->seed = seed, learner->slot = slot;
    learner->first = first, learner->period = period;
    made->learner = std::move(learner);
    return made;
}

// W (d, D): frequencies of Fourier features; none for the columns themselves.
template <class T>
Features<T> features_of(BoundLearner<T>& made, const Maybe<Matrix<const T>>& W) {
    require(!W || W->shape(0) == made.d, "the frequencies do not fit the columns");
    if (W) made.held.keep(*W);
    return Features<T>(made.d, W ? W->shape(1) : 0, data_or_null(W));
}

using Parts = std::tuple<std::string, std::vector<double>, std::string, std::vector<double>>;  // of loss and update

template <class T>
LearnerPtr<T> linear(nb::dict state, nb::list others, Maybe<Matrix<const T>> W, bool unit, bool average, const Parts& parts) {
    auto made = begin<T>(state, others);
    auto map = features_of(*made, W);
    auto loss = make_loss(std::get<0>(parts), std::get<1>(parts));
    auto update = make_update(std::get<2>(parts), std::get<3>(parts));
    const std::size_t C = made->C, P = map.size(), remembered = entry<Matrix<const double>>(state, "memory").size();
    require(remembered >= std::size_t(update->n_memory) * C, "memory does not fit the update");
    const LinearModel<T> model{made->template numbers<T>("w", C * P),
                               made->template numbers<double>("scale", C),
                               made->template maybe_numbers<T>("G", C * P),
                               average ? made->template numbers<T>("w_mean", C * P) : nullptr,
                               made->template numbers<double>("memory", remembered),
                               made->template maybe_numbers<double>("center", 2)};
    require(!update->diagonal || model.G, "a diagonal update needs G like w");
    double* faded = model.G ? made->template maybe_numbers<double>("G_scale", C) : nullptr;
    made->learner = std::make_unique<Linear<T>>(std::move(map), model, faded, C, remembered, unit, std::move(loss), std::move(update));
    return made;
}

template <class T>
LearnerPtr<T> learned_widths(nb::dict state, nb::list others, Matrix<const T> E, double eta, double guard, const Parts& parts) {
    auto made = begin<T>(state, others);
    auto loss = make_loss(std::get<0>(parts), std::get<1>(parts));
    auto update = make_update(std::get<2>(parts), std::get<3>(parts));
    const std::size_t d = made->d, C = made->C, D = E.shape(1), remembered = entry<Matrix<const double>>(state, "memory").size();
    require(E.shape(0) == d && update->diagonal && remembered >= std::size_t(update->n_memory) * C, "E or memory do not fit");
    const RrfModel<T> model{made->template numbers<T>("w", 2 * C * D),
                            made->template numbers<T>("G", 2 * C * D),
                            made->template numbers<double>("memory", remembered),
                            made->template maybe_numbers<double>("center", 2),
                            nullptr,
                            nullptr,
                            T(nb::cast<double>(state["inverse_length"])),
                            1};
    made->held.add(state, nb::str("inverse_length"));
    const Guarded<T> theta{made->template numbers<T>("theta", d), made->template numbers<T>("theta0", d, false),
                           made->template numbers<T>("H", d), nullptr, T(eta), T(guard)};
    made->held.keep(E);
    made->learner = std::make_unique<LearnedWidths<T>>(d, D, C, remembered, model, theta, E.data(), std::move(loss), std::move(update));
    return made;
}

template <class T>
LearnerPtr<T> window_of(nb::dict state, nb::list others, int kind, std::size_t neighbours) {
    auto made = begin<T>(state, others);
    const auto rows = entry<Matrix<const double>>(state, "window_rows");
    const std::size_t d = made->d, W = rows.shape(1), C = made->C;
    require(rows.shape(0) == d && W > 0 && neighbours > 0 && (kind == 2 || C == 1), "the rows do not fit the window");
    const window::Model model{d, W, C, made->template numbers<double>("window_rows", d * W),
                              made->template numbers<double>("window_value", W), made->template numbers<double>("window_weight", W),
                              made->template numbers<double>("window_numbers", 3)};
    require(model.numbers[0] >= 0 && model.numbers[0] < 9e15, "the window has learned an impossible number of rows");
    const double labels = kind == 0 ? 0.0 : kind == 1 ? 2.0 : double(C);
    const std::size_t seen = std::min(W, std::size_t(model.numbers[0]));
    for (std::size_t i = 0; i < seen && labels > 0; ++i)
        require(model.value[i] >= 0 && model.value[i] < labels, "class code out of range");
    made->learner = std::make_unique<Window<T>>(window::Rule{kind, neighbours}, model);
    return made;
}

template <class T>
LearnerPtr<T> metric_window(nb::dict state, nb::list others, const MetricFunctions& functions) {
    auto made = begin<T>(state, others);
    const auto rows = entry<Matrix<const double>>(state, "kept_rows");
    const std::size_t W = rows.shape(0);
    const metric::Model model = metric_model(functions, made->template numbers<double>("follow", metric::FOLLOWED));
    require(rows.shape(1) == made->d && model.d == made->d && model.C == made->C && W > 0, "the rows do not fit the window");
    std::apply([&](const auto&... arrays) { made->held.keep(arrays...); }, functions);
    made->held.add(state, nb::str("alpha"));  // another one, and the functions are others
    made->learner = std::make_unique<MetricWindow<T>>(model, W, made->template numbers<double>("kept_rows", W * made->d),
                                                      made->template numbers<double>("kept_value", W),
                                                      made->template numbers<double>("kept_weight", W));
    return made;
}

// The head as second_order_learn takes it.
template <class T>
LearnerPtr<T> least_squares(nb::dict state, nb::list others, Maybe<Matrix<const T>> W, bool intercept, bool labels, const Blas& blas,
                      nb::dict head) {
    const auto R = entry<Matrix<double>>(head, name::R), D = entry<Matrix<double>>(head, name::D), V = entry<Matrix<double>>(head, name::V);
    const auto M = entry<Matrix<double>>(head, name::M), tau = entry<Matrix<double>>(head, name::tau);
    const auto q = entry<Matrix<double>>(head, name::q);
    const auto kappa = entry<Vector<double>>(head, name::kappa);
    auto made = begin<T>(state, others);
    auto map = features_of(*made, W);
    const std::size_t n = map.size() + intercept, r = R.shape(0), m = V.shape(0), k = q.shape(0);
    require(r == second::padded(n) && R.shape(1) == r && V.shape(1) == r && q.shape(1) == r && k == made->C,
            "R, V and q differ in their number of features");
    require(D.shape(0) == second::panels(r) && D.shape(1) == second::PANEL * second::PANEL, "D does not fit R");
    require(M.shape(0) == m && M.shape(1) == m && kappa.shape(0) == m && tau.shape(0) == m && tau.shape(1) == k,
            "M, kappa and tau do not fit the window");
    made->held.keep(R, D, V, M, kappa, tau, q);
    const second::Head pointers{n, r, m, k, R.data(), D.data(), V.data(), M.data(), kappa.data(), tau.data(), q.data()};
    const auto number = [&](const char* name, std::size_t size) { return made->template numbers<double>(name, size); };
    const second::Statistics sums{number("gram", n * n), number("b", k * n), number("yy", k), number("zsum", n), 0.0,
                                  number("window", m * n), number("window_c", m), number("window_b", m * k)};
    const double ridge = number("ridge", 1)[0];
    made->head = head;
    made->learner = std::make_unique<LeastSquares<T>>(std::move(map), intercept, labels, pointers, R.data(), D.data(), q.data(), sums,
                                                      ridge, blas);
    return made;
}

// ---- The whole ---------------------------------------------------------------------------------------------------------------

enum Answer { DONE, LATER, STALE };

template <class T>
class BoundStack {
    nb::dict state_;
    PinnedArrays held_;
    Count t_, stride_, recent_on_;
    nb::object x_count_;
    std::vector<nb::object> objects_;
    std::vector<BoundLearner<T>*> members_;
    Stack<T> stack_;
    std::int64_t places_ = 0;  // of the history

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

    void take_combination(bool regression) {
        using namespace stack;
        const std::size_t N = members_.size(), M = N + 1, C = stack_.C;
        nb::dict own = inside(state_, "o0");
        const auto number = [&](const char* name, std::size_t size) {
            double* found = numbers<double>(own, name, size);
            stack_.changing.push_back({found, size});
            return found;
        };
        double *errors = number("member_errors", 3 * N), *finals = number("level_logs", 2);
        if (regression) {
            constexpr std::size_t K = LAST + 1;
            NumberLevel first(N, number("stack_A", G * M * M), number("stack_b", G * M), number("stack_w", G * M),
                              number("stack_logs", G), number("stack_loss", N), number("stack_numbers", 6));
            NumberLevel second(LAST, number("recent_A", G * K * K), number("recent_b", G * K), number("recent_w", G * K),
                               number("recent_logs", G), number("recent_loss", LAST), number("recent_numbers", 6));
            stack_.numbers = std::make_unique<Numbers>(
                Numbers{N, std::move(first), std::move(second), number("recent_kept", LAST), finals, errors, true});
            return;
        }
        LabelLevel first(M, C, number("stack_A", G * M * M), number("stack_w", G * M), number("stack_logs", G));
        LabelLevel second(RECENT, C, number("recent_A", G * RECENT * RECENT), number("recent_w", G * RECENT),
                          number("recent_logs", G));
        stack_.labels = std::make_unique<Labels>(
            Labels{N, C, std::move(first), std::move(second), number("recent_kept", KEPT * C), Earned<2>(finals), errors,
                   number("label_counts", 2), true});
    }

    // steps: of the trackers of labels; numbers have none.
    void take_tracker(Vector<const double> levels, Maybe<Vector<const double>> steps) {
        const std::size_t L = levels.size();
        held_.keep(levels);
        nb::dict own = inside(inside(state_, "intervals"), "o0");
        const auto number = [&](nb::dict part, const char* name, std::size_t size) {
            double* found = numbers<double>(part, name, size);
            stack_.changing.push_back({found, size});
            return found;
        };
        if (stack_.numbers) {
            using namespace ks::quantiles;
            const std::size_t d = stack_.d;
            stack_.spread = std::make_unique<Pass>(
                Model{L, d, levels.data(), number(own, "size", 2), numbers<double>(own, "recent", 2 * RECENT),
                      number(own, "knots", KNOTS), number(own, "spread", KNOTS), number(own, "columns", d * CELLS),
                      number(own, "quantiles", L * KNOTS)});
            stack_.seen = number(state_, "target_range", 5);
            return;
        }
        require(bool(steps), "labels need steps");
        const std::size_t E = steps->size();
        held_.keep(*steps);
        stack_.tracker = std::make_unique<Tracker>(Tracker{L, E, levels.data(), steps->data(), number(own, "size", 2),
                                                           number(own, "quantiles", L * E),
                                                           number(own, "weights", L * E), number(own, "factors", L),
                                                           std::vector<double>(L)});
    }

    bool same() const {
        if (!held_.same()) return false;
        for (const BoundLearner<T>* member : members_)
            if (!member->held.same()) return false;
        return true;
    }

    Answer begin() {
        if (!same()) return STALE;
        for (BoundLearner<T>* member : members_)
            if (!member->begin()) return STALE;
        stack_.count = nb::cast<double>(state_[x_count_]);
        return DONE;
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
        : state_(state), t_(state, "t"), stride_(state, "history_stride"), recent_on_(state, "recent_on"), x_count_(nb::str("x_count")) {
        stack_.d = nb::cast<std::size_t>(state["n_features"]);
        stack_.C = nb::cast<std::size_t>(state["n_outputs"]);
        stack_.squash = squash;
        require(!regression || stack_.C == 1, "row by row, numbers have one output");
        for (nb::handle item : members) {
            BoundLearner<T>* member = nb::cast<BoundLearner<T>*>(item);
            require(member->d == stack_.d && member->C == stack_.C, "the learners differ in their rows or outputs");
            objects_.push_back(nb::borrow(item));
            members_.push_back(member);
            stack_.learners.push_back(member->learner.get());
        }
        require(!members_.empty(), "there is nothing to combine");
        const std::size_t d = stack_.d;
        stack_.columns = {numbers<double>("x_mean", d), numbers<double>("x_m2", d), numbers<double>("x_low", d),
                          numbers<double>("x_high", d), numbers<double>("x_doubt", d)};
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
        const auto watched = entry<Matrix<const T>>(watch, "X");
        require(watched.shape(0) > 0 && watched.shape(1) == d, "the rows watched do not fit the columns");
        stack_.n_watched = std::int64_t(watched.shape(0)) * WATCHED_EVERY;
        stack_.watched_rows = numbers<T>(watch, "X", watched.size());
        stack_.watched = numbers<double>(watch, "errors", std::size_t(stack_.n_watched));
        take_combination(regression);
        take_tracker(levels, steps);
        stack_.prepare();
    }

    // Scores (n, C) before each row, which is then learned.
    int learn(Matrix<const T> X, Vector<const double> y, bool recent, Matrix<double> scores) {
        const std::size_t n = X.shape(0), C = stack_.C;
        require(X.shape(1) == stack_.d && y.shape(0) == n && scores.shape(0) == n && scores.shape(1) == C, "rows do not fit");
        if (const Answer answer = begin()) return answer;
        const std::int64_t t = t_.read(), stride = stride_.read();
        if (stride < 1 || (t + std::int64_t(n)) / stride > places_) return LATER;  // the history is full
        for (const BoundLearner<T>* member : members_)
            if (!member->learner->open(std::int64_t(n))) return LATER;
        for (std::size_t i = 0; i < n && C > 1; ++i)
            if (!(y.data()[i] >= 0 && y.data()[i] < double(C))) return LATER;
        if (!beside(n, [&] { return stack_.learn(n, X.data(), y.data(), recent, t, stride, scores.data()); })) return LATER;
        for (BoundLearner<T>* member : members_) member->settle();
        state_[x_count_] = nb::float_(stack_.count);
        t_.write(t + std::int64_t(n));
        if (recent_on_.read() != std::int64_t(recent)) recent_on_.write(recent);
        return DONE;
    }

    // Scores (n, C) of rows, any of which may come next.
    int score(Matrix<const T> X, bool recent, Matrix<double> scores) {
        const std::size_t n = X.shape(0);
        require(X.shape(1) == stack_.d && scores.shape(0) == n && scores.shape(1) == stack_.C, "rows do not fit");
        if (const Answer answer = begin()) return answer;
        return beside(n, [&] { return stack_.score(n, X.data(), recent, scores.data()); }) ? DONE : LATER;
    }
};

template <class T>
void bind(nb::module_& m, const char* learner, const char* whole, const char* suffix) {
    const auto plain = [] { return nb::arg().noconvert(); };
    const auto maybe = [] { return nb::arg().none().noconvert(); };
    const auto value = [] { return nb::arg(); };
    const auto name = [&](const char* stem) { return std::string(stem) + suffix; };
    nb::class_<BoundLearner<T>>(m, learner, "A learner of single rows.");
    m.def(name("row_hashed_cells").c_str(), &hashed_cells<T>, value(), value(), value(), plain());
    m.def(name("row_column_cells").c_str(), &column_cells<T>, value(), value(), value(), plain(), value(), value(), value());
    m.def(name("row_linear").c_str(), &linear<T>, value(), value(), maybe(), value(), value(), value());
    m.def(name("row_learned_widths").c_str(), &learned_widths<T>, value(), value(), plain(), value(), value(), value());
    m.def(name("row_window").c_str(), &window_of<T>, value(), value(), value(), value());
    m.def(name("row_metric_window").c_str(), &metric_window<T>, value(), value(), value());
    m.def(name("row_least_squares").c_str(), &least_squares<T>, value(), value(), maybe(), value(), value(), value(), value());
    nb::class_<BoundStack<T>>(m, whole, "All learners of a stack, and what combines them.")
        .def(nb::init<nb::dict, nb::list, bool, double, Vector<const double>, Maybe<Vector<const double>>>(), value(), value(), value(),
             value(), plain(), maybe())
        .def("learn", &BoundStack<T>::learn, plain(), plain(), value(), plain())
        .def("score", &BoundStack<T>::score, plain(), value(), plain());
}

}  // namespace

void bind_rows(nb::module_& m) {
    bind<float>(m, "RowLearner32", "RowStack32", "32");
    bind<double>(m, "RowLearner64", "RowStack64", "64");
    m.attr("ROW_DONE") = int(DONE);
    m.attr("ROW_STALE") = int(STALE);
}
