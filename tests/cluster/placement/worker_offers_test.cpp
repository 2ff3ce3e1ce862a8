#include "cluster/placement/worker_offers.hpp"

#include "tests/cluster/placement/offers.hpp"

namespace troupe::test {
namespace {

/// What each worker's pool has, in units.
std::vector<std::uint64_t> pools_of(const worker_offers& offers) {
  std::vector<std::uint64_t> pools;
  for (const worker_offer& each : offers.all()) pools.push_back(each.pool_memory / unit);
  return pools;
}

using sizes = std::vector<std::uint64_t>;

TEST(worker_offers, remember_the_most_that_a_pool_has_offered) {
  worker_offers offers;
  offers.set(pooled("w0", 100));
  offers.set(pooled("w1", 80));
  offers.set(offer("elsewhere", 500));
  EXPECT_EQ(pools_of(offers), (sizes{500, 100, 100}));
  offers.remove("w0");
  offers.set(pooled("w0", 40));
  EXPECT_EQ(pools_of(offers), (sizes{500, 100, 100})) << "it measured what the other one leaves";
}

TEST(worker_offers, forget_a_pool_with_its_last_worker) {
  worker_offers offers;
  offers.set(pooled("w0", 100));
  offers.set(pooled("w1", 80));
  offers.remove("w0");
  offers.remove("w1");
  offers.remove("w1");
  offers.set(pooled("w1", 30));
  EXPECT_EQ(pools_of(offers), sizes{30});
}

TEST(worker_offers, rise_with_memory_that_is_noticeably_more) {
  worker_offers offers;
  offers.set(pooled("w0", 100));
  EXPECT_FALSE(offers.raise("w0", 104 * unit));
  EXPECT_FALSE(offers.raise("w0", ~std::uint64_t{0})) << "no machine has that much";
  EXPECT_EQ(offers.of("w0").memory, 100 * unit);
  EXPECT_TRUE(offers.raise("w0", 110 * unit));
  EXPECT_EQ(offers.of("w0").memory, 110 * unit);
  EXPECT_EQ(pools_of(offers), sizes{110});
}

}  // namespace
}  // namespace troupe::test
