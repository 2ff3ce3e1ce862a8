// What a request asks, what came of it, and how that is written: of requests over HTTP and of a job's lines alike.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/interfaces.hpp"

namespace troupe {

/// What is to be answered.
struct answer_order {
  std::vector<prompt_input> prompts;
  sampling_params sampling;
  std::int32_t n = 1;   ///< answers of each prompt
  std::string adapter;  ///< as the client named it; empty: the base
  std::string model;    ///< as the response says it
  bool stream = false, include_usage = false;
  std::optional<std::int32_t> prompt_logprobs;  ///< to be told of the prompt, beside what the engine is asked for
  std::string form_field;                       ///< of the request that says the answer's form, as errors name it
  request_priority priority = request_priority::interactive;
  std::string owner;         ///< whose key it came with, a tenant; empty without keys
  std::uint64_t weight = 1;  ///< of the owner's share
};

/// The requests that an order comes to, one for each prompt; listeners are left to the caller. Throws input_error, also
/// where the response would tell too much.
std::vector<begin_request> requests_of(const answer_order& order, const prompting& prompts, request_numbers& numbers);

/// One answer: prompt · n + j is its index.
struct answer_choice {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;
  std::string finish;
  std::string adapter;                       ///< the version that answered
  std::vector<float> hidden = {};            ///< where hidden states were asked for
  std::vector<sampled_token> scored = {};    ///< the prompt's tokens, where asked for: with its first choice
  std::optional<sampled_token> ending = {};  ///< the token that ended it, where logprobs were asked for
};

struct answer_usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
  std::int64_t cached_tokens = 0;  ///< of the prompts'
};

/// An order's answers, put together as their parts come.
class answer_sheet {
 public:
  explicit answer_sheet(const answer_order& order);

  /// Which choice a part of an answer to `prompt` is of.
  std::size_t index_of(std::size_t prompt, const answer_part& part) const {
    return prompt * n_ + static_cast<std::size_t>(part.index);
  }
  /// Every part is counted; those of a stream are not kept.
  void count(std::size_t prompt, const answer_part& part);
  void keep(std::size_t prompt, answer_part part);

  bool is_complete() const { return left_ == 0; }
  const std::vector<answer_choice>& choices() const { return choices_; }
  const answer_usage& usage() const { return usage_; }

 private:
  std::size_t n_;
  std::vector<answer_choice> choices_;
  std::size_t left_;           ///< choices without an end
  std::vector<bool> counted_;  ///< the prompt's tokens are in usage_
  answer_usage usage_;
};

/// How a response is written. One object for each request, used by one thread at a time.
class answer_format {
 public:
  virtual ~answer_format() = default;
  /// Frames of a stream, appended to `to`; nothing where answers are never streamed.
  virtual void begin(std::string& /*to*/, std::size_t /*index*/) {}
  virtual void part(std::string& /*to*/, std::size_t /*index*/, const answer_part& /*part*/) {}
  virtual void usage(std::string& /*to*/, const answer_usage& /*usage*/) {}
  virtual std::string_view last_frame() const { return "data: [DONE]\n\n"; }
  /// What a stream ends with that cannot go on. `error`: as a response has it; `fields`: its message, param and code.
  virtual void error(std::string& to, std::string_view error, std::string_view /*fields*/) {
    to.append("data: ").append(error).append("\n\n");
  }
  /// The response in one: a JSON object.
  virtual std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) = 0;
};

struct asked_answer {
  answer_order order;
  std::unique_ptr<answer_format> format;
};

}  // namespace troupe
