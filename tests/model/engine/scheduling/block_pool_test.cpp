#include "model/engine/scheduling/block_pool.hpp"

#include <gtest/gtest.h>

#include <set>

namespace troupe {
namespace {

TEST(block_pool, gives_every_block_once) {
  block_pool pool(5);
  std::set<block_id> given;
  for (int i = 0; i < 5; ++i) given.insert(*pool.allocate());
  EXPECT_EQ(given.size(), 5u);
  EXPECT_FALSE(pool.allocate());
  EXPECT_EQ(pool.held(), 5);
}

TEST(block_pool, frees_a_block_with_its_last_holder) {
  block_pool pool(1);
  const block_id block = *pool.allocate();
  pool.hold(block);
  EXPECT_EQ(pool.holders(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.free(), 0);
  pool.release(block);
  EXPECT_EQ(pool.free(), 1);
}

TEST(block_pool, keeps_a_cached_block_idle_until_it_is_forgotten) {
  block_pool pool(2);
  const block_id block = *pool.allocate();
  pool.mark_cached(block);
  pool.release(block);
  EXPECT_TRUE(pool.is_idle(block));
  EXPECT_EQ(pool.idle(), 1);
  EXPECT_EQ(pool.held(), 0);
  pool.hold(block);
  EXPECT_EQ(pool.idle(), 0);
  pool.release(block);
  pool.unmark_cached(block);
  EXPECT_EQ(pool.free(), 2);
}

#ifndef NDEBUG
TEST(block_pool_death, stops_at_misuse) {
  block_pool pool(2);
  const block_id block = *pool.allocate();
  EXPECT_DEATH(pool.hold(block_id{1}), "");
  EXPECT_DEATH(pool.release(block_id{1}), "");
  EXPECT_DEATH(pool.unmark_cached(block), "");
  EXPECT_DEATH(pool.release(block_id{7}), "");
  EXPECT_DEATH(pool.release(no_block), "");
}
#endif

}  // namespace
}  // namespace troupe
