#include "cluster/batches/unrecorded_outputs.hpp"

#include <gtest/gtest.h>

#include <tuple>

namespace troupe {
namespace {

TEST(unrecorded_outputs, are_full_by_their_number) {
  unrecorded_outputs outputs({.most = 2});
  outputs.add({"j1", 0, "a"});
  EXPECT_FALSE(outputs.is_full());
  outputs.add({"j1", 1, "b"});
  EXPECT_TRUE(outputs.is_full());
  outputs.clear();
  EXPECT_FALSE(outputs.is_full());
  EXPECT_TRUE(outputs.empty());
}

TEST(unrecorded_outputs, are_full_by_their_bytes) {
  unrecorded_outputs outputs({.most_bytes = 10});
  outputs.add({"j1", 0, "12345"});
  outputs.add({"j2", 0, "1234"});
  EXPECT_FALSE(outputs.is_full());
  outputs.add({"j1", 1, "1"});
  EXPECT_TRUE(outputs.is_full());
  outputs.clear();
  outputs.add({"j1", 2, "123456789"});
  EXPECT_FALSE(outputs.is_full()) << "those that were cleared no longer count";
}

TEST(unrecorded_outputs, of_a_job_that_is_dropped_no_longer_count) {
  unrecorded_outputs outputs({.most_bytes = 10});
  outputs.add({"j1", 0, "12345"});
  outputs.add({"j2", 7, "12345", false});
  outputs.add({"j1", 1, "12345"});
  outputs.drop_job("j1");
  EXPECT_FALSE(outputs.is_full());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs.all().front().job, "j2");
  outputs.add({"j3", 0, "12345"});
  EXPECT_TRUE(outputs.is_full());
}

TEST(unrecorded_outputs, go_to_the_journal_in_order) {
  unrecorded_outputs outputs({});
  outputs.add({"j1", 3, "a"});
  outputs.add({"j2", 0, "b", false});
  const auto records = outputs.records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(std::tuple(records[0].job, records[0].index, records[0].text, records[0].ok),
            std::tuple("j1", 3u, "a", true));
  EXPECT_EQ(std::tuple(records[1].job, records[1].index, records[1].text, records[1].ok),
            std::tuple("j2", 0u, "b", false));
}

}  // namespace
}  // namespace troupe
