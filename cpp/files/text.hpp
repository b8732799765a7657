// Numbers in text, for the parsers. A text ends with '\n', which no token contains: loops stop there and need no bound.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#if __has_include(<charconv>)
#include <charconv>
#endif

namespace ks::text {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// A line that breaks its format.
struct Bad {
    std::int64_t line;    // lines before it in this text
    std::int64_t offset;  // where it starts
    std::int64_t place;   // of the trouble; what it counts is said where the reasons are
    std::int32_t reason;
};

enum class Number { ok, none, infinite };

// The number [first, last), which has the right form, by the library's exact conversion.
inline Number convert(const char* first, const char* last, double& value) {
    if (*first == '+') ++first;
#if defined(__cpp_lib_to_chars)
    const auto result = std::from_chars(first, last, value);
    if (result.ec == std::errc::result_out_of_range) {
        // Either too large or too small; the two are far apart, so a logarithm of the leading digit tells them.
        double scale = 0;
        bool point = false, seen = false;
        const char* p = *first == '-' ? first + 1 : first;
        for (; p < last && *p != 'e' && *p != 'E'; ++p) {
            if (*p == '.') { point = true; continue; }
            seen = seen || *p != '0';
            if (seen && !point) ++scale;
            if (!seen && point) --scale;
        }
        if (p < last) scale += std::strtod(std::string(p + 1, last).c_str(), nullptr);
        if (scale > 0) return Number::infinite;
        value = *first == '-' ? -0.0 : 0.0;
    }
    return Number::ok;
#else
    value = std::strtod(std::string(first, last).c_str(), nullptr);
    return std::isfinite(value) ? Number::ok : Number::infinite;
#endif
}

// Reads [+-] digits [. digits] [e [+-] digits] at p, as Python's float does; moves p behind it.
inline Number number(const char*& p, double& value) {
    static constexpr double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* const first = p;
    const char* q = p;
    const bool negative = *q == '-';
    if (*q == '-' || *q == '+') ++q;
    const char* const digits = q;
    std::uint64_t mantissa = 0;  // exact while there are at most 19 digits
    for (; is_digit(*q); ++q) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q - '0');
    std::ptrdiff_t count = q - digits;
    std::int64_t exponent = 0;
    if (*q == '.') {
        const char* const point = ++q;
        for (; is_digit(*q); ++q) mantissa = 10 * mantissa + static_cast<std::uint64_t>(*q - '0');
        exponent = point - q;
        count += q - point;
    }
    if (count == 0) return Number::none;
    if (*q == 'e' || *q == 'E') {
        const char* e = q + 1;
        const bool minus = *e == '-';
        if (*e == '-' || *e == '+') ++e;
        if (is_digit(*e)) {
            std::int64_t given = 0;
            for (; is_digit(*e); ++e)
                if (given < 100000) given = 10 * given + (*e - '0');
            exponent += minus ? -given : given;
            q = e;
        }
    }
    p = q;
    // A product or quotient of two exact numbers is rounded once, so it is the nearest double.
    if (count <= 19 && mantissa <= (std::uint64_t(1) << 53) && exponent >= -22 && exponent <= 22) {
        const double m = static_cast<double>(mantissa);
        const double v = exponent < 0 ? m / power[-exponent] : m * power[exponent];
        value = negative ? -v : v;
        return Number::ok;
    }
    return convert(first, q, value);
}

}  // namespace ks::text
