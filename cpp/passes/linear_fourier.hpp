// Online learning on Fourier features, rows to weights in one go: z = [cos(W'x), sin(W'x)]/sqrt(D), the recursion of linear.hpp.
//
// Many frequencies are cut into two halves, and every product with the weights is the sum of two, whoever makes them: so two threads can
// have one half each. A thread projects rows on its frequencies, makes their features and changes their weights; all that goes from one
// to the other is a row's C products, while both make the features of the next row. Each takes the step from the same sums, so the
// bits do not depend on the threads.
#pragma once

#include <vector>

#include "base/blas.hpp"
#include "base/helper.hpp"
#include "passes/linear.hpp"

namespace ks {

// A part of the features of a row: the cosines and sines of `count` of D frequencies, from number `begin` on; z (2 count).
template <class T>
struct PartRow {
    std::size_t D, begin, count;
    const T* z;

    KS_INLINE double dot(const T* w) const {
        return double(ks::dot(count, w + begin, z) + ks::dot(count, w + D + begin, z + count));
    }
    KS_INLINE void add(T factor, T* w) const {
        axpy(count, factor, z, w + begin);
        axpy(count, factor, z + count, w + D + begin);
    }
    KS_INLINE void adagrad(int, T g, T eta, double fade, T* G, T* w) const {
        if (fade != 1.0) stretch(T(fade), G);
        adagrad_step(count, g, eta, z, G + begin, w + begin);
        adagrad_step(count, g, eta, z + count, G + D + begin, w + D + begin);
    }
    KS_INLINE void stretch(T factor, T* w) const {
        scale(count, factor, w + begin);
        scale(count, factor, w + D + begin);
    }
    KS_INLINE void average(T factor, T share, const T* w, T* mean) const {
        follow_weights(count, factor, share, w + begin, mean + begin);
        follow_weights(count, factor, share, w + D + begin, mean + D + begin);
    }
};

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
            if (2 * width > near) side.far.resize(2 * width);
    }
    double* sums(int side, std::size_t row) {
        Side& s = sides_[side];
        return (s.far.empty() ? s.close : s.far.data()) + row % 2 * width_;
    }
    void publish(int side, std::size_t row) { sides_[side].rows.store(row + 1, std::memory_order_release); }
    // True when it took long.
    bool wait(int side, std::size_t row) {
        return wait_until([&] { return sides_[side].rows.load(std::memory_order_acquire) > row; });
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

// What a thread has in hand: the projections of a block of rows on its frequencies, and the features of two rows.
template <class T>
struct FourierPart {
    std::size_t D, begin, count;
    T scale;
    std::vector<T> P, z;
    KS_INLINE void make(std::size_t i) {
        T* at = z.data() + i % 2 * 2 * count;
        cos_sin(count, P.data() + i * count, scale, at, at + count);
    }
    KS_INLINE PartRow<T> row(std::size_t i) const { return {D, begin, count, z.data() + i % 2 * 2 * count}; }
};

// Rows of a block, `row0` rows into the call. One thread has both parts, or `side` says which one this thread has.
template <class T>
KS_CLONES std::int64_t fourier_rows(std::size_t m, std::size_t row0, int C, FourierPart<T>* parts, int count, int side,
                                    Exchange* exchange, const double* y, const double* weight, const LinearModel<T>& model,
                                    std::int64_t t, const Loss& loss, const Update& update, double* F, std::size_t stride,
                                    double* scratch, double* other, std::size_t* late) {
    const RowRoom room(scratch, C);
    const std::size_t P = 2 * parts[0].D;
    const int numbers = model.mean ? 2 * C : C;
    for (int h = 0; h < count; ++h) parts[h].make(0);
    for (std::size_t i = 0; i < m; ++i) {
        if (exchange) {
            double* mine = exchange->sums(side, row0 + i);
            row_sums(P, C, parts[0].row(i), model, mine);
            exchange->publish(side, row0 + i);
            if (i + 1 < m) parts[0].make(i + 1);  // while the other's products are on their way
            *late += exchange->wait(1 - side, row0 + i);
            const double *first = exchange->sums(0, row0 + i), *second = exchange->sums(1, row0 + i);
            for (int k = 0; k < numbers; ++k) room.sums[k] = first[k] + second[k];
        } else {
            row_sums(P, C, parts[0].row(i), model, room.sums);
            if (count == 2) {
                row_sums(P, C, parts[1].row(i), model, other);
                for (int k = 0; k < numbers; ++k) room.sums[k] += other[k];
            }
        }
        if (row_step(C, 1.0, y[i], weight ? weight[i] : 1.0, model, t, loss, update, F + i * stride, room))
            for (int h = 0; h < count; ++h) row_change(P, C, parts[h].row(i), model, t, update, room);
        if (!exchange && i + 1 < m)
            for (int h = 0; h < count; ++h) parts[h].make(i + 1);
    }
    return t;
}

// Projections out (m, count) of rows first ... first + m - 1 on frequencies begin ... begin + count - 1, W (d, D).
template <class T>
struct DenseProjection {
    const Blas& blas;
    const T *X, *W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, std::size_t begin, std::size_t count, T* out) const {
        blas.gemm(false, false, count, m, d, T(1), W + begin, D, X + first * d, d, T(0), out, count);
    }
};

template <class T, class I>
struct CsrProjection {
    const T* data;
    const I *indices, *indptr;
    const T* W;
    std::size_t d, D;
    void operator()(std::size_t first, std::size_t m, std::size_t begin, std::size_t count, T* out) const {
        // see the binding of csr_matmul for when a copy of tiles pays
        constexpr std::size_t tile = csr_tile_width<T>;
        const std::size_t stored = std::size_t(indptr[first + m] - indptr[first]);
        std::unique_ptr<T[]> buffer;
        if (count >= tile && stored >= 6 * d && d * tile * sizeof(T) <= 256 * 1024) buffer.reset(new T[d * tile]);
        csr_matmul<T, I>(m, d, count, data, indices, indptr + first, W + begin, D, buffer.get(), out);
    }
};

// All n rows; returns t. memory: numbers that the update remembers. shared: a second thread may take a half.
template <class T, class Project>
std::int64_t fourier_pass(std::size_t n, std::size_t D, int C, std::size_t memory, const Project& project, const double* y,
                          const double* weight, const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update,
                          bool shared, double* F) {
    const Halves halves(D);
    // Projections of a block stay in the second-level cache.
    const std::size_t block = std::min<std::size_t>(n, D <= 512 ? 128 : D <= 1024 ? 64 : 32);
    std::vector<FourierPart<T>> parts;
    for (int h = 0; h < halves.count; ++h) {
        const std::size_t count = halves.size(h);
        parts.push_back({D, halves.begin[h], count, T(1 / std::sqrt(double(D))), std::vector<T>(block * count), std::vector<T>(4 * count)});
    }
    const auto rows_of = [&](std::size_t first) { return std::min(block, n - first); };
    const auto projected = [&](FourierPart<T>& part, std::size_t first) {
        project(first, rows_of(first), part.begin, part.count, part.P.data());
    };
    const auto weight_of = [&](std::size_t first) { return weight ? weight + first : nullptr; };
    std::vector<double> scratch(RowRoom::size * C), other(2 * C);

    // The second thread joins when it is awake, at the beginning of a block, with its own copy of the numbers that are not weights.
    Exchange exchange(model.mean ? 2 * C : C);
    std::atomic<bool> here{false}, over{false};
    std::atomic<std::size_t> agreed{0}, finished{0};  // rows up to which both work together, and up to which the second is done
    struct { std::vector<double> scale, memory, center; std::int64_t t; std::size_t first; } joined;
    const auto help = [&] {
        here.store(true, std::memory_order_release);
        wait_until([&] { return agreed.load(std::memory_order_acquire) > 0 || over.load(std::memory_order_acquire); });
        if (agreed.load(std::memory_order_acquire) == 0) return;
        LinearModel<T> own = model;
        own.scale = joined.scale.data(), own.memory = joined.memory.data(), own.center = model.center ? joined.center.data() : nullptr;
        std::vector<double> room(RowRoom::size * C), scores(C);
        std::int64_t rows = joined.t;
        std::size_t late = 0;
        for (std::size_t first = joined.first; first < n; first += block) {
            wait_until([&] { return agreed.load(std::memory_order_acquire) > first || over.load(std::memory_order_acquire); });
            if (agreed.load(std::memory_order_acquire) <= first) return;
            projected(parts[1], first);
            rows = fourier_rows<T>(rows_of(first), first, C, &parts[1], 1, 1, &exchange, y + first, weight_of(first), own, rows, loss, update,
                                   scores.data(), 0, room.data(), nullptr, &late);
            finished.store(first + rows_of(first), std::memory_order_release);
        }
    };
    bool together = false, alone = !shared || halves.count < 2;
    std::size_t delays = 0;
    Helper::Job job(!alone && n > block, help);
    for (std::size_t first = 0; first < n; first += block) {
        const std::size_t rows = rows_of(first);
        if (!alone && !together && here.load(std::memory_order_acquire)) {
            joined.scale.assign(model.scale, model.scale + C);
            joined.memory.assign(model.memory, model.memory + memory);
            if (model.center) joined.center.assign(model.center, model.center + 2);
            joined.t = t, joined.first = first;
            together = true;
        }
        std::size_t late = 0;
        if (together) {
            agreed.store(first + rows, std::memory_order_release);
            projected(parts[0], first);
            t = fourier_rows<T>(rows, first, C, &parts[0], 1, 0, &exchange, y + first, weight_of(first), model, t, loss, update,
                                F + first * C, C, scratch.data(), other.data(), &late);
            // Where other programs want the cores, two threads that wait for each other at every row are slower than one.
            if (late > 0 && ++delays > 1) {
                wait_until([&] { return finished.load(std::memory_order_acquire) == first + rows; });
                together = false, alone = true, over.store(true, std::memory_order_release);
            }
            continue;
        }
        for (FourierPart<T>& part : parts) projected(part, first);
        t = fourier_rows<T>(rows, first, C, parts.data(), halves.count, 0, nullptr, y + first, weight_of(first), model, t, loss, update,
                            F + first * C, C, scratch.data(), other.data(), &late);
    }
    over.store(true, std::memory_order_release);
    job.report(delays > 1);
    return t;
}

}  // namespace ks
