// Figures of requests as Prometheus reads them, in the names that dashboards know from vLLM.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Counts of values below bounds.
class histogram {
 public:
  explicit histogram(const std::vector<double>& bounds) : bounds_(&bounds), counts_(bounds.size() + 1) {}

  void add(double value, std::uint64_t times = 1);
  /// The lines of the text exposition; `labels` without braces.
  void write(std::string& to, std::string_view name, std::string_view labels) const;

 private:
  const std::vector<double>* bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t total_ = 0;
};

/// What is known of requests as histograms; all times in seconds.
enum class request_figure : std::uint8_t {
  first_token,  ///< from the request
  gap,          ///< between two tokens
  latency,      ///< from the request to its end
  queued,       ///< until it ran
  prefill,      ///< from there to the first token
  decode,       ///< from there to the end
  inference,    ///< both
  per_token,    ///< mean of an answer's tokens after the first
  prompt_tokens,
  answer_tokens,
  wanted_tokens,   ///< at most, as the request said
  wanted_answers,  ///< n
};
constexpr std::size_t request_figures = 12;

/// Figures of one model or adapter. Thread-safe.
class request_series {
 public:
  explicit request_series(std::string model);

  void add(request_figure which, double value, std::uint64_t times = 1);
  void answered(std::uint64_t tokens);
  void ended(std::string_view finish, std::uint64_t prompt_tokens);

 private:
  friend class http_metrics;
  std::string model_;
  mutable std::mutex mutex_;
  std::vector<histogram> histograms_;  ///< [request_figures]
  std::map<std::string, std::uint64_t, std::less<>> finished_;
  std::uint64_t prompt_tokens_ = 0, tokens_ = 0;
};

class http_metrics {
 public:
  std::shared_ptr<request_series> series(const std::string& model);
  void count_response(int status);
  /// The whole exposition. `replicas` and `nodes`: the board's JSON of them; `model`: the base's name.
  std::string write(const std::string& model, const std::string& replicas, const std::string& nodes) const;

 private:
  void write_requests(std::string& to) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<request_series>> series_;
  std::map<int, std::uint64_t> responses_;
};

}  // namespace troupe
