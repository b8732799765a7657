// Bindings of monitor.hpp.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "passes/monitor.hpp"

#include <nanobind/stl/pair.h>

using namespace ks;

namespace {

using In = Vector<const double>;

std::int64_t adwin_look(Matrix<double> buckets, Vector<std::int64_t> used, Vector<double> first, In block, double delta) {
    require(buckets.shape(0) == monitor::BUCKETS && buckets.shape(1) == 3 && used.size() == 1 && first.size() == 2,
            "adwin_look: the arrays of the window have other shapes");
    require(block.size() == monitor::BLOCK, "adwin_look: a block has 32 losses");
    std::int64_t& n = *used.data();
    require(n >= 0 && n < std::int64_t(monitor::BUCKETS), "adwin_look: there are more buckets than places");
    return monitor::adwin(reinterpret_cast<monitor::Bucket*>(buckets.data()), n, first.data(), block.data(), delta);
}

std::pair<double, double> kernel_look(Matrix<const double> W, Vector<double> reference, Matrix<double> last, nb::handle block) {
    const std::size_t d = W.shape(0), h = W.shape(1), size = 1 + 2 * h + 4 * h * h;
    require(reference.size() == size && last.shape(1) == size && last.shape(0) > 0, "kernel_look: the sums do not fit the frequencies");
    const auto found = by_type(block, [&](auto zero) {
        using T = decltype(zero);
        const auto X = array_of<Matrix<const T>>(block, "block");
        require(X.shape(0) == monitor::BLOCK && X.shape(1) == d, "kernel_look: a block has 32 rows of the frequencies' width");
        const auto look = h == 16 ? monitor::two_sample<T, 16> : monitor::two_sample<T, 0>;  // 16: the default
        return look(d, h, last.shape(0), W.data(), reference.data(), last.data(), X.data());
    });
    return {found[0], found[1]};
}

const Group group([](nb::module_& m) {
    m.def("adwin_look", &adwin_look, nb::arg("buckets").noconvert(), nb::arg("used").noconvert(), nb::arg("first").noconvert(),
          nb::arg("block"), nb::arg("delta"), "Rows since the mean of losses rose, or 0; block (32,) enters the window.");
    m.def("kernel_look", &kernel_look, nb::arg("W"), nb::arg("reference").noconvert(), nb::arg("last").noconvert(), nb::arg("block"),
          "F statistic of the last rows against those before and its second degrees of freedom; block (32, d) enters the window.");
});

}  // namespace
