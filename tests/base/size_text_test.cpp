#include "base/size_text.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(size_text, has_the_unit_in_which_three_digits_say_most) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(999), "999 bytes");
  EXPECT_EQ(size_text(1000), "0.98 KiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(size_text(180 << 20), "180.0 MiB");
  EXPECT_EQ(size_text(std::uint64_t{5000} << 40), "5000.0 TiB");
}

}  // namespace
}  // namespace troupe
