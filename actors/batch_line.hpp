#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "actors/interfaces.hpp"

namespace troupe {

/// One line of a batch job.
struct batch_line {
  prompt_input prompt;
  std::string adapter;
  std::string custom_id;  ///< as JSON; empty: none
  sampling_params sampling;
};

/// `options`: the job's own, a JSON object of the same keys (but for prompt, messages, tokens and custom_id) that hold
/// where the line says nothing. Greedy answers of 128 tokens otherwise. Throws input_error.
batch_line read_batch_line(std::string_view line, std::string_view options);
/// Throws input_error.
void check_batch_options(std::string_view options);
/// The line's custom_id as JSON, if one can be read at all.
std::string custom_id_of(std::string_view line);

/// {"index","custom_id","text","tokens","finish_reason","prompt_tokens","adapter"}
std::string answer_line(std::uint64_t index, const std::string& custom_id, const answer_part& answer);
/// {"index","custom_id","error"}
std::string error_line(std::uint64_t index, const std::string& custom_id, std::string_view error);

}  // namespace troupe
