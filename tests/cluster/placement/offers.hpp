// Offers of workers, and placements as texts.
#pragma once
#include <gtest/gtest.h>

#include "cluster/placement/placement.hpp"

namespace troupe::test {

constexpr std::uint64_t unit = 1 << 20;

/// Twelve layers of 10 MiB, embedding and head 30 MiB each, 1 KiB of KV per token and layer.
inline model_shape twelve_layers() {
  return {12, 10 * unit, 30 * unit, 30 * unit, false, 1024};
}

inline placement_request ask(int replicas = 0, int stages = 0, int tensor = 1) {
  return {replicas, stages, tensor, 24 * unit, 512};
}

inline worker_offer offer(const std::string& name, std::uint64_t memory, double speed = 1,
                          const std::string& host = "a") {
  return {name, host, memory * unit, speed, {}, {}, 1, 1};
}

inline worker_offer worker_by_hand(const std::string& name, layer_range layers, std::uint64_t memory = 1000) {
  worker_offer made = offer(name, memory);
  made.layers = layers;
  return made;
}

inline placement placed(const std::vector<worker_offer>& workers, const placement_request& request,
                        const model_shape& model = twelve_layers()) {
  auto made = place(workers, model, request);
  EXPECT_TRUE(made) << made.error().text;
  return made ? *made : placement{};
}

/// "w0:0-5 w1:6-11 | w2:0-11"
inline std::string text_of(const placement& where) {
  std::string text;
  for (const auto& replica : where.replicas) {
    if (!text.empty()) text += " | ";
    for (const auto& stage : replica.stages) {
      if (!text.empty() && !text.ends_with("| ")) text += " ";
      for (const auto& worker : stage.workers) text += (&worker == stage.workers.data() ? "" : "+") + worker;
      text += ":" + to_text(stage.layers);
    }
  }
  return text;
}

inline worker_offer pooled(const std::string& name, std::uint64_t memory) {
  worker_offer made = offer(name, memory);
  made.pool = "host a";
  return made;
}

inline std::uint64_t kv_of(const replica_placement& replica, int layers) {  // in units, on each of its workers
  return static_cast<std::uint64_t>(replica.kv_tokens) * static_cast<std::uint64_t>(layers) * 1024 / unit;
}

}  // namespace troupe::test
