// Two threads with half of the frequencies each: who has which, and how they tell each other the sums of a row.
#pragma once

#include <cmath>

#include "base/helper.hpp"
#include "base/lines.hpp"

namespace ks {

// The frequencies in one part or two: half h has those from begin[h] up to begin[h + 1].
struct Halves {
    static constexpr std::size_t least = 256;  // frequencies from which there are two
    int count;
    std::size_t begin[3];
    explicit Halves(std::size_t D) : count(D < least ? 1 : 2), begin{0, D / 32 * 16, D} {
        if (count == 1) begin[1] = D;
    }
    std::size_t size(int h) const { return begin[h + 1] - begin[h]; }

    // What the second half has of `rows` rows of weights (rows, D), copied into rows of its own (rows, size(1)), and back.
    template <class T>
    void take_second(std::size_t rows, const T* from, T* to) const {
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * begin[2] + begin[1], size(1), to + i * size(1));
    }
    template <class T>
    void put_second(std::size_t rows, const T* from, T* to) const {
        for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * size(1), size(1), to + i * begin[2] + begin[1]);
    }
};

// Where two threads put the products of a row for each other: a place for even rows and one for odd ones, so that a thread can have the
// place of its next row to itself again while it still works on it.
class Exchange {
  public:
    explicit Exchange(std::size_t width) {
        for (auto& side : places_)
            for (Place& place : side)
                if (width > near) place.far.resize(width + 8);  // and a line between them
    }
    double* sums(int side, std::size_t row) {
        Place& place = places_[side][row % 2];
        return place.far.empty() ? place.close : place.far.data();
    }
    void publish(int side, std::size_t row) { places_[side][row % 2].rows.store(row + 1, std::memory_order_release); }
    void wait(int side, std::size_t row) {
        const std::atomic<std::size_t>& rows = places_[side][row % 2].rows;
        wait_until([&] { return rows.load(std::memory_order_acquire) > row; });
    }
    // Row `row` comes next: fetch its place, which the other thread has read last.
    void prepare(int side, std::size_t row) { will_write(&places_[side][row % 2]); }

  private:
    static constexpr std::size_t near = 7;  // numbers that share a line of the cache with the count
    struct alignas(128) Place {             // two lines, which some processors fetch together
        std::atomic<std::size_t> rows{0};
        double close[near];
        std::vector<double> far;
    };
    Place places_[2][2];

    static void will_write(const void* at) {
#if defined(__x86_64__) && defined(__GNUC__)
        asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(at)));  // __builtin_prefetch would read only
#elif defined(__GNUC__)
        __builtin_prefetch(at, 1);
#else
        (void)at;
#endif
    }
};

// Numbers of one thread alone, on lines of the cache that no other thread writes to: such a line goes from core to core at every row.
template <class T>
class Apart {
  public:
    T* take(std::size_t n) {
        constexpr std::size_t bytes = 128;
        return on_line(room_, n + bytes / sizeof(T), bytes);
    }

  private:
    std::vector<T> room_;
};

// When the second thread joins, and until when both go on together. The caller learns blocks of rows; the second thread joins at the
// beginning of one, when it is awake.
class Together {
  public:
    Together(bool wanted, std::size_t n, std::size_t block) : n_(n), block_(block), open_(wanted && n > block) {}

    // The second thread: begin() once it has joined, then rows(first, m) for every block that both learn.
    template <class Begin, class Rows>
    void help(Begin&& begin, Rows&& rows) {
        here_.store(true, std::memory_order_release);
        bool begun = false;
        for (std::size_t first = 0; first < n_;) {
            wait_until([&] { return agreed_.load(std::memory_order_acquire) > first || over_.load(std::memory_order_acquire); });
            if (agreed_.load(std::memory_order_acquire) <= first) return;
            if (!begun) begin(), begun = true, first = start_;
            const std::size_t m = std::min(block_, n_ - first);
            rows(first, m);
            first += m;
            finished_.store(first, std::memory_order_release);
        }
    }

    // The caller: alone(first, m) or both(first, m) for every block, join() before the first of the latter and part() after the last. The
    // first rows are learned alone, which says how long that takes. Where what one core writes reaches the other late, or other programs
    // want the cores, two threads that wait for each other at every row are slower than one: then the call goes on alone, and so do some
    // that follow.
    template <class Alone, class Join, class Both, class Part>
    void learn(Helper::Job& job, Alone&& alone, Join&& join, Both&& both, Part&& part) {
        using Clock = std::chrono::steady_clock;
        double usual = INFINITY;                // time for a row, alone
        double spent = 0.0;                     // time of both,
        std::size_t blocks = 0, rows_both = 0;  // and what they learned in it
        bool together = false, lost = false;
        const auto leave = [&](std::size_t rows) {
            wait_until([&] { return finished_.load(std::memory_order_acquire) == rows; });
            over_.store(true, std::memory_order_release);
            together = false;
            part();
        };
        for (std::size_t first = 0, m; first < n_; first += m) {
            if (open_ && !together && first > 0 && here_.load(std::memory_order_acquire)) join(), start_ = first, together = true;
            m = std::min(open_ && !together && first < block_ ? (block_ + 3) / 4 : block_, n_ - first);  // it will be here soon
            const auto begin = Clock::now();
            if (together) {
                agreed_.store(first + m, std::memory_order_release);
                both(first, m);
            } else {
                alone(first, m);
            }
            const double time = std::chrono::duration<double>(Clock::now() - begin).count() / double(m);
            if (!together) {
                usual = std::min(usual, time);
                continue;
            }
            if (++blocks == 1) continue;  // the second thread has to fetch all it needs
            spent += time * double(m), rows_both += m;
            lost = blocks > trial && spent > gain * usual * double(rows_both);
            if (!lost) continue;
            leave(first + m);
            open_ = false;
        }
        if (together) leave(n_);
        over_.store(true, std::memory_order_release);
        job.report(lost);
    }

    bool open() const { return open_; }

  private:
    static constexpr double gain = 0.95;      // of the time alone: with more two threads are not worth it
    static constexpr std::size_t trial = 3;  // blocks, besides the first, after which that can be said
    const std::size_t n_, block_;
    bool open_;
    std::atomic<bool> here_{false}, over_{false};
    std::atomic<std::size_t> agreed_{0}, finished_{0};  // rows up to which both work together, and up to which the second is done
    std::size_t start_ = 0;
};

}  // namespace ks
