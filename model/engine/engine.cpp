#include "model/engine/engine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/engine/prompt_lookup.hpp"

namespace troupe {

/// What the engine keeps of one answer beside the scheduler's state.
struct engine::answer {
  sampling_params sampling;
  std::vector<token_id> end_tokens;
  sampling_history history;
  std::vector<token_id> text;       // prompt and answer so far: where guesses are looked up
  std::size_t prompt = 0;           // tokens of it
  std::vector<token_id> accepted;   // of the step being committed
  std::vector<token_id> proposals;  // for the next
};

namespace {

batch_scheduler::options with_adapters(batch_scheduler::options options, std::function<bool(adapter_version)> known) {
  if (!options.is_known) options.is_known = std::move(known);
  return options;
}

bool ends(const sampling_params& sampling, const std::vector<token_id>& end_tokens, token_id token) {
  const auto in = [&](const std::vector<token_id>& list) {
    return std::find(list.begin(), list.end(), token) != list.end();
  };
  return in(sampling.stop_tokens) || (!sampling.ignore_eos && in(end_tokens));
}

}  // namespace

engine::engine(std::shared_ptr<const loaded_model> model, engine_options options, const compute& with)
    : model_(std::move(model)),
      options_(std::move(options)),
      with_(with),
      scheduler_(with_adapters(options_.scheduler, [this](adapter_version v) { return adapters_.contains(v); })),
      sampler_(with.kernels) {
  if (options_.shard_layers.empty()) options_.shard_layers = {model_->config.layers};
  const int rows = options_.scheduler.max_batch_tokens;
  std::int64_t first = 0;
  for (const std::int64_t layers : options_.shard_layers) {
    decoder::options shard{.first_layer = first,
                           .layers = layers,
                           .max_rows = rows,
                           .kv = options_.kv,
                           .blocks = options_.scheduler.blocks,
                           .context = options_.scheduler.context};
    shards_.push_back(std::make_unique<decoder>(model_, shard, with.pool.threads()));
    first += layers;
  }
  if (first != model_->config.layers)
    refuse("the shards hold {} layers, the model {}: split all of them", first, model_->config.layers);
  hidden_ = aligned_buffer<float>(static_cast<std::size_t>(rows * shards_.front()->hidden_stride()));
}

engine::~engine() = default;

void engine::add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter) {
  adapters_[version] = std::move(adapter);
}

result<accepted_request, refused_request> engine::submit(engine_request request) {
  check(request.sampling, model_->config.vocab_size);
  const std::vector<token_id> prompt = request.what.prompt;
  for (const token_id token : prompt)
    if (token < 0 || token >= model_->config.vocab_size)
      refuse("the prompt names token {}: the model has tokens 0 to {}", token, model_->config.vocab_size - 1);
  auto accepted = scheduler_.submit(std::move(request.what));
  if (!accepted) return accepted;
  for (std::int32_t i = 0; i < accepted->answers; ++i) {
    auto state = std::make_unique<answer>();
    state->sampling = request.sampling;
    state->sampling.seed += static_cast<std::uint64_t>(i);  // several answers of one prompt differ
    state->end_tokens = request.end_tokens;
    state->history = sampling_history(state->sampling, prompt);
    state->text = prompt;
    state->prompt = prompt.size();
    answers_[sequence_id(accepted->first.value + static_cast<std::uint64_t>(i))] = std::move(state);
  }
  return accepted;
}

bool engine::cancel(sequence_id id) {
  answers_.erase(id);
  return scheduler_.cancel(id);
}

bool engine::step(instant now, const token_sink& on_token, const end_sink& on_end) {
  if (!scheduler_.plan_step(now, plan_)) return false;
  for (const sequence_id gone : plan_.forgotten) tables_.erase(gone);
  for (const block_copy& copy : plan_.copies)
    for (const auto& shard : shards_) shard->kv().copy_block(copy.from.value, copy.to.value);
  build_pass();
  run_shards();
  collect_outcomes(on_token);
  for (const ended_sequence& ended : scheduler_.commit(plan_.id, outcomes_)) {
    answers_.erase(ended.sequence);
    if (on_end) on_end(ended);
  }
  return true;
}

void engine::build_pass() {
  rows_.clear();
  logit_rows_.clear();
  for (const planned_row& row : plan_.rows) {
    auto& table = tables_[row.sequence];
    table.resize(static_cast<std::size_t>(row.kept_blocks));
    for (const block_id block : plan_.blocks_of(row)) table.push_back(block.value);
    const lora_adapter* adapter = row.adapter == no_adapter ? nullptr : adapters_.at(row.adapter).get();
    rows_.push_back({row.first_token, row.tokens, row.position, table.data(), adapter});
    for (int i = row.tokens - row.logit_rows; i < row.tokens; ++i) logit_rows_.push_back(row.first_token + i);
  }
}

void engine::run_shards() {
  const pass batch{rows_, static_cast<int>(plan_.tokens.size())};
  shards_.front()->embed(with_, batch, plan_.tokens, hidden_.data());
  for (const auto& shard : shards_) shard->run(with_, batch, hidden_.data());
  if (logit_rows_.empty()) return;
  decoder& last = *shards_.back();
  const auto needed = logit_rows_.size() * static_cast<std::size_t>(last.logit_stride());
  if (logits_.size() < needed) logits_ = aligned_buffer<float>(needed);
  last.logits(with_, hidden_.data(), logit_rows_, logits_.data());
}

void engine::collect_outcomes(const token_sink& on_token) {
  outcomes_.clear();
  const float* logits = logits_.data();
  for (const planned_row& row : plan_.rows) {
    for (const sequence_id id : plan_.answers_of(row)) {
      const auto found = answers_.find(id);
      if (!row.complete || found == answers_.end()) continue;  // a cancelled answer
      sequence_outcome outcome{};
      outcome.sequence = id;
      if (row.logit_rows > 0) choose_tokens(row, *found->second, logits, on_token, outcome);
      outcomes_.push_back(outcome);
    }
    logits += row.logit_rows * shards_.back()->logit_stride();
  }
}

/// Samples after each fed token for as long as the guesses hold: what is returned is what steps of one token would
/// give.
void engine::choose_tokens(const planned_row& row, answer& to, const float* logits, const token_sink& on_token,
                           sequence_outcome& outcome) {
  const auto fed = plan_.tokens_of(row);
  const auto vocab = static_cast<std::size_t>(model_->config.vocab_size);
  to.accepted.clear();
  for (int i = 0; i < row.logit_rows; ++i, logits += shards_.back()->logit_stride()) {
    const auto position = static_cast<std::uint64_t>(to.text.size());
    const sampled_token chosen = sampler_.sample({logits, vocab}, to.sampling, to.history, position);
    if (ends(to.sampling, to.end_tokens, chosen.token)) {
      outcome.finished = true;
      break;
    }
    to.accepted.push_back(chosen.token);
    to.text.push_back(chosen.token);
    to.history.add(chosen.token);
    if (on_token) on_token({outcome.sequence, chosen});
    const auto next = static_cast<std::size_t>(row.tokens - row.logit_rows + i + 1);
    const bool full = static_cast<std::int64_t>(to.text.size() - to.prompt) >= to.sampling.max_tokens;
    if (full || next >= fed.size() || fed[next] != chosen.token) break;
  }
  outcome.tokens = to.accepted;
  if (!outcome.finished) guess(to);
  outcome.proposals = to.proposals;
}

void engine::guess(answer& of) const {
  of.proposals.clear();
  if (options_.lookup_tokens > 0) look_up(of.text, static_cast<std::size_t>(options_.lookup_tokens), of.proposals);
}

std::int32_t blocks_in(std::int64_t bytes, const model_config& config, kv_kind kind) {
  return static_cast<std::int32_t>(
      std::min<std::int64_t>(bytes / kv_storage::bytes_per_block(config, config.layers, kind), 1 << 30));
}

}  // namespace troupe
