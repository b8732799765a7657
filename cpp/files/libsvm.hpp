// LIBSVM / SVMlight text:  <label> [qid:<n>] <index>:<value> ... [# comment]
// Rows are appended to growing arrays in CSR form. A row that breaks the format is left out and reported.
#pragma once

#include "files/text.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace ks::libsvm {

// The place of the trouble is where in the line it starts.
enum Reason : std::int32_t {
    bad_label,
    infinite_label,
    no_colon,
    bad_index,
    large_index,
    zero_index,
    unsorted_index,
    beyond_width,
    bad_value,
    infinite_value
};

// Whether a token is over.
inline bool ends(char c) { return text::is_space(c) || c == '\n' || c == '#'; }

constexpr std::int64_t max_index = 2147483646;

template <class T> struct Block {
    std::vector<double> labels;
    std::vector<std::int32_t> indptr{0}, indices;
    std::vector<T> values;
    std::vector<text::Bad> bad;
    std::int64_t width = 0;  // largest index, counted from 1
    std::int64_t lines = 0;  // lines read
    std::size_t consumed = 0;
};

// Parses at most max_rows good rows of text[0, size) into an empty block. Only complete lines are read.
// first is 0 or 1, the smallest index; n_features = 0 allows any index.
template <class T>
void parse(const char* text, std::size_t size, std::size_t max_rows, std::int64_t first, std::int64_t n_features,
           Block<T>& out) {
    // From here on, the last byte before `end` is a newline.
    const char* end = text + size;
    while (end > text && end[-1] != '\n') --end;
    const char* p = text;
    // The shortest pair, "1:1 ", takes four bytes: no pair needs a check for room.
    std::int32_t* index = nullptr;
    T* value = nullptr;
    std::size_t room = 0, pairs = 0;
    const std::int64_t last = n_features ? n_features + first - 1 : max_index;

    while (p < end && out.labels.size() < max_rows) {
        const char* const line = p;
        const std::int64_t number_of_line = out.lines;
        Reason reason{};
        bool good = false;
        while (text::is_space(*p)) ++p;
        if (*p == '\n' || *p == '#') {
            p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
            ++out.lines;
            continue;
        }
        const std::size_t before = pairs;
        double label = 0;
        std::int64_t previous = first - 1;
        const char* trouble = p;
        do {  // once; break = bad row
            const auto kind = text::number(p, label);
            if (kind == text::Number::none || !ends(*p)) { reason = bad_label; break; }
            if (kind == text::Number::infinite) { reason = infinite_label; break; }
            while (text::is_space(*p)) ++p;
            if (p[0] == 'q' && p[1] == 'i' && p[2] == 'd' && p[3] == ':') {
                trouble = p;
                p += 4;
                const char* const digits = p;
                while (text::is_digit(*p)) ++p;
                if (p == digits || !ends(*p)) { reason = bad_value; break; }
                while (text::is_space(*p)) ++p;
            }
            good = true;
            while (*p != '\n' && *p != '#') {
                if (pairs == room) {  // a guess at first, then the most that can still come
                    const std::size_t most = pairs + static_cast<std::size_t>(end - p) / 4 + 1;
                    room = std::min(most, std::max<std::size_t>(2 * room, 4096));
                    out.indices.resize(room);
                    out.values.resize(room);
                    index = out.indices.data();
                    value = out.values.data();
                }
                trouble = p;
                std::int64_t i = 0;
                const char* const digits = p;
                for (; text::is_digit(*p); ++p)
                    if (i <= max_index) i = 10 * i + (*p - '0');
                good = false;
                if (*p != ':') {
                    reason = p == digits || !ends(*p) ? bad_index : no_colon;
                    break;
                }
                if (p == digits) { reason = bad_index; break; }
                if (i > max_index) { reason = large_index; break; }
                if (i < first) { reason = zero_index; break; }
                if (i > last) { reason = beyond_width; break; }
                if (i <= previous) { reason = unsorted_index; break; }
                ++p;
                double v;
                // Counts and flags are most of the values in practice.
                if (text::is_digit(*p) && (p[1] == ' ' || p[1] == '\n')) {
                    v = *p - '0';
                    ++p;
                } else {
                    const auto form = text::number(p, v);
                    if (form == text::Number::none || !ends(*p)) { reason = bad_value; break; }
                    if (form == text::Number::infinite) { reason = infinite_value; break; }
                }
                const T stored = static_cast<T>(v);
                if (!std::isfinite(stored)) { reason = infinite_value; break; }
                index[pairs] = static_cast<std::int32_t>(i - first);
                value[pairs] = stored;
                ++pairs;
                previous = i;
                good = true;
                while (text::is_space(*p)) ++p;
            }
        } while (false);
        ++out.lines;
        if (good) {
            out.labels.push_back(label);
            out.indptr.push_back(static_cast<std::int32_t>(pairs));
            if (previous - first + 1 > out.width) out.width = previous - first + 1;
        } else {
            pairs = before;
            out.bad.push_back({number_of_line, line - text, trouble - line, reason});
        }
        p = *p == '\n' ? p + 1 : static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p))) + 1;
    }
    out.indices.resize(pairs);
    out.values.resize(pairs);
    out.consumed = static_cast<std::size_t>(p - text);
}

}  // namespace ks::libsvm
