#include "base/file_descriptor.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/base/open_files.hpp"

namespace troupe {
namespace {

TEST(open_files, are_allowed_as_many_as_a_server_needs_where_the_system_lets_it) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const test::few_open_files few(100);
  EXPECT_EQ(most_open_files(), 100u);
  allow_many_open_files();
  EXPECT_EQ(most_open_files(), std::min<std::size_t>(limit.rlim_max, 65'536));
}

}  // namespace
}  // namespace troupe
