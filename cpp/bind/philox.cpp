// Bindings of philox.hpp; compiled without fused multiply-adds, see there.
#include "bind/group.hpp"
#include "maps/philox.hpp"

using namespace ks;

namespace {

template <class T>
void normals(std::uint64_t seed, std::uint32_t block, std::uint32_t stream, Vector<const std::int64_t> rows, double scale,
             Matrix<T> out) {
    require(out.shape(0) == rows.size(), "philox_normals: out must have one row for each of rows");
    nb::gil_scoped_release unlocked;
    philox_normals<T>(seed, block, stream, rows.size(), rows.data(), out.shape(1), T(scale), out.data());
}

const Group group([](nb::module_& m) {
    const auto bind = [&](auto* f) {
        m.def("philox_normals", f, nb::arg("seed"), nb::arg("block"), nb::arg("stream"), nb::arg("rows").noconvert(),
              nb::arg("scale"), nb::arg("out").noconvert(),
              "out (n, D) <- scale * rows `rows` (n,) of block `block` of the normal numbers of a seed.");
    };
    bind(&normals<float>);
    bind(&normals<double>);
});

}  // namespace
