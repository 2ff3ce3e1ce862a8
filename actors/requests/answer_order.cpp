#include "actors/requests/answer_order.hpp"

#include <functional>
#include <iterator>

#include "base/field_error.hpp"
#include "base/number_in.hpp"
#include "base/sha256.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

tenant_id tenant_of(const std::string& owner) {
  return tenant_id(owner.empty() ? 0 : std::hash<std::string>()(owner));
}

/// What is found in the prefix cache tells whether somebody has sent the same text: so a tenant finds its own prompts
/// alone, and of these the ones with its request's salt. Nobody can make up a name with the salt of another.
std::uint64_t salt_of(const std::string& owner, const std::string& salt) {
  if (owner.empty() && salt.empty()) return 0;
  const std::string digits = sha256().add_field(owner).add_field(salt).finish();
  return *number_in<std::uint64_t>(std::string_view(digits).substr(0, 16), 16);
}

constexpr std::int64_t most_told = 500'000, most_told_in_streams = 10'000;
constexpr std::int32_t likeliest_of_chats = 20;
constexpr std::size_t most_copied_bytes = std::size_t{32} << 20;

/// An echo without answers and without log-probabilities has those of its prompts computed, but not told.
bool tells_scores(const answer_order& order) {
  return order.prompt_logprobs || order.sampling.logprobs;
}

/// How many log-probabilities are held in memory before they are sent. Those of a chat with one answer do not count,
/// since clients leave its length to the context.
std::int64_t told_at_once(const answer_order& order, const std::vector<begin_request>& requests) {
  const auto &of_prompts = order.sampling.prompt_logprobs, &of_answers = order.sampling.logprobs;
  const bool is_one = requests.size() == 1 && order.n == 1 && of_answers.value_or(0) <= likeliest_of_chats;
  std::int64_t told = 0;
  for (const begin_request& each : requests) {
    const sequence_request& sequence = each.engine.sequence;
    if (of_prompts && tells_scores(order))
      told += order.n * static_cast<std::int64_t>(sequence.prompt.size()) * (1 + *of_prompts);
    if (of_answers && !is_one && !order.stream) told += order.n * sequence.max_tokens * (1 + *of_answers);
  }
  return told;
}

void check_told(const answer_order& order, const std::vector<begin_request>& requests) {
  const std::int64_t told = told_at_once(order, requests), most = order.stream ? most_told_in_streams : most_told;
  if (told > most)
    refuse_field(
        order.prompt_logprobs ? "prompt_logprobs" : "logprobs",
        fmt::format("{} log-probabilities are asked for, prompts x answers x tokens x (1 + the likeliest): ask "
                    "for {} at most in one response",
                    told, most),
        "unsupported_value");
}

/// Tokens of prompts are told with each answer to them.
void check_repeated(const answer_order& order, const std::vector<begin_request>& requests) {
  constexpr std::size_t most = 500'000;
  std::size_t repeated = 0;
  for (const begin_request& each : requests) repeated += each.engine.sequence.prompt.size() * to_size(order.n);
  if (order.token_ids && repeated > most)
    refuse_field(
        "return_token_ids",
        fmt::format("return_token_ids would repeat {} tokens of prompts, prompts x answers: {} are the most in "
                    "one response",
                    repeated, most),
        "unsupported_value");
}

void check_copied(const std::string& field, std::size_t bytes, std::size_t prompts) {
  if (prompts > 1 && bytes > most_copied_bytes / prompts)
    refuse_field(field,
                 fmt::format("{} has {} bytes and goes with {} prompts: {} bytes together are the most, so send fewer "
                             "prompts in one request",
                             field, bytes, prompts, most_copied_bytes),
                 "unsupported_value");
}

/// Each prompt is a request with a copy of these.
void check_copied(const answer_order& order) {
  std::size_t stops = 0;
  for (const std::string& each : order.sampling.stop) stops += each.size();
  check_copied(order.form_field, order.sampling.constraint.bytes(), order.prompts.size());
  check_copied("stop", stops, order.prompts.size());
  check_copied("logit_bias", order.sampling.logit_bias.size() * sizeof order.sampling.logit_bias[0],
               order.prompts.size());
}

std::string end_of(std::span<const token_id> prompt, const tokenizer& tokens) {
  constexpr std::size_t enough = 16;
  return tokens.decode(prompt.last(std::min(prompt.size(), enough)), false);
}

}  // namespace

std::vector<begin_request> requests_of(const answer_order& order, answer_format& format, const prompting& prompts,
                                       request_numbers& numbers) {
  check_copied(order);
  std::vector<begin_request> requests;
  const auto version = std::make_shared<std::optional<adapter_version>>();
  const std::uint64_t salt = salt_of(order.owner, order.cache_salt);
  for (const prompt_input& prompt : order.prompts) {
    sampling_params sampling = order.sampling;
    sampling.seed += requests.size() * 0x9e3779b97f4a7c15u;  // each prompt has a seed of its own
    begin_request& request = requests.emplace_back();
    request.id = numbers.next();
    request.engine = prompts.prepare(prompt, sampling, order.n, order.priority);
    request.engine.sequence.tenant = tenant_of(order.owner);
    request.engine.sequence.weight = order.weight;
    request.engine.sequence.cache_salt = salt;
    request.adapter = order.adapter;
    request.skip_special = order.skip_special;
    request.keep_stop = order.keep_stop;
    request.version = version;
  }
  check_told(order, requests);
  check_repeated(order, requests);
  for (const begin_request& each : requests) format.know_prompt(each.engine.sequence.prompt);
  if (!requests.empty()) format.follow(end_of(requests.front().engine.sequence.prompt, prompts.tokens()));
  return requests;
}

answer_sheet::answer_sheet(const answer_order& order)
    : n_(to_size(order.n)),
      keeps_details_(order.sampling.logprobs.has_value()),
      keeps_scores_(tells_scores(order)),
      choices_(order.prompts.size() * n_),
      left_(choices_.size()),
      counted_(order.prompts.size()) {}

void answer_sheet::count(std::size_t prompt, const answer_part& part) {
  usage_.completion_tokens += static_cast<std::int64_t>(part.token_count());
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
  if (keeps_details_) std::move(part.details.begin(), part.details.end(), std::back_inserter(choice.details));
  if (keeps_scores_ && !part.scored.empty())
    choice.scored = std::move(part.scored);  // sent again if the prompt is computed anew
  if (!part.end) return;
  choice.end = std::move(*part.end);
  choice.hidden = std::move(part.hidden);
}

}  // namespace troupe
