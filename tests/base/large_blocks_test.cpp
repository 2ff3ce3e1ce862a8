#include "base/large_blocks.hpp"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/resident_bytes.hpp"
#include "tests/base/sanitized.hpp"

namespace troupe {
namespace {

/// What a small block at the end of the heap would hold fast.
std::vector<char> use_and_free_large_blocks(std::size_t bytes) {
  std::vector<char> small;
  for (int round = 0; round < 4; ++round) {
    std::vector<std::vector<char>> blocks;
    for (int i = 0; i < 8; ++i) blocks.emplace_back(bytes, '.');
    small.assign(1000, '.');
  }
  return small;
}

TEST(large_blocks, what_is_freed_is_no_longer_resident) {
  if (sanitized) GTEST_SKIP() << "sanitizers have an allocator of their own";
  return_large_blocks();
  const auto before = resident_bytes();
  std::vector<char> kept;
  std::thread([&] { kept = use_and_free_large_blocks(8 << 20); }).join();
  EXPECT_LT(resident_bytes(), before + (8 << 20));
}

}  // namespace
}  // namespace troupe
