// Parts that are found by their names.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

namespace ks {

// What a factory found, which must be something.
template <class P>
std::unique_ptr<P> known(std::unique_ptr<P> part, const char* kind, const std::string& name) {
    if (!part) throw std::invalid_argument("the native engine has no " + std::string(kind) + " '" + name + "': use engine='python'");
    return part;
}

}  // namespace ks
