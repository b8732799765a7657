// What memory held before it was changed, so that all learners that have learned a row can undo it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ks {

class Journal {
  public:
    bool keeps = true;  // or whoever calls can undo everything

    void clear() {
        bytes_.clear();
        pieces_.clear();
    }

    // n numbers are about to change; none if there is no such array.
    template <class T>
    void keep(T* at, std::size_t n) {
        if (!keeps || !at || !n) return;
        const auto* from = reinterpret_cast<const unsigned char*>(at);
        bytes_.insert(bytes_.end(), from, from + n * sizeof(T));
        pieces_.push_back({reinterpret_cast<unsigned char*>(at), n * sizeof(T), 1, 0});
    }

    // So are `count` numbers, `stride` apart.
    void keep_strided(double* at, std::size_t count, std::size_t stride) {
        const std::size_t end = bytes_.size();
        bytes_.resize(end + count * sizeof(double));
        for (std::size_t i = 0; i < count; ++i) std::memcpy(&bytes_[end + i * sizeof(double)], at + i * stride, sizeof(double));
        pieces_.push_back({reinterpret_cast<unsigned char*>(at), sizeof(double), count, stride * sizeof(double)});
    }

    // So are the rows `index` (n) of an array, `width` numbers each.
    void keep_rows(float* base, std::size_t width, std::size_t n, const std::int32_t* index) {
        const std::size_t size = width * sizeof(float), end = bytes_.size();
        bytes_.resize(end + n * (size + sizeof(std::int32_t)));
        unsigned char* to = bytes_.data() + end;
        if (n) std::memcpy(to, index, n * sizeof(std::int32_t));
        to += n * sizeof(std::int32_t);
        if (size == sizeof(double))  // two classes: the size is known to the compiler
            for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * size, base + std::size_t(index[i]) * width, sizeof(double));
        else
            for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * size, base + std::size_t(index[i]) * width, size);
        pieces_.push_back({reinterpret_cast<unsigned char*>(base), size, n, BY_INDEX});
    }

    // Everything as it was, the last change first.
    void restore() {
        std::size_t end = bytes_.size();
        for (std::size_t p = pieces_.size(); p-- > 0;) {
            const Piece& piece = pieces_[p];
            end -= piece.size * piece.count;
            const unsigned char* from = bytes_.data() + end;
            if (piece.stride == BY_INDEX) end -= piece.count * sizeof(std::int32_t);
            for (std::size_t i = 0; i < piece.count; ++i) {
                std::size_t offset = i * piece.stride;
                if (piece.stride == BY_INDEX) {
                    std::int32_t row;
                    std::memcpy(&row, bytes_.data() + end + i * sizeof row, sizeof row);
                    offset = std::size_t(row) * piece.size;
                }
                std::memcpy(piece.at + offset, from + i * piece.size, piece.size);
            }
        }
        clear();
    }

  private:
    static constexpr std::size_t BY_INDEX = ~std::size_t(0);
    struct Piece {
        unsigned char* at;
        std::size_t size, count, stride;
    };
    std::vector<unsigned char> bytes_;
    std::vector<Piece> pieces_;
};

}  // namespace ks
