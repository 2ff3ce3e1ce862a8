#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "actors/requests/answer_order.hpp"

namespace troupe {

/// One line of a batch job.
struct batch_line {
  asked_answer asked;     ///< its format writes what the output tells beside index and custom_id
  std::string custom_id;  ///< as JSON; empty: none
};

/// What a job says of all its lines, in its options: a JSON object.
struct batch_terms {
  std::string endpoint;      ///< of the API, whose requests the lines are; empty: they are of our own form
  std::uint64_t weight = 1;  ///< of the share of whose job it is
};
/// Throws input_error.
batch_terms read_batch_terms(std::string_view options);

/// Lines of an API's endpoint are read by whoever knows the API: the wiring says who. Throws input_error.
using endpoint_line_reader = std::function<batch_line(std::string_view line, const std::string& endpoint)>;

/// A line of our own form. `options`: the job's own, a JSON object of the same keys (but for prompt, messages, tokens
/// and custom_id) that hold where the line says nothing. Greedy answers of 128 tokens otherwise. Throws input_error.
batch_line read_batch_line(std::string_view line, std::string_view options);
/// The line's custom_id as JSON, if one can be read at all.
std::string custom_id_of(std::string_view line);

/// {"index","custom_id", and what `whole` has, an object that is not empty}. Of our own lines that is
/// "text","tokens","finish_reason","prompt_tokens","adapter" and, where they were asked for, "logprobs".
std::string answer_line(std::uint64_t index, const std::string& custom_id, std::string_view whole);
/// {"index","custom_id","error"}
std::string error_line(std::uint64_t index, const std::string& custom_id, std::string_view error);

}  // namespace troupe
