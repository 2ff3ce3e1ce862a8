// Figures of requests as Prometheus reads them, in the names that dashboards know from vLLM.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Counts of values below bounds.
class histogram {
 public:
  explicit histogram(const std::vector<double>& bounds) : bounds_(&bounds), counts_(bounds.size() + 1) {}

  void add(double value, std::uint64_t times = 1);
  void add(const histogram& other);  ///< with the same bounds
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

/// What is counted of one model or adapter.
struct series_figures {
  series_figures();
  series_figures& operator+=(const series_figures& other);

  std::vector<histogram> histograms;  ///< [request_figures]
  std::map<std::string, std::uint64_t, std::less<>> finished;
  std::uint64_t prompt_tokens = 0, tokens = 0;
};

/// The same, counted by several threads.
class request_series {
 public:
  void add(request_figure which, double value, std::uint64_t times = 1);
  void answered(std::uint64_t tokens);
  void ended(std::string_view finish, std::uint64_t prompt_tokens);
  series_figures figures() const;

 private:
  mutable std::mutex mutex_;
  series_figures figures_;
};

/// Every adapter version that ever answered would be too many: those that have not been asked for the longest are
/// counted together, as `other`.
class http_metrics {
 public:
  static constexpr std::size_t most_series = 100;

  std::shared_ptr<request_series> series(const std::string& model);
  void count_response(int status);
  /// The whole exposition. `replicas` and `nodes`: the board's JSON of them; `model`: the base's name.
  std::string write(const std::string& model, const std::string& replicas, const std::string& nodes) const;

 private:
  using named_figures = std::vector<std::pair<std::string, series_figures>>;
  struct used_series {
    std::shared_ptr<request_series> counts;
    std::uint64_t used = 0;  ///< the last time, by count
  };
  void forget_oldest();
  named_figures all_figures() const;

  mutable std::mutex mutex_;
  std::map<std::string, used_series> series_;
  std::uint64_t uses_ = 0;
  std::optional<series_figures> other_;
  std::map<int, std::uint64_t> responses_;
};

}  // namespace troupe
