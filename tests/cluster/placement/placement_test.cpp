#include "cluster/placement/placement.hpp"

#include <gtest/gtest.h>

#include "cluster/placement/memory_shares.hpp"
#include "tests/cluster/placement/offers.hpp"

namespace troupe {
namespace {

using namespace test;

TEST(placement, one_worker_that_holds_everything_is_one_stage) {
  const auto where = placed({offer("w0", 1000)}, ask());
  EXPECT_EQ(text_of(where), "w0:0-11");
  EXPECT_EQ(where.replicas[0].kv_tokens, 2048) << "24 MiB of 12 KiB a token";
  EXPECT_TRUE(where.spares.empty());
}

TEST(placement, leaves_a_gpu_room_for_rows_logits_and_adapters) {
  constexpr std::uint64_t gigabyte = 1024 * unit;
  EXPECT_EQ(memory_to_offer({}, 10 * gigabyte), 10 * gigabyte) << "a processor's is the system's to share out";
  EXPECT_EQ(memory_to_offer({0}, 10 * gigabyte), 8 * gigabyte);
  EXPECT_EQ(memory_to_offer({0}, gigabyte), 0u);
  auto generous = ask();
  generous.kv_memory = 100 * gigabyte;
  worker_offer gpu = offer("w0", 0);
  gpu.memory = memory_to_offer({0}, 10 * gigabyte);
  const auto where = placed({gpu}, generous);
  ASSERT_EQ(where.replicas.size(), 1u);
  const auto held = 180 * unit + static_cast<std::uint64_t>(where.replicas[0].kv_tokens) * 12 * 1024;
  EXPECT_LE(held, 8 * gigabyte);
  EXPECT_GT(held, 7 * gigabyte);
}

/// As in an office: a host of 20, weights of 8.5, and replicas that want 10 of KV each.
TEST(placement, counts_the_memory_of_workers_that_share_a_machine_once) {
  const model_shape model{10, 850 * unit, 0, 0, false, 1024};
  placement_request wanted{0, 0, 1, 10'000 * unit, 512};
  constexpr std::uint64_t a_token = 10 * 1024;
  const auto alone = placed({pooled("w0", 20'000)}, wanted, model);
  EXPECT_EQ(static_cast<std::uint64_t>(alone.replicas.at(0).kv_tokens) * a_token / unit, 10'000u);
  const auto where = placed({pooled("w0", 20'000), pooled("w1", 20'000)}, wanted, model);
  ASSERT_EQ(where.replicas.size(), 2u);
  for (const auto& replica : where.replicas)
    EXPECT_EQ(static_cast<std::uint64_t>(replica.kv_tokens) * a_token / unit, (20'000u - 8'500u) / 2)
        << "the weights are one file";
  const auto apart = placed({offer("w0", 20'000), offer("w1", 20'000)}, wanted, model);
  EXPECT_EQ(apart.replicas.at(1).kv_tokens, alone.replicas[0].kv_tokens);
}

worker_offer on_host(const std::string& host, const std::string& name, std::uint64_t memory) {
  worker_offer made = offer(name, memory, 1, host);
  made.pool = host;
  return made;
}

/// A replica on each machine, and one on both, for which the second machine has no room.
TEST(placement, lowers_nobody_for_a_replica_that_it_does_not_make) {
  const model_shape model{10, 850 * unit, 0, 0, false, 1024};
  const placement_request wanted{0, 0, 1, 10'000 * unit, 500'000};
  const auto where = placed(
      {on_host("a", "a0", 20'000), on_host("b", "b0", 15'000), on_host("a", "a1", 8'000), on_host("b", "b1", 8'000)},
      wanted, model);
  ASSERT_EQ(text_of(where), "b0:0-9 | a0:0-9");
  EXPECT_EQ(kv_of(where.replicas[1], 10), 10'000u);
}

/// Nine of the twelve layers keep states, of 2 MiB for all sequences, and have no keys and values.
model_shape layers_with_states() {
  model_shape model = twelve_layers();
  for (int layer = 0; layer < model.layers; ++layer) model.state_bytes.push_back(layer % 4 == 3 ? 0 : 2 * unit);
  return model;
}

TEST(placement, gives_keys_and_values_what_states_leave) {
  const auto where = placed({offer("w0", 1000)}, ask(), layers_with_states());
  EXPECT_EQ(where.replicas.at(0).kv_tokens, 2048) << "24 MiB less 18 of states, at 3 KiB a token";
  const auto tight = placed({offer("w0", 180 + 18 + 3)}, ask(), layers_with_states());
  EXPECT_EQ(tight.replicas.at(0).kv_tokens, 1024) << "3 MiB are left of its memory";
  placement_request little = ask();
  little.kv_memory = 10 * unit;
  EXPECT_EQ(placed({offer("w0", 1000)}, little, layers_with_states()).replicas.at(0).kv_tokens, 512)
      << "one sequence fits in any case";
}

TEST(placement, lets_as_many_sequences_run_as_half_of_the_memory_has_states_for) {
  EXPECT_EQ(sequences_with_states(1024 * unit, 20 * unit, 256), 25);
  EXPECT_EQ(sequences_with_states(1024 * unit, unit, 256), 256);
  EXPECT_EQ(sequences_with_states(unit, 20 * unit, 256), 1);
  EXPECT_EQ(beginnings_with_states(1024 * unit, 20 * unit, 25), 13) << "half of what they leave";
  EXPECT_EQ(beginnings_with_states(1024 * unit, unit, 256), 256);
  EXPECT_EQ(beginnings_with_states(unit, 20 * unit, 1), 0);
}

TEST(placement, gives_each_replica_on_a_machine_states_of_its_own) {
  const auto where = placed({pooled("w0", 240), pooled("w1", 240)}, ask(), layers_with_states());
  ASSERT_EQ(where.replicas.size(), 2u);
  EXPECT_EQ(where.replicas[1].kv_tokens, 2048) << "180 of weights, 36 of states, 12 of keys and values";
  EXPECT_EQ(placed({pooled("w0", 216), pooled("w1", 216)}, ask(), layers_with_states()).replicas.size(), 1u);
}

TEST(placement, says_that_states_take_memory_where_there_is_too_little) {
  const auto said = [](const std::vector<worker_offer>& workers) {
    return place(workers, layers_with_states(), ask()).error().text;
  };
  EXPECT_EQ(said({offer("w0", 190)}),
            "the model fits on no workers: 12 layers need 180.0 MiB of weights and 19.5 MiB for 512 tokens and the "
            "states of all sequences, and 1 worker offers 190.0 MiB in all: use a smaller quant, context or "
            "max_sequences, or add workers");
  EXPECT_EQ(said({worker_by_hand("w0", {0, 11}, 190)}),
            "w0 has 190.0 MiB of memory, but layers 0-11 need 180.0 MiB of weights and 19.5 MiB for 512 tokens and the "
            "states of all sequences: give it fewer layers, or use a smaller quant, context or max_sequences");
}

/// The first layer alone would need all the memory: those behind it are cheap.
TEST(placement, does_not_take_the_dearest_layer_for_all) {
  model_shape model{4, unit, 0, 0, false, 1024 * 16};
  model.state_bytes = {0, unit, unit, unit};
  EXPECT_EQ(text_of(placed({offer("w0", 20)}, ask(), model)), "w0:0-3");
}

TEST(placement, keeps_memory_for_the_pass_of_each_worker) {
  model_shape model{10, 850 * unit, 0, 0, false, 1024, 0, 1000 * unit};
  const auto where = placed({pooled("w0", 20'000), pooled("w1", 20'000)}, {0, 0, 1, 10'000 * unit, 512}, model);
  EXPECT_EQ(static_cast<std::uint64_t>(where.replicas.at(1).kv_tokens) * 10 * 1024 / unit, (20'000u - 10'500u) / 2);
}

/// Of 16,000 that are free 8,000 are for weights.
TEST(placement, leaves_adapters_room_where_keys_and_values_cannot_have_all_they_ask_for) {
  model_shape model{8, 1'000 * unit, 0, 0, false, 1024};
  const auto kv_beside = [&](std::uint64_t adapters, std::uint64_t asked, std::uint64_t memory = 16'000) {
    model.adapter_bytes = adapters * unit;
    return kv_of(placed({pooled("w0", memory)}, {0, 0, 1, asked * unit, 512}, model).replicas.at(0), 8);
  };
  EXPECT_EQ(kv_beside(0, 12'000), 8'000u);
  EXPECT_EQ(kv_beside(3'000, 12'000), 5'000u);
  EXPECT_EQ(kv_beside(6'000, 12'000), 4'000u) << "half at most: they may never come";
  EXPECT_EQ(kv_beside(6'000, 2'000), 2'000u) << "what was asked for and fits beside them";
  EXPECT_EQ(kv_beside(1'000, 1'000, 8'004), 4u) << "one sequence of the context fits in any case";
  const auto shared = placed({pooled("w0", 16'000), pooled("w1", 16'000)}, {0, 0, 1, 12'000 * unit, 512}, model);
  ASSERT_EQ(shared.replicas.size(), 2u);
  EXPECT_EQ(kv_of(shared.replicas[1], 8), 3'000u) << "a thousand for each worker's adapters";
}

/// As in the quickstart: a small model, a gigabyte for keys and values and one for adapters that nobody uses.
TEST(placement, serves_from_little_memory_whatever_adapters_may_take) {
  model_shape model = twelve_layers();
  model.adapter_bytes = 1024 * unit;
  const placement_request usual{0, 0, 1, 1024 * unit, 512};
  const auto tokens_in = [&](std::uint64_t memory) {
    return placed({pooled("w0", memory)}, usual, model).replicas.at(0).kv_tokens;
  };
  EXPECT_EQ(tokens_in(2048), (2048 - 180) / 2 * 1024 / 12 / 16 * 16) << "half of what weights leave";
  EXPECT_EQ(tokens_in(4096), 1024 * 1024 / 12 / 16 * 16) << "all that was asked for";
  EXPECT_TRUE(place({pooled("w0", 186)}, model, usual)) << "180 of weights, and 6 for the tokens of one context";
}

TEST(placement, makes_no_replica_that_a_shared_machine_has_no_room_for) {
  const model_shape model{10, 850 * unit, 0, 0, false, 1024};
  placement_request wanted{0, 0, 1, 10'000 * unit, 700'000};  // some 6,800 of KV at the least
  const auto where = placed({pooled("w0", 20'000), pooled("w1", 20'000)}, wanted, model);
  EXPECT_EQ(text_of(where), "w0:0-9");
  EXPECT_EQ(where.spares, std::vector<std::string>{"w1"});
  wanted.replicas = 2;
  EXPECT_EQ(place({pooled("w0", 20'000), pooled("w1", 20'000)}, model, wanted).error().key, "cluster.replicas");
  const auto none = place({pooled("w0", 8'000), pooled("w1", 8'000)}, model, {0, 2, 1, 10'000 * unit, 512});
  ASSERT_FALSE(none) << "each half fits on one, both do not";
  EXPECT_EQ(none.error().key, "model.path");
  auto elsewhere = pooled("w2", 8'000);
  elsewhere.host = elsewhere.pool = "host b";
  const auto apart =
      placed({pooled("w0", 8'000), pooled("w1", 8'000), elsewhere}, {0, 0, 1, 10'000 * unit, 512}, model);
  ASSERT_EQ(apart.replicas.size(), 1u) << "what one machine cannot hold two can";
  EXPECT_EQ(apart.replicas[0].stages.back().workers, std::vector<std::string>{"w2"});
}

TEST(placement, makes_as_many_replicas_as_fit) {
  EXPECT_EQ(text_of(placed({offer("w0", 1000), offer("w1", 1000), offer("w2", 50)}, ask())), "w0:0-11 | w1:0-11");
  EXPECT_EQ(placed({offer("w0", 1000), offer("w1", 1000), offer("w2", 50)}, ask()).spares,
            std::vector<std::string>{"w2"});
  EXPECT_EQ(text_of(placed({offer("w0", 130), offer("w1", 130), offer("w2", 130), offer("w3", 130)}, ask())),
            "w0:0-6 w1:7-11 | w2:0-6 w3:7-11");
}

TEST(placement, keeps_spares_when_fewer_replicas_are_asked_for) {
  const auto where = placed({offer("slow", 1000, 1), offer("fast", 1000, 3)}, ask(1));
  EXPECT_EQ(text_of(where), "fast:0-11");
  EXPECT_EQ(where.spares, std::vector<std::string>{"slow"});
}

TEST(placement, takes_the_fastest_whatever_their_hosts_are_called) {
  const worker_offer slow0 = offer("slow0", 1000, 1, "a"), slow1 = offer("slow1", 1000, 1, "a");
  EXPECT_EQ(text_of(placed({slow0, slow1, offer("fast", 1000, 3, "b")}, ask(1))), "fast:0-11");
  const worker_offer fast0 = offer("fast0", 1000, 3, "b"), fast1 = offer("fast1", 1000, 3, "b");
  EXPECT_EQ(text_of(placed({slow0, slow1, fast0, fast1}, ask(1, 2))), "fast0:0-6 fast1:7-11");
  EXPECT_EQ(text_of(placed({slow0, slow1, offer("fast", 1000, 3, "b")}, ask(1, 2))), "slow0:0-6 slow1:7-11")
      << "no network between its stages";
}

TEST(placement, cuts_into_the_stages_that_were_asked_for_the_head_counted) {
  EXPECT_EQ(text_of(placed({offer("w0", 1000), offer("w1", 1000)}, ask(1, 2))), "w0:0-6 w1:7-11")
      << "70 MiB and 50 of layers with 30 of head";
  EXPECT_EQ(text_of(placed({offer("w0", 1000), offer("w1", 1000), offer("w2", 1000)}, ask(1, 3))),
            "w0:0-4 w1:5-9 w2:10-11");
}

TEST(placement, shares_layers_out_by_speed) {
  EXPECT_EQ(text_of(placed({offer("w0", 1000, 3), offer("w1", 1000, 2)}, ask(1, 2))), "w0:0-8 w1:9-11");
  EXPECT_EQ(text_of(placed({offer("w0", 1000, 1), offer("w1", 1000, 4)}, ask(1, 2))), "w0:0-2 w1:3-11");
}

TEST(placement, memory_goes_before_speed) {
  EXPECT_EQ(text_of(placed({offer("w0", 75, 9), offer("w1", 1000, 1)}, ask(1, 2))), "w0:0-2 w1:3-11");
  EXPECT_EQ(text_of(placed({offer("w0", 300, 1), offer("w1", 75, 9)}, ask(1, 2))), "w0:0-8 w1:9-11");
}

TEST(placement, takes_less_kv_where_memory_is_short_but_never_less_than_a_context) {
  const auto where = placed({offer("w0", 190)}, ask());
  EXPECT_LT(where.replicas[0].kv_tokens, 2048);
  EXPECT_GE(where.replicas[0].kv_tokens, 512);
  EXPECT_EQ(where.replicas[0].kv_tokens % 16, 0);
  EXPECT_FALSE(place({offer("w0", 183)}, twelve_layers(), ask()));
  EXPECT_TRUE(place({offer("w0", 186)}, twelve_layers(), ask()));
  model_shape tied = twelve_layers();
  tied.tied = true;
  EXPECT_TRUE(place({offer("w0", 160)}, tied, ask())) << "one copy of what is embedding and head";
}

TEST(placement, keeps_a_replica_on_one_host_where_it_can) {
  const auto where = placed({offer("a0", 130, 1, "a"), offer("b0", 130, 1, "b"), offer("b1", 130, 1, "b")}, ask());
  EXPECT_EQ(text_of(where), "b0:0-6 b1:7-11");
  EXPECT_EQ(where.spares, std::vector<std::string>{"a0"});
  const auto mixed = placed(
      {offer("a0", 80, 1, "a"), offer("b0", 80, 1, "b"), offer("a1", 80, 1, "a"), offer("b1", 80, 1, "b")}, ask(1, 4));
  EXPECT_EQ(mixed.replicas[0].stages[0].workers[0], "a0");
  EXPECT_EQ(mixed.replicas[0].stages[1].workers[0], "a1") << "one crossing between hosts, not three";
}

TEST(placement, honours_layers_by_hand_and_fills_the_gaps) {
  EXPECT_EQ(text_of(placed({worker_by_hand("w0", {0, 1}), worker_by_hand("w1", {2, 11})}, ask())), "w0:0-1 w1:2-11");
  EXPECT_EQ(text_of(placed({worker_by_hand("w1", {4, 11}), offer("w0", 1000)}, ask())), "w0:0-3 w1:4-11");
  EXPECT_EQ(
      text_of(placed({worker_by_hand("w0", {0, 3}), worker_by_hand("w2", {6, 9}), offer("x", 1000), offer("y", 1000)},
                     ask())),
      "w0:0-3 x:4-5 w2:6-9 y:10-11");
  auto second = worker_by_hand("w1", {0, 11});
  second.replica = 1;
  EXPECT_EQ(text_of(placed({second, worker_by_hand("w0", {0, 11})}, ask())), "w0:0-11 | w1:0-11");
  worker_offer reserved = offer("r", 1000);
  reserved.replica = 1;
  EXPECT_EQ(text_of(placed({reserved, offer("w0", 1000), worker_by_hand("h", {0, 11})}, ask())),
            "h:0-11 | r:0-11 | w0:0-11");
}

TEST(placement, says_why_it_cannot_be) {
  const auto why = [](const std::vector<worker_offer>& workers, const placement_request& request) {
    const auto made = place(workers, twelve_layers(), request);
    return made ? "" : made.error().key + ": " + made.error().text;
  };
  EXPECT_EQ(why({worker_by_hand("w0", {0, 5}), worker_by_hand("w1", {6, 12})}, ask()),
            "node.w1.layers: layers 6-12 of w1 go beyond the model, which has 12: the last is 11");
  EXPECT_TRUE(why({worker_by_hand("w0", {0, 5}), worker_by_hand("w1", {5, 11})}, ask())
                  .starts_with("node.w1.layers: layers 5-11"));
  EXPECT_TRUE(why({worker_by_hand("w0", {0, 5})}, ask())
                  .starts_with("node: layers 6-11 of replica 0 are on no worker, and all workers"));
  EXPECT_TRUE(why({worker_by_hand("w0", {0, 11}, 150)}, ask())
                  .starts_with("node.w0.layers: w0 has 150.0 MiB of memory, but layers 0-11 need 180.0 MiB of weights "
                               "and 6.00 MiB for 512 tokens: "));
  EXPECT_TRUE(
      why({worker_by_hand("w0", {0, 11}), worker_by_hand("w1", {0, 11})}, ask()).starts_with("node.w0.layers: "));
  EXPECT_TRUE(why({offer("w0", 1000)}, ask(2)).starts_with("cluster.replicas: replicas = 2, but only 1 fits"));
  EXPECT_TRUE(
      why({offer("w0", 100)}, ask()).starts_with("model.path: the model fits on no workers: 12 layers need 180"));
  EXPECT_TRUE(why({}, ask()).starts_with("model.path: the model fits on no workers"));
  EXPECT_TRUE(why({offer("w0", 1000)}, ask(1, 13)).starts_with("cluster.stages: stages = 13, but the model has 12"));
}

/// 180 MiB of weights, and 6 for the tokens of one context.
TEST(placement, uses_memory_to_the_last_byte) {
  for (const std::uint64_t memory : {185u, 186u}) {
    const bool is_enough = memory == 186;
    EXPECT_EQ(place({worker_by_hand("w0", {0, 11}, memory)}, twelve_layers(), ask()).ok(), is_enough) << "by hand";
    EXPECT_EQ(place({pooled("w0", memory)}, twelve_layers(), ask()).ok(), is_enough) << "of a shared machine";
    EXPECT_EQ(place({pooled("w0", memory), pooled("w1", memory)}, twelve_layers(), ask(1, 1, 2)).ok(), is_enough)
        << "each rank has its own part of the head, and all have one embedding";
  }
  model_shape tied = twelve_layers();
  tied.tied = true;
  EXPECT_TRUE(place({pooled("w0", 156)}, tied, ask())) << "one copy of what is embedding and head";
}

TEST(placement, joins_workers_that_are_alike_in_memory_and_of_several_hosts_where_it_must) {
  EXPECT_EQ(text_of(placed({offer("a0", 1000), offer("a1", 50), offer("a2", 1000), offer("a3", 50)}, ask(1, 1, 2))),
            "a0+a2:0-11");
  EXPECT_EQ(text_of(placed({offer("a0", 1000, 1, "a"), offer("b0", 1000, 1, "b")}, ask(1, 1, 2))), "a0+b0:0-11");
}

TEST(placement, takes_ranks_of_one_host_before_faster_ones_of_several) {
  EXPECT_EQ(text_of(placed({offer("a0", 1000, 1, "a"), offer("a1", 1000, 1, "a"), offer("b0", 1000, 3, "b"),
                            offer("c0", 1000, 3, "c")},
                           ask(1, 1, 2))),
            "a0+a1:0-11");
}

TEST(placement, takes_ranks_for_as_fast_as_the_slowest_of_them) {
  EXPECT_EQ(text_of(placed({offer("a0", 1000, 9, "a"), offer("a1", 1000, 1, "a"), offer("b0", 1000, 2, "b"),
                            offer("b1", 1000, 2, "b")},
                           ask(1, 2, 2))),
            "a0+a1:0-4 b0+b1:5-11");
}

TEST(placement, joins_workers_of_one_host_to_share_a_stage) {
  const auto where =
      placed({offer("a0", 200, 1, "a"), offer("b0", 200, 1, "b"), offer("a1", 200, 1, "a"), offer("b1", 200, 1, "b")},
             ask(0, 0, 2));
  EXPECT_EQ(text_of(where), "a0+a1:0-11 | b0+b1:0-11");
  EXPECT_EQ(text_of(placed({worker_by_hand("x", {0, 5}), worker_by_hand("y", {0, 5}), worker_by_hand("z", {6, 11}),
                            worker_by_hand("u", {6, 11})},
                           ask(1, 0, 2))),
            "x+y:0-5 z+u:6-11");
}

int at_once(const std::vector<std::vector<worker_offer>>& stages) {
  replica_placement where;
  std::vector<worker_offer> all;
  for (const auto& ranks : stages) {
    auto& stage = where.stages.emplace_back();
    for (const worker_offer& rank : ranks) {
      stage.workers.push_back("w" + std::to_string(all.size()));
      all.push_back(rank);
      all.back().name = stage.workers.back();
    }
  }
  return stages_at_once(where, all);
}

TEST(placement, knows_how_many_stages_find_processors_at_the_same_time) {
  const auto with = [](const std::string& host, int threads, int processors) {
    worker_offer made = offer("", 1000, 1, host);
    made.threads = threads;
    made.processors = processors;
    return made;
  };
  EXPECT_EQ(at_once({{with("a", 2, 2)}}), 1);
  EXPECT_EQ(at_once({{with("a", 1, 2)}, {with("a", 1, 2)}}), 2);
  EXPECT_EQ(at_once({{with("a", 2, 2)}, {with("a", 2, 2)}}), 1);
  EXPECT_EQ(at_once({{with("a", 9, 2)}, {with("b", 9, 2)}}), 2) << "a machine has room for one in any case";
  EXPECT_EQ(at_once({{with("a", 8, 8)}, {with("a", 8, 8)}, {with("b", 8, 8)}, {with("b", 8, 8)}}), 2);
  EXPECT_EQ(at_once({{with("a", 4, 8)}, {with("a", 2, 8)}, {with("a", 2, 8)}, {with("a", 1, 8)}}), 3);
  EXPECT_EQ(at_once({{with("a", 4, 8), with("a", 4, 8)}, {with("a", 4, 8), with("a", 4, 8)}}), 1) << "ranks";
  EXPECT_EQ(at_once({{with("a", 4, 8), with("b", 4, 8)}, {with("a", 4, 8), with("b", 4, 8)}}), 2);
}

TEST(placement, makes_replicas_of_hundreds_of_workers) {
  std::vector<worker_offer> workers;
  for (int i = 0; i < 600; ++i) workers.push_back(offer("w" + std::to_string(i), 130));
  const auto where = placed(workers, ask());
  EXPECT_EQ(where.replicas.size(), 300u);
}

}  // namespace
}  // namespace troupe
