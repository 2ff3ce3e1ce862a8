#include "actors/adapters/adapter_download.hpp"

#include "actors/adapters/adapter_files.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

/// A store with folders of a hundred bytes each.
class store_of_a_worker : public testing::Test {
 protected:
  fs::path fetched(const std::string& name, std::chrono::hours ago) {
    const std::string there = "store/" + name + "/";
    fs::create_directories(folder_.path() / there);
    folder_.write(there + std::string(adapter_file_names[0]), std::string(10, '{'));
    folder_.write(there + std::string(adapter_file_names[1]), std::string(90, 'w'));
    folder_.write(there + std::string(fetched_mark), "");
    fs::last_write_time(folder_.path() / there / fetched_mark, fs::file_time_type::clock::now() - ago);
    return folder_.path() / there;
  }
  void keep(std::uint64_t most, const std::string& but_not = {}) const {
    remove_least_used(folder_.path() / "store", most, but_not);
  }

  temp_folder folder_;
};

TEST_F(store_of_a_worker, loses_what_was_used_least_recently_and_no_more_than_is_too_much) {
  using std::chrono::hours;
  const std::string names[] = {std::string(64, 'a'), std::string(64, 'b'), std::string(64, 'c')};
  const fs::path newest = fetched(names[0], hours(1)), oldest = fetched(names[1], hours(3)),
                 middle = fetched(names[2], hours(2)), other = fetched("notes", hours(9));
  keep(250);
  EXPECT_FALSE(fs::exists(oldest));
  keep(200);
  EXPECT_TRUE(fs::exists(middle));
  EXPECT_TRUE(fs::exists(newest));
  keep(100, names[2]);
  EXPECT_TRUE(fs::exists(middle)) << "it is needed now";
  EXPECT_FALSE(fs::exists(newest));
  EXPECT_TRUE(fs::exists(other)) << "it is no adapter";
}

}  // namespace
}  // namespace troupe::test
