#include "transport/http/byte_budget_impl.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

TEST(byte_budget, has_half_of_it_for_one_client_at_most) {
  byte_budget budget(100);
  EXPECT_FALSE(budget.take("a", 51));
  EXPECT_TRUE(budget.take("a", 50));
  EXPECT_FALSE(budget.take("a", 1));
  EXPECT_TRUE(budget.take("b", 50));
  EXPECT_FALSE(budget.take("c", 1)) << "all of it is taken";
}

TEST(byte_budget, has_room_again_for_what_a_share_no_longer_holds) {
  const auto budget = std::make_shared<byte_budget>(100);
  {
    budget_share share(budget, "a");
    EXPECT_TRUE(share.hold(50));
    EXPECT_FALSE(share.hold(51));
    EXPECT_EQ(share.held(), 50u) << "as before";
    EXPECT_FALSE(budget->take("a", 10));
    EXPECT_TRUE(share.hold(40));
    EXPECT_TRUE(budget->take("a", 10));
  }
  EXPECT_TRUE(budget->take("a", 40)) << "the share has gone";
}

}  // namespace
}  // namespace troupe::detail
