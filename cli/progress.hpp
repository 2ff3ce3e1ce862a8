#pragma once
#include <cstdint>
#include <string>

#include "cli/display_pace.hpp"

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
  void show(double share) const;

  std::string what_;
  display_pace pace_;
  bool shown_ = false;
};

}  // namespace troupe
