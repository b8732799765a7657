// A loop shared by a few threads: std::thread, so that it works wherever C++17 does and starts nothing at import.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ks {

// f(t) for t = 0 … threads - 1, the last of them on the calling thread. f must not throw.
template <class F>
void parallel(int threads, F&& f) {
    std::vector<std::thread> others;
    for (int t = 0; t + 1 < threads; ++t) others.emplace_back([&f, t] { f(t); });
    f(threads - 1);
    for (auto& other : others) other.join();
}

// Share t of n items cut into nearly equal runs.
struct Share {
    std::size_t begin, end;
    Share(std::size_t n, int t, int threads) : begin(n * t / threads), end(n * (t + 1) / threads) {}
};

// All threads of a loop wait for each other. They spin: the waits between two grids are shorter than a system call.
class Barrier {
  public:
    explicit Barrier(int threads) : threads_(threads) {}
    void wait() {
        if (threads_ == 1) return;
        const int round = round_.load(std::memory_order_relaxed);
        if (waiting_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
            waiting_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
            if (spins > 4000) std::this_thread::yield();  // more threads than cores: let the others work
    }

  private:
    const int threads_;
    std::atomic<int> waiting_{0}, round_{0};
};

}  // namespace ks
