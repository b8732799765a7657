// What a pass does to a row: the parts of a model, found by name once and used for many blocks. Nothing in it changes, so threads
// may share it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parts/growing.hpp"
#include "parts/support.hpp"
#include "parts/updates.hpp"

namespace ks {

struct Spec {
    using Part = std::pair<std::string, std::vector<double>>;  // name and parameters

    std::unique_ptr<const Loss> loss;
    std::unique_ptr<const Update> update;
    std::unique_ptr<const Growing> growing;  // of a support set that only grows; else, if there is a strategy,
    std::unique_ptr<const Budget<float>> single;
    std::unique_ptr<const Budget<double>> exact;
    bool average;  // whether the iterates are averaged

    Spec(const Part& loss, const Part& update, const std::optional<Part>& strategy, bool average);  // in bind/spec.cpp

    template <class T> const Budget<T>* budget() const {
        if constexpr (sizeof(T) == sizeof(float)) return single.get();
        else return exact.get();
    }
};

}  // namespace ks
