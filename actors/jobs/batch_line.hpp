#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "actors/requests/answer_order.hpp"

namespace troupe {

/// One line of a batch job.
struct batch_line {
  asked_answer asked;     ///< its format writes what an output has besides index and custom_id
  std::string custom_id;  ///< as JSON; empty: none
};

/// Options of a job that apply to all its lines: a JSON object.
struct batch_terms {
  std::string endpoint;      ///< of the API, if the lines are requests to it; empty: they have our own form
  std::uint64_t weight = 1;  ///< the weight of its owner's share
};
/// Throws input_error.
batch_terms read_batch_terms(std::string_view options);

/// Reads lines that are requests to an endpoint of the API; one that names no seed has `seed`. The wiring provides it,
/// since jobs know nothing of the API. Throws input_error.
using endpoint_line_reader =
    std::function<batch_line(std::string_view line, const std::string& endpoint, std::uint64_t seed)>;

/// A line of our own form. `options` are the job's: a JSON object of the same keys (but for prompt, messages, tokens
/// and custom_id) that apply where the line says nothing. The default is a greedy answer of 128 tokens. A seed of -1 is
/// `drawn_seed`. Throws input_error.
batch_line read_batch_line(std::string_view line, std::string_view options, std::uint64_t drawn_seed);
/// A line's custom_id as JSON. Throws input_error where it is too long: every output repeats it.
std::string custom_id_text(const std::string& custom_id);
/// The line's custom_id as JSON, if one can be read at all.
std::string custom_id_of(std::string_view line);

/// {"index","custom_id", and the members of `whole`, an object that is not empty}. For our own lines these are
/// "text","tokens","finish_reason","prompt_tokens","adapter" and, if asked for, "logprobs".
std::string answer_line(std::uint64_t index, const std::string& custom_id, std::string_view whole);
/// {"index","custom_id","error"}, and "code" unless it is empty.
std::string error_line(std::uint64_t index, const std::string& custom_id, std::string_view error,
                       std::string_view code = {});

}  // namespace troupe
