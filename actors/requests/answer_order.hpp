// What a request asks, what was answered, and how that is written. For requests over HTTP and for lines of jobs alike.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "base/to_size.hpp"

namespace troupe {

/// What a request asks to be answered.
struct answer_order {
  std::vector<prompt_input> prompts;
  sampling_params sampling;
  std::int32_t n = 1;   ///< answers of each prompt
  std::string adapter;  ///< as the client named it; empty: the base
  std::string model;    ///< the model's name in the response
  bool stream = false, include_usage = false;
  bool skip_special = true;                     ///< special tokens are no part of the answers' text
  bool token_ids = false;                       ///< the response names the tokens of prompts and answers
  bool keep_stop = false;                       ///< the stop text or token that ends an answer is part of it
  std::optional<std::int32_t> prompt_logprobs;  ///< in the response; the engine may be asked for more
  std::string form_field;                       ///< the request's field that states the answer's form, for errors
  request_priority priority = request_priority::interactive;
  std::string owner;         ///< of the key that it came with, a tenant; empty without keys
  std::string cache_salt;    ///< as the client gave it: who knows no better finds nothing of its prompts cached
  std::uint64_t weight = 1;  ///< of the owner's share
};

/// One answer. Answer j to prompt i has the index i · n + j.
struct answer_choice {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;
  std::vector<float> hidden = {};          ///< if hidden states were asked for
  std::vector<sampled_token> scored = {};  ///< the prompt's tokens, if asked for; only in its first choice
  answer_end end = {};
};

struct answer_usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;   ///< tokens of the prompts that came from the prefix cache
  std::int64_t thought_tokens = 0;  ///< of the completion's
};

/// The answers to an order, put together from their parts.
class answer_sheet {
 public:
  explicit answer_sheet(const answer_order& order);

  /// The index of the choice that a part of an answer to `prompt` belongs to.
  std::size_t index_of(std::size_t prompt, const answer_part& part) const { return prompt * n_ + to_size(part.index); }
  /// Every part must be counted; those of a stream are not kept.
  void count(std::size_t prompt, const answer_part& part);
  void keep(std::size_t prompt, answer_part part);

  bool is_complete() const { return left_ == 0; }
  const std::vector<answer_choice>& choices() const { return choices_; }
  const answer_usage& usage() const { return usage_; }

 private:
  std::size_t n_;
  bool keeps_details_, keeps_scores_;
  std::vector<answer_choice> choices_;
  std::size_t left_;           ///< choices without an end
  std::vector<bool> counted_;  ///< whether the prompt's tokens are in usage_
  answer_usage usage_;
};

/// How a response is written. One object for each request, used by one thread at a time.
class answer_format {
 public:
  virtual ~answer_format() = default;
  /// How the text of the first prompt ends, and the tokens of each prompt in order: told before anything is written.
  virtual void follow(std::string_view /*prompt_end*/) {}
  virtual void know_prompt(std::span<const token_id> /*prompt*/) {}
  /// Append frames of a stream to `to`; they do nothing in formats that are never streamed. `adapter`: the version that
  /// answers; empty: the bare base.
  virtual void begin(std::string& /*to*/, std::size_t /*index*/, const std::string& /*adapter*/) {}
  virtual void part(std::string& /*to*/, std::size_t /*index*/, const answer_part& /*part*/) {}
  virtual void usage(std::string& /*to*/, const answer_usage& /*usage*/) {}
  virtual std::string_view last_frame() const { return "data: [DONE]\n\n"; }
  /// While nothing can be told yet, no proxy shall take the stream for dead: by default a comment, which clients skip.
  virtual std::string_view silent_frame() const { return ":\n\n"; }
  /// Ends a stream that cannot go on. `error`: as a response has it; `fields`: its message, param and code.
  virtual void error(std::string& to, std::string_view error, std::string_view /*fields*/) {
    to.append("data: ").append(error).append("\n\n");
  }
  /// The whole response: a JSON object.
  virtual std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) = 0;
};

struct asked_answer {
  answer_order order;
  std::unique_ptr<answer_format> format;
};

/// The requests to the gateway that an order needs, one for each prompt; the caller sets their listeners. Throws
/// input_error, also if the response would have to report too much.
std::vector<begin_request> requests_of(const answer_order& order, answer_format& format, const prompting& prompts,
                                       request_numbers& numbers);

}  // namespace troupe
