#include "actors/workers/hidden_buffers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace troupe {
namespace {

constexpr std::size_t row = 64, most = 512 * row;

TEST(hidden_buffers, of_small_steps_hold_little_however_long_a_link_keeps_them) {
  hidden_buffers buffers;
  std::vector<std::shared_ptr<float>> kept;
  for (int i = 0; i < 32; ++i) kept.push_back(buffers.take(4 * row, most));
  EXPECT_LE(buffers.floats(), 2 * most);
  EXPECT_EQ((std::set<std::shared_ptr<float>>(kept.begin(), kept.end()).size()), 32u);
}

TEST(hidden_buffers, have_room_for_every_step) {
  for (const std::size_t largest : {most, 8 * row})
    for (const std::size_t size : {row, largest / 16, largest / 16 + 1, largest}) {
      hidden_buffers buffers;
      const auto taken = buffers.take(size, largest);
      EXPECT_GE(buffers.floats(), size) << largest;
    }
}

TEST(hidden_buffers, are_used_again_once_nobody_has_them) {
  hidden_buffers buffers;
  for (int i = 0; i < 5; ++i) {
    const auto small = buffers.take(row, most), large = buffers.take(most, most);
    const auto sent = small;
    EXPECT_NE(small, large);
  }
  EXPECT_EQ(buffers.floats(), most + most / 16);
}

TEST(hidden_buffers, that_were_sent_outlive_their_stage) {
  auto buffers = std::make_unique<hidden_buffers>();
  const auto sent = buffers->take(most, most);
  buffers.reset();
  std::fill_n(sent.get(), most, 1.0f);
  EXPECT_EQ(sent.get()[most - 1], 1.0f);
}

}  // namespace
}  // namespace troupe
