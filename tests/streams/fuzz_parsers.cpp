// Feeds damaged texts to the parsers of cpp/: whatever the bytes are, they must stay inside the buffer and end.
// Built by tests/test_streams_fuzz.py with the address and undefined-behaviour sanitizers; arguments: seconds to run, and the
// least number of texts, which a busy machine may not reach in that time.
#include "files/csv.hpp"
#include "files/libsvm.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

namespace {

const char* const pieces[] = {"1 1:0.5 3:1\n", "-1 2:1e-3 7:2.5e+10 # c\n", "+1 qid:3 1:1\n", "\n", "#\n", "1,2,3\n", "a;b\n", "qid:", "1:", ":1",
                              "e", "E+", ".", "-", "+", "99999999999999999999", "1e308", "1e-400", "0000000000000000000000001", "\"", ",", "\t",
                              "nan", "NA", "?", "\r\n", " ", "#", "2147483646:1", "2147483647:1", "0:1"};

}  // namespace

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
    const long long least = argc > 2 ? std::atoll(argv[2]) : 0;
    std::mt19937_64 rng(1);
    const auto started = std::chrono::steady_clock::now();
    long long texts = 0, lines = 0, rows = 0;
    while (texts < least || std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count() < seconds) {
        std::string text;
        const int n = int(rng() % 60);
        for (int i = 0; i < n; ++i) text += pieces[rng() % (sizeof pieces / sizeof *pieces)];
        for (int flips = int(rng() % 6); flips > 0 && !text.empty(); --flips) text[rng() % text.size()] = char(rng());
        // A buffer of exactly the text's size: one byte too far is an error.
        std::unique_ptr<char[]> exact(new char[text.size()]);
        std::memcpy(exact.get(), text.data(), text.size());
        const std::size_t max_rows = rng() % 50;
        const std::int64_t first = std::int64_t(rng() % 2), width = rng() % 3 ? 0 : std::int64_t(rng() % 10);
        ks::libsvm::Block<double> wide;
        ks::libsvm::Block<float> narrow;
        ks::libsvm::parse<double>(exact.get(), text.size(), max_rows, first, width, wide);
        ks::libsvm::parse<float>(exact.get(), text.size(), max_rows, first, width, narrow);
        if (wide.consumed > text.size() || wide.labels.size() > max_rows || wide.indptr.back() != std::int32_t(wide.indices.size())) return 1;
        for (std::size_t i = 0; i < wide.indices.size(); ++i)
            if (wide.indices[i] < 0 || wide.indices[i] >= wide.width || !std::isfinite(wide.values[i])) return 2;
        std::vector<char> kinds(1 + rng() % 4);
        for (auto& kind : kinds) kind = "nts"[rng() % 3];
        ks::csv::Block block;
        ks::csv::parse(exact.get(), text.size(), max_rows, ",\t; "[rng() % 4], kinds, rng() % 2, 0.0, 1e300, block);
        for (std::size_t i = 0; i + 1 < block.fields.size(); i += 2)
            if (block.fields[i] < 0 || block.fields[i] + block.fields[i + 1] > std::int64_t(text.size())) return 3;
        ++texts;
        lines += wide.lines + narrow.lines + block.lines;
        rows += std::int64_t(wide.labels.size());
    }
    std::printf("%lld %lld %lld\n", texts, lines, rows);
    return 0;
}
