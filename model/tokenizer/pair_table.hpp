#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/to_size.hpp"

namespace troupe::detail {

/// A hash table from 64 bits to 64 bits in one flat piece of memory: filled once, then only read.
class pair_table {
 public:
  static constexpr std::uint64_t absent = ~std::uint64_t{0};

  explicit pair_table(std::size_t expected = 0);
  /// Neither key nor value may be `absent`; an old value is replaced.
  void put(std::uint64_t key, std::uint64_t value);
  std::uint64_t get(std::uint64_t key) const {
    for (auto at = slot(key);; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].value;
      if (slots_[at].key == absent) return absent;
    }
  }

 private:
  struct entry {
    std::uint64_t key = absent;
    std::uint64_t value = absent;
  };
  std::size_t slot(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15u;
    return to_size(key ^ (key >> 32)) & mask_;
  }
  void grow();

  std::vector<entry> slots_;
  std::size_t mask_ = 0;
  std::size_t used_ = 0;
};

inline std::uint64_t pack(std::int32_t high, std::int32_t low) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32) | static_cast<std::uint32_t>(low);
}

}  // namespace troupe::detail
