#include "actors/http/access/api_keys.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::test {
namespace {

constexpr uid_t nobody = 65534;

uid_t owner_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_uid;
}

class file_of_keys : public testing::Test {
 protected:
  temp_folder folder_;
  std::filesystem::path file_ = api_keys_file(folder_.path() / "state");
};

TEST_F(file_of_keys, lets_nobody_in_where_it_leads_nowhere) {
  std::filesystem::create_directories(file_.parent_path());
  std::filesystem::create_symlink(folder_.path() / "not mounted", file_);
  EXPECT_THROW(api_key_ring{file_}, input_error);
  EXPECT_THROW(read_api_keys(file_), input_error);
  std::filesystem::remove(file_);
  EXPECT_TRUE(api_key_ring(file_).is_open());
  EXPECT_FALSE(api_key_ring(file_, true).is_open()) << "keys are needed, and there are none";
}

TEST_F(file_of_keys, is_refused_with_what_to_do_where_it_is_damaged) {
  std::filesystem::create_directories(file_.parent_path());
  for (const char* damaged : {"{", "[]", R"({"keys": 1})", R"({"keys": [{"weight": 0}]})"}) {
    folder_.write("state/api_keys.json", damaged);
    const std::string why = refusal([&] { (void)read_api_keys(file_); });
    EXPECT_TRUE(why.starts_with(file_.string())) << why;
    EXPECT_NE(why.find("put a copy from before in its place"), std::string::npos) << why;
  }
}

TEST_F(file_of_keys, lets_in_who_has_a_key_that_was_given) {
  const std::string theirs = "sk-1234567890abcdef";
  EXPECT_EQ(add_api_key(file_, {.name = "ann"}, theirs), theirs);
  api_key_ring ring(file_);
  ASSERT_TRUE(ring.find(theirs));
  EXPECT_EQ(ring.find(theirs)->name, "ann");
  EXPECT_THROW(add_api_key(file_, {.name = "bob"}, theirs), input_error);
  EXPECT_THROW(add_api_key(file_, {.name = "bob"}, "short"), input_error);
}

TEST_F(file_of_keys, lets_nobody_in_whose_key_was_revoked_or_while_it_is_gone_or_damaged) {
  api_key_ring ring(file_, false, {}, duration{});
  EXPECT_TRUE(ring.is_open());
  std::filesystem::create_directories(file_.parent_path());
  folder_.write("state/api_keys.json", "{");
  EXPECT_FALSE(ring.is_open());
  std::filesystem::remove(file_);
  EXPECT_TRUE(ring.is_open()) << "there never was a key";
  const std::string ann = add_api_key(file_, {.name = "ann"}), bob = add_api_key(file_, {.name = "bob"});
  EXPECT_FALSE(ring.is_open());
  revoke_api_key(file_, "ann");
  EXPECT_FALSE(ring.find(ann));
  EXPECT_TRUE(ring.find(bob));
  folder_.write("state/api_keys.json", "{");
  EXPECT_TRUE(ring.find(bob));
  std::filesystem::remove(file_);
  EXPECT_FALSE(ring.is_open());
  EXPECT_TRUE(ring.find(bob));
  EXPECT_FALSE(ring.find(ann));
}

TEST_F(file_of_keys, that_cannot_be_read_any_more_is_told_of_once) {
  std::vector<std::string> told;
  const auto log = [&](const std::string& line) { told.push_back(line); };
  add_api_key(file_, {.name = "ann"});
  api_key_ring ring(file_, false, log, duration{});
  for (int i = 0; i < 2; ++i) {
    folder_.write("state/api_keys.json", "{");
    EXPECT_FALSE(ring.is_open());
    EXPECT_FALSE(ring.is_open());
    ASSERT_EQ(told.size(), i + 1u);
    EXPECT_THAT(told[i], testing::HasSubstr("the keys that were read before count, also those revoked since"));
    EXPECT_THAT(told[i], testing::HasSubstr(file_.string()));
    folder_.write("state/api_keys.json", R"({"keys": []})");
    EXPECT_FALSE(ring.is_open()) << "and it is read again";
  }
}

TEST_F(file_of_keys, is_read_anew_only_where_it_has_changed) {
  const auto an_hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const std::string ann = add_api_key(file_, {.name = "ann"});
  std::filesystem::last_write_time(file_, an_hour_ago);
  api_key_ring ring(file_, false, {}, duration{});
  EXPECT_TRUE(ring.find(ann));
  std::string other = read_file(file_);
  other.replace(other.find("ann"), 3, "bob");
  folder_.write("state/api_keys.json", other);
  std::filesystem::last_write_time(file_, an_hour_ago);
  ASSERT_TRUE(ring.find(ann));
  EXPECT_EQ(ring.find(ann)->name, "ann") << "neither size nor time is another";
  std::filesystem::last_write_time(file_, an_hour_ago + std::chrono::seconds(1));
  ASSERT_TRUE(ring.find(ann));
  EXPECT_EQ(ring.find(ann)->name, "bob");
}

TEST_F(file_of_keys, that_changes_twice_at_once_is_read_twice) {
  const std::string ann = add_api_key(file_, {.name = "ann"});
  // No sooner than now, however slow this machine is.
  const auto now = std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  std::filesystem::last_write_time(file_, now);
  api_key_ring ring(file_, false, {}, duration{});
  EXPECT_TRUE(ring.find(ann));
  std::string other = read_file(file_);
  other.replace(other.find("ann"), 3, "bob");
  folder_.write("state/api_keys.json", other);
  std::filesystem::last_write_time(file_, now);
  ASSERT_TRUE(ring.find(ann));
  EXPECT_EQ(ring.find(ann)->name, "bob");
}

TEST_F(file_of_keys, never_grows_beyond_what_is_read) {
  std::filesystem::create_directories(file_.parent_path());
  const std::string long_text((4 << 20) - 200, 'x'), digest(64, 'a');
  folder_.write("state/api_keys.json",
                fmt::format(R"({{"keys":[{{"name":"ann","sha256":"{}","shown":"{}"}}]}})", digest, long_text));
  const std::string before = read_file(file_);
  ASSERT_LT(before.size(), std::size_t{4} << 20);
  EXPECT_THAT([&] { add_api_key(file_, {.name = "bob"}); },
              testing::ThrowsMessage<input_error>(testing::HasSubstr("revoke some keys first")));
  EXPECT_EQ(read_file(file_), before);
  EXPECT_EQ(read_api_keys(file_)->size(), 1u);
  revoke_api_key(file_, "ann");
  EXPECT_TRUE(read_api_keys(file_)->empty());
}

TEST_F(file_of_keys, lets_go_of_a_key_also_where_the_others_take_more_room_in_a_new_file) {
  std::filesystem::create_directories(file_.parent_path());
  std::string keys;
  for (const char name : std::string("abcdefgh"))
    keys += fmt::format(R"({{"name":"{}","sha256":"{}"}},)", name, std::string(64, name));
  const std::string long_text((4 << 20) - 900, 'x');
  folder_.write("state/api_keys.json", fmt::format(R"({{"keys":[{}{{"name":"z","shown":"{}"}}]}})", keys, long_text));
  ASSERT_EQ(read_api_keys(file_)->size(), 9u);
  EXPECT_NO_THROW(revoke_api_key(file_, "a"));
  EXPECT_EQ(read_api_keys(file_)->size(), 8u);
  EXPECT_EQ(read_api_keys(file_)->at(0).name, "b");
}

TEST_F(file_of_keys, stays_its_owners_where_root_changes_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root writes files of others";
  add_api_key(file_, {.name = "ann"});
  if (::chown(file_.c_str(), nobody, nobody) != 0) GTEST_SKIP() << "this container has one user";
  add_api_key(file_, {.name = "bob"});
  EXPECT_EQ(owner_of(file_), nobody);
  revoke_api_key(file_, "ann");
  EXPECT_EQ(owner_of(file_), nobody);
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(file_of_keys, is_the_journals_owners_where_root_makes_it) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root writes files of others";
  std::filesystem::create_directories(file_.parent_path());
  const auto journal = folder_.write("state/journal.db", "");
  if (::chown(journal.c_str(), nobody, nobody) != 0) GTEST_SKIP() << "this container has one user";
  add_api_key(file_, {.name = "ann"});
  EXPECT_EQ(owner_of(file_), nobody);
}

TEST_F(file_of_keys, keeps_digests_of_keys_alone) {
  const std::string key = add_api_key(file_, {.name = "ann"});
  EXPECT_THROW(add_api_key(file_, {.name = "ann"}), input_error);
  EXPECT_THROW(add_api_key(file_, {.name = "a b"}), input_error);
  add_api_key(file_, {.name = "bob"});
  EXPECT_EQ(read_file(file_).find(key), std::string::npos);
  revoke_api_key(file_, "ann");
  EXPECT_THROW(revoke_api_key(file_, "ann"), input_error);
  EXPECT_EQ(read_api_keys(file_)->size(), 1u);
}

TEST_F(file_of_keys, lets_a_revoked_key_open_nothing_though_the_disk_is_full) {
  api_key_ring ring(file_, false, {}, duration{});
  const std::string ann = add_api_key(file_, {.name = "ann"}), bob = add_api_key(file_, {.name = "bob"});
  add_api_key(file_, {.name = "cy"});
  {
    const full_disk full(300);  // of three keys the first is within, and two take more
    EXPECT_THROW(limit_api_key(file_, "ann", [](api_key& key) { key.limits.concurrent = 3; }), write_failure);
    revoke_api_key(file_, "ann");
    EXPECT_THROW(revoke_api_key(file_, "ann"), input_error) << "there is none";
  }
  {
    const full_disk not_even_in_place(1);
    EXPECT_THROW(revoke_api_key(file_, "bob"), write_failure);
  }
  EXPECT_FALSE(ring.find(ann));
  EXPECT_TRUE(ring.find(bob));
  EXPECT_EQ(read_api_keys(file_)->size(), 2u);
  add_api_key(file_, {.name = "ann"});
  EXPECT_EQ(read_api_keys(file_)->size(), 3u);
  EXPECT_EQ(read_file(file_).find("----"), std::string::npos) << "nothing of the other key is left";
}

TEST_F(file_of_keys, loses_no_key_of_two_commands_at_once) {
  const auto add = [&](const std::string& prefix) {
    for (int i = 0; i < 20; ++i) add_api_key(file_, {.name = fmt::format("{}{}", prefix, i)});
  };
  std::thread other(add, "ann");
  add("bob");
  other.join();
  EXPECT_EQ(read_api_keys(file_)->size(), 40u);
}

TEST_F(file_of_keys, keeps_limits_until_others_are_set) {
  add_api_key(file_, {.name = "ann", .limits = {.tokens_per_minute = 7}});
  EXPECT_EQ(read_api_keys(file_)->at(0).limits, (rate_limits{.tokens_per_minute = 7}));
  limit_api_key(file_, "ann", [](api_key& key) {
    key.limits.concurrent = 3;
    key.weight = 4;
  });
  EXPECT_EQ(read_api_keys(file_)->at(0).limits, (rate_limits{.tokens_per_minute = 7, .concurrent = 3}));
  EXPECT_EQ(read_api_keys(file_)->at(0).weight, 4);
  EXPECT_THROW(limit_api_key(file_, "bob", [](api_key&) {}), input_error);
}

TEST_F(file_of_keys, loses_no_change_of_limits_of_two_commands_at_once) {
  add_api_key(file_, {.name = "ann"});
  const auto raise = [&](std::int64_t rate_limits::*limit) {
    for (int i = 0; i < 20; ++i) limit_api_key(file_, "ann", [&](api_key& key) { ++(key.limits.*limit); });
  };
  std::thread other(raise, &rate_limits::concurrent);
  raise(&rate_limits::tokens_per_minute);
  other.join();
  EXPECT_EQ(read_api_keys(file_)->at(0).limits, (rate_limits{.tokens_per_minute = 20, .concurrent = 20}));
}

}  // namespace
}  // namespace troupe::test
