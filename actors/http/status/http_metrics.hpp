// Figures of requests for Prometheus, under vLLM's names, which dashboards know.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/to_size.hpp"

namespace troupe {

class status_board;

/// Counts how many values lie below each bound.
class histogram {
 public:
  explicit histogram(const std::vector<double>& bounds) : bounds_(&bounds), counts_(bounds.size() + 1) {}

  void add(double value, std::uint64_t times = 1);
  /// The lines in Prometheus' text format; `labels` without braces.
  void write(std::string& to, std::string_view name, std::string_view labels) const;

 private:
  const std::vector<double>* bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t total_ = 0;
};

/// The figures that are kept as histograms; all times are in seconds.
enum class request_figure : std::uint8_t {
  first_token,  ///< since the request came
  gap,          ///< between two tokens
  latency,      ///< of the whole request
  queued,       ///< since the request came, until it began to run
  prefill,      ///< from then to the first token
  decode,       ///< from the first token to the end
  inference,    ///< prefill and decode
  per_token,    ///< mean over an answer's tokens after the first
  prompt_tokens,
  answer_tokens,
  longest_answer,  ///< of those to one prompt: its tokens
  wanted_tokens,   ///< the most that the request allows
  wanted_answers,  ///< n
};
constexpr auto request_figures = to_size(request_figure::wanted_answers) + 1;

/// Everything that is counted for one model or adapter.
struct series_figures {
  series_figures();

  std::vector<histogram> histograms;  ///< [request_figures]
  std::map<std::string, std::uint64_t, std::less<>> finished{{"length", 0}, {"stop", 0}};
  std::uint64_t prompt_tokens = 0, tokens = 0;
};

/// The same, for several threads that count.
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

/// Counts by adapter version. Since there may be too many, those that were not asked for the longest are forgotten.
/// What will be counted is there with 0 before: Prometheus takes no figure that it sees first for growth.
class http_metrics {
 public:
  static constexpr std::size_t most_series = 100;

  std::shared_ptr<request_series> series(const std::string& model);
  void count_response(int status);
  void count_refused_connection() { ++refused_connections_; }
  /// Everything in Prometheus' text format, with what replicas and nodes post. `model`: the base's name.
  std::string write(const std::string& model, const status_board& board) const;

 private:
  using named_figures = std::vector<std::pair<std::string, series_figures>>;
  struct used_series {
    std::shared_ptr<request_series> counts;
    std::uint64_t used = 0;  ///< number of the last use
  };
  void forget_oldest();
  named_figures all_figures() const;

  mutable std::mutex mutex_;
  std::map<std::string, used_series> series_;
  std::uint64_t uses_ = 0;
  std::map<int, std::uint64_t> responses_{{200, 0}, {400, 0}, {401, 0}, {404, 0},
                                          {429, 0}, {499, 0}, {500, 0}, {503, 0}};
  std::atomic<std::uint64_t> refused_connections_{0};
};

}  // namespace troupe
