#include "base/cgroup_memory.hpp"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

class cgroup_memory : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    folder_.write(file, text);
  }
  std::optional<std::int64_t> free_for(const std::string& own) {
    return free_in_cgroups(folder_.path() / "mounted", folder_.write("own", own));
  }
  std::optional<std::int64_t> limit_for(const std::string& own) {
    return limit_of_cgroups(folder_.path() / "mounted", folder_.write("own", own));
  }

  test::temp_folder folder_;
};

TEST_F(cgroup_memory, is_the_least_of_a_group_and_those_above) {
  write("mounted/memory.stat", "anon 1\n");
  write("mounted/jobs/memory.max", "1000\n");
  write("mounted/jobs/memory.current", "700\n");
  write("mounted/jobs/memory.stat", "anon 300\nactive_file 10\ninactive_file 90\nslab 5\n");
  write("mounted/jobs/one/memory.max", "max\n");
  write("mounted/jobs/one/memory.current", "600\n");
  write("mounted/jobs/two/memory.max", "800\n");
  write("mounted/jobs/two/memory.current", "700\n");
  EXPECT_EQ(free_for("0::/jobs/one\n"), 400) << "pages of files can go";
  EXPECT_EQ(free_for("0::/jobs/two\n"), 100);
  EXPECT_EQ(free_for("0::/other\n"), std::nullopt) << "no limit";
}

TEST_F(cgroup_memory, of_a_container_is_on_top_whatever_the_machine_calls_it) {
  write("mounted/memory.max", "1000\n");
  write("mounted/memory.current", "1200\n");
  for (const char* path : {"/", "/kubepods/pod7/abc", "/../../abc"})
    EXPECT_EQ(free_for("0::" + std::string(path) + "\n"), 0) << path;
}

TEST_F(cgroup_memory, of_version_one_is_its_memory_controllers) {
  write("mounted/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("mounted/memory/memory.usage_in_bytes", "5000\n");
  write("mounted/memory/jobs/memory.limit_in_bytes", "1000\n");
  write("mounted/memory/jobs/memory.usage_in_bytes", "600\n");
  write("mounted/memory/jobs/memory.stat", "inactive_file 7\ntotal_inactive_file 50\n");
  EXPECT_EQ(free_for("9:name=systemd:/jobs\n4:cpu,memory:/jobs\n2:cpuacct:/elsewhere\n0::/\n"), 450);
}

TEST_F(cgroup_memory, is_all_of_the_limit_while_more_pages_of_files_are_counted_than_are_used) {
  const std::string no_limit = "9223372036854771712";
  write("mounted/memory/memory.limit_in_bytes", no_limit + "\n");
  write("mounted/memory/memory.usage_in_bytes", "5000\n");
  write("mounted/memory/memory.stat", "total_inactive_file 10000\n");
  EXPECT_EQ(free_for("4:memory:/\n"), std::stoll(no_limit));
}

TEST_F(cgroup_memory, in_all_is_the_least_limit_however_much_is_used) {
  write("mounted/jobs/memory.max", "1000\n");
  write("mounted/jobs/memory.current", "700\n");
  write("mounted/jobs/one/memory.max", "max\n");
  write("mounted/jobs/two/memory.max", "800\n");
  EXPECT_EQ(limit_for("0::/jobs/one\n"), 1000);
  EXPECT_EQ(limit_for("0::/jobs/two\n"), 800);
  EXPECT_EQ(limit_for("0::/other\n"), std::nullopt);
}

TEST_F(cgroup_memory, says_nothing_where_the_system_does_not) {
  EXPECT_EQ(free_for(""), std::nullopt);
  EXPECT_EQ(free_for("nonsense\n0:\n"), std::nullopt);
  EXPECT_EQ(free_in_cgroups(folder_.path() / "mounted", folder_.path() / "nowhere"), std::nullopt);
}

}  // namespace
}  // namespace troupe
