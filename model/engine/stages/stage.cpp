#include "model/engine/stages/stage.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t scored_at_once = 64;  // rows: all logits of a prompt would take much memory

}  // namespace

stage::stage(std::shared_ptr<const loaded_model> model, const decoder::options& shard, int lookup_tokens,
             const compute& with, token_tree_source tokens)
    : model_(std::move(model)),
      first_layer_(shard.first_layer),
      last_(shard.layers < 0 || shard.first_layer + shard.layers == model_->config.layers),
      shard_(make_decoder(model_, shard, with)),
      limits_{.max_rows = shard.max_rows,
              .max_sequences = shard_->max_sequences(),
              .blocks = shard.blocks,
              .states = shard.states,
              .context = shard_->context(),
              .vocab_size = model_->config.vocab_size},
      chooser_(with, model_->config.vocab_size, model_->config.keeps_states() ? 0 : lookup_tokens, std::move(tokens)),
      pooler_(model_->config.hidden),
      scorer_(with.kernels, model_->config.vocab_size),
      states_(model_->config.keeps_states() ? shard.states : 0) {}

void stage::add_adapter(adapter_version version, std::shared_ptr<const lora_adapter> adapter) {
  remove_adapter(version);
  shard_->add_adapter(*adapter);
  adapters_[version] = std::move(adapter);
}

void stage::remove_adapter(adapter_version version) {
  const auto removed = adapters_.extract(version);
  if (removed.empty()) return;
  // Versions that were made of the same files may be one adapter.
  const bool needed = std::any_of(adapters_.begin(), adapters_.end(),
                                  [&](const auto& other) { return other.second == removed.mapped(); });
  if (!needed) shard_->remove_adapter(*removed.mapped());
}

int stage::begin(const step_order& order) {
  check(order, limits_);
  plan_ = &order.plan;
  for (const sequence_id gone : plan_->forgotten) tables_.erase(gone);
  if (last_) take_answers(order);
  for (const block_copy& copy : plan_->copies) shard_->copy_block(copy.from.value, copy.to.value);
  take_shares(*plan_);
  states_.take(*plan_);
  for (const state_copy& copy : plan_->state_copies) shard_->copy_state(copy.from, copy.to);
  take_tokens(*plan_);
  return static_cast<int>(plan_->tokens.size());
}

/// All ranks of the last stage know which prompts are scored, since they compute the same products.
void stage::take_answers(const step_order& order) {
  for (const sequence_id gone : order.closed) {
    scorer_.close(gone);
    chooser_.close(gone);
    pooler_.close(gone);
  }
  for (const answer_opening& opening : order.opened) {
    scorer_.open(opening);
    if (!chooses()) continue;
    chooser_.open(opening);
    pooler_.open(opening);
  }
}

/// A sequence has one share: with a second one its table would move under the first.
void stage::take_shares(const step_plan& plan) {
  sequences_.clear();
  ++begun_;
  for (const planned_share& share : plan.shares) {
    block_table& known = tables_[share.sequence];
    std::vector<std::int32_t>& table = known.blocks;
    if (std::exchange(known.begun, begun_) == begun_) refuse("step {} has a sequence twice", plan.id.value);
    const auto kept = to_size(share.kept_blocks);
    if (kept > table.size()) refuse("step {} goes on with blocks that this stage does not know", plan.id.value);
    table.resize(kept);
    for (const block_id block : plan.blocks_of(share)) table.push_back(block.value);
    if (static_cast<std::int64_t>(table.size()) * block_tokens < share.position + share.tokens)
      refuse("step {} has too few blocks for a share", plan.id.value);
    sequences_.push_back({.first_row = share.first_token,
                          .rows = share.tokens,
                          .position = share.position,
                          .blocks = table.data(),
                          .adapter = adapter_of(share),
                          .state = share.state});
  }
}

/// Only the rank that chooses knows what it chose. What another process sent is looked at before it names a row.
void stage::take_tokens(const step_plan& plan) {
  tokens_ = plan.tokens;
  bool goes_on = false;
  for (const planned_share& share : plan.shares) {
    token_id& token = tokens_[to_size(share.first_token)];
    if (token != chosen_before) continue;
    goes_on = true;
    token = tables_[share.sequence].chosen;
    if (chooses() && token == chosen_before) refuse("step {} goes on from a token that nobody chose", plan.id.value);
  }
  if (!goes_on) return;
  shard_->share_tokens(tokens_);
  const auto is_known = [&](token_id token) { return is_token(token, limits_.vocab_size); };
  if (!std::all_of(tokens_.begin(), tokens_.end(), is_known))
    refuse("step {} goes on from a token that the model does not have", plan.id.value);
}

/// An answer that ended without a token may have a share of the next step all the same, for nobody: any token will do.
void stage::note_chosen() {
  for (const chosen_answer& answer : outcome_.answers) {
    const auto found = tables_.find(answer.sequence);
    if (found == tables_.end()) continue;  // an answer that has had no share of its own yet
    if (answer.tokens > 0)
      found->second.chosen = outcome_.tokens_of(answer).back();
    else if (answer.finished)
      found->second.chosen = 0;
  }
}

const lora_adapter* stage::adapter_of(const planned_share& share) const {
  if (share.adapter == no_adapter) return nullptr;
  const auto found = adapters_.find(share.adapter);
  if (found == adapters_.end()) refuse("adapter {} is not loaded", share.adapter.value);
  return found->second.get();
}

void stage::embed(float* hidden) {
  shard_->embed({sequences_, static_cast<int>(plan_->tokens.size())}, tokens_, hidden);
}

void stage::run(float* hidden) {
  shard_->run({sequences_, static_cast<int>(plan_->tokens.size())}, hidden);
}

const step_outcome& stage::finish(const float* hidden) {
  choose(hidden);
  score(hidden);
  if (chooses()) pool(hidden);
  if (goes_ahead()) note_chosen();
  return outcome_;
}

void stage::choose(const float* hidden) {
  chooser_.list_rows(*plan_, shard_->finds_largest(), logit_rows_, largest_rows_);
  largest_.resize(largest_rows_.size());
  const float* logits = shard_->logits(hidden, {logit_rows_, largest_rows_, largest_.data()});
  if (chooses()) chooser_.choose(*plan_, {logits, shard_->logit_stride(), largest_.data()}, outcome_);
}

void stage::score(const float* hidden) {
  scorer_.list_rows(*plan_, scored_rows_);
  for (std::size_t first = 0; first < scored_rows_.size(); first += scored_at_once) {
    const auto rows = std::span(scored_rows_).subspan(first, std::min(scored_at_once, scored_rows_.size() - first));
    const float* logits = shard_->logits(hidden, {rows});
    if (chooses()) scorer_.take(static_cast<int>(rows.size()), logits, shard_->logit_stride());
  }
  scorer_.finish(*plan_, outcome_);  // on all ranks, so that none reads finished prompts again
}

void stage::pool(const float* hidden) {
  pooler_.list_rows(*plan_, pooled_rows_);
  if (pooled_rows_.empty()) return;
  pooler_.take(*plan_, shard_->normalized(hidden, pooled_rows_), hidden_stride(), outcome_);
}

}  // namespace troupe
