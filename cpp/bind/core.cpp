// Entry point of kernelstream._core. Each group of functions lives in its own cpp/bind/*.cpp and is listed here.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_binning(nb::module_& m);
void bind_budget(nb::module_& m);
void bind_cells(nb::module_& m);
void bind_city_block(nb::module_& m);
void bind_columns(nb::module_& m);
void bind_contract(nb::module_& m);
void bind_cosines(nb::module_& m);
void bind_fourier(nb::module_& m);
void bind_libsvm(nb::module_& m);
void bind_linear_maps(nb::module_& m);
void bind_monitor(nb::module_& m);
void bind_multi(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_philox(nb::module_& m);
void bind_pool(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_rrf(nb::module_& m);
void bind_second_order(nb::module_& m);
void bind_spec(nb::module_& m);
void bind_stack(nb::module_& m);
void bind_trust(nb::module_& m);
void bind_vecmath(nb::module_& m);
void bind_metric(nb::module_& m);
void bind_window(nb::module_& m);

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false);  // a model that is still referenced when the interpreter ends is not a leak
    m.doc() = "Compiled loops of kernelstream: states and arrays in, changed in place.";
    bind_binning(m);
    bind_budget(m);
    bind_cells(m);
    bind_city_block(m);
    bind_columns(m);
    bind_contract(m);
    bind_cosines(m);
    bind_fourier(m);
    bind_libsvm(m);
    bind_linear_maps(m);
    bind_monitor(m);
    bind_multi(m);
    bind_passes(m);
    bind_philox(m);
    bind_pool(m);
    bind_rows(m);
    bind_rrf(m);
    bind_second_order(m);
    bind_spec(m);
    bind_stack(m);
    bind_trust(m);
    bind_vecmath(m);
    bind_metric(m);
    bind_window(m);
}
