#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/served_model.hpp"
#include "actors/jobs/batch_line.hpp"

namespace troupe {

/// Whether lines of a batch may go to this path of the API.
bool is_batch_endpoint(const std::string& endpoint);
std::string batch_endpoint_names();

/// Turns a batch's file, with lines of {custom_id, method, url, body}, into lines of a job. Throws field_error that
/// names the line.
std::vector<std::string> job_lines_of(std::string_view file, const std::string& endpoint, const served_model& served);
/// For jobs with such lines: reads and answers each as if its body had come over HTTP.
endpoint_line_reader batch_line_reader(const served_model& served);

/// Turns a job's output, the answer or the error of one line, into a line of the batch's output: {id, custom_id,
/// response, error}.
std::string batch_output_line(const std::string& output, bool ok, const std::string& batch);

}  // namespace troupe
