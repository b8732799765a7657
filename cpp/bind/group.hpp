// Groups of bindings enter themselves: a new file of them needs no entry in a list.
#pragma once

#include <functional>
#include <vector>

#include "base/arrays.hpp"

namespace ks {

struct Group {
    static std::vector<std::function<void(nb::module_&)>>& all() {
        static std::vector<std::function<void(nb::module_&)>> groups;
        return groups;
    }
    // bind(module), or bind(module, T()) for both types of numbers.
    template <class Bind> explicit Group(Bind bind) {
        if constexpr (std::is_invocable_v<Bind, nb::module_&>) all().push_back(bind);
        else all().push_back([bind](nb::module_& m) { bind(m, float()), bind(m, double()); });
    }
};

// How an argument is taken: an array as it is, the same or None, anything that can be converted.
inline const auto plain = nb::arg().noconvert();
inline const auto maybe = nb::arg().none().noconvert();
inline const auto value = nb::arg();

}  // namespace ks
