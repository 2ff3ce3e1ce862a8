#include "base/random.hpp"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace troupe {
namespace {

using block = std::array<std::uint32_t, 4>;

// The vectors that come with Random123 (kat_vectors, "philox4x32 10").
static_assert(philox({0, 0, 0, 0}, {0, 0}) == block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});

TEST(philox, gives_the_published_answers) {
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(random, uses_every_bit_of_seed_and_position) {
  std::set<std::uint64_t> seen;
  for (int bit = 0; bit < 64; ++bit) {
    seen.insert(random_bits(std::uint64_t{1} << bit, 0));
    seen.insert(random_bits(0, std::uint64_t{1} << bit));
  }
  EXPECT_EQ(seen.size(), 128u);
}

TEST(random, uniform_stays_below_one_and_fills_its_range_evenly) {
  constexpr int draws = 100'000, cells = 64;
  std::vector<int> counts(cells);
  double sum = 0.0;
  for (int i = 0; i < draws; ++i) {
    const double u = uniform(42, static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    ++counts[static_cast<std::size_t>(u * cells)];
  }
  EXPECT_NEAR(sum / draws, 0.5, 0.005);
  double chi_square = 0.0;
  for (const int count : counts) chi_square += std::pow(count - draws / double{cells}, 2) / (draws / double{cells});
  EXPECT_LT(chi_square, 63 + 5 * std::sqrt(2.0 * 63));
}

TEST(random, neighbouring_seeds_are_unrelated) {
  constexpr int draws = 20'000;
  double product = 0.0;
  for (std::uint64_t i = 0; i < draws; ++i) product += (uniform(i, 7) - 0.5) * (uniform(i + 1, 7) - 0.5);
  EXPECT_NEAR(product / draws, 0.0, 5.0 / 12.0 / std::sqrt(draws));
}

TEST(random, below_a_limit_reaches_every_value_and_never_the_limit) {
  EXPECT_EQ(random_below(0, 1, 2), 0u);
  EXPECT_EQ(random_below(1, 1, 2), 0u);
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++counts.at(random_below(7, 3, i));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
  EXPECT_GT(random_below(std::uint64_t{1} << 63, 3, 1), std::uint64_t{1} << 50);
}

}  // namespace
}  // namespace troupe
