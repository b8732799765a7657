// A lock whose callers take turns in the order in which they came; the thread that has it may take it again.
//
// All of it but the sleeping is done while holding Python's global lock, which makes a free turn cost next to nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <new>
#include <thread>

namespace ks {

class Turns {
  public:
    // True when it was free, or was this thread's already.
    bool take() {
        const auto me = std::this_thread::get_id();
        if (depth_ == 0) owner_ = me;
        else if (owner_ != me) return false;
        ++depth_;
        return true;
    }

    void leave() {
        if (depth_ && --depth_ == 0 && !line_.empty()) hand_over();
    }

    // In a forked process, whose only thread is the one that forked: nobody stands in line. False where another thread
    // had the turn: it never ends, and what it guards may be half changed.
    bool forked() {
        new (&mutex_) std::mutex;  // which sleepers may have held
        new (&changed_) std::condition_variable;
        line_.clear();
        lost_ = lost_ || (depth_ && owner_ != std::this_thread::get_id());
        if (lost_) owner_ = std::thread::id();
        return !lost_;
    }

    bool lost() const { return lost_; }

    // A waiting thread, from enqueue to wake-up.
    struct Place {
        Place(Turns& turns) : turns_(turns), me_(turns.line_.insert(turns.line_.end(), this)), id(std::this_thread::get_id()) {}

        // Sleep a while, without Python's lock; true when the turn has come.
        bool sleep() {
            std::unique_lock<std::mutex> guard(turns_.mutex_);
            return turns_.changed_.wait_for(guard, std::chrono::milliseconds(50), [this] { return called_; });
        }

        // Go away, whether called or not.
        void give_up() {
            if (called_) turns_.leave();
            else turns_.line_.erase(me_);
        }

      private:
        friend class Turns;
        Turns& turns_;
        std::list<Place*>::iterator me_;
        const std::thread::id id;
        bool called_ = false;
    };

  private:
    std::mutex mutex_;  // of the sleepers
    std::condition_variable changed_;
    std::list<Place*> line_;
    std::thread::id owner_;
    std::size_t depth_ = 0;
    bool lost_ = false;

    void hand_over() {
        Place* next = line_.front();
        line_.pop_front();
        owner_ = next->id;
        depth_ = 1;
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            next->called_ = true;
        }
        changed_.notify_all();
    }
};

}  // namespace ks
