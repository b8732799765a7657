// Binding of the pass that encodes rows of words and numbers.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "files/text.hpp"
#include "passes/columns.hpp"

using namespace ks;

namespace {

// The state: moments, number_at, counts, sums, place, amount, mean_at, target. The block: numbers, since, codes, Y, weight.
void bound_columns_pass(nb::dict state, nb::dict block, double shrink, bool scale, bool learn, Matrix<double> out) {
    const auto numbers = entry<Matrix<const double>>(block, "numbers");
    const auto since = entry<Vector<const std::int64_t>>(block, "since");
    const auto codes = entry<Matrix<const std::int32_t>>(block, "codes");
    const auto Y = maybe_entry<Matrix<const double>>(block, "Y");
    const auto weight = maybe_entry<Vector<const double>>(block, "weight");
    const auto moments = entry<Matrix<double>>(state, "moments");
    const auto number_at = entry<Matrix<const std::int32_t>>(state, "number_at");
    const auto counts = entry<Vector<double>>(state, "counts");
    const auto sums = entry<Matrix<double>>(state, "sums");
    const auto place = entry<Matrix<const std::int32_t>>(state, "place");
    const auto amount = entry<Matrix<const double>>(state, "amount");
    const auto mean_at = entry<Matrix<const std::int32_t>>(state, "mean_at");
    const auto target = entry<Matrix<double>>(state, "target");
    const std::size_t n = out.shape(0), width = out.shape(1), M = moments.shape(1), K = codes.shape(1), T = sums.shape(1);
    const std::size_t capacity = counts.shape(0);
    require(fits(numbers, n, M) && fits(since, M) && fits(moments, 7) && fits(number_at, 3, M), "numbers do not fit");
    require(fits(codes, n) && fits(sums, capacity) && fits(place, capacity, places) && fits(amount, capacity, places) && fits(mean_at, K, T),
            "categories do not fit");
    require(fits(target, 3, T) && fits(Y, n, T) && fits(weight, n), "targets do not fit");
    for (std::size_t i = 0; i < n * K; ++i) require(codes.data()[i] < std::int64_t(capacity), "a code beyond the table");
    for (std::size_t i = 0; i < 2 * M; ++i) require(number_at.data()[i] < std::int64_t(width), "a number beyond the row");
    for (std::size_t i = 0; i < M; ++i) require(number_at.data()[i] >= 0, "a number without a column");
    for (std::size_t i = 2 * M; i < 3 * M; ++i) require(number_at.data()[i] < std::int64_t(width) - 1, "a year beyond the row");
    for (std::size_t i = 0; i < K * T; ++i)
        require(mean_at.data()[i] >= 0 && mean_at.data()[i] < std::int64_t(width), "a mean beyond the row");
    const ColumnsPass pass{n, M, K, T, width, numbers.data(), since.data(), moments.data(), number_at.data(), codes.data(),
                           counts.data(), sums.data(), place.data(), amount.data(), mean_at.data(), target.data(),
                           data_or_null(Y), data_or_null(weight), out.data(), shrink, scale, learn};
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < K; ++k)
            if (codes.data()[i * K + k] >= 0)
                for (std::size_t s = 0; s < places; ++s)
                    require(place.data()[codes.data()[i * K + k] * places + s] < std::int64_t(width), "a place beyond the row");
    }
    for (std::size_t i = 0; i < n; ++i) pass.row(i);
}

// Cells of one dictionary: numbers (1, M), NaN where missing, and codes of categories (1, K). The plan has a tuple for each column:
// name, kind, table of codes or None, place among the numbers, place among the categories, -1 for none. Returns how many
// of the row's keys are columns, and the places in the plan of the cells that need a closer look.
nb::tuple bound_columns_row(nb::list plan, nb::dict row, Matrix<double> numbers, Matrix<std::int32_t> codes) {
    enum Kind : long { category, number, integer, date, text };
    static PyObject* const gap = PyUnicode_InternFromString("");  // the name of the missing cell
    constexpr double largest = 1e100;                              // columns/kinds.py
    nb::list odd;
    std::size_t hits = 0;
    const auto size = nb::len(plan);
    for (std::size_t i = 0; i < size; ++i) {
        PyObject* const column = PyList_GET_ITEM(plan.ptr(), Py_ssize_t(i));
        require(PyTuple_Check(column) && PyTuple_GET_SIZE(column) == 5, "a plan of columns has tuples of five");
        PyObject* const value = PyDict_GetItemWithError(row.ptr(), PyTuple_GET_ITEM(column, 0));
        if (!value && PyErr_Occurred()) throw nb::python_error();
        hits += value != nullptr;
        const long kind = PyLong_AsLong(PyTuple_GET_ITEM(column, 1));
        PyObject* const table = PyTuple_GET_ITEM(column, 2);
        const long at = PyLong_AsLong(PyTuple_GET_ITEM(column, 3)), coded = PyLong_AsLong(PyTuple_GET_ITEM(column, 4));
        if (kind == text) continue;
        bool known = kind == category || kind == number || kind == integer;
        PyObject* key = nullptr;  // by which the table has the cell
        const bool missing = !value || value == Py_None;
        if (missing || (kind == category && PyUnicode_CheckExact(value))) key = missing ? gap : value;
        if (known && at >= 0) {
            double x = std::nan("");
            if (!missing && (PyFloat_Check(value) || PyLong_CheckExact(value))) {
                x = PyFloat_Check(value) ? PyFloat_AsDouble(value) : PyLong_AsDouble(value);
                if (x == -1.0 && PyErr_Occurred()) PyErr_Clear(), known = false;
                key = std::isnan(x) ? gap : value;
                known = known && !(std::abs(x) > largest);
            } else
                known = known && missing;
            if (known) {
                require(std::size_t(at) < numbers.size(), "a number beyond the row");
                numbers.data()[at] = x;
            }
        }
        if (known && coded >= 0) {
            std::int32_t code = -1;
            if (table != Py_None) {
                PyObject* const found = key ? PyDict_GetItemWithError(table, key) : nullptr;
                if (!found && PyErr_Occurred()) throw nb::python_error();
                known = found != nullptr;
                if (known) code = std::int32_t(PyLong_AsLong(found));
            }
            require(std::size_t(coded) < codes.size(), "a category beyond the row");
            codes.data()[coded] = code;
        }
        if (!known) odd.append(i);
    }
    if (PyErr_Occurred()) throw nb::python_error();
    return nb::make_tuple(hits, odd);
}

// Texts as numbers, empty ones as NaN; false, and the rest of the array as it was, where one is neither.
bool bound_numbers_of_texts(nb::list texts, Vector<double> out) {
    const std::size_t n = nb::len(texts);
    require(fits(out, n), "one number for each text");
    for (std::size_t i = 0; i < n; ++i) {
        PyObject* const cell = PyList_GET_ITEM(texts.ptr(), Py_ssize_t(i));
        if (!PyUnicode_CheckExact(cell) || !PyUnicode_IS_COMPACT_ASCII(cell)) return false;
        const char* p = static_cast<const char*>(PyUnicode_DATA(cell));  // ends with a zero, where the parser stops
        const char* const end = p + PyUnicode_GET_LENGTH(cell);
        if (p == end) {
            out.data()[i] = std::nan("");
            continue;
        }
        if (text::number(p, out.data()[i]) != text::Number::ok || p != end) return false;
    }
    return true;
}

const Group group([](nb::module_& m) {
    m.def("columns_pass", &bound_columns_pass, value, value, value, value, value, plain);
    m.def("numbers_of_texts", &bound_numbers_of_texts, value, plain);
    m.def("columns_row", &bound_columns_row, value, value, plain, plain);
});

}  // namespace
