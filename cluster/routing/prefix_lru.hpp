#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe {

/// The prefix hashes that were sent somewhere last; the least recently used are dropped first. A block is dropped
/// before the blocks in front of it, so that the beginning of a prompt stays.
class prefix_lru {
 public:
  explicit prefix_lru(std::size_t capacity = 0) : capacity_(capacity) {}

  /// How many of the first hashes are known without a gap.
  std::size_t match(std::span<const std::uint64_t> hashes) const;
  void touch(std::span<const std::uint64_t> hashes);
  void clear();
  void set_capacity(std::size_t capacity);

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  struct node {
    std::uint64_t hash = 0;
    std::uint32_t older = none, newer = none;
  };
  void touch(std::uint64_t hash);
  void unlink(std::uint32_t slot);
  void link_newest(std::uint32_t slot);
  std::uint32_t free_slot();
  void remove_oldest();

  std::size_t capacity_;
  std::vector<node> nodes_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<std::uint64_t, std::uint32_t> slots_;
  std::uint32_t oldest_ = none, newest_ = none;
};

}  // namespace troupe
