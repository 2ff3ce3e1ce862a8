#include "base/gguf_name.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(gguf_name, has_neither_the_ending_nor_the_number_of_a_piece) {
  EXPECT_EQ(name_without_gguf("tiny-Q8_0.gguf"), "tiny-Q8_0");
  EXPECT_EQ(name_without_gguf("TINY.GGUF"), "TINY");
  EXPECT_EQ(name_without_gguf("Big-00001-of-00012.gguf"), "Big");
}

TEST(gguf_name, is_left_as_it_is_where_it_says_something_else) {
  for (const char* name : {"Qwen3-0.6B", "Big-00001-of-00012", ".gguf", ""}) EXPECT_EQ(name_without_gguf(name), name);
  EXPECT_EQ(name_without_gguf("Big-0000a-of-00012.gguf"), "Big-0000a-of-00012");
  EXPECT_EQ(name_without_gguf("-00001-of-00012.gguf"), "-00001-of-00012");
}

}  // namespace
}  // namespace troupe
