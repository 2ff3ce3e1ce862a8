#include "cluster/batches/batch_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr instant start{};

/// Jobs whose lines are read two at a time.
class batches : public testing::Test {
 protected:
  void add(const std::string& id, std::uint64_t lines, const std::string& tenant = {}, std::uint64_t weight = 1) {
    lines_[id] = lines;
    queue_.add({id, tenant, "{}", "", weight});
  }
  std::vector<job_line> read(const std::string& job, std::uint64_t from) {
    if (is_broken_) throw std::runtime_error("the disk is gone");
    std::vector<job_line> page;
    for (std::uint64_t i = from; i < lines_.at(job) && page.size() < 2; ++i) page.push_back({i, "text"});
    return page;
  }
  /// "job:index", or "-" if there is no next line.
  std::string next(instant now = start) {
    const auto one = queue_.next(now);
    return one ? one->job + ":" + std::to_string(one->index) : "-";
  }

  std::map<std::string, std::uint64_t> lines_;
  bool is_broken_ = false;
  batch_queue queue_{{.shortest_retry = std::chrono::milliseconds(10), .most_tries = 3},
                     [this](const std::string& job, std::uint64_t from) { return read(job, from); }};
};

TEST_F(batches, of_one_tenant_go_one_after_the_other) {
  EXPECT_EQ(next(), "-");
  add("old", 3);
  add("young", 1);
  for (const char* expected : {"old:0", "old:1", "old:2", "young:0", "-"}) EXPECT_EQ(next(), expected);
}

TEST_F(batches, of_several_tenants_share_open_lines_by_weight) {
  add("a", 20, "one", 1);
  add("b", 20, "other", 3);
  std::map<char, int> open;
  for (int i = 0; i < 8; ++i) ++open[next()[0]];
  EXPECT_EQ(open['a'], 2);
  EXPECT_EQ(open['b'], 6);
  queue_.note_recorded("a");
  EXPECT_EQ(next()[0], 'a') << "whose line is on the disk has fewer open";
}

TEST_F(batches, take_nothing_of_their_tenants_share_for_what_is_on_the_disk_or_was_removed) {
  add("a", 20, "one");
  add("c", 20, "one");
  add("b", 20, "other");
  for (int i = 0; i < 6; ++i) (void)next();
  for (int i = 0; i < 3; ++i) queue_.note_recorded("a");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next()[0], 'a') << "it has none open, the other three";
  batch_queue::line failed = *queue_.next(start);
  EXPECT_EQ(failed.job, "a");
  queue_.put_aside(failed, start + std::chrono::hours(1));
  queue_.remove("a");  // three are open, and one is aside
  for (int i = 0; i < 3; ++i) EXPECT_EQ(next()[0], 'c');
  EXPECT_EQ(next()[0], 'c') << "of two who use as much the older job goes first";
  EXPECT_EQ(next()[0], 'b');
}

TEST_F(batches, wait_until_the_last_of_the_times_that_they_were_told) {
  add("a", 3);
  batch_queue::line first = *queue_.next(start), second = *queue_.next(start);
  queue_.put_back(first, start + std::chrono::seconds(9));
  queue_.put_back(second, start + std::chrono::seconds(1));
  EXPECT_EQ(next(start + std::chrono::seconds(2)), "-");
  EXPECT_EQ(next(start + std::chrono::seconds(9)), "a:0");
}

TEST_F(batches, wait_no_longer_than_a_minute_however_often_they_failed) {
  batch_queue queue({.most_tries = 70}, [](const std::string&, std::uint64_t) { return std::vector<job_line>(); });
  batch_queue::line line;
  for (int i = 0; i < 60; ++i) EXPECT_LE(queue.wait_after(line, {}).value(), std::chrono::minutes(1));
}

TEST_F(batches, whose_lines_found_no_room_wait_and_then_go_first) {
  add("a", 3);
  batch_queue::line one = *queue_.next(start);
  one.refusals = 2;
  const instant until = start + std::chrono::seconds(1);
  queue_.put_back(one, until);
  EXPECT_EQ(next(start), "-") << "new lines wait too";
  const auto again = queue_.next(until);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, 0u);
  EXPECT_EQ(again->refusals, 2);
  EXPECT_EQ(next(until), "a:1");
}

TEST_F(batches, whose_lines_are_refused_wait_as_long_as_they_are_told_or_longer_each_time) {
  using std::chrono::milliseconds;
  batch_queue::line line;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(queue_.wait_after(line, milliseconds(70)), milliseconds(70));
  EXPECT_EQ(queue_.wait_after(line, milliseconds(1)), milliseconds(10)) << "no sooner than the shortest";
  EXPECT_EQ(queue_.wait_after(line, {}), milliseconds(20));
  EXPECT_EQ(queue_.wait_after(line, {}), milliseconds(40));
  EXPECT_EQ(queue_.wait_after(line, {}), std::nullopt) << "it was tried often enough";
  line.refusals = 0;
  batch_queue usual({}, {});
  duration together{};
  while (const auto wait = usual.wait_after(line, {})) together += *wait;
  EXPECT_GT(together, std::chrono::minutes(55)) << "a full disk is not freed in seconds";
}

TEST_F(batches, whose_lines_fail_wait_while_others_go_on) {
  add("full", 9);
  add("other", 1);
  const instant until = start + std::chrono::seconds(1);
  batch_queue::line failed = *queue_.next(start);
  EXPECT_TRUE(queue_.put_aside(failed, until));
  EXPECT_FALSE(queue_.put_aside(*queue_.next(until), until)) << "the job fails already";
  for (const char* expected : {"other:0", "-"}) EXPECT_EQ(next(start), expected);
  EXPECT_EQ(next(until), "full:0");
  EXPECT_EQ(next(until), "-") << "of a job that fails no new line is read";
  queue_.note_recorded("full");
  EXPECT_EQ(next(until), "full:1");
}

TEST_F(batches, whose_lines_fail_take_nothing_of_their_tenants_share) {
  add("full", 2, "one");
  const batch_queue::line failed = *queue_.next(start), other = *queue_.next(start);
  const instant until = start + std::chrono::seconds(1);
  for (const auto& each : {failed, other}) queue_.put_aside(each, until);
  add("theirs", 9, "other");
  add("own", 9, "one");
  for (const char* expected : {"theirs:0", "own:0", "theirs:1", "own:1"}) EXPECT_EQ(next(start), expected);
  for (const char* expected : {"full:0", "full:1", "theirs:2", "theirs:3"}) EXPECT_EQ(next(until), expected);
  queue_.put_aside(failed, until);
  queue_.remove("full");
  EXPECT_EQ(next(until), "own:2") << "its lines went with it";
}

TEST_F(batches, of_which_too_many_lines_wait_aside_read_no_new_ones) {
  batch_queue queue({.most_aside = 1}, [this](const std::string& job, std::uint64_t from) { return read(job, from); });
  lines_["mixed"] = 9;
  queue.add({"mixed", "", "{}", "", 1});
  const batch_queue::line failed = *queue.next(start);
  ASSERT_TRUE(queue.next(start));
  queue.put_aside(failed, start + std::chrono::seconds(1));
  queue.note_recorded("mixed");
  EXPECT_FALSE(queue.next(start)) << "they would fill the memory";
  EXPECT_TRUE(queue.next(start + std::chrono::seconds(1)));
}

TEST_F(batches, of_which_a_line_was_tried_in_vain_try_no_other_again_until_one_is_answered) {
  add("full", 9);
  batch_queue::line first = *queue_.next(start), other = *queue_.next(start);
  while (queue_.wait_after(first, {})) {
  }
  queue_.note_recorded("full", false);
  EXPECT_FALSE(queue_.wait_after(other, {}));
  EXPECT_TRUE(queue_.wait_after(other, std::chrono::seconds(1))) << "there is no room, which says nothing";
  queue_.note_recorded("full");
  batch_queue::line later = *queue_.next(start);
  EXPECT_TRUE(queue_.wait_after(later, {}));
}

TEST_F(batches, are_at_rest_when_what_was_read_is_on_the_disk) {
  add("a", 2);
  EXPECT_THAT(queue_.at_rest(), IsEmpty()) << "it waits for its turn";
  (void)next(), (void)next();
  queue_.note_recorded("a");
  EXPECT_THAT(queue_.at_rest(), IsEmpty());
  queue_.note_recorded("a");
  EXPECT_THAT(queue_.at_rest(), ElementsAre("a"));
}

TEST_F(batches, that_have_no_lines_left_are_at_rest) {
  add("a", 0);
  EXPECT_EQ(next(), "-");
  EXPECT_THAT(queue_.at_rest(), ElementsAre("a"));
}

TEST_F(batches, of_tenants_who_use_as_much_go_in_the_order_they_came) {
  add("first", 1, "zoe");
  add("second", 1, "ann");
  EXPECT_EQ(next(), "first:0");
  queue_.note_recorded("first");
  EXPECT_EQ(next(), "second:0");
}

TEST_F(batches, that_are_removed_count_no_more_in_their_tenant_s_share) {
  add("a", 20, "one");
  add("b", 20, "other");
  add("c", 20, "one");
  for (const char* expected : {"a:0", "b:0", "a:1", "b:1"}) EXPECT_EQ(next(), expected);
  queue_.remove("a");
  queue_.note_recorded("a");
  for (const char* expected : {"c:0", "c:1"}) EXPECT_EQ(next(), expected);
  queue_.remove("b");
  queue_.remove("c");
  EXPECT_EQ(next(), "-");
  EXPECT_THAT(queue_.at_rest(), IsEmpty());
}

TEST_F(batches, that_are_removed_leave_no_line) {
  add("a", 3);
  add("b", 1);
  queue_.put_back(*queue_.next(start), start);
  queue_.remove("a");
  EXPECT_EQ(queue_.find("a"), nullptr);
  EXPECT_EQ(next(), "b:0");
  EXPECT_EQ(next(), "-");
}

TEST_F(batches, that_are_here_stay_as_they_are) {
  add("a", 2, "", 1);
  EXPECT_EQ(next(), "a:0");
  queue_.add({"a", "", "{}", "", 7});
  EXPECT_EQ(queue_.find("a")->weight, 1u);
  EXPECT_EQ(next(), "a:1");
  EXPECT_EQ(next(), "-");
}

TEST_F(batches, that_cannot_be_read_go_on_where_they_were) {
  add("a", 3);
  (void)next(), (void)next();
  is_broken_ = true;
  EXPECT_THROW(next(), std::runtime_error);
  is_broken_ = false;
  EXPECT_EQ(next(), "a:2");
}

}  // namespace
}  // namespace troupe
