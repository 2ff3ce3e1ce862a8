#include "cluster/training/work_debt.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Works in pieces of this length and rests after each, as is owed. Returns the share of the time in which it worked.
double share_of(duration piece, double asked) {
  work_debt debt;
  double worked = 0, rested = 0;
  for (int i = 0; i < 100; ++i) {
    debt.work(piece);
    worked += seconds_of(piece);
    const double owed = debt.rest_owed(asked);
    rested += owed;
    debt.rest(std::chrono::duration_cast<duration>(std::chrono::duration<double>(owed)), asked);
  }
  return worked / (worked + rested);
}

TEST(a_work_debt, holds_every_share_however_long_the_pieces_are) {
  for (const double share : {0.02, 0.1, 0.5, 0.9})
    for (const auto piece : {milliseconds(1), milliseconds(150), milliseconds(20'000)})
      EXPECT_NEAR(share_of(piece, share), share, 1e-6) << piece.count();
}

TEST(a_work_debt, is_reckoned_by_the_share_of_the_moment) {
  work_debt debt;
  debt.work(seconds(1));
  EXPECT_NEAR(debt.rest_owed(0.1), 9, 1e-9);
  debt.rest(milliseconds(4500), 0.1);
  EXPECT_NEAR(debt.rest_owed(0.1), 4.5, 1e-9);
  EXPECT_NEAR(debt.rest_owed(0.5), 0.5, 1e-9);
}

TEST(a_work_debt, is_no_credit_after_a_long_rest) {
  work_debt debt;
  debt.work(seconds(1));
  debt.rest(seconds(100), 0.5);
  EXPECT_EQ(debt.rest_owed(0.5), 0);
  debt.work(seconds(1));
  EXPECT_NEAR(debt.rest_owed(0.5), 1, 1e-9);
  debt.forgive();
  EXPECT_EQ(debt.rest_owed(0.5), 0);
}

}  // namespace
}  // namespace troupe
