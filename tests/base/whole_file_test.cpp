#include "base/whole_file.hpp"

#include <cerrno>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
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
  const std::string nowhere = failure_of(folder.path() / "nowhere" / "file");
  EXPECT_THAT(nowhere, HasSubstr("check the path and its permissions"));
  EXPECT_THAT(nowhere, HasSubstr("nowhere/file: cannot be written")) << "the name that was asked for";
  const test::full_disk full(50);
  const std::string failure = failure_of(folder.path() / "file");
  EXPECT_THAT(failure, HasSubstr("free some space"));
  EXPECT_THAT(failure, HasSubstr("/file: cannot be written"));
  EXPECT_THAT(failure, Not(HasSubstr("permissions")));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(whole_file, that_cannot_get_its_name_says_what_to_do) {
  const test::temp_folder folder;
  write_file(folder.path() / "file", "");
  try {
    move_to(folder.path() / "file", folder.path() / "nowhere" / "file");
    ADD_FAILURE() << "there is no such folder";
  } catch (const write_failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("nowhere/file: cannot be written"));
    EXPECT_THAT(failure.what(), HasSubstr("check the path and its permissions"));
  }
}

TEST(whole_file, that_a_device_does_not_take_is_not_for_another_folder) {
  try {
    write_file("/dev/full", "text");
    ADD_FAILURE() << "was written";
  } catch (const write_failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("/dev/full: cannot be written"));
    EXPECT_THAT(failure.what(), HasSubstr("free some space, or choose another file"));
  }
}

TEST(whole_file, is_bad_input_where_the_user_chose_the_path_unless_the_disk_is_full) {
  const auto refuse = [](int error) { refuse_to_write("log", error, "choose another file"); };
  EXPECT_THROW(refuse(EACCES), input_error);
  EXPECT_THROW(refuse(ENOSPC), write_failure);
  const test::temp_folder folder;
  write_file(folder.path() / "file", "");
  EXPECT_THROW(make_chosen_folder(folder.path() / "file" / "a"), input_error);
  EXPECT_THROW(write_chosen_file(folder.path() / "nowhere" / "file", ""), input_error);
  EXPECT_THROW(write_chosen_file(folder.path(), ""), input_error);
  const test::full_disk full(0);
  EXPECT_THROW(write_chosen_file(folder.path() / "other", "text"), write_failure);
}

/// In a folder where others may write, too.
TEST(whole_file, is_not_written_through_a_link_that_lies_where_its_parts_are_gathered) {
  const test::temp_folder folder;
  const auto others = folder.path() / "others", file = folder.path() / "file", part = folder.path() / "part";
  write_file(others, "precious");
  std::filesystem::create_symlink(others, fmt::format("{}.{}.partial", file.string(), ::getpid()));
  write_file(file, "new");
  std::filesystem::create_symlink(others, part);
  EXPECT_TRUE(write_all(make_new_file(part).number(), "first"));
  EXPECT_TRUE(write_all(make_new_file(part).number(), "2nd")) << "what was left behind is no obstacle";
  EXPECT_EQ(test::read_file(others), "precious");
  EXPECT_EQ(test::read_file(file), "new");
  EXPECT_EQ(test::read_file(part), "2nd");
  EXPECT_FALSE(std::filesystem::is_symlink(file));
  std::filesystem::create_directory(folder.path() / "folder");
  EXPECT_THROW(make_new_file(folder.path() / "folder"), write_failure);
}

TEST(private_folder, lets_nobody_else_in_where_it_had_to_be_made) {
  using std::filesystem::perms;
  const test::temp_folder folder;
  const auto mode_of = [](const std::filesystem::path& path) { return std::filesystem::status(path).permissions(); };
  const auto shared = folder.path() / "shared";
  std::filesystem::create_directory(shared);
  std::filesystem::permissions(shared, perms::all);
  make_private_folder(shared / "a" / "b" / "");
  EXPECT_EQ(mode_of(shared), perms::all) << "somebody has chosen that";
  EXPECT_EQ(mode_of(shared / "a"), perms::owner_all);
  EXPECT_EQ(mode_of(shared / "a" / "b"), perms::owner_all);
  make_private_folder(shared / "a");
  write_file(shared / "file", "");
  EXPECT_THROW(make_private_folder(shared / "file" / "c"), write_failure);
  EXPECT_THROW(make_private_folder(shared / "file"), write_failure);
}

}  // namespace
}  // namespace troupe
