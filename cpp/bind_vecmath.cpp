#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_vecmath(nb::module_& m) { (void)m; }
