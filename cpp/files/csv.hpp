// Rows of delimited text without quotes: numbers into a matrix, other fields by their place in the text.
#pragma once

#include "files/text.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <vector>

namespace ks::csv {

// The place of the trouble is the number of its field, from 0; for too_few and too_many that of fields.
enum Reason : std::int32_t { too_few, too_many, bad_number, infinite_number, missing };

struct Block {
    std::vector<double> numbers;       // rows x numeric columns
    std::vector<std::int64_t> fields;  // rows x text columns x (start, length)
    std::vector<text::Bad> bad;
    std::size_t rows = 0, consumed = 0;
    std::int64_t lines = 0;
    bool quoted = false;  // stopped before a line with a quote
};

inline bool is_blank(char c, char delimiter) { return c != delimiter && text::is_space(c); }

// The words that stand for a missing value, besides an empty field: MISSING in streams/cells.py.
inline bool is_missing(const char* p, std::size_t n) {
    static constexpr std::string_view words[] = {"?",  "NA",   "nan",  "NaN", "N/A",  "null", "-",
                                                 "--", ".", "None", "NULL", "n/a", "#N/A", "<NA>"};
    const std::string_view text(p, n);
    return text.empty() || std::find(std::begin(words), std::end(words), text) != std::end(words);
}

// kinds[j] is 'n' (number), 'y' (number of the target), 't' (text) or 's' (skipped) for column j. fill replaces missing numbers,
// but no targets, if `filled`;
// a number beyond `largest` counts as infinite.
// Parses at most max_rows good rows of text[0, size); only complete lines are read.
inline void parse(const char* text, std::size_t size, std::size_t max_rows, char delimiter,
                  const std::vector<char>& kinds, bool filled, double fill, double largest, Block& out) {
    const char* end = text + size;
    while (end > text && end[-1] != '\n') --end;
    const char* p = text;
    const std::size_t columns = kinds.size();
    while (p < end && out.rows < max_rows) {
        const char* const line = p;
        const char* stop = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end - p)));
        const char* const next = stop + 1;
        if (stop > line && stop[-1] == '\r') --stop;
        const std::size_t length = static_cast<std::size_t>(stop - line);
        if (length && std::memchr(line, '"', length)) {
            out.quoted = true;
            break;
        }
        const char* q = line;
        while (q < stop && is_blank(*q, delimiter)) ++q;
        if (q == stop) {  // nothing but blanks
            p = next;
            ++out.lines;
            continue;
        }
        const std::size_t numbers_before = out.numbers.size(), fields_before = out.fields.size();
        std::size_t j = 0;
        bool good = true;
        Reason reason{};
        std::int64_t trouble = 0;
        q = line;
        for (;; ++q) {  // one turn per field
            const char* last = static_cast<const char*>(std::memchr(q, delimiter, static_cast<std::size_t>(stop - q)));
            if (!last) last = stop;
            if (j < columns && kinds[j] != 's' && good) {
                const char *a = q, *b = last;
                while (a < b && is_blank(*a, delimiter)) ++a;
                while (b > a && is_blank(b[-1], delimiter)) --b;
                if (kinds[j] == 't') {
                    out.fields.push_back(a - text);
                    out.fields.push_back(b - a);
                } else {
                    double value = fill;
                    const char* read = a;
                    const auto form = a == b ? text::Number::none : text::number(read, value);
                    if (form == text::Number::infinite || (form == text::Number::ok && std::fabs(value) > largest)) {
                        good = false, reason = infinite_number;
                    } else if (form == text::Number::none || read != b) {
                        const bool none = is_missing(a, static_cast<std::size_t>(b - a));
                        if (none && filled && kinds[j] == 'n') value = fill;
                        else good = false, reason = none ? missing : bad_number;
                    }
                    if (!good) trouble = static_cast<std::int64_t>(j);
                    out.numbers.push_back(value);
                }
            }
            ++j;
            q = last;
            if (q == stop) break;
        }
        if (j != columns) good = false, reason = j < columns ? too_few : too_many, trouble = static_cast<std::int64_t>(j);
        if (good) {
            ++out.rows;
        } else {
            out.numbers.resize(numbers_before);
            out.fields.resize(fields_before);
            out.bad.push_back({out.lines, line - text, trouble, reason});
        }
        ++out.lines;
        p = next;
    }
    out.consumed = static_cast<std::size_t>(p - text);
}

}  // namespace ks::csv
