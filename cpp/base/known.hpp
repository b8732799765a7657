// Which names a factory knows.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace ks {

// Whether a factory that throws for an unknown name has this one; no part has more than three parameters.
template <class Make>
bool is_known(Make make, const std::string& name) {
    try {
        make(name, std::vector<double>(3, 0.0));
        return true;
    } catch (const std::invalid_argument&) {
        return false;
    }
}

}  // namespace ks
