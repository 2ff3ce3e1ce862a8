// A scheduler small enough to say what it does in every step.
#pragma once
#include <numeric>

#include "tests/model/engine/scheduling/symbolic_replica.hpp"

namespace troupe::test {

inline batch_scheduler::options small_options() {
  batch_scheduler::options options;
  options.blocks = 64;
  options.context = 256;
  options.max_batch_tokens = 64;
  options.max_sequences = 8;
  options.max_adapters = 2;
  return options;
}

/// Token ids say where they stand: 1000 times `first`, and the place in the prompt.
inline sequence_request request_of(std::size_t prompt, std::int64_t answer, token_id first = 0) {
  sequence_request request;
  request.prompt.resize(prompt);
  std::iota(request.prompt.begin(), request.prompt.end(), first * 1000);
  request.max_tokens = answer;
  return request;
}

inline sequence_request batch_request(std::size_t prompt, std::int64_t answer, token_id first) {
  sequence_request request = request_of(prompt, answer, first);
  request.priority = request_priority::batch;
  return request;
}

inline sequence_request with_adapter(sequence_request request, std::uint32_t adapter) {
  request.adapter = adapter_version{adapter};
  return request;
}

inline troupe::refusal refused(engine_simulation& engine, const sequence_request& request) {
  return engine.scheduler.submit(request).error().reason;
}

/// Of the last plan.
inline const planned_share* share_of(const engine_simulation& engine, std::uint64_t id) {
  for (const planned_share& share : engine.flights.back().plan.shares)
    if (share.sequence.value == id) return &share;
  return nullptr;
}

inline void land(engine_simulation& engine) {
  engine.run();
  engine.commit(0);
}

}  // namespace troupe::test
