#include "model/engine/scheduling/prefix_cache.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace troupe {
namespace {

class prefix_cache_test : public ::testing::Test {
 protected:
  explicit prefix_cache_test(detail::kept_beginnings* beginnings = nullptr) : cache(pool, model_id{7}, beginnings) {}

  static std::vector<token_id> tokens(std::size_t count, token_id first = 0) {
    std::vector<token_id> made(count);
    std::iota(made.begin(), made.end(), first);
    return made;
  }

  /// Computes all full blocks of `content`, as a sequence would; returns the blocks it holds.
  std::vector<block_id> compute(const std::vector<token_id>& content, adapter_version adapter = no_adapter,
                                std::uint64_t salt = 0) {
    std::vector<block_id> blocks;
    prefix_place place = cache.start_of(adapter, salt);
    cache.match(place, content, blocks);
    for (std::size_t i = blocks.size(); (i + 1) * block_tokens <= content.size(); ++i) {
      const auto full = std::span(content).subspan(i * block_tokens).first<block_tokens>();
      blocks.push_back(cache.publish(place, full, cache.allocate()));
    }
    return blocks;
  }
  void release(const std::vector<block_id>& blocks) {
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) cache.release(*block);
  }
  /// The blocks that `content` would find; held by nobody afterwards.
  std::size_t found(const std::vector<token_id>& content, adapter_version adapter = no_adapter,
                    std::uint64_t salt = 0) {
    std::vector<block_id> blocks;
    prefix_place place = cache.start_of(adapter, salt);
    cache.match(place, content, blocks);
    release(blocks);
    return blocks.size();
  }

  block_pool pool{8};
  prefix_cache cache;
};

class prefix_cache_of_states_test : public prefix_cache_test {
 protected:
  prefix_cache_of_states_test() : prefix_cache_test(&kept) {}

  detail::kept_beginnings kept{0, 2, 8};
};

TEST_F(prefix_cache_test, finds_the_longest_run_of_full_blocks) {
  release(compute(tokens(50)));
  EXPECT_EQ(found(tokens(60)), 3u);
  EXPECT_EQ(found(tokens(33)), 2u);
  auto other = tokens(60);
  other[20] = 99;
  EXPECT_EQ(found(other), 1u);
  EXPECT_TRUE(cache.is_consistent());
}

TEST_F(prefix_cache_of_states_test, goes_as_far_as_a_state_was_kept) {
  const auto held = compute(tokens(48));
  EXPECT_EQ(found(tokens(60)), 0u);
  kept.give(*kept.take(), held[1]);
  EXPECT_EQ(found(tokens(60)), 2u);
  release(held);
}

TEST_F(prefix_cache_of_states_test, says_where_others_went_on) {
  release(compute(tokens(48)));
  const auto parts = [&](std::size_t count) {
    prefix_place place = cache.start_of(no_adapter);
    std::vector<block_id> none;
    return cache.match(place, tokens(count), none);
  };
  EXPECT_EQ(parts(60), 0u) << "nothing follows the last block so far";
  EXPECT_EQ(parts(40), 2u);
}

TEST_F(prefix_cache_of_states_test, keeps_no_state_of_a_block_that_went_to_others) {
  const auto held = compute(tokens(48));
  kept.give(*kept.take(), held[1]);
  release(held);
  for (int taken = 0; taken < 5 + 1; ++taken) cache.allocate();
  EXPECT_TRUE(kept.has(held[1])) << "the one behind it went first";
  cache.allocate();
  EXPECT_FALSE(kept.has(held[1]));
}

TEST_F(prefix_cache_test, leaves_a_token_to_compute) {
  release(compute(tokens(48)));
  EXPECT_EQ(found(tokens(48)), 2u);
  EXPECT_EQ(found(tokens(49)), 3u);
}

TEST_F(prefix_cache_test, shows_nobody_what_those_with_another_salt_have_sent) {
  release(compute(tokens(32), no_adapter, 5));
  EXPECT_EQ(found(tokens(40), no_adapter, 5), 2u);
  EXPECT_EQ(found(tokens(40), no_adapter, 6), 0u);
  EXPECT_EQ(found(tokens(40)), 0u);
}

TEST_F(prefix_cache_test, keeps_adapters_apart) {
  release(compute(tokens(32), adapter_version{1}));
  EXPECT_EQ(found(tokens(40), adapter_version{1}), 2u);
  EXPECT_EQ(found(tokens(40), adapter_version{2}), 0u);
  EXPECT_EQ(found(tokens(40)), 0u);
}

TEST_F(prefix_cache_test, shares_held_blocks) {
  const auto first = compute(tokens(32));
  std::vector<block_id> second;
  prefix_place place = cache.start_of(no_adapter);
  cache.match(place, tokens(40), second);
  EXPECT_EQ(second, first);
  EXPECT_EQ(pool.holders(first[0]), 2);
  release(first);
  EXPECT_EQ(pool.held(), 2);
  release(second);
  EXPECT_EQ(pool.idle(), 2);
}

TEST_F(prefix_cache_test, gives_the_cached_block_for_an_equal_one) {
  const auto content = tokens(16);
  const auto first = compute(content);
  prefix_place place = cache.start_of(no_adapter);
  const block_id own = cache.allocate();
  EXPECT_EQ(cache.publish(place, std::span(content).first<block_tokens>(), own), first[0]);
  EXPECT_EQ(pool.holders(first[0]), 2);
  EXPECT_EQ(pool.free(), 7);
}

TEST_F(prefix_cache_test, gives_up_the_least_recently_used_first) {
  release(compute(tokens(32, 0)));
  release(compute(tokens(32, 100)));
  release(compute(tokens(32, 200)));
  EXPECT_EQ(found(tokens(33, 0)), 2u);  // used again
  for (int i = 0; i < 4; ++i) ASSERT_NE(cache.allocate(), no_block);
  EXPECT_EQ(found(tokens(33, 100)), 0u);
  EXPECT_EQ(found(tokens(33, 200)), 2u);
  EXPECT_EQ(found(tokens(33, 0)), 2u);
  EXPECT_TRUE(cache.is_consistent());
}

TEST_F(prefix_cache_test, gives_up_what_follows_before_what_precedes) {
  release(compute(tokens(64)));
  for (int i = 0; i < 5; ++i) cache.allocate();
  EXPECT_EQ(found(tokens(65)), 3u);
  cache.allocate();
  EXPECT_EQ(found(tokens(65)), 2u);
  EXPECT_TRUE(cache.is_consistent());
}

TEST_F(prefix_cache_test, never_gives_up_what_is_held) {
  const auto held = compute(tokens(128));
  EXPECT_EQ(cache.available(), 0);
  EXPECT_EQ(cache.allocate(), no_block);
  release(held);
  EXPECT_EQ(cache.available(), 8);
}

TEST_F(prefix_cache_test, forgets_everything_when_cleared) {
  const auto held = compute(tokens(32));
  release(compute(tokens(32, 50)));
  cache.clear();
  EXPECT_EQ(found(tokens(33)), 0u);
  EXPECT_EQ(cache.cached(), 0);
  release(held);
  EXPECT_EQ(pool.free(), 8);
  EXPECT_TRUE(cache.is_consistent());
}

TEST(content_hash, differs_where_anything_differs) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::set<std::uint32_t> high_bits;
  const auto add = [&](content_hash hash) {
    seen.emplace(hash.low, hash.high);
    high_bits.insert(static_cast<std::uint32_t>(hash.low >> 40));
  };
  std::size_t count = 0;
  for (std::uint32_t adapter = 0; adapter < 4; ++adapter)
    for (std::size_t place = 0; place < block_tokens; ++place)
      for (token_id token = 0; token < 500; ++token, ++count) {
        std::array<token_id, block_tokens> tokens{};
        tokens[place] = token + 1;
        add(hash_of_block(hash_of_start(model_id{1}, adapter_version{adapter}), tokens));
      }
  EXPECT_EQ(seen.size(), count);
  EXPECT_GT(high_bits.size(), count * 99 / 100);  // of 2^24
}

}  // namespace
}  // namespace troupe
