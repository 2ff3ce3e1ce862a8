// What holds for every placement, whatever the offers.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/to_size.hpp"
#include "cluster/placement/placement.hpp"
#include "tests/cluster/placement/offers.hpp"

namespace troupe {
namespace {

using namespace test;

struct random_case {
  std::vector<worker_offer> workers;
  model_shape model;
  placement_request request;
};

std::uint64_t pool_memory(const random_case& of, const std::string& pool) {
  std::uint64_t most = 0;
  for (const worker_offer& each : of.workers)
    if (each.pool == pool) most = std::max(most, each.memory);
  return most;
}

random_case draw(std::mt19937& random) {
  const auto number = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(random); };
  const auto bytes = [&](int least, int most) { return static_cast<std::uint64_t>(number(least, most)) * unit; };
  random_case drawn;
  drawn.model = {number(1, 40), bytes(1, 20),      bytes(0, 60),
                 bytes(0, 60),  number(0, 1) == 1, static_cast<std::uint64_t>(number(0, 4096))};
  if (number(0, 1) == 1) drawn.model.kv_bytes *= static_cast<std::uint64_t>(drawn.model.kv_heads = number(1, 5));
  if (number(0, 1) == 1) drawn.model.adapter_bytes = bytes(0, 400);
  if (number(0, 2) == 0)
    for (int layer = 0; layer < drawn.model.layers; ++layer)
      drawn.model.state_bytes.push_back(number(0, 3) == 0 ? 0 : bytes(1, 10));
  drawn.request = {number(0, 3), number(0, 3), number(1, 2), bytes(1, 200), number(1, 4096)};
  for (int i = number(0, 9); i > 0; --i) {
    worker_offer made = offer("w" + std::to_string(i), static_cast<std::uint64_t>(number(1, 800)), number(1, 40) / 10.0,
                              std::string(1, static_cast<char>('a' + number(0, 2))));
    if (number(0, 9) == 0) made.replica = number(0, 2);
    if (number(0, 9) == 0) {
      const int first = number(0, drawn.model.layers);
      made.layers = layer_range{first, number(first, drawn.model.layers)};
    }
    if (number(0, 1) == 1) made.pool = made.host;
    drawn.workers.push_back(std::move(made));
  }
  for (worker_offer& each : drawn.workers) each.pool_memory = pool_memory(drawn, each.pool);
  return drawn;
}

std::uint64_t part(std::uint64_t bytes, int parts) {
  const auto whole = static_cast<std::uint64_t>(parts);
  return (bytes + whole - 1) / whole;
}

/// What a worker of a stage has to hold, computed without the code under test.
std::uint64_t held(const stage_placement& stage, std::int64_t tokens, const random_case& of) {
  const model_shape& model = of.model;
  const int tensor = of.request.tensor;
  const bool is_first = stage.layers.first == 0, is_last = stage.layers.last == model.layers - 1;
  const auto heads = static_cast<std::uint64_t>(model.kv_heads);
  const std::uint64_t kv =
      heads ? model.kv_bytes / heads * part(heads, tensor) : part(model.kv_bytes, tensor);  // the most of a rank
  std::uint64_t bytes = 0;
  for (int layer = stage.layers.first; layer <= stage.layers.last; ++layer) {
    const std::uint64_t state = model.state_bytes.empty() ? 0 : model.state_bytes[to_size(layer)];
    bytes += part(model.layer_bytes, tensor) + (state > 0 ? state : kv * static_cast<std::uint64_t>(tokens));
  }
  if (is_first) bytes += model.embedding_bytes;
  if (is_last && !(is_first && model.tied)) bytes += part(model.head_bytes, tensor);
  return bytes;
}

const worker_offer* offer_of(const random_case& of, const std::string& name) {
  const auto found =
      std::find_if(of.workers.begin(), of.workers.end(), [&](const auto& worker) { return worker.name == name; });
  return found == of.workers.end() ? nullptr : &*found;
}

/// What the workers of one machine hold together, weights once, computed without the code under test.
struct held_in_pool {
  std::set<std::pair<int, std::size_t>> layers;
  std::set<std::size_t> heads;
  bool has_embedding = false;
  std::uint64_t kv = 0;

  void add(const stage_placement& stage, std::size_t rank, std::int64_t tokens, const random_case& of) {
    for (int layer = stage.layers.first; layer <= stage.layers.last; ++layer) layers.emplace(layer, rank);
    has_embedding |= stage.layers.first == 0;
    if (stage.layers.last == of.model.layers - 1) heads.insert(rank);
    random_case without = of;
    without.model.state_bytes.assign(to_size(of.model.layers), 0);
    kv += held(stage, tokens, of) - held(stage, 0, without);
  }
  std::uint64_t bytes(const random_case& of) const {
    const std::uint64_t head = of.model.tied && has_embedding ? 0 : part(of.model.head_bytes, of.request.tensor);
    return kv + part(of.model.layer_bytes, of.request.tensor) * layers.size() +
           (has_embedding ? of.model.embedding_bytes : 0) + head * heads.size();
  }
};

void expect_machines_to_hold(const placement& where, const random_case& of) {
  std::map<std::string, held_in_pool> pools;
  for (const auto& replica : where.replicas)
    for (const auto& stage : replica.stages)
      for (std::size_t rank = 0; rank < stage.workers.size(); ++rank)
        if (const worker_offer* worker = offer_of(of, stage.workers[rank]); worker && !worker->pool.empty())
          pools[worker->pool].add(stage, rank, replica.kv_tokens, of);
  for (const auto& [name, pool] : pools) EXPECT_LE(pool.bytes(of), pool_memory(of, name)) << name;
}

/// Every layer is there once in each replica, every worker has at most one place, memory suffices, and what was set by
/// hand is done. `vacant`: there may be gaps.
void expect_sound(const placement& where, const random_case& of, bool vacant = false) {
  std::set<std::string> seen;
  for (const auto& replica : where.replicas) {
    int next = 0;
    for (const auto& stage : replica.stages) {
      EXPECT_EQ(stage.layers.first, next);
      EXPECT_GE(stage.layers.count(), 1);
      next = stage.layers.last + 1;
      EXPECT_EQ(stage.workers.size(), to_size(of.request.tensor));
      for (const auto& name : stage.workers) {
        if (name.empty() && vacant) continue;
        EXPECT_TRUE(seen.insert(name).second) << name << " is in two places";
        const worker_offer* worker = offer_of(of, name);
        ASSERT_TRUE(worker) << name;
        EXPECT_LE(held(stage, replica.kv_tokens, of), worker->memory) << name;
        if (worker->layers) {
          EXPECT_EQ(*worker->layers, stage.layers);
        }
        if (worker->layers || worker->replica) {
          EXPECT_EQ(replica.number, worker->replica.value_or(0)) << name;
        }
      }
    }
    EXPECT_EQ(next, of.model.layers);
    EXPECT_GE(replica.kv_tokens, of.request.min_context);
    EXPECT_EQ(replica.kv_tokens % 16, 0);
    EXPECT_TRUE(vacant || replica.is_complete());
  }
  expect_machines_to_hold(where, of);
  for (const auto& spare : where.spares) EXPECT_TRUE(seen.insert(spare).second) << spare << " is in two places";
  std::set<int> numbers;
  for (const auto& replica : where.replicas)
    if (replica.number) {
      EXPECT_TRUE(numbers.insert(*replica.number).second) << "replica " << *replica.number << " is there twice";
    }
}

TEST(placement, random_offers_are_placed_soundly_or_refused) {
  std::mt19937 random(7);
  int good = 0;
  for (int i = 0; i < 4000; ++i) {
    const random_case drawn = draw(random);
    const auto made = place(drawn.workers, drawn.model, drawn.request);
    if (!made) {
      EXPECT_FALSE(made.error().text.empty());
      continue;
    }
    ++good;
    expect_sound(*made, drawn);
    std::size_t count = made->spares.size();
    for (const auto& replica : made->replicas)
      for (const auto& stage : replica.stages) count += stage.workers.size();
    EXPECT_EQ(count, drawn.workers.size()) << "nobody is forgotten";
    if (drawn.request.replicas > 0) {
      EXPECT_EQ(made->replicas.size(), to_size(drawn.request.replicas));
    }
    EXPECT_EQ(text_of(*place(drawn.workers, drawn.model, drawn.request)), text_of(*made)) << "the same every time";
  }
  EXPECT_GT(good, 500);
}

std::vector<worker_offer> offers_without(const std::set<std::string>& gone, const random_case& of) {
  std::vector<worker_offer> offers = of.workers;
  std::erase_if(offers, [&](const worker_offer& each) { return gone.contains(each.name); });
  return offers;
}

TEST(placement, stays_sound_while_workers_come_and_go) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    random_case drawn = draw(random);
    auto made = place(drawn.workers, drawn.model, drawn.request);
    if (!made) continue;
    placement now = *made;
    std::set<std::string> gone;
    for (int turn = 0; turn < 20; ++turn) {
      const auto& worker = drawn.workers[random() % drawn.workers.size()];
      if (gone.erase(worker.name)) {
        now = extend(now, worker.name, offers_without(gone, drawn), drawn.model, drawn.request).after;
      } else {
        gone.insert(worker.name);
        now = repair(now, worker.name, offers_without(gone, drawn), drawn.model, drawn.request).after;
      }
      if (turn % 4 == 3 && std::ranges::none_of(now.replicas, &replica_placement::is_complete))
        now = place_anew(now, offers_without(gone, drawn), drawn.model, drawn.request).after;
      expect_sound(now, drawn, true);
      for (const auto& name : gone) {
        EXPECT_FALSE(find_worker(now, name)) << "the lost one has nothing to do";
        EXPECT_EQ(std::count(now.spares.begin(), now.spares.end(), name), 0);
      }
      ASSERT_FALSE(testing::Test::HasFailure()) << "case " << i << ", turn " << turn;
    }
  }
}

}  // namespace
}  // namespace troupe
