#include "actors/http/jobs/batch_lines.hpp"

#include <algorithm>
#include <set>

#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/api_error.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "actors/requests/sampling_fields.hpp"
#include "base/ascii.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_lines = 100'000;

const answering_path* find_endpoint(const std::string& endpoint) {
  for (const answering_path& each : answering_paths)
    if (endpoint == each.path) return &each;
  return nullptr;
}

batch_line read_line(std::string_view text, const std::string& endpoint, const served_model& served,
                     std::uint64_t seed) {
  const answering_path* path = find_endpoint(endpoint);
  if (!path) refuse("lines of {} are not read here", endpoint.substr(0, 64));
  const json object = parse_object(text, "the line");
  const request_fields fields(object);
  batch_line line;
  line.custom_id = custom_id_text(fields.required_text("custom_id"));
  if (fields.text("method").value_or("POST") != "POST") refuse_field("method", "method should be POST");
  if (fields.required_text("url") != endpoint) refuse_field("url", "url should be the batch's endpoint, " + endpoint);
  const json* body = fields.object("body");
  if (!body) request_fields::refuse_missing("body");
  const request_fields asked(*body);
  line.asked = path->read(asked, served);
  if (!seed_of(asked)) line.asked.order.sampling.seed = seed;
  if (line.asked.order.stream) refuse_field("stream", "stream is not served in batches");
  check(line.asked.order.sampling, served.prompts->config().vocab_size);
  return line;
}

/// Reads a line for the jobs actor, which knows nothing of HTTP: an api_error becomes a field_error.
batch_line read_line_apart(std::string_view text, const std::string& endpoint, const served_model& served,
                           std::uint64_t seed = 0) {
  try {
    return read_line(text, endpoint, served, seed);
  } catch (const api_error& error) {
    throw field_error(error.param(), error.what(), error.code());
  }
}

}  // namespace

bool is_batch_endpoint(const std::string& endpoint) {
  return find_endpoint(endpoint) != nullptr;
}

std::string batch_endpoint_names() {
  std::string names;
  for (const answering_path& each : answering_paths) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.path);
  return names;
}

std::vector<std::string> job_lines_of(std::string_view file, const std::string& endpoint, const served_model& served) {
  std::vector<std::string> lines;
  std::set<std::string> ids;
  std::size_t number = 0;
  while (!file.empty()) {
    const std::string_view text = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(text.size() + 1, file.size()));
    ++number;
    if (is_blank(text)) continue;
    if (lines.size() == most_lines) refuse("the file has more than {} lines: send several batches", most_lines);
    try {
      const batch_line line = read_line_apart(text, endpoint, served);
      if (!ids.insert(line.custom_id).second)
        refuse_field("custom_id", "custom_id " + line.custom_id.substr(0, 64) + " comes twice");
      lines.emplace_back(text);
    } catch (const input_error& error) {
      const api_error named = api_error_of(error);
      throw field_error(named.param(), fmt::format("line {} of the file: {}", number, error.what()), named.code());
    }
  }
  if (lines.empty()) refuse_field("input_file_id", "the file has no lines");
  return lines;
}

endpoint_line_reader batch_line_reader(const served_model& served) {
  return [served](std::string_view line, const std::string& endpoint, std::uint64_t seed) {
    return read_line_apart(line, endpoint, served, seed);
  };
}

std::string batch_output_line(const std::string& output, bool ok, const std::string& batch) {
  json body = json::parse(output, nullptr, false);
  if (!body.is_object()) return "{}";
  json line{{"id", fmt::format("batch_req_{}_{}", batch, body.value("index", 0))},
            {"custom_id", body.value("custom_id", json(nullptr))},
            {"response", nullptr},
            {"error", nullptr}};
  body.erase("index");
  body.erase("custom_id");
  if (ok)
    line["response"] = {{"status_code", 200}, {"request_id", line["id"]}, {"body", std::move(body)}};
  else
    line["error"] = {{"code", body.value("code", "line_failed")}, {"message", body.value("error", json(nullptr))}};
  return dump(line);
}

}  // namespace troupe
