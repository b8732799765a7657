// Entries of a state, the dict in which a learner keeps everything, and of a block, the dict of what a pass gets besides.
#pragma once

#include <string>

#include "base/arrays.hpp"

namespace ks {

// The name of an entry. Python's string is made when it is first asked for, and stays: a look-up then costs some 30 ns.
class Name {
    const char* text_;
    mutable PyObject* string_ = nullptr;

  public:
    constexpr explicit Name(const char* text) : text_(text) {}
    const char* text() const { return text_; }
    PyObject* string() const {
        if (!string_ && !(string_ = PyUnicode_InternFromString(text_))) throw nb::python_error();
        return string_;
    }
};

// The names that compiled passes look for.
namespace name {
inline const Name A("A"), amount("amount"), alpha("alpha"), b("b"), beta("beta"), born("born"), budget_basis("budget_basis"),
    budget_factor("budget_factor"), budget_gram("budget_gram"), budget_memory("budget_memory"), budget_scores("budget_scores"),
    budget_w("budget_w"), budget_z("budget_z"), c("c"), center("center"), codes("codes"), coefficients("coefficients"),
    counts("counts"), curvature("curvature"), D("D"), decay("decay"), diag("diag"), f("f"), F("F"), factors("factors"),
    features("features"), G("G"), G_scale("G_scale"),
    H("H"), gram("gram"), history("history"), history_stride("history_stride"), inverse("inverse"), inverse_length("inverse_length"),
    joined("joined"), K("K"), kappa("kappa"), log_theta("log_theta"), M("M"), mass("mass"), mean_at("mean_at"), memory("memory"),
    moments("moments"), n("n"), n_support("n_support"), number_at("number_at"), numbers("numbers"), owner("owner"), P("P"),
    pending("pending"), place("place"), q("q"), Q("Q"), quantiles("quantiles"), R("R"), range("range"), ridge("ridge"), s("s"), scale("scale"),
    scores("scores"), since("since"), size("size"), solution("solution"), solved("solved"), sum_theta("sum_theta"), sum_w("sum_w"),
    sums("sums"), support("support"), t("t"), target("target"), tau("tau"), theta("theta"), theta0("theta0"), u("u"), V("V"),
    w("w"), w_mean("w_mean"), weight("weight"), weights("weights"), window("window"), window_b("window_b"),
    window_c("window_c"), X("X"), x_count("x_count"), x_doubt("x_doubt"),
    x_high("x_high"), x_low("x_low"), x_m2("x_m2"), x_mean("x_mean"), y("y"), Y("Y"), yy("yy"), Z("Z"), zsum("zsum");
}  // namespace name

// An entry, or null where there is none.
inline nb::handle find(nb::handle entries, const Name& name) {
    if (!PyDict_Check(entries.ptr())) throw nb::type_error("a state must be a dict");
    PyObject* found = PyDict_GetItemWithError(entries.ptr(), name.string());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    return found;
}

inline nb::handle item(nb::handle entries, const Name& name) {
    const nb::handle found = find(entries, name);
    if (!found.is_valid()) throw nb::key_error(name.text());
    return found;
}

// An array among the entries; nothing is converted, because what a pass changes must be the state's own.
template <class A> A array_of(nb::handle value, const char* name) {
    A array;
    if (!nb::try_cast(value, array, false))
        throw nb::value_error((std::string("the array '") + name + "' has another type, number of axes or layout than it must").c_str());
    return array;
}

template <class A> A entry(nb::handle entries, const Name& name) { return array_of<A>(item(entries, name), name.text()); }
template <class A> A entry(nb::handle state, const char* name) { return array_of<A>(nb::object(state[name]), name); }

template <class A> Maybe<A> maybe_entry(nb::handle entries, const Name& name) {
    const nb::handle found = find(entries, name);
    if (!found.is_valid() || found.is_none()) return std::nullopt;
    return array_of<A>(found, name.text());
}

// The numbers of an array of a state. A pass that only reads takes an array that cannot be written to (of a model in a mapped file).
template <class T, class Key> T* numbers_of(nb::handle state, const Key& name, std::size_t size, bool writes) {
    if (writes) {
        const auto array = entry<Array<T>>(state, name);
        require(array.size() == size, "an array of the state has the wrong size");
        return array.data();
    }
    const auto array = entry<Array<const T>>(state, name);
    require(array.size() == size, "an array of the state has the wrong size");
    return const_cast<T*>(array.data());
}

// A number among the entries.
template <class T> T number(nb::handle entries, const Name& name) {
    T value;
    if (!nb::try_cast(item(entries, name), value))
        throw nb::value_error((std::string("the entry '") + name.text() + "' is not the number it must be").c_str());
    return value;
}

template <class T> void set_number(nb::handle entries, const Name& name, T value) {
    if (PyDict_SetItem(entries.ptr(), name.string(), nb::object(nb::cast(value)).ptr())) throw nb::python_error();
}

// f(float()) or f(double()), by what the numbers of an array are.
template <class F> auto by_type(nb::handle array, F&& f) {
    Array<const float> numbers;
    return nb::try_cast(array, numbers, false) ? f(float()) : f(double());
}

}  // namespace ks
