// Texts as hashed pieces, and what these say of the target: the twin of columns/text.py, which explains the formulas,
// to the last bit. So nothing may be fused here (CMakeLists.txt).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ks::texts {

constexpr std::uint32_t places = 1u << 18;
constexpr std::size_t families = 2, learners = 3, scores = families * learners;
constexpr std::size_t counted = 1, per_output = 5, sums_of_all = 3, output_sums = 6, most_counted = 256;
constexpr double step_size = 0.3, start_of_squares = 1e-8, far = 5.0, largest_score = 8.0;

using Character = std::uint32_t;

inline bool is_space(Character c) { return c <= 0x20 || c == 0x85 || c == 0xA0 || c == 0x3000 || (c >= 0x2000 && c <= 0x200B); }

inline bool is_mark(Character c) {
    if (c < 0x80) return !((c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x5A) || (c >= 0x61 && c <= 0x7A));
    return (c <= 0xBF && c != 0xAA && c != 0xB5 && c != 0xBA) || (c >= 0x2000 && c <= 0x206F) || (c >= 0x3001 && c <= 0x303F);
}

// FNV-1a over code points, stirred once more; it goes on from the state of the characters before.
struct Hash {
    std::uint64_t h = 14695981039346656037ull;
    Hash& operator<<(Character c) { return h = (h ^ c) * 1099511628211ull, *this; }
    Hash& operator<<(std::pair<const Character*, const Character*> word) {
        for (const Character* c = word.first; c != word.second; ++c) *this << *c;
        return *this;
    }
    std::uint32_t key() const {
        const std::uint64_t stirred = (h ^ h >> 29) * 0xBF58476D1CE4E5B9ull;
        return std::uint32_t((stirred ^ stirred >> 32) % (2 * places));
    }
};

// Keys of the pieces of one family in a text, as often as they come.
inline void keys_of(const Character* begin, const Character* end, std::size_t family, std::vector<std::uint32_t>& keys) {
    std::pair<const Character*, const Character*> before{nullptr, nullptr};
    for (const Character* at = begin; at < end;) {
        const Character* stop = at;
        while (stop < end && !(is_space(*stop) || (family == 0 && is_mark(*stop)))) ++stop;
        if (stop > at) {
            const std::pair<const Character*, const Character*> word{at, stop};
            if (family == 0) {
                keys.push_back((Hash() << word).key());
                if (before.first) keys.push_back((Hash() << before << Character(32) << word).key());
                before = word;
            } else {
                const std::ptrdiff_t length = stop - at + 2;  // with a blank on both sides
                for (std::ptrdiff_t size = 3; size <= 5; ++size)
                    for (std::ptrdiff_t first = 0; first + size <= length; ++first) {
                        Hash hash;
                        for (std::ptrdiff_t i = first; i < first + size; ++i) hash << (i == 0 || i == length - 1 ? Character(32) : at[i - 1]);
                        keys.push_back(hash.key());
                    }
            }
        }
        at = stop + 1;
    }
}

// Pieces of a family in a text, appended: places, and signed amounts by how often each came.
inline void pieces_of(std::vector<std::uint32_t>& keys, const double* amounts_of_counts, std::vector<std::int32_t>& at, std::vector<double>& amounts) {
    std::sort(keys.begin(), keys.end());
    for (std::size_t i = 0, j; i < keys.size(); i = j) {
        for (j = i + 1; j < keys.size() && keys[j] == keys[i];) ++j;
        const double amount = amounts_of_counts[std::min(j - i, most_counted - 1)];
        at.push_back(std::int32_t(keys[i] % places));
        amounts.push_back(keys[i] / places ? -amount : amount);
    }
}

inline double drawn_in(double v, double most) { return std::min(std::max(v, -most), most); }
inline double sigmoid(double f) { return 1.0 / (1.0 + std::exp(-drawn_in(f, 30.0))); }

struct TextPass {
    std::size_t n, C;
    float* table;          // (2 places, 1 + 5 C)
    double* sums;          // (2, 3 + 6 C)
    double* target;        // (3) weight, mean, m2
    const std::int32_t* at;
    const double* amounts;
    const std::int64_t* stops;  // (2 n)
    const double* Y;            // (n, C) or null
    const double* weight;       // (n) or null
    double* out;                // (6, n, C)
    double* units;              // (n, 2)
    bool numbers;
    std::vector<double> z, t;  // of the pieces of a row, and of its outputs

    void rows() {
        std::int64_t longest = 0;
        for (std::size_t i = 0; i < families * n; ++i) longest = std::max(longest, stops[i] - (i ? stops[i - 1] : 0));
        z.resize(std::size_t(longest)), t.resize(C);
        for (std::size_t i = 0; i < n; ++i) row(i);
    }

    void row(std::size_t i) {
        const double count = target[0], mean = target[1], m2 = target[2];
        const bool known = !numbers || (count > 0.0 && m2 > 0.0);
        const double deviation = numbers && known ? std::sqrt(m2 / count) : 1.0;
        units[2 * i] = mean, units[2 * i + 1] = deviation;
        for (std::size_t s = 0; s < scores; ++s)
            for (std::size_t c = 0; c < C; ++c) out[(s * n + i) * C + c] = 0.0;
        std::int64_t first = i ? stops[families * i - 1] : 0;
        if (first == stops[families * i + families - 1]) return;
        const double w = weight ? weight[i] : 1.0;
        const bool learns = Y && w > 0.0;
        for (std::size_t c = 0; learns && c < C; ++c) t[c] = numbers ? drawn_in((Y[i * C + c] - mean) / deviation, far) : Y[i * C + c];
        for (std::size_t family = 0; family < families; ++family) {
            const std::int64_t end = stops[families * i + family];
            one_family(i, family, std::size_t(first), std::size_t(end), w, learns && known);
            first = end;
        }
        if (!learns || !numbers) return;
        const double y = Y[i * C], delta = y - mean;
        target[0] = count + w;
        target[1] = mean + w * delta / (count + w);
        target[2] = m2 + w * delta * (y - target[1]);
    }

    void one_family(std::size_t i, std::size_t family, std::size_t first, std::size_t end, double w, bool learns) {
        const std::size_t width = counted + per_output * C;
        float* const rows_of_table = table + family * places * width;
        double* const all = sums + family * (sums_of_all + output_sums * C);
        const double total = all[0], different = std::max(all[1], 1.0), rows = all[2];
        double size = 0.0, squares = 0.0;
        for (std::size_t j = first; j < end; ++j) size += std::abs(amounts[j]), squares += amounts[j] * amounts[j];
        if (first == end) return;
        const double norm = std::sqrt(squares), trust = std::min(0.7, 2.1 / std::sqrt(1.0 + size));
        for (std::size_t c = 0; c < C; ++c) {
            const std::size_t place = counted + per_output * c;
            double* const own = all + sums_of_all + output_sums * c;
            const double positive = own[0], m = own[1];
            const double without = total - positive + different, with = positive + different;
            const double shift = numbers ? 0.0 : std::log((rows - m + 2.0) * with / ((m + 2.0) * without));
            double linear = 0.0, weighted = 0.0, length = 0.0, bayes = 0.0;
            for (std::size_t j = first; j < end; ++j) {
                const float* const piece = rows_of_table + std::size_t(at[j]) * width;
                const double count = piece[0], p = piece[place], x = amounts[j];
                double r;
                if (numbers) r = p / (count + 1.0);
                else r = std::log((p + 1.0) * without / ((std::max(count - p, 0.0) + 1.0) * with));
                const double v = z[j - first] = std::abs(x) * (r + shift);
                linear += x * double(piece[place + 1]);
                weighted += v * double(piece[place + 3]);
                length += v * v;
                bayes += std::abs(x) * r;
            }
            length = std::sqrt(length);
            const double prior = numbers ? 0.0 : std::log((m + 1.0) / (rows - m + 1.0));
            const double f1 = own[2] + linear / norm, f2 = own[4] + (length > 0.0 ? weighted / length : 0.0), f3 = trust * (bayes + prior);
            double* const o = out + (learners * family * n + i) * C + c;
            o[0] = drawn_in(f1, largest_score), o[n * C] = drawn_in(f2, largest_score), o[2 * n * C] = drawn_in(f3, largest_score);
            if (!learns) continue;
            const double d1 = error(f1, t[c]) * w, d2 = error(f2, t[c]) * w;
            for (std::size_t j = first; j < end; ++j) {
                float* const piece = rows_of_table + std::size_t(at[j]) * width;
                step(piece + place + 1, d1 * (amounts[j] / norm));
                if (length > 0.0) step(piece + place + 3, d2 * (z[j - first] / length));
            }
            const double B1 = own[3] + d1 * d1, B2 = own[5] + d2 * d2;
            own[2] = own[2] - step_size * d1 / std::sqrt(B1 + start_of_squares), own[3] = B1;
            own[4] = own[4] - step_size * d2 / std::sqrt(B2 + start_of_squares), own[5] = B2;
            own[0] = positive + size * w * t[c];
            own[1] = m + w * t[c];
        }
        if (!learns) return;
        for (std::size_t j = first; j < end; ++j) {
            float* const piece = rows_of_table + std::size_t(at[j]) * width;
            if (piece[0] == 0.0f) all[1] += 1.0;
            const double amount = std::abs(amounts[j]) * w;
            piece[0] = float(double(piece[0]) + amount);
            for (std::size_t c = 0; c < C; ++c) piece[counted + per_output * c] = float(double(piece[counted + per_output * c]) + amount * t[c]);
        }
        all[0] += size * w;
        all[2] += w;
    }

    double error(double f, double goal) const { return numbers ? drawn_in(f - goal, far) : sigmoid(f) - goal; }

    // AdaGrad: a step of a weight, behind which is its sum of squares.
    static void step(float* weight_at, double g) {
        const double G = double(weight_at[1]) + g * g;
        weight_at[1] = float(G);
        weight_at[0] = float(double(weight_at[0]) - step_size * g / std::sqrt(G + start_of_squares));
    }
};

}  // namespace ks::texts
