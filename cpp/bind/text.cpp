// Bindings of texts: their pieces, and the pass over rows of pieces.
#include "passes/text.hpp"

#include "base/states.hpp"
#include "bind/group.hpp"

using namespace ks;

namespace {

nb::tuple bound_text_pieces(Vector<const std::uint32_t> characters, Vector<const std::int64_t> ends, Vector<const double> amounts_of_counts) {
    require(amounts_of_counts.size() == texts::most_counted, "amounts of 256 counts");
    std::vector<std::int32_t> places;
    std::vector<double> amounts;
    std::vector<std::int64_t> stops;
    std::vector<std::uint32_t> keys;
    std::int64_t start = 0;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        const std::int64_t end = ends.data()[i];
        require(start <= end && std::size_t(end) <= characters.size(), "a text beyond the characters");
        for (std::size_t family = 0; family < texts::families; ++family) {
            keys.clear();
            texts::keys_of(characters.data() + start, characters.data() + end, family, keys);
            texts::pieces_of(keys, amounts_of_counts.data(), places, amounts);
            stops.push_back(std::int64_t(places.size()));
        }
        start = end;
    }
    return nb::make_tuple(own(std::move(places)), own(std::move(amounts)), own(std::move(stops)));
}

// The state: table, sums, target. The block: places, amounts, stops, Y, weight.
void bound_text_pass(nb::dict state, nb::dict block, bool numbers, Cube<double> out, Matrix<double> units) {
    const std::size_t n = out.shape(1), C = out.shape(2), m = entry<Vector<const std::int32_t>>(block, "places").size();
    require(out.shape(0) == texts::scores && C > 0 && fits(units, n, 2) && (!numbers || C == 1), "scores of another shape than they must have");
    texts::TextPass pass{n, C,
                         shaped<float>(state, "table", texts::families * texts::places, texts::counted + texts::per_output * C),
                         shaped<double>(state, "sums", texts::families, texts::sums_of_all + texts::output_sums * C),
                         shaped<double>(state, "target", 3),
                         shaped<const std::int32_t>(block, "places", m),
                         shaped<const double>(block, "amounts", m),
                         shaped<const std::int64_t>(block, "stops", texts::families * n),
                         shaped_or_null<const double>(block, "Y", n, C),
                         shaped_or_null<const double>(block, "weight", n),
                         out.data(), units.data(), numbers, {}, {}};
    for (std::size_t i = 0; i < texts::families * n; ++i)
        require(pass.stops[i] >= (i ? pass.stops[i - 1] : 0) && std::size_t(pass.stops[i]) <= m, "pieces beyond the last");
    for (std::size_t j = 0; j < m; ++j) require(pass.at[j] >= 0 && std::uint32_t(pass.at[j]) < texts::places, "a piece beyond the table");
    pass.rows();
}

const Group group([](nb::module_& m) {
    m.def("text_pieces", &bound_text_pieces, plain, plain, plain);
    m.def("text_pass", &bound_text_pass, value, value, value, plain, plain);
});

}  // namespace
