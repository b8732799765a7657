// Entries of a state, the dict in which a learner keeps everything, and of a block, the dict of what a pass gets besides.
#pragma once

#include <string>

#include "base/arrays.hpp"

namespace ks {

// An entry, or null where there is none.
inline nb::handle find(nb::handle entries, const char* name) {
    if (!PyDict_Check(entries.ptr())) throw nb::type_error("a state must be a dict");
    const nb::object key = nb::steal(PyUnicode_FromString(name));
    PyObject* found = key.is_valid() ? PyDict_GetItemWithError(entries.ptr(), key.ptr()) : nullptr;
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

inline nb::handle item(nb::handle entries, const char* name) {
    const nb::handle found = find(entries, name);
    if (!found.is_valid()) throw nb::key_error(name);
    return found;
}

// An array among the entries; nothing is converted, because what a pass changes must be the state's own.
template <class A> A array_of(nb::handle value, const char* name) {
    A array;
    if (!nb::try_cast(value, array, false))
        throw nb::value_error((std::string("the array '") + name + "' has another type, number of axes or layout than it must").c_str());
    return array;
}

template <class A> A entry(nb::handle entries, const char* name) { return array_of<A>(item(entries, name), name); }

template <class A> Maybe<A> maybe_entry(nb::handle entries, const char* name) {
    const nb::handle found = find(entries, name);
    if (!found.is_valid() || found.is_none()) return std::nullopt;
    return array_of<A>(found, name);
}

// The numbers of an array among the entries, which has this shape; without one, or None, null where that is allowed. Of numbers that are
// only read (const T) it may be an array that cannot be written to.
template <class T, class... Sizes> T* shaped_or_null(nb::handle entries, const char* name, Sizes... sizes) {
    const auto array = maybe_entry<nb::ndarray<T, nb::ndim<sizeof...(sizes)>, nb::c_contig, nb::device::cpu>>(entries, name);
    if (!fits(array, sizes...)) throw nb::value_error((std::string("the array '") + name + "' has another shape than it must").c_str());
    return data_or_null(array);
}
template <class T, class... Sizes> T* shaped(nb::handle entries, const char* name, Sizes... sizes) {
    require(!item(entries, name).is_none(), "an array is missing");
    return shaped_or_null<T>(entries, name, sizes...);
}

// The numbers of an array of a state. A pass that only reads takes an array that cannot be written to (of a model in a mapped file).
template <class T> T* numbers_of(nb::handle state, const char* name, std::size_t size, bool writes) {
    const auto array = entry<Array<const T>>(state, name);
    require(array.size() == size, "an array of the state has the wrong size");
    return writes ? entry<Array<T>>(state, name).data() : const_cast<T*>(array.data());
}

// A number among the entries.
template <class T> T number(nb::handle entries, const char* name) {
    T value;
    if (!nb::try_cast(item(entries, name), value))
        throw nb::value_error((std::string("the entry '") + name + "' is not the number it must be").c_str());
    return value;
}

template <class T> void set_number(nb::handle entries, const char* name, T value) {
    if (PyDict_SetItemString(entries.ptr(), name, nb::object(nb::cast(value)).ptr())) throw nb::python_error();
}

// f(float()) or f(double()), by what the numbers of an array are.
template <class F> auto by_type(nb::handle array, F&& f) {
    Array<const float> numbers;
    return nb::try_cast(array, numbers, false) ? f(float()) : f(double());
}

}  // namespace ks
