// Numbers that begin at a line of the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ks {

// Room for n numbers in `held`, from a multiple of `bytes` on; up to `bytes` before them belong to no one.
template <class T>
T* on_line(std::vector<T>& held, std::size_t n, std::size_t bytes = 64) {
    held.resize(n + bytes / sizeof(T));
    const std::size_t over = std::size_t(reinterpret_cast<std::uintptr_t>(held.data()) % bytes);
    return held.data() + (over ? (bytes - over) / sizeof(T) : 0);
}

}  // namespace ks
