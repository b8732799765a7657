// Binding of the pass that encodes rows of words and numbers.
#include "base/states.hpp"
#include "passes/columns.hpp"

using namespace ks;

namespace {

// The state: moments, number_at, counts, sums, place, amount, mean_at, target. The block: numbers, since, codes, Y, weight.
void bound_columns_pass(nb::dict state, nb::dict block, double shrink, bool scale, bool learn, Matrix<double> out) {
    const auto numbers = entry<Matrix<const double>>(block, name::numbers);
    const auto since = entry<Vector<const std::int64_t>>(block, name::since);
    const auto codes = entry<Matrix<const std::int32_t>>(block, name::codes);
    const auto Y = maybe_entry<Matrix<const double>>(block, name::Y);
    const auto weight = maybe_entry<Vector<const double>>(block, name::weight);
    const auto moments = entry<Matrix<double>>(state, name::moments);
    const auto number_at = entry<Matrix<const std::int32_t>>(state, name::number_at);
    const auto counts = entry<Vector<double>>(state, name::counts);
    const auto sums = entry<Matrix<double>>(state, name::sums);
    const auto place = entry<Matrix<const std::int32_t>>(state, name::place);
    const auto amount = entry<Matrix<const double>>(state, name::amount);
    const auto mean_at = entry<Matrix<const std::int32_t>>(state, name::mean_at);
    const auto target = entry<Matrix<double>>(state, name::target);
    const std::size_t n = out.shape(0), width = out.shape(1), M = moments.shape(1), K = codes.shape(1), T = sums.shape(1);
    const std::size_t capacity = counts.shape(0);
    require(numbers.shape(0) == n && numbers.shape(1) == M && since.shape(0) == M && moments.shape(0) == 6 &&
                number_at.shape(0) == 2 && number_at.shape(1) == M,
            "numbers do not fit");
    require(codes.shape(0) == n && sums.shape(0) == capacity && place.shape(0) == capacity && place.shape(1) == places &&
                amount.shape(0) == capacity && amount.shape(1) == places && mean_at.shape(0) == K && mean_at.shape(1) == T,
            "categories do not fit");
    require(target.shape(0) == 3 && target.shape(1) == T && (!Y || (Y->shape(0) == n && Y->shape(1) == T)) &&
                (!weight || weight->shape(0) == n),
            "targets do not fit");
    for (std::size_t i = 0; i < n * K; ++i) require(codes.data()[i] < std::int64_t(capacity), "a code beyond the table");
    for (std::size_t i = 0; i < 2 * M; ++i) require(number_at.data()[i] < std::int64_t(width), "a number beyond the row");
    for (std::size_t i = 0; i < M; ++i) require(number_at.data()[i] >= 0, "a number without a column");
    for (std::size_t i = 0; i < K * T; ++i)
        require(mean_at.data()[i] >= 0 && mean_at.data()[i] < std::int64_t(width), "a mean beyond the row");
    const ColumnsPass pass{n, M, K, T, width, numbers.data(), since.data(), moments.data(), number_at.data(), codes.data(),
                           counts.data(), sums.data(), place.data(), amount.data(), mean_at.data(), target.data(),
                           data_or_null(Y), data_or_null(weight), out.data(), shrink, scale, learn};
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < K; ++k)
            if (codes.data()[i * K + k] >= 0)
                for (std::size_t s = 0; s < places; ++s)
                    require(place.data()[codes.data()[i * K + k] * places + s] < std::int64_t(width), "a place beyond the row");
    }
    for (std::size_t i = 0; i < n; ++i) pass.row(i);
}

}  // namespace

void bind_columns(nb::module_& m) {
    const auto value = nb::arg();
    m.def("columns_pass", &bound_columns_pass, value, value, value, value, value, nb::arg().noconvert());
}
