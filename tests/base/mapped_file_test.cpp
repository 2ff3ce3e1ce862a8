#include "base/mapped_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

TEST(mapped_file, refuses_a_pipe_without_waiting_for_somebody_to_write) {
  const test::temp_folder folder;
  const auto pipe = folder.path() / "config.json";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(test::refusal([&] { mapped_file{pipe}; }), pipe.string() + ": is not a regular file: give a file");
}

TEST(mapped_file, says_that_git_lfs_has_left_a_pointer_in_a_file_s_place) {
  const test::temp_folder folder;
  const auto file =
      folder.write("model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n");
  EXPECT_NE(test::refusal([&] { mapped_file{file}; }).find("git lfs pull"), std::string::npos);
}

}  // namespace
}  // namespace troupe
