// Bindings of philox.hpp; compiled without fused multiply-adds, see there.
#include "bind/group.hpp"
#include "maps/philox.hpp"

using namespace ks;

namespace {

template <class T>
void normals(std::uint64_t seed, std::uint32_t block, std::uint32_t stream, Vector<const std::int64_t> rows, double scale,
             Matrix<T> out) {
    require(fits(out, rows.size()), "philox_normals: out must have one row for each of rows");
    nb::gil_scoped_release unlocked;
    philox_normals<T>(seed, block, stream, rows.size(), rows.data(), out.shape(1), T(scale), out.data());
}

const Group group([](nb::module_& m, auto type) {
    m.def("philox_normals", &normals<decltype(type)>, value, value, value, plain, value, plain,
          "out (n, D) <- scale * rows `rows` (n,) of block `block` of the normal numbers of a seed.");
});

}  // namespace
