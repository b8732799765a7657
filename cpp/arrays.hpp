// Array arguments of the bindings. Outputs and updated arrays are bound with .noconvert(): a wrong dtype or stride is an
// error instead of a silent copy whose update would be lost.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

namespace ks {

namespace nb = nanobind;

template <class T> using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class A> using Maybe = std::optional<A>;

template <class A> auto data_or_null(const Maybe<A>& a) -> decltype(a->data()) { return a ? a->data() : nullptr; }

// ValueError with a reason, for shapes that do not fit together.
inline void require(bool ok, const char* reason) {
    if (!ok) throw nb::value_error(reason);
}

}  // namespace ks
