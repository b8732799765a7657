// Two threads with half of the frequencies each: who has which, and how they tell each other the sums of a row.
#pragma once

#include <cmath>

#include "base/helper.hpp"

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
};

// Where two threads put the products of a row for each other: for the present row and the one before, and how many rows that are.
class Exchange {
  public:
    explicit Exchange(std::size_t width) : width_(width) {
        for (Side& side : sides_)
            if (2 * width > near) side.far.resize(2 * width + 8);  // and a line between them
    }
    double* sums(int side, std::size_t row) {
        Side& s = sides_[side];
        return (s.far.empty() ? s.close : s.far.data()) + row % 2 * width_;
    }
    void publish(int side, std::size_t row) { sides_[side].rows.store(row + 1, std::memory_order_release); }
    void wait(int side, std::size_t row) {
        wait_until([&] { return sides_[side].rows.load(std::memory_order_acquire) > row; });
    }

  private:
    static constexpr std::size_t near = 7;  // numbers that share a line of the cache with the count
    struct alignas(64) Side {
        std::atomic<std::size_t> rows{0};
        double close[near];
        std::vector<double> far;
    };
    std::size_t width_;
    Side sides_[2];
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

    // The caller: alone(first, m) or both(first, m) for every block, join() before the first of the latter. The first block is learned
    // alone, which says how long that takes. Where what one core writes reaches the other late, or other programs want the cores, two
    // threads that wait for each other at every row are slower than one: then the call goes on alone, and so do some that follow.
    template <class Alone, class Join, class Both>
    void learn(Helper::Job& job, Alone&& alone, Join&& join, Both&& both) {
        using Clock = std::chrono::steady_clock;
        double usual = INFINITY;  // time for a row, alone
        std::size_t slow = 0;     // blocks that both did not learn faster
        bool together = false;
        for (std::size_t first = 0; first < n_; first += block_) {
            const std::size_t m = std::min(block_, n_ - first);
            if (open_ && !together && first > 0 && here_.load(std::memory_order_acquire)) join(), start_ = first, together = true;
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
            } else if (time > gain * usual && ++slow > 1) {
                wait_until([&] { return finished_.load(std::memory_order_acquire) == first + m; });
                together = open_ = false;
                over_.store(true, std::memory_order_release);
            }
        }
        over_.store(true, std::memory_order_release);
        job.report(slow > 1);
    }

    bool open() const { return open_; }

  private:
    static constexpr double gain = 0.9;  // of the time alone: with more two threads are not worth it
    const std::size_t n_, block_;
    bool open_;
    std::atomic<bool> here_{false}, over_{false};
    std::atomic<std::size_t> agreed_{0}, finished_{0};  // rows up to which both work together, and up to which the second is done
    std::size_t start_ = 0;
};

}  // namespace ks
