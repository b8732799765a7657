// Binding of the pass that encodes rows of words and numbers.
#include "base/states.hpp"
#include "bind/group.hpp"
#include "files/text.hpp"
#include "passes/columns.hpp"

using namespace ks;

namespace {

// The state: task, moments, number_at, counts, sums, place, amount, mean_at, recent, within, between, recent_at, target. The block: numbers, since, codes, Y, weight.
void bound_columns_pass(nb::dict state, nb::dict block, double shrink, bool scale, bool learn, Matrix<double> out) {
    const std::size_t n = out.shape(0), width = out.shape(1), K = entry<Matrix<const std::int32_t>>(block, "codes").shape(1);
    const std::size_t M = entry<Matrix<double>>(state, "moments").shape(1), capacity = entry<Vector<double>>(state, "counts").shape(0);
    const std::size_t T = entry<Matrix<double>>(state, "sums").shape(1);
    const ColumnsPass pass{n, M, K, T, width,
                           shaped<const double>(block, "numbers", n, M),
                           shaped<const std::int64_t>(block, "since", M),
                           shaped<double>(state, "moments", 7, M),
                           shaped<const std::int32_t>(state, "number_at", 3, M),
                           shaped<const std::int32_t>(block, "codes", n, K),
                           shaped<double>(state, "counts", capacity),
                           shaped<double>(state, "sums", capacity, T),
                           shaped<const std::int32_t>(state, "place", capacity, places),
                           shaped<const double>(state, "amount", capacity, places),
                           shaped<const std::int32_t>(state, "mean_at", K, T),
                           shaped<double>(state, "recent", capacity, T),
                           shaped<double>(state, "within", 2 * K, T),
                           shaped<double>(state, "between", 2 * K, T),
                           shaped<const std::int32_t>(state, "recent_at", K, T + 1),
                           shaped<double>(state, "target", 3, T),
                           shaped_or_null<const double>(block, "Y", n, T),
                           shaped_or_null<const double>(block, "weight", n),
                           out.data(), shrink, scale, learn, nb::cast<std::string>(state["task"]) == "label"};
    const auto within = [](std::size_t count, const std::int32_t* at, std::int64_t low, std::size_t end, const char* reason) {
        for (std::size_t i = 0; i < count; ++i) require(at[i] >= low && at[i] < std::int64_t(end), reason);
    };
    constexpr std::int64_t any = std::numeric_limits<std::int32_t>::min();
    within(n * K, pass.codes, any, capacity, "a code beyond the table");
    within(M, pass.number_at, 0, width, "a number without a column");
    within(M, pass.number_at + M, any, width, "a number beyond the row");
    within(M, pass.number_at + 2 * M, any, std::max<std::size_t>(width, 1) - 1, "a year beyond the row");
    within(K * T, pass.mean_at, 0, width, "a mean beyond the row");
    for (std::size_t k = 0; k < K; ++k)  // all of them, or none
        within(T + 1, pass.recent_at + k * (T + 1), pass.recent_at[k * (T + 1) + T] < 0 ? any : 0, width, "a recent mean beyond the row");
    for (std::size_t i = 0; i < n * K; ++i)
        if (pass.codes[i] >= 0) within(places, pass.place + pass.codes[i] * places, any, width, "a place beyond the row");
    for (std::size_t i = 0; i < n; ++i) pass.row(i);
}

// Cells of one dictionary: numbers (1, M), NaN where missing, and codes of categories (1, K). The plan has a tuple for each column:
// name, kind, table of codes or None, place among the numbers, place among the categories, -1 for none. Returns how many
// of the row's keys are columns, and the places in the plan of the cells that need a closer look.
nb::tuple bound_columns_row(nb::list plan, nb::dict row, Matrix<double> numbers, Matrix<std::int32_t> codes) {
    enum Kind : long { category, number, integer, date, unread };
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
        if (kind == unread) continue;
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
