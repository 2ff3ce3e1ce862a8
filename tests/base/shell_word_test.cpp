#include "base/shell_word.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(typed_word, has_quotes_only_where_a_shell_needs_them) {
  EXPECT_EQ(typed_word("configs/home-1.toml"), "configs/home-1.toml");
  EXPECT_EQ(typed_word("my dir/home.toml"), "'my dir/home.toml'");
  EXPECT_EQ(typed_word("it's.toml"), "'it'\\''s.toml'");
}

}  // namespace
}  // namespace troupe
