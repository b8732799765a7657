// Online learning on Fourier features, rows to weights in one go: z = [cos(W'x), sin(W'x)]/sqrt(D), the recursion of linear.hpp.
//
// Many frequencies are cut into two halves, and every product with the weights is the sum of two, whoever makes them: so two threads can
// have one half each, the second on a copy of its weights. A thread projects rows on its frequencies, makes their features and changes
// their weights; all that goes from one to the other at a row are C products, while both make the features of the next row. Each takes
// the step from the same sums, so the bits do not depend on the threads.
//
// Where leading directions are damped (maps/damped.hpp), the features of four rows are made together.
#pragma once

#include <vector>

#include "base/exchange.hpp"
#include "base/projection.hpp"
#include "maps/damped.hpp"
#include "passes/linear.hpp"

namespace ks {

// What a thread has in hand: the projections of a block of rows on its frequencies, and the features of two groups of rows.
template <class T>
struct FourierPart {
    std::size_t D, begin, count;
    T scale;
    const Directions<T>* damped;  // or null
    std::size_t first;            // number among all frequencies of the first one
    std::vector<T> P, z;
    double norms[8];  // of damped rows
    KS_INLINE std::size_t rows() const { return damped ? 4 : 1; }  // of a group; a power of two, so that no division is needed
    KS_INLINE T* at(std::size_t i) { return z.data() + (i & (2 * rows() - 1)) * 2 * count; }
    // Row i of the m rows of a block, which is row `row` of the call, and the others of its group.
    KS_INLINE void make(std::size_t i, std::size_t m, std::size_t row) {
        const std::size_t group = std::min(rows(), m - i);
        if (i & (rows() - 1)) return;
        for (std::size_t r = i; r < i + group; ++r) cos_sin(count, P.data() + r * count, scale, at(r), at(r) + count);
        if (!damped) return;
        const T* psi = damped->psi + row * damped->k;
        if (group == 4) return take_off<T, 4>(*damped, first, count, psi, at(i), 2 * count, norms + i % 8);
        for (std::size_t r = i; r < i + group; ++r, psi += damped->k)
            take_off<T, 1>(*damped, first, count, psi, at(r), 2 * count, norms + r % 8);
    }
    KS_INLINE double norm(std::size_t i) const { return norms[i % 8]; }
    KS_INLINE PartRow<T> row(std::size_t i) { return {D, begin, count, at(i)}; }
};

// Rows of a block, `row0` rows into the call. One thread has both parts, or `side` says which one this thread has.
template <class T>
KS_CLONES std::int64_t fourier_rows(std::size_t m, std::size_t row0, int C, FourierPart<T>* parts, int count, int side,
                                    Exchange* exchange, const double* y, const double* weight, const LinearModel<T>& model,
                                    std::int64_t t, const Loss& loss, const Update& update, double* F, std::size_t stride,
                                    double* scratch, double* other) {
    const RowRoom room(scratch, C);
    const std::size_t P = 2 * parts[0].D;
    const int numbers = model.mean ? 2 * C : C;
    const bool damped = parts[0].damped;
    for (int h = 0; h < count; ++h) parts[h].make(0, m, row0);
    for (std::size_t i = 0; i < m; ++i) {
        double norm = 1.0;
        if (exchange) {
            double* mine = exchange->sums(side, row0 + i);
            row_sums(P, C, parts[0].row(i), model, mine);
            if (damped) mine[numbers] = parts[0].norm(i);
            exchange->publish(side, row0 + i);
            if (i + 1 < m) parts[0].make(i + 1, m, row0 + i + 1);  // while the other's products are on their way
            exchange->wait(1 - side, row0 + i);
            exchange->prepare(side, row0 + i + 1);
            const double *first = exchange->sums(0, row0 + i), *second = exchange->sums(1, row0 + i);
            for (int k = 0; k < numbers; ++k) room.sums[k] = first[k] + second[k];
            if (damped) norm = first[numbers] + second[numbers];
        } else {
            row_sums(P, C, parts[0].row(i), model, room.sums);
            if (damped) norm = parts[0].norm(i);
            if (count == 2) {
                row_sums(P, C, parts[1].row(i), model, other);
                for (int k = 0; k < numbers; ++k) room.sums[k] += other[k];
                if (damped) norm += parts[1].norm(i);
            }
        }
        if (row_step(C, norm, y[i], weight ? weight[i] : 1.0, model, t, loss, update, F + i * stride, room))
            for (int h = 0; h < count; ++h) row_change(P, C, parts[h].row(i), model, t, update, room);
        if (!exchange && i + 1 < m)
            for (int h = 0; h < count; ++h) parts[h].make(i + 1, m, row0 + i + 1);
    }
    return t;
}

// All n rows; returns t. memory: numbers that the update remembers. shared: a second thread may take a half. damped: or null.
template <class T, class Project>
std::int64_t fourier_pass(std::size_t n, std::size_t D, int C, std::size_t memory, const Project& project, const double* y,
                          const double* weight, const LinearModel<T>& model, std::int64_t t, const Loss& loss, const Update& update,
                          bool shared, const Directions<T>* damped, double* F) {
    const Halves halves(D);
    // Projections of a block stay in the second-level cache, and are of rows enough to pay for reading all frequencies.
    constexpr std::size_t room = std::size_t(1) << 20;
    const std::size_t block = std::min(n, std::clamp<std::size_t>(room / (halves.size(0) * sizeof(T)), 32, 128));
    std::vector<FourierPart<T>> parts;
    for (int h = 0; h < halves.count; ++h) {
        const std::size_t count = halves.size(h);
        parts.push_back({D, halves.begin[h], count, T(1 / std::sqrt(double(D))), damped, halves.begin[h], std::vector<T>(block * count), {}, {}});
        parts.back().z.resize(4 * count * parts.back().rows());
    }
    const auto projected = [&](FourierPart<T>& part, std::size_t first, std::size_t m) {
        project(first, m, part.begin, part.count, part.P.data());
    };
    const auto weight_of = [&](std::size_t first) { return weight ? weight + first : nullptr; };
    std::vector<double> scratch(RowRoom::size * C), other(2 * C);

    // The second thread has its own copy of the numbers that change: all that are not weights, and the weights of its half.
    Exchange exchange((model.mean ? 2 * C : C) + 1);
    Apart<double> numbers, scratch_of_second;
    Apart<T> weights;
    FourierPart<T> half;
    LinearModel<T> own = model;
    std::int64_t t_of_second = t;
    T* LinearModel<T>::*const copied[] = {&LinearModel<T>::W, &LinearModel<T>::G, &LinearModel<T>::mean};
    Together together(shared && halves.count == 2, n, block);
    Helper::Job job(together.open(), [&] {
        together.help(
            [&] {
                const std::size_t count = halves.size(1), size = 2 * count * std::size_t(C);
                half = {count, 0, count, parts[1].scale, damped, halves.begin[1], std::move(parts[1].P), std::vector<T>(parts[1].z.size()), {}};
                own.W = weights.take(3 * size);
                if (model.G) own.G = own.W + size;
                if (model.mean) own.mean = own.W + 2 * size;
                for (const auto weight : copied)
                    if (model.*weight) halves.take_second(2 * C, model.*weight, own.*weight);
            },
            [&](std::size_t first, std::size_t m) {
                project(first, m, halves.begin[1], half.count, half.P.data());
                double* room = scratch_of_second.take((RowRoom::size + 1) * C);
                t_of_second = fourier_rows<T>(m, first, C, &half, 1, 1, &exchange, y + first, weight_of(first), own, t_of_second, loss,
                                              update, room + RowRoom::size * C, 0, room, nullptr);
            });
    });
    together.learn(
        job,
        [&](std::size_t first, std::size_t m) {
            for (FourierPart<T>& part : parts) projected(part, first, m);
            t = fourier_rows<T>(m, first, C, parts.data(), halves.count, 0, nullptr, y + first, weight_of(first), model, t, loss, update,
                                F + first * C, C, scratch.data(), other.data());
        },
        [&] {
            own.scale = numbers.take(C + memory + 2), own.memory = own.scale + C;
            double* at = std::copy_n(model.memory, memory, std::copy_n(model.scale, C, own.scale));
            if (model.center) own.center = at, std::copy_n(model.center, 2, at);
            t_of_second = t;
        },
        [&](std::size_t first, std::size_t m) {
            projected(parts[0], first, m);
            t = fourier_rows<T>(m, first, C, &parts[0], 1, 0, &exchange, y + first, weight_of(first), model, t, loss, update, F + first * C, C,
                                scratch.data(), other.data());
        },
        [&] {
            for (const auto weight : copied)
                if (model.*weight) halves.put_second(2 * C, own.*weight, model.*weight);
            parts[1].P = std::move(half.P);
        });
    return t;
}

}  // namespace ks
