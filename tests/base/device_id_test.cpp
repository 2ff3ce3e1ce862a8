#include "base/device_id.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(device_id, is_read_from_its_name_and_written_as_it) {
  for (const char* name : {"cpu", "cuda:0", "cuda:17"}) {
    const auto device = device_from_name(name);
    ASSERT_TRUE(device) << name;
    EXPECT_EQ(name_of(*device), name);
  }
  EXPECT_TRUE(device_from_name("cpu")->is_cpu());
  EXPECT_EQ(device_from_name("cuda:17")->gpu, 17);
}

TEST(device_id, is_not_read_from_anything_else) {
  for (const char* name :
       {"", "CPU", "gpu", "cuda", "cuda:", "cuda:-1", "cuda:64", "cuda:0 ", "cuda:0x1", "cuda:99999999999"})
    EXPECT_FALSE(device_from_name(name)) << name;
}

}  // namespace
}  // namespace troupe
