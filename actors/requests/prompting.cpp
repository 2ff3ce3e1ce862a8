#include "actors/requests/prompting.hpp"

#include <algorithm>

#include "base/field_error.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "cluster/config/config.hpp"
#include "model/grammar/token_tree.hpp"
#include "model/text/channels.hpp"
#include "model/text/model_text.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {
namespace {

constexpr std::int32_t most_answers = 128;

/// Begins with OpenAI's own words, by which clients and proxies recognise that a prompt was too long.
[[noreturn]] void refuse_length(const char* field, std::int64_t context, const std::string& prompt) {
  refuse_field(
      field,
      fmt::format("This model's maximum context length is {} tokens, and the prompt has {}: shorten the prompt",
                  context, prompt),
      too_long_code);
}

/// `keeps_first`: the first token stays, too.
void keep_last(std::vector<token_id>& tokens, std::int64_t most, bool keeps_first) {
  const auto excess = static_cast<std::int64_t>(tokens.size()) - most;
  if (excess <= 0) return;
  const auto begin = tokens.begin() + (keeps_first && most > 1 ? 1 : 0);
  tokens.erase(begin, begin + excess);
}

/// `keeps_end`: the last token stays, too.
void keep_first(std::vector<token_id>& tokens, std::int64_t most, bool keeps_end) {
  const auto excess = static_cast<std::int64_t>(tokens.size()) - most;
  if (excess <= 0) return;
  const auto end = tokens.end() - (keeps_end && most > 1 ? 1 : 0);
  tokens.erase(end - excess, end);
}

/// Whether the tokenizer puts a token behind texts, and this text has it.
bool has_own_end(const tokenizer& own, const std::vector<token_id>& text) {
  const auto added = own.encode("");
  return !added.empty() && added.back() == text.back();
}

/// For a prompt, before an answer of so many tokens: an eighth of the context is kept for one as long as all of it.
std::int64_t room_before(std::int64_t answer, std::int64_t context) {
  constexpr std::int64_t share = 8;
  return context - (answer < context ? answer : std::max<std::int64_t>(context / share, 1));
}

std::size_t longest_token(const tokenizer& tokens) {
  std::size_t longest = 0;
  for (token_id token = 0; token < tokens.size(); ++token) longest = std::max(longest, tokens.bytes_of(token).size());
  return longest;
}

prompt_input in_final_channel(prompt_input chat) {
  chat.answer_begin = final_channel;
  return chat;
}

}  // namespace

prompting::prompting(const std::filesystem::path& model, model_config config, std::int64_t context)
    : model_(model_name_of(model)),
      config_(std::move(config)),
      context_(context > 0 ? std::min(context, config_.context) : config_.context),
      readable_(!tokenizer_kind(model).empty()),
      tokens_(readable_ ? load_tokenizer(model) : no_tokenizer()),
      end_tokens_(end_tokens_of(config_, *tokens_)),
      spelled_(spelled_bytes(*tokens_, config_.vocab_size)),
      longest_token_(longest_token(*tokens_)) {
  try {
    chat_ = std::make_unique<const chat_format>(model, tokens_, model_);
  } catch (const input_error& error) {
    no_chat_ = with_shown_path(error.what(), model.string(), model_);
  }
}

engine_request prompting::prepare(const prompt_input& prompt, const sampling_params& sampling, std::int32_t answers,
                                  request_priority priority) const {
  if (answers < 1 || answers > most_answers)
    refuse_field("n", fmt::format("{} answers are asked for: use 1 to {}", answers, most_answers));
  if (answers > 1 && sampling.max_tokens == 0)
    refuse_field("n", fmt::format("{} answers of no tokens are asked for: use 1, or a larger max_tokens", answers));
  check(sampling, config_.vocab_size);
  if (sampling.constraint) check_constraint(sampling.constraint);
  engine_request request;
  sequence_request& sequence = request.sequence;
  sequence.prompt = encode(prompt, sampling);
  const std::int64_t least_answer = sampling.max_tokens > 0 ? 1 : 0;
  const auto length = static_cast<std::int64_t>(sequence.prompt.size());
  if (length + least_answer > context_) refuse_length(prompt.field, context_, fmt::format("{}", length));
  request.sampling = sampling;
  request.sampling.max_tokens = std::min(sampling.max_tokens, context_ - length);
  request.sampling.min_tokens = std::min(sampling.min_tokens, request.sampling.max_tokens);
  request.end_tokens = end_tokens_;
  sequence.max_tokens = request.sampling.max_tokens;
  sequence.answers = answers;
  sequence.priority = priority;
  return request;
}

/// The marks of a channel would not have the form, nor would a thought. Calls bring a beginning of their own.
bool prompting::begins_in_final(const prompt_input& prompt, const output_constraint& form) const {
  const bool is_of_texts = form && form.kind != constraint_kind::calls;
  return prompt.chat && prompt.answer_begin.empty() && is_of_texts && has_channels(tool_template());
}

void prompting::check_constraint(const output_constraint& constraint) const {
  if (!readable_) refuse("{}: has no tokenizer: answers cannot be constrained", model_);
  {
    const std::lock_guard lock(checked_mutex_);
    if (checked_ == constraint) return;
  }
  (void)compile(constraint, spelled_);
  const std::lock_guard lock(checked_mutex_);
  checked_ = constraint;
}

void prompting::check_size(std::string_view text, const char* field) const {
  const std::size_t most = to_size(context_) * longest_token_;
  if (text.size() > most)
    refuse_length(field, context_, fmt::format("{} bytes, where these stand for {} at most", text.size(), most));
}

std::vector<token_id> prompting::encode(const prompt_input& prompt, const sampling_params& sampling) const {
  try {
    const bool in_final = begins_in_final(prompt, sampling.constraint);
    auto tokens = in_final ? tokens_in(in_final_channel(prompt)) : tokens_in(prompt);
    shorten(tokens, prompt, room_before(sampling.max_tokens, context_));
    return tokens;
  } catch (const field_error&) {
    throw;
  } catch (const input_error& error) {
    refuse_field(prompt.field, error.what());
  }
}

/// BOS, where the tokenizer puts it before a text, stays, and so does what it puts behind one.
void prompting::shorten(std::vector<token_id>& tokens, const prompt_input& prompt, std::int64_t room) const {
  if (prompt.most_tokens == 0 || tokens.empty()) return;
  const std::int64_t most = prompt.most_tokens > 0 ? prompt.most_tokens : room;
  const bool is_framed = prompt.text && prompt.add_special;
  if (prompt.keeps_first)
    keep_first(tokens, most, is_framed && has_own_end(*tokens_, tokens));
  else
    keep_last(tokens, most, is_framed && tokens_->bos() == tokens.front());
}

std::vector<token_id> prompting::tokens_in(const prompt_input& prompt) const {
  const int given = prompt.text.has_value() + !prompt.tokens.empty() + prompt.chat.has_value();
  if (given != 1)
    refuse("the request has {}: give one of a prompt, tokens and messages", given == 0 ? "none" : "several");
  if (!prompt.tokens.empty()) {
    check_prompt_tokens(prompt.tokens, config_.vocab_size);
    return prompt.tokens;
  }
  if (!readable_) refuse("{}: has no tokenizer: give the prompt as tokens", model_);
  if (!prompt.text) return encode_chat(prompt);
  if (prompt.most_tokens == 0) check_size(*prompt.text, prompt.field);
  return prompt_of_text(*tokens_, config_, *prompt.text, model_, {.add_special = prompt.add_special});
}

std::vector<token_id> prompting::encode_chat(const prompt_input& prompt) const {
  if (!chat_) throw input_error(no_chat_);
  std::string text = chat_->render(*prompt.chat);
  if (prompt.chat->add_generation_prompt) text += prompt.answer_begin;
  if (prompt.most_tokens == 0) check_size(text, prompt.field);
  auto encoded = prompt_of_chat(*tokens_, text);
  if (encoded.empty()) refuse("{}: its chat template makes an empty prompt of these messages", model_);
  return encoded;
}

const std::string& prompting::tool_template() const {
  static const std::string none;
  return chat_ ? chat_->tool_source() : none;
}

bool prompting::shows_special(const prompt_input& prompt) const {
  return prompt.chat && troupe::shows_special(tool_template());
}

}  // namespace troupe
