#include "base/number_in.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(number_in, is_all_of_a_text) {
  EXPECT_EQ(number_in<int>("-12"), -12);
  EXPECT_EQ(number_in<double>("1.5e3"), 1500.0);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "4294967296"})
    EXPECT_FALSE(number_in<std::uint32_t>(text)) << text;
}

TEST(number_in, may_have_another_base) {
  EXPECT_EQ(number_in<std::uint64_t>("fedcba9876543210", 16), 0xfedcba9876543210U);
  EXPECT_EQ(number_in<unsigned char>("fF", 16), 255);
  for (const char* text : {"", "0x1", "f ", "g", "fedcba98765432100"})
    EXPECT_FALSE(number_in<std::uint64_t>(text, 16)) << text;
}

}  // namespace
}  // namespace troupe
