// Binding of kernel functions in a learned metric.
#include "bind/group.hpp"
#include "bind/row_learner.hpp"

using namespace ks;

namespace {

// Centres by both kinds in tiles, and their coefficients.
template <class K> using MetricLeaf = std::tuple<Matrix<const K>, Matrix<const K>, Matrix<const double>, Matrix<const double>>;

// middle, unit, root, scales; directions and thresholds of cuts, the leaves between them; offset, whether targets are labels
template <class K>
using MetricFunctions = std::tuple<Vector<const double>, Vector<const double>, Array<const double>, Vector<const double>,
                                   Matrix<const double>, Vector<const double>, std::vector<MetricLeaf<K>>, Vector<const double>, bool>;

template <class K>
metric::Model<K> metric_model(const MetricFunctions<K>& functions, double* follow) {
    const auto& [middle, unit, root, scales, directions, thresholds, leaves, offset, labels] = functions;
    constexpr std::size_t P = tile_width<K>;
    const std::size_t d = middle.shape(0), C = offset.shape(0), cuts = thresholds.shape(0);
    const bool full = root.ndim() == 2;
    require(unit.shape(0) == d && scales.shape(0) == d && root.size() == (full ? d * d : d), "the metric does not fit the columns");
    require(directions.shape(0) == cuts && directions.shape(1) == d && leaves.size() == cuts + 1 && (cuts & (cuts + 1)) == 0,
            "the cuts do not fit the leaves");
    require(labels || C == 1, "numbers have one output");
    metric::Model<K> model{d, C, full, labels, middle.data(), unit.data(), root.data(), scales.data(), directions.data(), thresholds.data(),
                           {}, offset.data(), follow};
    for (const auto& [near, apart, A, B] : leaves) {
        const std::size_t m = A.shape(1);
        for (const auto& tiles : {near, apart})
            require(tiles.shape(0) == (m + P - 1) / P && (m == 0 || tiles.shape(1) == d * P), "the centres do not fit the columns");
        require(A.shape(0) == C && B.shape(0) == C && B.shape(1) == m, "the coefficients do not fit the centres");
        model.leaves.push_back({m, near.data(), apart.data(), A.data(), B.data()});
    }
    return model;
}

template <class K>
void bound_metric_pass(Matrix<const double> X, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight, Vector<double> follow,
                       const MetricFunctions<K>& functions, Matrix<double> scores) {
    require(follow.shape(0) == metric::FOLLOWED, "what follows the forecasts has five numbers");
    const metric::Model<K> model = metric_model<K>(functions, follow.data());
    const std::size_t n = X.shape(0);
    require(X.shape(1) == model.d && scores.shape(0) == n && scores.shape(1) == model.C, "the rows do not fit the functions");
    require((!y || y->shape(0) == n) && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
    {
        nb::gil_scoped_release release;
        metric::Scratch<K> work(model, std::min(n, metric::AT_ONCE));
        metric::pass(model, n, X.data(), data_or_null(y), data_or_null(weight), work, scores.data());
    }
}

template <class T, class K>
rows::LearnerPtr<T> row_metric_window(nb::dict state, nb::list others, const MetricFunctions<K>& functions, Vector<const std::int64_t> stop) {
    auto made = rows::begin<T>(state, others);
    const auto kept = entry<Matrix<const double>>(state, "kept_rows");
    const std::size_t W = kept.shape(0), d = made->d;
    const auto numbers = [&](const char* name, std::size_t size) { return made->template numbers<double>(name, size); };
    const metric::Model<K> model = metric_model<K>(functions, numbers("follow", metric::FOLLOWED));
    require(kept.shape(1) == d && model.d == d && model.C == made->C && W > 0 && stop.shape(0) == 1, "the rows do not fit the window");
    made->held.keep(functions, stop);
    made->pin("alpha");  // another one, and the functions are others
    made->learner = std::make_unique<rows::MetricWindow<T, K>>(model, W, numbers("kept_rows", W * d), numbers("kept_value", W),
                                                            numbers("kept_weight", W), stop.data());
    return made;
}

const Group group([](nb::module_& m, auto type) {
    using K = decltype(type);
    m.def("metric_pass", &bound_metric_pass<K>, plain, maybe, maybe, plain, plain, plain);
    m.def("row_metric_window32", &row_metric_window<float, K>, value, value, plain, plain);
    m.def("row_metric_window64", &row_metric_window<double, K>, value, value, plain, plain);
});

}  // namespace
