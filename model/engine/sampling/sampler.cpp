#include "model/engine/sampling/sampler.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/logarithm.hpp"
#include "base/random.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

using detail::minus_infinity;

detail::scaling scaling_of(const sampling_params& params, float most) {
  const float least = params.min_p > 0.0 ? static_cast<float>(logarithm(params.min_p)) : minus_infinity;
  return {most, static_cast<float>(1.0 / params.temperature), least};
}

/// The weight that the tokens kept by top_p must reach, at least 1.
std::uint64_t least_weight(double top_p, std::uint64_t total) {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(top_p * static_cast<double>(total)));
  return std::clamp<std::uint64_t>(wanted, 1, total);
}

void rule_out(std::span<const std::uint64_t> allowed, std::span<float> logits) {
  for (std::size_t from = 0, word = 0; from < logits.size(); from += 64, ++word) {
    const std::uint64_t bits = word < allowed.size() ? allowed[word] : 0;
    if (bits == ~std::uint64_t{0}) continue;
    const auto block = logits.subspan(from, std::min<std::size_t>(64, logits.size() - from));
    if (bits == 0)
      std::fill(block.begin(), block.end(), minus_infinity);
    else
      for (std::size_t i = 0; i < block.size(); ++i) block[i] = bits >> i & 1 ? block[i] : minus_infinity;
  }
}

token_id first_of(std::span<const std::uint64_t> allowed) {
  std::size_t word = 0;
  while (word + 1 < allowed.size() && allowed[word] == 0) ++word;
  return static_cast<token_id>(word * 64 + to_size(std::countr_zero(allowed[word])));
}

template <class Candidates>
token_id draw_from(Candidates& candidates, const sampling_params& params, std::uint64_t position) {
  std::uint64_t kept = candidates.total();
  if (params.top_p < 1.0) kept = candidates.locate(least_weight(params.top_p, kept) - 1).through;
  return candidates.locate(random_below(kept, params.seed, position)).token;
}

}  // namespace

sampled_token sampler::sample(std::span<const float> logits, const sampling_params& params,
                              const sampling_history& history, std::uint64_t position,
                              std::span<const std::uint64_t> allowed, std::span<const token_id> barred) {
  const auto used = changed(logits, params, history, allowed, barred);
  maxima_.find(used);
  // Without a finite largest logit there are no shares to draw by.
  const bool first = is_greedy(params) || params.top_k == 1 || !std::isfinite(maxima_.largest);
  sampled_token chosen{.token = first ? maxima_.first(used) : draw(used, params, position)};
  if (maxima_.largest == minus_infinity && !allowed.empty()) chosen.token = first_of(allowed);
  if (params.logprobs) describe(logits, *params.logprobs, chosen);
  return chosen;
}

sampled_token sampler::score(std::span<const float> logits, token_id token, std::int32_t alternatives) {
  sampled_token given{.token = token};
  describe(logits, alternatives, given);
  const float own = logits[to_size(token)];
  given.rank = static_cast<std::int32_t>(
      std::count_if(logits.begin(), logits.end(), [&](float each) { return each >= own; }));  // last among equals
  return given;
}

std::span<const float> sampler::changed(std::span<const float> logits, const sampling_params& params,
                                        const sampling_history& history, std::span<const std::uint64_t> allowed,
                                        std::span<const token_id> barred) {
  if (!changes_logits(params) && allowed.empty() && barred.empty()) return logits;
  changed_.assign(logits.begin(), logits.end());
  if (changes_logits(params)) history.apply(params, changed_);
  if (!allowed.empty()) rule_out(allowed, changed_);
  for (const token_id token : barred)
    if (to_size(token) < changed_.size()) changed_[to_size(token)] = minus_infinity;
  return changed_;
}

token_id sampler::draw(std::span<const float> logits, const sampling_params& params, std::uint64_t position) {
  const auto scale = scaling_of(params, maxima_.largest);
  const auto top_k = to_size(params.top_k);
  if (top_k > 0 && top_k <= maxima_.blocks.size()) {
    detail::first_tokens(logits, maxima_, top_k, first_);
    detail::few_candidates few(*kernels_, logits, first_, scale);
    return draw_from(few, params, position);
  }
  all_.weigh(*kernels_, logits, maxima_, scale);
  if (top_k > 0 && top_k < logits.size()) all_.keep_first(top_k);
  return draw_from(all_, params, position);
}

void sampler::describe(std::span<const float> logits, std::int32_t alternatives, sampled_token& chosen) {
  maxima_.find(logits);
  const float most = maxima_.largest;
  const double log_sum = detail::log_of_sum(*kernels_, logits, most);
  const auto logprob = [&](token_id token) {
    const auto value = static_cast<double>(logits[to_size(token)]) - most - log_sum;
    return std::isnan(value) ? minus_infinity : static_cast<float>(value);
  };
  chosen.logprob = logprob(chosen.token);
  detail::first_tokens(logits, maxima_, to_size(alternatives), first_);
  chosen.alternatives.reserve(first_.size());
  for (const auto ranked : first_) {
    const token_id token = detail::token_of(ranked);
    chosen.alternatives.push_back({token, logprob(token)});
  }
}

}  // namespace troupe
