// A scheduler small enough to say what it does in every step.
#pragma once
#include <numeric>

#include "tests/model/engine/scheduling/symbolic_replica.hpp"

namespace troupe::test {

inline batch_scheduler::options small_options() {
  batch_scheduler::options made;
  made.blocks = 64;
  made.context = 256;
  made.max_batch_tokens = 64;
  made.max_sequences = 8;
  made.max_adapters = 2;
  return made;
}

inline sequence_request request_of(std::size_t prompt, std::int64_t answer, token_id first = 0) {
  sequence_request made;
  made.prompt.resize(prompt);
  std::iota(made.prompt.begin(), made.prompt.end(), first * 1000);
  made.max_tokens = answer;
  return made;
}

inline sequence_request batch_request(std::size_t prompt, std::int64_t answer, token_id first) {
  sequence_request made = request_of(prompt, answer, first);
  made.priority = request_priority::batch;
  return made;
}

inline sequence_request with_adapter(sequence_request request, std::uint32_t adapter) {
  request.adapter = adapter_version{adapter};
  return request;
}

inline troupe::refusal refused(engine_simulation& engine, const sequence_request& request) {
  return engine.scheduler.submit(request).error().reason;
}

/// Of the last plan.
inline const planned_row* row_of(const engine_simulation& engine, std::uint64_t id) {
  for (const planned_row& row : engine.flights.back().plan.rows)
    if (row.sequence.value == id) return &row;
  return nullptr;
}

inline void land(engine_simulation& engine) {
  engine.run();
  engine.commit(0);
}

}  // namespace troupe::test
