#include "cluster/launch/up_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/error.hpp"
#include "cluster/launch/machine.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::refusal;
using testing::HasSubstr;

class the_up_lock : public testing::Test {
 protected:
  test::temp_folder folder_;
  const cluster_config config_ = parse_cluster_config(
      "[cluster]\nname = \"test\"\nstate_dir = \"state\"\n[model]\npath = \"none\"\n"
      "[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\", \"worker\"]\n",
      folder_.path() / "test.toml");
};

TEST_F(the_up_lock, only_one_up_at_a_time) {
  EXPECT_FALSE(find_up(config_));
  {
    const up_lock lock(config_);
    EXPECT_EQ(find_up(config_).value().pid, ::getpid());
    EXPECT_EQ(find_up(config_)->elsewhere, "");
    EXPECT_THAT(refusal([&] { const up_lock second(config_); }),
                HasSubstr("test is up already (process " + std::to_string(::getpid())));
  }
  EXPECT_FALSE(find_up(config_));
  EXPECT_NO_THROW(up_lock{config_});
}

TEST_F(the_up_lock, says_which_other_file_has_the_same_name_or_state_folder) {
  folder_.write("test.toml", "");
  const up_lock lock(config_);
  cluster_config other = config_;
  other.source = other.label = (folder_.path() / "other one.toml").string();
  const std::string held = (folder_.path() / "test.toml").string();
  const std::string is_up = ", too, and is up (process " + std::to_string(::getpid()) + "): troupe down " + held +
                            " ends it; to run beside it this one needs another ";
  const auto why = [&] { return refusal([&] { const up_lock second(other); }); };
  EXPECT_THAT(why(), HasSubstr("other one.toml: another cluster uses the state folder " + config_.state_dir.string() +
                               is_up + "state_dir in [cluster]"));
  other.places.erase(other.places.find("cluster.state_dir"));  // so the name chose it
  EXPECT_THAT(why(), HasSubstr("other one.toml: another file has the name test" + is_up +
                               "name in [cluster] (troupe serve: --name)"));
}

TEST_F(the_up_lock, makes_a_state_folder_that_others_cannot_read) {
  const up_lock lock(config_);
  EXPECT_EQ(std::filesystem::status(config_.state_dir).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(the_up_lock, is_not_called_ended_by_a_user_who_may_not_see_it) {
  const up_lock lock(config_);
  std::filesystem::permissions(config_.state_dir, std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;  // whom no permissions keep out
  constexpr uid_t nobody = 65534;
  if (is_root && ::seteuid(nobody) != 0) GTEST_SKIP() << "this container has one user";
  EXPECT_THROW((void)find_up(config_), input_error);
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  std::filesystem::permissions(config_.state_dir, std::filesystem::perms::owner_all);
  EXPECT_TRUE(find_up(config_));
}

TEST_F(the_up_lock, what_is_up_on_another_machine_is_not_ended_here) {
  const up_lock lock(config_);
  const pid_t bystander = ::fork();
  if (bystander == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string number = std::to_string(bystander);
  const std::string host = machine_name();
  const auto end = [&] { (void)end_up(config_, 0s); };
  folder_.write("state/up.pid", number + "\nanother-host another-boot pid:[1]\n");
  EXPECT_THAT(refusal(end), HasSubstr("the cluster test is up on another-host: end it there"));
  folder_.write("state/up.pid", number + "\n" + host + " another-boot pid:[1]\n");
  EXPECT_THAT(refusal(end), HasSubstr("is up on another container of " + host));
  EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0) << "it lives";
  ::kill(bystander, SIGKILL);
  ::waitpid(bystander, nullptr, 0);
}

TEST_F(the_up_lock, knows_its_machine_by_another_name) {
  const up_lock lock(config_);
  const std::string own = folder_.read("state/up.pid");
  const std::string place = own.substr(own.find('\n') + 1);
  folder_.write("state/up.pid", std::to_string(::getpid()) + "\nformer-name" + place.substr(place.find(' ')));
  ASSERT_TRUE(find_up(config_));
  EXPECT_EQ(find_up(config_)->elsewhere, "");
}

TEST_F(the_up_lock, a_lock_ends_with_its_process) {
  std::filesystem::create_directories(config_.state_dir);
  folder_.write("state/up.pid", "1234567\n");
  EXPECT_FALSE(find_up(config_)) << "a file that is left over means nothing";
  EXPECT_NO_THROW(up_lock{config_});
}

/// A process that holds the cluster up until it is ended.
class the_up_lock_of_a_process : public the_up_lock {
 protected:
  void SetUp() override {
    child_ = ::fork();
    if (child_ == 0) {
      const up_lock lock(config_);
      ::pause();
      ::_exit(0);
    }
    ASSERT_TRUE(test::is_soon([this] { return find_up(config_).has_value(); }));
    ASSERT_EQ(find_up(config_).value().pid, child_);
  }
  void TearDown() override {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  pid_t child_ = 0;
};

TEST_F(the_up_lock_of_a_process, down_ends_it_and_waits_for_that) {
  EXPECT_TRUE(end_up(config_, 10s));
  EXPECT_FALSE(find_up(config_));
  EXPECT_TRUE(end_up(config_, 0s)) << "there is nothing to end";
}

TEST_F(the_up_lock_of_a_process, down_does_not_end_what_another_file_started) {
  folder_.write("test.toml", "");
  cluster_config other = config_;
  other.source = other.label = folder_.write("other.toml", "").string();
  EXPECT_THAT(refusal([&] { (void)end_up(other, 10s); }),
              HasSubstr("other.toml: another cluster uses the state folder " + config_.state_dir.string() +
                        ", too, and is up (process " + std::to_string(child_) + "): troupe down " +
                        config_.source.string() + " ends it"));
  EXPECT_EQ(find_up(config_).value().pid, child_) << "it lives";
  std::filesystem::create_symlink(config_.source, folder_.path() / "link.toml");
  other.source = other.label = (folder_.path() / "link.toml").string();
  EXPECT_TRUE(end_up(other, 10s)) << "that is the same file";
}

TEST_F(the_up_lock_of_a_process, down_ends_it_also_if_its_file_was_moved) {
  cluster_config moved = config_;
  moved.source = moved.label = folder_.write("moved.toml", "").string();
  EXPECT_TRUE(end_up(moved, 10s));
}

TEST_F(the_up_lock_of_a_process, down_ends_it_also_if_somebody_deleted_the_folder) {
  std::filesystem::remove_all(config_.state_dir);
  EXPECT_EQ(find_up(config_).value().pid, child_);
  std::filesystem::create_directories(config_.state_dir);
  folder_.write("state/up.pid", "1234567\n");
  EXPECT_EQ(find_up(config_).value().pid, child_) << "and put another in its place";
  EXPECT_TRUE(end_up(config_, 10s));
  EXPECT_FALSE(find_up(config_));
}

}  // namespace
}  // namespace troupe
