#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// SHA-256 of bytes that come piece by piece.
class sha256 {
 public:
  sha256();
  ~sha256();
  sha256(const sha256&) = delete;
  sha256& operator=(const sha256&) = delete;

  sha256& add(std::span<const std::byte> bytes);
  sha256& add(std::string_view text);
  /// Adds the length before the text, so that neighbouring fields cannot be mistaken for other ones.
  sha256& add_field(std::string_view text);
  /// 64 digits, lower case; nothing may be added any more.
  std::string finish();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe
