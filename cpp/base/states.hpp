// Entries of a state, the dict in which a learner keeps everything.
#pragma once

#include "base/arrays.hpp"

namespace ks {

// An array of a state; nothing is converted, because what a pass changes must be the state's own.
template <class A> A entry(nb::handle state, const char* name) { return nb::cast<A>(state[name], false); }

// The numbers of an array of a state. A pass that only reads takes an array that cannot be written to (of a model in a mapped file).
template <class T> T* numbers_of(nb::handle state, const char* name, std::size_t size, bool writes) {
    if (writes) {
        const auto array = entry<Array<T>>(state, name);
        require(array.size() == size, "an array of the state has the wrong size");
        return array.data();
    }
    const auto array = entry<Array<const T>>(state, name);
    require(array.size() == size, "an array of the state has the wrong size");
    return const_cast<T*>(array.data());
}

template <class A> Maybe<A> maybe_entry(nb::handle state, const char* name) {
    nb::object value = state.attr("get")(name);
    if (value.is_none()) return std::nullopt;
    return nb::cast<A>(value, false);
}

}  // namespace ks
