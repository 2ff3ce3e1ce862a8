#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

namespace troupe {

/// Bytes that are written once and then handed on without a copy: between actors, to a socket, from a socket.
class shared_bytes {
 public:
  shared_bytes() = default;
  /// `owner` keeps the bytes alive.
  shared_bytes(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : owner_(std::move(owner)), bytes_(bytes) {}

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
};

}  // namespace troupe
