#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace troupe {

/// Shows on standard error how far long work has come: a bar on a terminal, a plain line now and then in a pipe, and
/// nothing at all for work that is soon done.
class progress {
 public:
  explicit progress(std::string what);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// Also the place where Ctrl-C takes effect: throws interrupted.
  void update(std::int64_t done, std::int64_t total);

 private:
  using clock = std::chrono::steady_clock;
  void show(double share, double seconds);

  std::string what_;
  bool terminal_;
  bool shown_ = false;
  clock::time_point start_, next_;
};

}  // namespace troupe
