// Groups of bindings enter themselves: a new file of them needs no entry in a list.
#pragma once

#include <vector>

#include "base/arrays.hpp"

namespace ks {

struct Group {
    using Bind = void (*)(nb::module_&);
    static std::vector<Bind>& all() {
        static std::vector<Bind> groups;
        return groups;
    }
    explicit Group(Bind bind) { all().push_back(bind); }
};

// How an argument is taken: an array as it is, the same or None, anything that can be converted.
inline const auto plain = nb::arg().noconvert();
inline const auto maybe = nb::arg().none().noconvert();
inline const auto value = nb::arg();

}  // namespace ks
