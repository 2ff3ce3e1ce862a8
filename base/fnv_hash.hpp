#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// FNV-1a: tells values apart by chance alone; no protection against an attacker.
class fnv_hash {
 public:
  void add(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) add_byte(static_cast<std::uint8_t>(value >> (8 * byte)));
  }
  /// Adds a mark at the end, so that "ab" and "c" differ from "a" and "bc".
  void add(std::string_view text) {
    for (const char c : text) add_byte(static_cast<std::uint8_t>(c));
    add_byte(0xff);
  }
  std::uint64_t value() const { return state_; }

 private:
  void add_byte(std::uint8_t byte) { state_ = (state_ ^ byte) * 0x100000001b3ull; }

  std::uint64_t state_ = 0xcbf29ce484222325ull;
};

}  // namespace troupe
