#include "base/result.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

enum class trouble { none_left };

result<std::string, trouble> take(bool there) {
  if (!there) return trouble::none_left;
  return std::string("bread");
}

TEST(result, holds_the_value_or_the_error) {
  const auto good = take(true);
  ASSERT_TRUE(good);
  EXPECT_EQ(*good, "bread");
  EXPECT_EQ(good->size(), 5u);
  const auto bad = take(false);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error(), trouble::none_left);
}

}  // namespace
}  // namespace troupe
