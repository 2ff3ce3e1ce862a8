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

/// Jobs whose lines are two by two in a journal.
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
  /// "job:index"; "-": there is none.
  std::string next(instant now = start) {
    const auto one = queue_.next(now);
    return one ? one->job + ":" + std::to_string(one->index) : "-";
  }

  std::map<std::string, std::uint64_t> lines_;
  bool is_broken_ = false;
  batch_queue queue_{[this](const std::string& job, std::uint64_t from) { return read(job, from); }};
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

TEST_F(batches, are_at_rest_when_what_was_read_is_on_the_disk) {
  add("a", 2);
  EXPECT_THAT(queue_.at_rest(), ElementsAre("a"));
  (void)next(), (void)next();
  queue_.note_recorded("a");
  EXPECT_THAT(queue_.at_rest(), IsEmpty());
  queue_.note_recorded("a");
  EXPECT_THAT(queue_.at_rest(), ElementsAre("a"));
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
