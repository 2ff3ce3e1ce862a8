// Everything that serving needs inside one process: a batch scheduler's decisions, carried out by one or more shards.
//
// Goals: what a request gets is decided by the request alone (promise 1); one call of step() is one step.
// Non-goals: threads of its own, sockets, text. Tokens come in and go out; whoever owns the engine detokenizes.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/arch/decoder.hpp"
#include "model/engine/batch_scheduler.hpp"
#include "model/engine/sampler.hpp"
#include "model/engine/sampling_history.hpp"
#include "model/engine/sampling_params.hpp"

namespace troupe {

struct engine_options {
  batch_scheduler::options scheduler;
  kv_kind kv = kv_kind::f16;
  std::vector<std::int64_t> shard_layers;  ///< how many layers each shard holds; empty: one shard with all
  int lookup_tokens = 0;                   ///< guesses by prompt lookup for every greedy or sampled step; 0: none
};

struct engine_request {
  sequence_request what;
  sampling_params sampling;
  std::vector<token_id> end_tokens;
};

/// One token of an answer, in order.
struct engine_token {
  sequence_id sequence;
  const sampled_token& token;
};

class engine {
 public:
  /// Adapters are known by version; the engine does not own them.
  engine(std::shared_ptr<const loaded_model> model, engine_options options, const compute& with);
  ~engine();

  void add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter);

  /// Throws input_error where the sampling parameters are out of range.
  result<accepted_request, refused_request> submit(engine_request request);
  bool cancel(sequence_id id);

  using token_sink = std::function<void(const engine_token&)>;
  using end_sink = std::function<void(const ended_sequence&)>;
  /// Plans, computes and commits one step. False where there was nothing to do.
  bool step(instant now, const token_sink& on_token, const end_sink& on_end);

  const batch_scheduler& scheduler() const { return scheduler_; }

 private:
  struct answer;

  void run_shards();
  void build_pass();
  void collect_outcomes(const token_sink& on_token);
  void choose_tokens(const planned_row& row, answer& to, const float* logits, const token_sink& on_token,
                     sequence_outcome& outcome);
  void guess(answer& of) const;

  std::shared_ptr<const loaded_model> model_;
  engine_options options_;
  compute with_;
  std::unordered_map<adapter_version, std::shared_ptr<const lora_adapter>> adapters_;
  batch_scheduler scheduler_;
  std::vector<std::unique_ptr<decoder>> shards_;
  sampler sampler_;

  std::unordered_map<sequence_id, std::unique_ptr<answer>> answers_;
  std::unordered_map<sequence_id, std::vector<std::int32_t>> tables_;  // block tables, as the shards need them
  step_plan plan_;
  std::vector<pass_sequence> rows_;
  std::vector<int> logit_rows_;
  std::vector<sequence_outcome> outcomes_;
  aligned_buffer<float> hidden_, logits_;
};

/// Blocks of 16 positions that `bytes` of memory hold for a whole model.
std::int32_t blocks_in(std::int64_t bytes, const model_config& config, kv_kind kind);

}  // namespace troupe
