#include "base/columns.hpp"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(columns, are_two_for_wide_characters_and_none_for_accents) {
  EXPECT_EQ(columns_in(""), 0u);
  EXPECT_EQ(columns_in("caf\u00e9 [##..]"), 11u);
  EXPECT_EQ(columns_in("cafe\u0301"), 4u);
  EXPECT_EQ(columns_in("\u6c34\u3042\uff21\ud55c"), 8u);
  EXPECT_EQ(columns_in("\U0001F680\u26A1\u2705\U0001F1E9"), 8u);
  EXPECT_EQ(columns_in("\u2026\u2502\u00df\u0416"), 4u);
  EXPECT_EQ(columns_in("a\xE6\xB0"), 3u) << "bytes that belong to no character";
}

TEST(columns, hold_whole_characters) {
  const std::string text = "a\u6c34e\u0301b";
  for (const auto& [columns, bytes] : {std::pair(0u, 0u), {1, 1}, {2, 1}, {3, 4}, {4, 7}, {5, 8}, {9, 8}})
    EXPECT_EQ(bytes_in_columns(text, columns), bytes) << columns;
}

}  // namespace
}  // namespace troupe
