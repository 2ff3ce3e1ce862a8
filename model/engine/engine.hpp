// Everything that serving needs inside one process: a replica's scheduler and its stages, called in turn.
//
// Goals: what a request gets is decided by the request alone (promise 1); one call of step() is one step.
// Non-goals: threads of its own, sockets, text. Tokens come in and go out; whoever owns the engine detokenizes.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "model/engine/replica_scheduler.hpp"
#include "model/engine/stages/stage.hpp"

namespace troupe {

struct engine_options {
  batch_scheduler::options scheduler;  ///< whether the model keeps states is its own business
  kv_kind kv = kv_kind::f16;
  device_id device = {};
  std::vector<std::int64_t> stage_layers;  ///< how many layers each stage holds; empty: one stage with all
  int lookup_tokens = 0;                   ///< guesses by prompt lookup for every greedy or sampled step; 0: none
  token_tree_source tokens;                ///< for answers under a constraint
};

class engine {
 public:
  /// Adapters are known by version; the engine does not own them.
  engine(std::shared_ptr<const loaded_model> model, engine_options options, const compute& with);

  void add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter);
  void remove_adapter(adapter_version version);

  /// Throws input_error where a token or a sampling parameter is out of range.
  result<accepted_request, refused_request> submit(engine_request request) {
    return scheduler_.submit(std::move(request));
  }

  using token_sink = replica_scheduler::token_sink;
  using end_sink = replica_scheduler::end_sink;
  using reading_sink = replica_scheduler::reading_sink;
  /// Plans, computes and commits one step. False where there was nothing to do.
  bool step(instant now, const token_sink& on_token, const end_sink& on_end, const reading_sink& on_reading = {});

  const batch_scheduler& scheduler() const { return scheduler_.decisions(); }

 private:
  const step_outcome& run_stages();

  std::vector<std::unique_ptr<stage>> stages_;
  replica_scheduler scheduler_;
  step_order order_;
  aligned_buffer<float> hidden_;
};

}  // namespace troupe
