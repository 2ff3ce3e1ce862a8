#include "base/whole_file.hpp"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/full_disk.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string failure_of(const std::filesystem::path& path) {
  try {
    write_file(path, std::string(100, 'x'));
  } catch (const write_failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(whole_file, says_to_free_space_only_where_that_is_what_lacks) {
  const test::temp_folder folder;
  EXPECT_THAT(failure_of(folder.path() / "nowhere" / "file"), HasSubstr("check the path and its permissions"));
  const test::full_disk full(50);
  const std::string failure = failure_of(folder.path() / "file");
  EXPECT_THAT(failure, HasSubstr("free some space"));
  EXPECT_THAT(failure, Not(HasSubstr("permissions")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace troupe
