// A client whose head dies and comes again, with the test as the head.
#include <condition_variable>
#include <deque>
#include <mutex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/wire.hpp"
#include "tests/integration/process.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {
namespace {

/// Says hello to everybody, and keeps what they ask.
class played_head {
 public:
  played_head() {
    links_.on<client_command>([this](const incoming<client_command>& in) {
      links_.send(in.link, command_answer{R"({"instance":")" + instance() + R"("})", {}}, in.correlation);
    });
    links_.on<client_cancel>([](const incoming<client_cancel>&) {});
    links_.on<client_request>([this](incoming<client_request> in) {
      const std::lock_guard lock(mutex_);
      link_ = in.link;
      asked_.push_back(std::move(in.message));
      changed_.notify_all();
    });
    links_.start();
  }
  ~played_head() { links_.stop(); }

  std::string endpoint() const { return links_.endpoint(); }
  client_request asked() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !asked_.empty(); }))
      throw std::runtime_error("nothing was asked");
    client_request first = std::move(asked_.front());
    asked_.pop_front();
    return first;
  }
  /// As after a while in which it could not reach the client.
  void give_link_up() {
    const std::lock_guard lock(mutex_);
    links_.close(link_);
  }
  void say(client_text what) {
    const std::lock_guard lock(mutex_);
    links_.send(link_, std::move(what));
  }
  void come_again() {
    const std::lock_guard lock(mutex_);
    instance_ = "second";
  }

 private:
  static bus::options loopback() {
    bus::options options;
    options.listen = "tcp://127.0.0.1:0";
    return options;
  }
  std::string instance() {
    const std::lock_guard lock(mutex_);
    return instance_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string instance_ = "first";
  link_id link_ = no_link;
  std::deque<client_request> asked_;
  wire links_{loopback()};
};

TEST(resuming, asks_the_next_head_for_the_version_that_had_begun) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--adapter", "x", "--connect", head.endpoint()},
                 folder.path() / "out");
  const client_request first = head.asked();
  EXPECT_EQ(first.adapter, "x");
  head.come_again();
  head.say({first.id, 0, "a", {1}, {}, {}, 0, "x@1"});
  const client_request second = head.asked();
  EXPECT_EQ(second.adapter, "x@1");
  EXPECT_EQ(second.skip_tokens, 1u);
  head.say({second.id, 0, "b", {2}, {}, "length", 2, "x@1"});
  EXPECT_EQ(client.wait(), 0) << client.error();
  EXPECT_EQ(client.out(), "ab\n");
}

TEST(resuming, goes_on_over_a_new_link_when_the_head_has_given_the_old_one_up) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--connect", head.endpoint()}, folder.path() / "out");
  head.say({head.asked().id, 0, "a", {1}, {}, {}, 0, ""});
  head.give_link_up();
  const client_request second = head.asked();
  EXPECT_EQ(second.skip_tokens, 1u);
  head.say({second.id, 0, "b", {2}, {}, "length", 2, ""});
  EXPECT_EQ(client.wait(), 0) << client.error();
  EXPECT_EQ(client.out(), "ab\n");
}

TEST(resuming, is_over_when_the_head_gives_every_link_up) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--connect", head.endpoint()}, folder.path() / "out");
  for (int links = 0; links < 2; ++links) {
    (void)head.asked();
    head.give_link_up();
  }
  EXPECT_EQ(client.wait(), 1);
  EXPECT_NE(client.error().find("has closed the link"), std::string::npos) << client.error();
}

}  // namespace
}  // namespace troupe::test
