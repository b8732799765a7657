// Binding of what a pass does to a row, and of which parts there are.
#include "parts/spec.hpp"

#include "base/known.hpp"
#include "bind/group.hpp"
#include "parts/budgets.hpp"

#include <nanobind/stl/pair.h>

using namespace ks;

ks::Spec::Spec(const Part& loss, const Part& update, const std::optional<Part>& strategy, bool average)
    : loss(make_loss(loss.first, loss.second)), update(make_update(update.first, update.second)), average(average) {
    if (!strategy) return;
    single = make_budget<float>(strategy->first, strategy->second);
    exact = make_budget<double>(strategy->first, strategy->second);
    if (!exact) growing = make_growing(strategy->first, strategy->second);
}

static const Group group([](nb::module_& m) {
    nb::class_<Spec>(m, "Spec", "Loss, update and strategy of a pass, each a name and its parameters.")
        .def(nb::init<const Spec::Part&, const Spec::Part&, const std::optional<Spec::Part>&, bool>(), nb::arg("loss"),
             nb::arg("update"), nb::arg("strategy").none() = nb::none(), nb::arg("average") = false)
        .def_ro("average", &Spec::average);
    m.def("has_loss", [](const std::string& name) { return is_known(make_loss, name); });
    m.def("has_update", [](const std::string& name) { return is_known(make_update, name); });
    // those that remove, and those that only grow
    m.def("has_budget", [](const std::string& name) {
        return make_budget<double>(name, {0.0, 0.0}) != nullptr || is_known(make_growing, name);
    });
});
