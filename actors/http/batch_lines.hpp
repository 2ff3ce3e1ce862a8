#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/api_context.hpp"

namespace troupe {

/// A batch's file, line by line {custom_id, method, url, body}, as lines of a job. Throws api_error that names the
/// line.
std::vector<std::string> job_lines_of(std::string_view file, const std::string& endpoint, const api_context& context);

/// A job's output as a line of the batch's output: {id, custom_id, response, error}.
std::string batch_output_line(const std::string& output, const std::string& batch, const std::string& endpoint,
                              const std::string& model);

}  // namespace troupe
