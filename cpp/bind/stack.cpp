// Binding of the combination of learners.
#include "base/arrays.hpp"
#include "passes/stack_labels.hpp"
#include "passes/stack_numbers.hpp"
#include "base/states.hpp"

using namespace ks;

namespace {

template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// spec: (regression, recent); y null learns nothing. notes: (rows that counted before, rows between two notes, weights (notes, N)).
void bound_stack_pass(nb::dict state, Cube<const double> F, Maybe<Vector<const double>> y, Maybe<Vector<const double>> weight,
                      nb::tuple spec, Matrix<double> scores, nb::object notes) {
    using namespace stack;
    const std::size_t N = F.shape(0), n = F.shape(1), C = F.shape(2), M = N + 1;
    const bool regression = nb::cast<bool>(spec[0]), recent = nb::cast<bool>(spec[1]), learns = y.has_value();
    require(N > 0 && scores.shape(0) == n && scores.shape(1) == C, "scores must be (rows, outputs)");
    require((!y || y->shape(0) == n) && (!weight || weight->shape(0) == n), "y and weight need one entry per row");
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
    double* errors = numbers("member_errors", 3 * N);
    double* finals = numbers("level_logs", 2);
    const double *target = data_or_null(y), *mass = data_or_null(weight);
    if (regression) {
        require(C == 1, "a combination of numbers has one output");
        constexpr std::size_t K = LAST + 1;
        NumberLevel first(N, numbers("stack_A", G * M * M), numbers("stack_b", G * M), numbers("stack_w", G * M),
                          numbers("stack_logs", G), numbers("stack_loss", N), numbers("stack_numbers", 6));
        NumberLevel second(LAST, numbers("recent_A", G * K * K), numbers("recent_b", G * K), numbers("recent_w", G * K),
                           numbers("recent_logs", G), numbers("recent_loss", LAST), numbers("recent_numbers", 6));
        Numbers all{N, std::move(first), std::move(second), numbers("recent_kept", LAST), finals, errors, recent};
        nb::gil_scoped_release release;
        all.pass(n, F.data(), target, mass, learns, scores.data(), asked);
    } else {
        for (std::size_t i = 0; y && i < n && C > 1; ++i) require(target[i] >= 0 && target[i] < double(C), "class code out of range");
        LabelLevel first(M, C, numbers("stack_A", G * M * M), numbers("stack_w", G * M), numbers("stack_logs", G));
        LabelLevel second(RECENT, C, numbers("recent_A", G * RECENT * RECENT), numbers("recent_w", G * RECENT),
                          numbers("recent_logs", G));
        Labels all{N, C, std::move(first), std::move(second), numbers("recent_kept", KEPT * C), Earned<2>(finals), errors, numbers("label_counts", 2), recent};
        nb::gil_scoped_release release;
        all.pass(n, F.data(), target, mass, learns, scores.data(), asked);
    }
    if (learns) require_finite(scores.size(), scores.data());
}

}  // namespace

void bind_stack(nb::module_& m) {
    const auto plain = nb::arg().noconvert();
    const auto maybe = nb::arg().none().noconvert();
    m.def("stack_pass", &bound_stack_pass, nb::arg(), plain, maybe, maybe, nb::arg(), plain, nb::arg().none());
}
