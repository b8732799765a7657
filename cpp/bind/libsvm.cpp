// Bindings of libsvm.hpp and csv.hpp: bytes in, arrays out. The arrays own the memory the parser filled.
#include "bind/group.hpp"
#include "files/csv.hpp"
#include "files/libsvm.hpp"

using namespace ks;
using namespace nb::literals;

namespace {

nb::list listed(const std::vector<text::Bad>& bads) {
    nb::list list;
    for (const auto& bad : bads) list.append(nb::make_tuple(bad.line, bad.offset, bad.place, bad.reason));
    return list;
}

template <class T>
nb::tuple parse_libsvm(const char* text, std::size_t size, std::size_t max_rows, std::int64_t first,
                       std::int64_t n_features) {
    libsvm::Block<T> block;
    {
        nb::gil_scoped_release unlocked;
        libsvm::parse<T>(text, size, max_rows, first, n_features, block);
    }
    return nb::make_tuple(own(std::move(block.labels)), own(std::move(block.indptr)), own(std::move(block.indices)), own(std::move(block.values)),
                          block.width, block.lines, block.consumed, listed(block.bad));
}

std::size_t checked(const nb::bytes& data, std::size_t start) {
    require(start <= data.size(), "start is behind the end of the text");
    require(data.size() - start < (std::size_t(1) << 31), "a text of 2 GiB or more");
    return data.size() - start;
}

const Group group([](nb::module_& m) {
    m.def(
        "libsvm_parse",
        [](nb::bytes data, std::size_t start, std::size_t max_rows, bool zero_based, std::int64_t n_features,
           bool single) {
            const std::size_t size = checked(data, start);
            require(n_features >= 0 && n_features <= libsvm::max_index, "n_features is out of range");
            const char* text = data.c_str() + start;
            const std::int64_t first = zero_based ? 0 : 1;
            return single ? parse_libsvm<float>(text, size, max_rows, first, n_features)
                          : parse_libsvm<double>(text, size, max_rows, first, n_features);
        },
        "data"_a, "start"_a, "max_rows"_a, "zero_based"_a, "n_features"_a, "single"_a,
        "Complete lines of LIBSVM text -> labels, indptr, indices, values, width, lines, consumed, bad rows.");
    m.def(
        "csv_parse",
        [](nb::bytes data, std::size_t start, std::size_t max_rows, nb::bytes delimiter, nb::bytes kinds,
           std::optional<double> fill, double largest) {
            const std::size_t size = checked(data, start);
            require(delimiter.size() == 1 && kinds.size() > 0, "one delimiter and at least one column");
            const std::vector<char> columns(kinds.c_str(), kinds.c_str() + kinds.size());
            csv::Block block;
            {
                nb::gil_scoped_release unlocked;
                csv::parse(data.c_str() + start, size, max_rows, delimiter.c_str()[0], columns, fill.has_value(),
                               fill.value_or(0.0), largest, block);
            }
            return nb::make_tuple(block.rows, own(std::move(block.numbers)), own(std::move(block.fields)), block.lines, block.consumed, block.quoted,
                                  listed(block.bad));
        },
        "data"_a, "start"_a, "max_rows"_a, "delimiter"_a, "kinds"_a, "fill"_a.none(), "largest"_a,
        "Complete lines of delimited text -> rows, numbers, places of text fields, lines, consumed, quoted, bad rows.");
});

}  // namespace
