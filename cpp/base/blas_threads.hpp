// BLAS keeps to the calling thread while calls of the library run, so that sums are rounded alike on every machine.
//
// All of it is done while holding Python's global lock.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ks {

class BlasThreads {
  public:
    struct Library {
        int (*get)();
        void (*set)(long);  // those that take an int read its lower half
        bool per_thread;    // whether every thread has a number of its own (OpenMP)
    };

    bool known = false;  // whether the libraries were looked for

    void use(std::vector<Library> libraries) {
        known = true;
        libraries_ = std::move(libraries);
        before_.assign(libraries_.size(), 0);
    }

    // A call begins in this thread, or another one inside of it.
    void enter() {
        if (depth_++) return;
        ++calls_;
        own_.resize(libraries_.size());
        for (std::size_t i = 0; i < libraries_.size(); ++i) {
            const int count = libraries_[i].get();
            if (count < 2) continue;
            number(i) = count;
            libraries_[i].set(1);
        }
    }

    void leave() {
        if (depth_ == 0 || --depth_) return;
        --calls_;
        for (std::size_t i = 0; i < own_.size(); ++i)
            if (libraries_[i].per_thread || calls_ == 0) put_back(i);
    }

    // In a thread that a call has started, and that ends with it.
    void alone() const {
        for (const Library& library : libraries_)
            if (library.per_thread) library.set(1);
    }

    // In a new process calls of other threads never end.
    void forked() {
        calls_ = depth_ ? 1 : 0;
        for (std::size_t i = 0; i < libraries_.size(); ++i)
            if (!libraries_[i].per_thread && calls_ == 0) put_back(i);
    }

  private:
    std::vector<Library> libraries_;
    std::vector<int> before_;  // numbers to put back when the last call ends, 0 where there is nothing to put back
    std::size_t calls_ = 0;    // threads that are inside a call
    inline static thread_local std::size_t depth_ = 0;
    inline static thread_local std::vector<int> own_;

    int& number(std::size_t i) { return libraries_[i].per_thread ? own_[i] : before_[i]; }

    void put_back(std::size_t i) {
        int& count = number(i);
        if (count && libraries_[i].get() == 1) libraries_[i].set(count);  // unless somebody else set it meanwhile
        count = 0;
    }
};

inline BlasThreads blas_threads;

}  // namespace ks
