#include "model/engine/sampling/sampling_history.hpp"

#include "base/to_size.hpp"

namespace troupe {
namespace {

bool is_in(token_id token, std::span<const float> logits) {
  return token >= 0 && to_size(token) < logits.size();
}

}  // namespace

sampling_history::sampling_history(const sampling_params& params, std::span<const token_id> prompt,
                                   std::span<const token_id> generated)
    : kept_(counts_tokens(params)) {
  if (!kept_) return;
  if (params.repetition_penalty != 1.0)
    for (const token_id token : prompt) entry_of(token);
  for (const token_id token : generated) add(token);
}

void sampling_history::add(token_id token) {
  if (kept_) ++entry_of(token).generated;
}

sampling_history::entry& sampling_history::entry_of(token_id token) {
  const auto [place, is_new] = places_.try_emplace(token, entries_.size());
  if (is_new) entries_.push_back({token, 0});
  return entries_[place->second];
}

void sampling_history::apply(const sampling_params& params, std::span<float> logits) const {
  for (const auto& [token, bias] : params.logit_bias)
    if (is_in(token, logits)) logits[to_size(token)] += static_cast<float>(bias);
  const auto repetition = static_cast<float>(params.repetition_penalty);
  const auto frequency = static_cast<float>(params.frequency_penalty);
  const auto presence = static_cast<float>(params.presence_penalty);
  for (const auto& [token, generated] : entries_) {
    if (!is_in(token, logits)) continue;
    float& logit = logits[to_size(token)];
    logit = logit > 0.0f ? logit / repetition : logit * repetition;
    logit -= frequency * static_cast<float>(generated);
    if (generated > 0) logit -= presence;
  }
}

}  // namespace troupe
