// Bindings of what every call of an estimator begins with: rows at the door, turns of threads, marks to go back to.
#include "arrays.hpp"
#include "csr.hpp"
#include "turns.hpp"

#include <nanobind/stl/tuple.h>

#include <cstring>
#include <memory>
#include <vector>

using namespace ks;

namespace {

template <class I>
int form(Vector<const I> indices, Vector<const I> indptr, std::size_t d, std::size_t stored) {
    require(indptr.shape(0) >= 1 && indices.shape(0) >= stored, "csr_form: too few entries");
    return int(csr_form<I>(indptr.shape(0) - 1, d, stored, indptr.data(), indices.data()));
}

// Signals are handled while waiting, as with Python's own locks.
void enter(Turns& turns) {
    if (turns.take()) return;
    Turns::Place place(turns);
    while (true) {
        bool called;
        {
            nb::gil_scoped_release asleep;
            called = place.sleep();
        }
        if (called) return;
        if (PyErr_CheckSignals() != 0) {
            place.give_up();
            throw nb::python_error();
        }
    }
}

// The memory of a contiguous array that may be written to, held as long as this lives.
struct Memory {
    Py_buffer view;
    explicit Memory(nb::handle array) {
        if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE | PyBUF_ANY_CONTIGUOUS)) throw nb::python_error();
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { PyBuffer_Release(&view); }
    std::size_t size() const { return std::size_t(view.len); }
};

// Copies of arrays of some states, made and put back in one step that nothing can interrupt.
class Marks {
    struct Watched {  // an array that must still be the entry of a state
        nb::dict state;
        nb::object name, array;
    };
    struct Copied {
        Memory array, copy;
        Copied(nb::handle array, nb::handle copy) : array(array), copy(copy) {}
    };
    std::vector<nb::dict> states_;
    std::vector<Py_ssize_t> sizes_;  // of the states
    std::vector<Watched> watched_;
    std::vector<std::unique_ptr<Copied>> copied_;
    std::vector<nb::object> before_;  // of every state, what it held

  public:
    // `entries` are tuples: position of the state, name of the entry, its array, and an array like it or None.
    Marks(nb::list states, nb::list entries) {
        for (nb::handle state : states) {
            states_.push_back(nb::cast<nb::dict>(state));
            sizes_.push_back(PyDict_Size(state.ptr()));
        }
        for (nb::handle item : entries) {
            const auto [which, name, array, copy] = nb::cast<std::tuple<std::size_t, nb::object, nb::object, nb::object>>(item);
            require(which < states_.size(), "marks: there is no such state");
            watched_.push_back({states_[which], name, array});
            if (copy.is_none()) continue;
            copied_.push_back(std::make_unique<Copied>(array, copy));
            require(copied_.back()->array.size() == copied_.back()->copy.size(), "marks: a copy has another size");
        }
    }
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;

    // Remember the states as they are. False, and nothing is remembered, when they hold other arrays by now.
    bool save() {
        for (std::size_t i = 0; i < states_.size(); ++i)
            if (PyDict_Size(states_[i].ptr()) != sizes_[i]) return false;
        for (const Watched& entry : watched_)
            if (PyDict_GetItem(entry.state.ptr(), entry.name.ptr()) != entry.array.ptr()) return false;
        for (const auto& entry : copied_) std::memcpy(entry->copy.view.buf, entry->array.view.buf, entry->array.size());
        before_.clear();
        for (const nb::dict& state : states_) before_.push_back(nb::steal(PyDict_Copy(state.ptr())));
        return true;
    }

    void forget() { before_.clear(); }

    // The states as they were when they were saved.
    void restore() {
        require(before_.size() == states_.size(), "marks: nothing was saved");
        for (const auto& entry : copied_) std::memcpy(entry->array.view.buf, entry->copy.view.buf, entry->array.size());
        for (std::size_t i = 0; i < states_.size(); ++i) {
            PyDict_Clear(states_[i].ptr());
            PyDict_Update(states_[i].ptr(), before_[i].ptr());
        }
        before_.clear();
    }
};

}  // namespace

void bind_contract(nb::module_& m) {
    m.def("csr_form", &form<std::int32_t>, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg());
    m.def("csr_form", &form<std::int64_t>, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg());
    nb::class_<Turns>(m, "Turns", "A lock whose callers take turns; the thread that has it may take it again.")
        .def(nb::init<>())
        .def("__enter__", &enter)
        .def("__exit__", [](Turns& turns, nb::handle, nb::handle, nb::handle) { turns.leave(); }, nb::arg().none(),
             nb::arg().none(), nb::arg().none());
    nb::class_<Marks>(m, "Marks", "Copies of arrays of some states, to go back to.")
        .def(nb::init<nb::list, nb::list>())
        .def("save", &Marks::save)
        .def("forget", &Marks::forget)
        .def("restore", &Marks::restore);
}
