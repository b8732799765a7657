// Entry point of kernelstream._core. Each group of functions lives in its own cpp/bind/*.cpp.
#include "bind/group.hpp"

NB_MODULE(_core, m) {
    ks::nb::set_leak_warnings(false);  // a model that is still referenced when the interpreter ends is not a leak
    m.doc() = "Compiled loops of kernelstream: states and arrays in, changed in place.";
    for (const auto& bind : ks::Group::all()) bind(m);
}
