#include "base/ascii.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(is_file_name, takes_names_that_folders_and_commands_can_have) {
  for (const char* name : {"w0", "7b", "a.b-c_d"}) EXPECT_TRUE(is_file_name(name)) << name;
  for (const char* text : {"", ".", "..", "-x", "_x", "a/b", "a b"}) EXPECT_FALSE(is_file_name(text)) << text;
  EXPECT_TRUE(is_file_name(std::string(64, 'a')));
  EXPECT_FALSE(is_file_name(std::string(65, 'a')));
}

TEST(drop_line_end, drops_one_at_the_end_alone) {
  const auto without = [](std::string text) {
    drop_line_end(text);
    return text;
  };
  EXPECT_EQ(without("key"), "key");
  EXPECT_EQ(without("key\n"), "key");
  EXPECT_EQ(without("key\r\n"), "key");
  EXPECT_EQ(without("a\nb\n\n"), "a\nb\n");
  EXPECT_EQ(without(""), "");
}

}  // namespace
}  // namespace troupe
