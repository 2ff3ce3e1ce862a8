#include "bench/percentiles.hpp"

#include <gtest/gtest.h>

namespace troupe::bench {
namespace {

TEST(percentile, is_the_least_value_that_the_share_does_not_exceed) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(percentile(values, 0.5), 50);
  EXPECT_EQ(percentile(values, 0.99), 99);
  EXPECT_EQ(percentile(values, 0.991), 100);
  EXPECT_EQ(percentile(values, 1.0), 100);
  EXPECT_EQ(percentile(values, 0.0), 1);
}

TEST(percentile, of_few_values_is_one_of_them) {
  EXPECT_EQ(percentile({3, 1}, 0.5), 1);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({3, 1, 2}, 0.99), 3);
  EXPECT_EQ(percentile({7}, 0.5), 7);
}

TEST(percentile, of_nothing_is_nothing) {
  EXPECT_EQ(percentile({}, 0.5), 0);
}

}  // namespace
}  // namespace troupe::bench
