// A second thread that stays, and what two threads do together: it lends a hand to one caller at a time and sleeps in between.
//
// Nothing waits for it: a caller begins at once, and what the second thread has not begun when the caller is done is withdrawn.
// Waking a thread costs some ten microseconds, which a call of a thousand rows can spare and one of a few rows cannot.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace ks {

inline void pause_thread() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    asm volatile("isb" ::: "memory");  // `yield` takes no time at all on most cores
#endif
}

// Wait until done() is true: the other thread is expected within a microsecond, so the core is kept for a while and then lent to others.
// True when it took so long that the core was lent: the other thread has lost its own.
template <class F>
inline bool wait_until(F&& done) {
    constexpr auto patience = std::chrono::microseconds(60);
    for (int spins = 0; spins < 50; ++spins)
        if (done()) return false;
    const auto end = std::chrono::steady_clock::now() + patience;
    do
        for (int spins = 0; spins < 32; ++spins) {
            if (done()) return false;
            pause_thread();
        }
    while (std::chrono::steady_clock::now() < end);
    while (!done()) std::this_thread::yield();
    return true;
}

class Helper {
  public:
    // The helper of this process. It is never destroyed: its thread may outlive the end of main.
    static Helper& the() {
        static std::mutex guard;
        static Helper* helper = nullptr;
        static long owner = 0;
        const std::lock_guard<std::mutex> lock(guard);
#if defined(_WIN32)
        const long process = 1;
#else
        const long process = long(getpid());  // threads do not survive a fork
#endif
        if (!helper || owner != process) helper = new Helper, owner = process;
        return *helper;
    }

    // A piece of work that the second thread may do while this object lives. At its end the work is done, or was never begun;
    // whoever made it sees to it that work under way comes to its end then.
    class Job {
      public:
        Job(bool wanted, std::function<void()> work) : work_(std::move(work)) {
            if (!wanted) return;
            Helper& helper = Helper::the();
            if (helper.taken_.exchange(true, std::memory_order_acquire)) return;  // it works for someone else
            if (helper.skip_ > 0) {
                --helper.skip_;
                helper.taken_.store(false, std::memory_order_release);
                return;
            }
            helper_ = &helper;
            helper.offer(&work_);
        }
        ~Job() {
            if (!helper_) return;
            helper_->withdraw();
            helper_->taken_.store(false, std::memory_order_release);
        }
        // Whether the caller had to wait for a thread that was not given a core. Then calls do without it for a while: 1, 3, 7, ...
        void report(bool late) {
            if (!helper_) return;
            helper_->often_ = late ? std::min(2 * helper_->often_ + 1, 63) : 0;
            helper_->skip_ = helper_->often_;
        }
        Job(const Job&) = delete;
        Job& operator=(const Job&) = delete;

      private:
        std::function<void()> work_;
        Helper* helper_ = nullptr;
    };

  private:
    enum Status { idle, offered, running };
    std::atomic<bool> taken_{false};
    int skip_ = 0, often_ = 0;  // calls that will do without, now and the last time; of whoever has taken it
    std::atomic<int> status_{idle};
    std::atomic<bool> asleep_{false};
    std::function<void()>* work_ = nullptr;
    std::mutex mutex_;
    std::condition_variable woken_;

    Helper() { std::thread([this] { live(); }).detach(); }

    void offer(std::function<void()>* work) {
        work_ = work;
        status_.store(offered);
        if (asleep_.load()) {
            { const std::lock_guard<std::mutex> lock(mutex_); }
            woken_.notify_one();
        }
    }

    void withdraw() {
        int expected = offered;
        if (status_.compare_exchange_strong(expected, idle)) return;
        wait_until([this] { return status_.load() == idle; });
    }

    void live() {
        for (;;) {
            // Calls often follow each other closely: stay awake for a moment.
            const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(150);
            while (status_.load() != offered && std::chrono::steady_clock::now() < end)
                for (int i = 0; i < 16 && status_.load(std::memory_order_relaxed) != offered; ++i) pause_thread();
            if (status_.load() != offered) {
                std::unique_lock<std::mutex> lock(mutex_);
                asleep_.store(true);
                woken_.wait(lock, [this] { return status_.load() == offered; });
                asleep_.store(false);
            }
            int expected = offered;
            if (!status_.compare_exchange_strong(expected, running)) continue;  // withdrawn
            (*work_)();
            status_.store(idle);
        }
    }
};

// use(i, slot) for i = 0 ... blocks - 1 in order on the calling thread, after make(i, slot); when `shared`, the second thread makes
// blocks too, at most `slots` beyond the one in use. Neither may throw.
template <class Make, class Use>
void in_order(bool shared, std::size_t blocks, std::size_t slots, Make&& make, Use&& use) {
    if (!shared || blocks < 2) {
        for (std::size_t i = 0; i < blocks; ++i) make(i, 0), use(i, 0);
        return;
    }
    std::atomic<std::size_t> next{0}, used{0};
    const std::unique_ptr<std::atomic<bool>[]> ready(new std::atomic<bool>[blocks]);
    for (std::size_t i = 0; i < blocks; ++i) ready[i].store(false, std::memory_order_relaxed);
    // Make one block, if one may be made now.
    const auto work = [&] {
        std::size_t i = next.load(std::memory_order_relaxed);
        do
            if (i >= blocks || i >= used.load(std::memory_order_acquire) + slots) return false;
        while (!next.compare_exchange_weak(i, i + 1, std::memory_order_relaxed));
        make(i, i % slots);
        ready[i].store(true, std::memory_order_release);
        return true;
    };
    using Clock = std::chrono::steady_clock;
    Clock::duration longest{0};  // that this thread took for a block
    std::size_t delays = 0;
    Helper::Job job(true, [&] {
        while (next.load(std::memory_order_relaxed) < blocks)
            if (!work()) wait_until([&] {
                const std::size_t i = next.load(std::memory_order_relaxed);
                return i >= blocks || i < used.load(std::memory_order_acquire) + slots;
            });
    });
    for (std::size_t i = 0; i < blocks; ++i) {
        while (!ready[i].load(std::memory_order_acquire)) {
            const auto start = Clock::now();
            if (work()) longest = std::max(longest, Clock::now() - start);
            else if (wait_until([&] { return ready[i].load(std::memory_order_acquire); }))
                delays += Clock::now() - start > 3 * longest;
        }
        use(i, i % slots);
        used.store(i + 1, std::memory_order_release);
    }
    job.report(delays > 1);
}

// make(i) for i = 0 ... blocks - 1, in any order.
template <class Make>
void in_any_order(bool shared, std::size_t blocks, Make&& make) {
    in_order(shared, blocks, blocks, [&](std::size_t i, std::size_t) { make(i); }, [](std::size_t, std::size_t) {});
}

}  // namespace ks
