#include "base/strong_id.hpp"

#include <gtest/gtest.h>

#include <type_traits>
#include <unordered_set>

namespace troupe {
namespace {

using apple_id = strong_id<struct apple_tag>;
using pear_id = strong_id<struct pear_tag>;

static_assert(!std::is_convertible_v<apple_id, pear_id> && !std::is_convertible_v<std::uint64_t, apple_id>);

TEST(strong_id, compares_and_hashes_like_its_number) {
  EXPECT_EQ(apple_id{3}, apple_id{3});
  EXPECT_LT(apple_id{3}, apple_id{4});
  EXPECT_EQ(apple_id{}.value, 0u);
  const std::unordered_set<apple_id> ids{apple_id{1}, apple_id{2}, apple_id{1}};
  EXPECT_EQ(ids.size(), 2u);
}

}  // namespace
}  // namespace troupe
