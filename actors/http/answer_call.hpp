// One request of the API on its way through the gateway: several prompts, several answers each, one response.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "actors/http/api_context.hpp"

namespace troupe {

/// What is to be answered.
struct answer_order {
  std::vector<prompt_input> prompts;
  sampling_params sampling;
  std::int32_t n = 1;   ///< answers of each prompt
  std::string adapter;  ///< as the client named it; empty: the base
  std::string model;    ///< as the response says it
  bool stream = false, include_usage = false;
  request_priority priority = request_priority::interactive;
  tenant_id tenant;
  std::string owner;  ///< whose key it came with; empty without keys
};

/// One answer: prompt · n + j is its index.
struct answer_choice {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;
  std::string finish;
  std::vector<float> hidden;               ///< where hidden states were asked for
  std::vector<sampled_token> scored = {};  ///< the prompt's tokens, where asked for: with its first choice
};

struct answer_usage {
  std::int64_t prompt_tokens = 0, completion_tokens = 0;
};
std::string usage_json(const answer_usage& usage);

/// How a response is written. One object for each request, used by one thread at a time.
class answer_format {
 public:
  virtual ~answer_format() = default;
  /// Frames of a stream, appended to `to`.
  virtual void begin(std::string& to, std::size_t index) = 0;
  virtual void part(std::string& to, std::size_t index, const answer_part& part) = 0;
  virtual void usage(std::string& to, const answer_usage& usage) = 0;
  /// The response in one.
  virtual std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) = 0;
};

/// Answers `exchange` when the gateway has answered; ends the requests when the client goes. Throws what is wrong with
/// the order.
void start_answer(const std::shared_ptr<api_context>& context, answer_order order,
                  std::unique_ptr<answer_format> format, const std::shared_ptr<http_exchange>& exchange);

}  // namespace troupe
