#include "actors/http/http_metrics.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe {
namespace {

const std::vector<double> first_bounds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                       0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const std::vector<double> gap_bounds{0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.075, 0.1,
                                     0.15,  0.2,    0.3,   0.4,  0.5,   0.75,  1,    2.5,   5};
const std::vector<double> latency_bounds{0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120, 240};

std::string label_text(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

void describe(std::string& to, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(to), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

double number_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? 0 : found->get<double>();
}

struct replica_value {
  const char *name, *type, *key, *help;
};
constexpr replica_value replica_values[] = {
    {"vllm:num_requests_running", "gauge", "running", "Sequences in the batch."},
    {"vllm:num_requests_waiting", "gauge", "waiting", "Sequences in the queue."},
    {"vllm:num_preemptions_total", "counter", "preemptions", "Sequences that gave up their blocks."},
    {"vllm:prefix_cache_hits_total", "counter", "reused_tokens", "Prompt tokens found in the prefix cache."},
    {"troupe:computed_tokens_total", "counter", "computed_tokens", "Tokens that passed through the model."},
    {"troupe:replica_tokens_total", "counter", "tokens", "Tokens that the replica answered."},
    {"troupe:steps_total", "counter", "steps", "Steps of the replica."},
    {"troupe:tokens_per_second", "gauge", "tokens_per_second", "Tokens that the replica answers now."},
    {"troupe:resident_adapters", "gauge", "resident_adapters", "Adapters that are loaded."},
    {"troupe:epoch", "counter", "epoch", "Changes of the membership, as the replica knows it."},
};

void write_replicas(std::string& to, const std::string& model, const nlohmann::json& replicas) {
  const auto line = [&](const char* name, std::size_t engine, double value) {
    fmt::format_to(std::back_inserter(to), "{}{{model_name=\"{}\",engine=\"{}\"}} {}\n", name, label_text(model),
                   engine, value);
  };
  for (const replica_value& each : replica_values) {
    describe(to, each.name, each.type, each.help);
    for (std::size_t i = 0; i < replicas.size(); ++i) line(each.name, i, number_in(replicas[i], each.key));
  }
  describe(to, "vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked for in the prefix cache.");
  for (std::size_t i = 0; i < replicas.size(); ++i)
    line("vllm:prefix_cache_queries_total", i,
         number_in(replicas[i], "reused_tokens") + number_in(replicas[i], "computed_tokens"));
  describe(to, "vllm:kv_cache_usage_perc", "gauge", "Share of the blocks in use, 1 is all.");
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    const double blocks = number_in(replicas[i], "blocks"), free = number_in(replicas[i], "free_blocks");
    line("vllm:kv_cache_usage_perc", i, blocks > 0 ? 1 - free / blocks : 0);
  }
  describe(to, "troupe:replica_running", "gauge", "1 where the replica serves.");
  for (std::size_t i = 0; i < replicas.size(); ++i)
    line("troupe:replica_running", i, replicas[i].value("state", "") == "running");
}

}  // namespace

void histogram::add(double value, std::uint64_t times) {
  const auto bucket = std::lower_bound(bounds_->begin(), bounds_->end(), value) - bounds_->begin();
  counts_[static_cast<std::size_t>(bucket)] += times;
  sum_ += value * static_cast<double>(times);
  total_ += times;
}

void histogram::write(std::string& to, std::string_view name, std::string_view labels) const {
  std::uint64_t below = 0;
  const auto out = std::back_inserter(to);
  for (std::size_t i = 0; i < bounds_->size(); ++i) {
    below += counts_[i];
    fmt::format_to(out, "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, (*bounds_)[i], below);
  }
  fmt::format_to(out, "{0}_bucket{{{1},le=\"+Inf\"}} {2}\n{0}_sum{{{1}}} {3}\n{0}_count{{{1}}} {2}\n", name, labels,
                 total_, sum_);
}

request_series::request_series(std::string model)
    : model_(std::move(model)), first_(first_bounds), gap_(gap_bounds), latency_(latency_bounds) {}

void request_series::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_.add(seconds);
}

void request_series::next_tokens(double seconds, std::uint64_t tokens) {
  if (tokens == 0) return;
  const std::lock_guard lock(mutex_);
  gap_.add(seconds / static_cast<double>(tokens), tokens);
}

void request_series::answered(std::uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  tokens_ += tokens;
}

void request_series::ended(std::string_view finish, double seconds, std::uint64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  const auto found = finished_.find(finish);
  if (found == finished_.end())
    finished_.emplace(finish, 1);
  else
    ++found->second;
  latency_.add(seconds);
  prompt_tokens_ += prompt_tokens;
}

std::shared_ptr<request_series> http_metrics::series(const std::string& model) {
  const std::lock_guard lock(mutex_);
  auto& found = series_[model];
  if (!found) found = std::make_shared<request_series>(model);
  return found;
}

void http_metrics::count_response(int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
}

std::string http_metrics::write(const std::string& model, const std::string& replicas) const {
  std::string text;
  const auto parsed = nlohmann::json::parse(replicas.empty() ? "[]" : replicas, nullptr, false);
  if (parsed.is_array()) write_replicas(text, model, parsed);
  const std::lock_guard lock(mutex_);
  const auto for_each = [&](auto write) {
    for (const auto& [name, each] : series_) {
      const std::lock_guard own(each->mutex_);
      write(*each, fmt::format("model_name=\"{}\",engine=\"0\"", label_text(name)));
    }
  };
  const auto out = std::back_inserter(text);
  describe(text, "vllm:prompt_tokens_total", "counter", "Tokens of answered prompts.");
  for_each([&](const request_series& each, const std::string& labels) {
    fmt::format_to(out, "vllm:prompt_tokens_total{{{}}} {}\n", labels, each.prompt_tokens_);
  });
  describe(text, "vllm:generation_tokens_total", "counter", "Tokens of answers.");
  for_each([&](const request_series& each, const std::string& labels) {
    fmt::format_to(out, "vllm:generation_tokens_total{{{}}} {}\n", labels, each.tokens_);
  });
  describe(text, "vllm:request_success_total", "counter", "Answers that ended, by why.");
  for_each([&](const request_series& each, const std::string& labels) {
    for (const auto& [finish, count] : each.finished_)
      fmt::format_to(out, "vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels, finish, count);
  });
  describe(text, "vllm:time_to_first_token_seconds", "histogram", "From a request to its first token.");
  for_each([&](const request_series& each, const std::string& labels) {
    each.first_.write(text, "vllm:time_to_first_token_seconds", labels);
  });
  describe(text, "vllm:inter_token_latency_seconds", "histogram", "Between two tokens of an answer.");
  for_each([&](const request_series& each, const std::string& labels) {
    each.gap_.write(text, "vllm:inter_token_latency_seconds", labels);
  });
  describe(text, "vllm:e2e_request_latency_seconds", "histogram", "From a request to its end.");
  for_each([&](const request_series& each, const std::string& labels) {
    each.latency_.write(text, "vllm:e2e_request_latency_seconds", labels);
  });
  describe(text, "troupe:http_responses_total", "counter", "Responses by status.");
  for (const auto& [status, count] : responses_)
    fmt::format_to(out, "troupe:http_responses_total{{status=\"{}\"}} {}\n", status, count);
  return text;
}

}  // namespace troupe
