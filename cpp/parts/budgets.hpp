// Budget strategies by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parts/budget_merge.hpp"
#include "parts/budget_projection.hpp"
#include "parts/budget_removal.hpp"
#include "parts/budget_replace.hpp"
#include "parts/budget_transfer.hpp"

namespace ks {

template <class T>
std::unique_ptr<Budget<T>> make_budget(const std::string& name, const std::vector<double>& p) {
    if (name == "remove_random") return std::make_unique<RemoveRandom<T>>();
    if (name == "bogd") return std::make_unique<BOGD<T>>(p.at(0), p.at(1) != 0.0);
    if (name == "forgetron") return std::make_unique<Forgetron<T>>();
    if (name == "remove_smallest") return std::make_unique<RemoveSmallest<T>>();
    if (name == "remove_redundant") return std::make_unique<RemoveRedundant<T>>();
    if (name == "replace") return std::make_unique<Replace<T>>(p.at(0) != 0.0);
    if (name == "projectron") return std::make_unique<Projectron<T>>(false);
    if (name == "projectron_pp") return std::make_unique<Projectron<T>>(true, p.at(0));
    if (name == "project") return std::make_unique<Project<T>>(p.at(0) != 0.0);
    if (name == "merge") return std::make_unique<Merge<T>>();
    if (name == "transfer") return std::make_unique<Transfer<T>>();
    return nullptr;
}

}  // namespace ks
