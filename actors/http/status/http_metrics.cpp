#include "actors/http/status/http_metrics.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "actors/http/status/replica_metrics.hpp"
#include "base/to_size.hpp"

namespace troupe {

using detail::describe;

namespace {

const std::vector<double> first_bounds{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,
                                       0.75,  1,     2.5,  5,    7.5,  10,   20,   40,  80,   160};
const std::vector<double> gap_bounds{0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.075, 0.1,
                                     0.15,  0.2,    0.3,   0.4,  0.5,   0.75,  1,    2.5,   5};
const std::vector<double> latency_bounds{0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 60, 120, 240};
const std::vector<double> token_bounds{1,   2,    5,    10,   20,    50,    100,   200,
                                       500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
const std::vector<double> answer_bounds{1, 2, 5, 10, 20, 50, 100};

struct described_figure {
  const char* name;
  const std::vector<double>& bounds;
  const char* help;
};
/// In the order of the enum request_figure.
const std::array<described_figure, request_figures> figures{{
    {"vllm:time_to_first_token_seconds", first_bounds, "From a request to its first token."},
    {"vllm:inter_token_latency_seconds", gap_bounds, "Between two tokens of an answer."},
    {"vllm:e2e_request_latency_seconds", latency_bounds, "From a request to its end."},
    {"vllm:request_queue_time_seconds", latency_bounds, "From a request until it runs."},
    {"vllm:request_prefill_time_seconds", latency_bounds, "From there to the first token."},
    {"vllm:request_decode_time_seconds", latency_bounds, "From the first token to the last."},
    {"vllm:request_inference_time_seconds", latency_bounds, "Prefill and decode."},
    {"vllm:request_time_per_output_token_seconds", gap_bounds, "Mean over an answer's tokens after the first."},
    {"vllm:request_prompt_tokens", token_bounds, "Tokens of a prompt."},
    {"vllm:request_generation_tokens", token_bounds, "Tokens of an answer."},
    {"vllm:request_max_num_generation_tokens", token_bounds, "Tokens of the longest answer to a prompt."},
    {"vllm:request_params_max_tokens", token_bounds, "Tokens that a request allowed."},
    {"vllm:request_params_n", answer_bounds, "Answers that a request asked for."},
}};

/// `all`: the figures and their labels.
void write_requests(std::string& to, const std::vector<std::pair<std::string, series_figures>>& all) {
  const auto out = std::back_inserter(to);
  describe(to, "vllm:prompt_tokens_total", "counter", "Tokens of answered prompts.");
  for (const auto& [labels, each] : all)
    fmt::format_to(out, "vllm:prompt_tokens_total{{{}}} {}\n", labels, each.prompt_tokens);
  describe(to, "vllm:generation_tokens_total", "counter", "Tokens of answers.");
  for (const auto& [labels, each] : all)
    fmt::format_to(out, "vllm:generation_tokens_total{{{}}} {}\n", labels, each.tokens);
  describe(to, "vllm:request_success_total", "counter", "Answers that ended, by why.");
  for (const auto& [labels, each] : all)
    for (const auto& [finish, count] : each.finished)
      fmt::format_to(out, "vllm:request_success_total{{{},finished_reason=\"{}\"}} {}\n", labels, finish, count);
  for (std::size_t i = 0; i < figures.size(); ++i) {
    describe(to, figures[i].name, "histogram", figures[i].help);
    for (const auto& [labels, each] : all) each.histograms[i].write(to, figures[i].name, labels);
  }
}

}  // namespace

void histogram::add(double value, std::uint64_t times) {
  const auto bucket = std::lower_bound(bounds_->begin(), bounds_->end(), value) - bounds_->begin();
  counts_[to_size(bucket)] += times;
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

series_figures::series_figures() {
  for (const described_figure& each : figures) histograms.emplace_back(each.bounds);
}

void request_series::add(request_figure which, double value, std::uint64_t times) {
  const std::lock_guard lock(mutex_);
  figures_.histograms[to_size(which)].add(value, times);
}

void request_series::answered(std::uint64_t tokens) {
  const std::lock_guard lock(mutex_);
  figures_.tokens += tokens;
}

void request_series::ended(std::string_view finish, std::uint64_t prompt_tokens) {
  const std::lock_guard lock(mutex_);
  ++figures_.finished[std::string(finish)];
  figures_.prompt_tokens += prompt_tokens;
}

series_figures request_series::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

std::shared_ptr<request_series> http_metrics::series(const std::string& model) {
  const std::lock_guard lock(mutex_);
  used_series& found = series_[model];
  found.used = ++uses_;
  if (found.counts) return found.counts;
  auto counts = found.counts = std::make_shared<request_series>();
  if (series_.size() > most_series) forget_oldest();
  return counts;
}

/// Never one into which a running request still counts. Its figures go, too: Prometheus has counted them, and would
/// count them again where they were added to another series.
void http_metrics::forget_oldest() {
  auto oldest = series_.end();
  for (auto each = series_.begin(); each != series_.end(); ++each)
    if (each->second.counts.use_count() == 1 && (oldest == series_.end() || each->second.used < oldest->second.used))
      oldest = each;
  if (oldest != series_.end()) series_.erase(oldest);
}

void http_metrics::count_response(int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
}

http_metrics::named_figures http_metrics::all_figures() const {
  named_figures all;
  for (const auto& [name, each] : series_) all.emplace_back(name, each.counts->figures());
  return all;
}

std::string http_metrics::write(const std::string& model, const status_board& board) const {
  named_figures requests;
  std::map<int, std::uint64_t> responses;
  {
    const std::lock_guard lock(mutex_);
    requests = all_figures();
    responses = responses_;
  }
  std::string text;
  detail::write_replica_metrics(text, model, board);
  for (auto& [name, each] : requests) name = fmt::format("model_name=\"{}\",engine=\"0\"", detail::label_text(name));
  write_requests(text, requests);
  describe(text, "troupe:http_responses_total", "counter", "Responses by status.");
  for (const auto& [status, count] : responses)
    fmt::format_to(std::back_inserter(text), "troupe:http_responses_total{{status=\"{}\"}} {}\n", status, count);
  describe(text, "troupe:http_refused_connections_total", "counter", "Connections that were too many.");
  fmt::format_to(std::back_inserter(text), "troupe:http_refused_connections_total {}\n", refused_connections_.load());
  return text;
}

}  // namespace troupe
