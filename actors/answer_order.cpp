#include "actors/answer_order.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace troupe {
namespace {

tenant_id tenant_of(const std::string& owner) {
  return tenant_id(owner.empty() ? 0 : std::hash<std::string>()(owner));
}

}  // namespace

std::vector<begin_request> requests_of(const answer_order& order, const prompting& prompts, request_numbers& numbers) {
  std::vector<begin_request> made;
  for (const prompt_input& prompt : order.prompts) {
    sampling_params sampling = order.sampling;
    sampling.seed += made.size() * 0x9e3779b97f4a7c15u;  // each prompt has a seed of its own
    begin_request& request = made.emplace_back();
    request.id = numbers.next();
    request.what = prompts.prepare(prompt, sampling, order.n, order.priority);
    request.what.engine.what.tenant = tenant_of(order.owner);
    request.what.engine.what.weight = order.weight;
    request.adapter = order.adapter;
  }
  return made;
}

answer_sheet::answer_sheet(const answer_order& order)
    : n_(static_cast<std::size_t>(order.n)),
      choices_(order.prompts.size() * n_),
      left_(choices_.size()),
      counted_(order.prompts.size()) {}

void answer_sheet::count(std::size_t prompt, const answer_part& part) {
  usage_.completion_tokens += static_cast<std::int64_t>(part.tokens.size());
  if (part.timing && part.index == 0) usage_.cached_tokens += part.timing->cached_tokens;
  if (!part.end) return;
  if (!counted_[prompt]) usage_.prompt_tokens += part.end->prompt_tokens;
  counted_[prompt] = true;
  --left_;
}

void answer_sheet::keep(std::size_t prompt, answer_part part) {
  answer_choice& choice = choices_[index_of(prompt, part)];
  choice.text += part.text;
  choice.tokens.insert(choice.tokens.end(), part.tokens.begin(), part.tokens.end());
  std::move(part.details.begin(), part.details.end(), std::back_inserter(choice.details));
  if (!part.scored.empty()) choice.scored = std::move(part.scored);  // whole again where it is computed anew
  if (!part.end) return;
  choice.finish = std::move(part.end->finish);
  choice.adapter = std::move(part.end->adapter);
  choice.hidden = std::move(part.hidden);
}

}  // namespace troupe
