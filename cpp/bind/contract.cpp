// Bindings of what every call of an estimator begins with: rows at the door, turns of threads, marks to go back to.
#include "base/blas_threads.hpp"
#include "base/csr.hpp"
#include "base/turns.hpp"
#include "bind/group.hpp"

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

using namespace ks;

namespace {

template <class I>
int form(Vector<const I> indices, Vector<const I> indptr, std::size_t d, std::size_t stored) {
    require(indptr.shape(0) >= 1 && indices.shape(0) >= stored, "csr_form: too few entries");
    if (indptr.data()[0] != 0) return int(Form::broken_rows);
    return int(csr_form<I>(indptr.shape(0) - 1, d, stored, indptr.data(), indices.data()));
}

// BLAS keeps to the calling thread in the context; its libraries are looked for once.
struct OneBlasThread {
    static void find() {
        if (blas_threads.known) return;
        using Found = std::vector<std::tuple<std::uintptr_t, std::uintptr_t, bool>>;
        std::vector<BlasThreads::Library> libraries;
        for (const auto& [get, set, per_thread] : nb::cast<Found>(nb::module_::import_("kernelstream.state.blas_threads").attr("addresses")()))
            libraries.push_back({reinterpret_cast<int (*)()>(get), reinterpret_cast<void (*)(long)>(set), per_thread});
        blas_threads.use(std::move(libraries));
    }
    static void enter() {
        find();
        blas_threads.enter();
    }
};

// Waits for some seconds; false where the turn has not come. Signals are handled meanwhile, as with Python's own locks.
bool take(Turns& turns, double seconds) {
    if (turns.take()) return true;
    if (turns.lost() || !(seconds > 0)) return false;
    const auto begun = std::chrono::steady_clock::now();
    Turns::Place place(turns);
    while (true) {
        bool called;
        {
            nb::gil_scoped_release asleep;
            called = place.sleep();
        }
        if (called) return true;
        const bool interrupted = PyErr_CheckSignals() != 0;
        if (!interrupted && std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count() < seconds) continue;
        place.give_up();
        if (interrupted) throw nb::python_error();
        return false;
    }
}

void enter(Turns& turns) {
    if (!take(turns, std::numeric_limits<double>::infinity())) nb::module_::import_("kernelstream.state.turns").attr("refuse")();
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

// Some states as they are, to go back to: copies of arrays, made and put back in one step that nothing can interrupt.
class Marks {
    struct Entry {  // of a state
        nb::object name;
        nb::object array;   // which must still be its value, or null
        nb::object before;  // its value when it was saved, or null
    };
    struct State {
        nb::dict held;
        std::vector<Entry> entries;
    };
    struct Copied {
        Memory array, copy;
        Copied(nb::handle array, nb::handle copy) : array(array), copy(copy) {}
    };
    std::vector<State> states_;
    std::vector<std::unique_ptr<Copied>> copied_;
    bool saved_ = false;

  public:
    // `arrays` are tuples: position of the state, name of the entry, its array, and an array like it or None.
    Marks(nb::list states, nb::list arrays) {
        for (nb::handle held : states) {
            State state{nb::cast<nb::dict>(held), {}};
            for (nb::handle name : state.held.keys()) state.entries.push_back({nb::borrow(name), {}, {}});
            states_.push_back(std::move(state));
        }
        for (nb::handle item : arrays) {
            const auto [which, name, array, copy] = nb::cast<std::tuple<std::size_t, nb::object, nb::object, nb::object>>(item);
            require(which < states_.size(), "marks: there is no such state");
            for (Entry& entry : states_[which].entries)
                if (entry.name.equal(name)) entry.array = array;
            if (copy.is_none()) continue;
            copied_.push_back(std::make_unique<Copied>(array, copy));
            require(copied_.back()->array.size() == copied_.back()->copy.size(), "marks: a copy has another size");
        }
    }
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;

    // Remember the states as they are. False, and nothing is remembered, when they hold other entries or arrays by now.
    bool save() {
        saved_ = false;
        for (State& state : states_) {
            if (PyDict_Size(state.held.ptr()) != Py_ssize_t(state.entries.size())) return false;
            Py_ssize_t at = 0;
            PyObject *name, *value;
            for (Entry& entry : state.entries) {
                if (!PyDict_Next(state.held.ptr(), &at, &name, &value) || name != entry.name.ptr()) return false;
                if (!entry.array.is_valid()) entry.before = nb::borrow(value);
                else if (value != entry.array.ptr()) return false;
            }
        }
        for (const auto& entry : copied_) std::memcpy(entry->copy.view.buf, entry->array.view.buf, entry->array.size());
        return saved_ = true;
    }

    // All is well: nothing will be put back.
    void forget() {
        saved_ = false;
        for (State& state : states_)
            for (Entry& entry : state.entries) entry.before.reset();
    }

    // The states as they were when they were saved; false if they were not, or all is forgotten.
    bool restore() {
        if (!saved_) return false;
        for (const auto& entry : copied_) std::memcpy(entry->array.view.buf, entry->copy.view.buf, entry->array.size());
        for (State& state : states_) {
            PyDict_Clear(state.held.ptr());
            for (const Entry& entry : state.entries) state.held[entry.name] = entry.array.is_valid() ? entry.array : entry.before;
        }
        forget();
        return true;
    }
};

const Group group([](nb::module_& m) {
    m.def("csr_form", &form<std::int32_t>, plain, plain, value, value);
    m.def("csr_form", &form<std::int64_t>, plain, plain, value, value);
    nb::class_<Turns>(m, "Turns", nb::is_weak_referenceable(),
                      "A lock whose callers take turns; the thread that has it may take it again.")
        .def(nb::init<>())
        .def("take", &take, value)
        .def("leave", &Turns::leave)
        .def("forked", &Turns::forked)
        .def("__enter__",
             [](Turns& turns) {
                 OneBlasThread::find();  // which may fail, before the turn is taken
                 enter(turns);
                 blas_threads.enter();
             })
        .def("__exit__",
             [](Turns& turns, nb::handle, nb::handle, nb::handle) {
                 blas_threads.leave();
                 turns.leave();
             },
             value.none(), value.none(), value.none());
    nb::class_<OneBlasThread>(m, "OneBlasThread", "Context in which BLAS keeps to the calling thread.")
        .def(nb::init<>())
        .def("__enter__", [](OneBlasThread&) { OneBlasThread::enter(); })
        .def("__exit__", [](OneBlasThread&, nb::handle, nb::handle, nb::handle) { blas_threads.leave(); }, value.none(),
             value.none(), value.none())
        .def("forked", [](OneBlasThread&) { blas_threads.forked(); });
    nb::class_<Marks>(m, "Marks", "Some states as they are, to go back to.")
        .def(nb::init<nb::list, nb::list>())
        .def("save", &Marks::save)
        .def("forget", &Marks::forget)
        .def("restore", &Marks::restore);
});

}  // namespace
