// Entries of a state, the dict in which a learner keeps everything.
#pragma once

#include "arrays.hpp"

namespace ks {

// An array of a state; nothing is converted, because what a pass changes must be the state's own.
template <class A> A entry(nb::handle state, const char* name) { return nb::cast<A>(state[name], false); }

template <class A> Maybe<A> maybe_entry(nb::handle state, const char* name) {
    nb::object value = state.attr("get")(name);
    if (value.is_none()) return std::nullopt;
    return nb::cast<A>(value, false);
}

}  // namespace ks
