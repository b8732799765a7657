// Array arguments of the bindings. Outputs and updated arrays are bound with .noconvert(): a wrong dtype or stride is an
// error instead of a silent copy whose update would be lost.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

#include "base/vecmath.hpp"

namespace ks {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <class T> using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;  // any number of axes
template <class A> using Maybe = std::optional<A>;

template <class A> auto data_or_null(const Maybe<A>& a) -> decltype(a->data()) { return a ? a->data() : nullptr; }

// Whether the first axes of an array have these sizes; one that is not there fits any.
template <class A, class... Sizes> bool fits(const A& a, Sizes... sizes) {
    std::size_t axis = 0;
    return ((a.shape(axis++) == std::size_t(sizes)) && ...);
}
template <class A, class... Sizes> bool fits(const Maybe<A>& a, Sizes... sizes) { return !a || fits(*a, sizes...); }

// A vector as a numpy array, without a copy.
template <class T> auto own(std::vector<T>&& vector) {
    auto* held = new std::vector<T>(std::move(vector));
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>(held->data(), {held->size()}, owner);
}

// ValueError with a reason, for shapes that do not fit together.
inline void require(bool ok, const char* reason) {
    if (!ok) throw nb::value_error(reason);
}

// Whether the numbers of classes y (n) are those of C; rows of weight 0 are not learned: theirs may be anything.
inline void require_codes(std::size_t n, std::size_t C, const double* y, const double* weight = nullptr) {
    for (std::size_t i = 0; i < n; ++i)
        require((weight && weight[i] == 0.0) || (y[i] >= 0 && y[i] < double(C)), "class code out of range");
}

// Learning must not take a model out of the range of floats; the words are those of kernelstream/core/overflow.py.
inline void require_finite(bool finite) {
    require(finite, "learning these rows takes the model beyond the range of floats: scale the columns, the target or the weights, "
                    "or take smaller steps");
}

// The same for n numbers, if there are any, and more of them.
template <class T, class... More>
void require_finite(std::size_t n, const T* x, const More&... more) {
    require_finite(!x || all_finite(n, x));
    if constexpr (sizeof...(more) > 0) require_finite(more...);
}

}  // namespace ks
