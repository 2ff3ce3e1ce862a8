#pragma once
#include <chrono>
#include <string>

namespace troupe {

/// When long work shows on standard error how far it has come: often on a terminal, now and then in a pipe, and not at
/// all where it is soon done.
class display_pace {
 public:
  display_pace();

  bool on_terminal() const { return terminal_; }
  /// Whether to show something now; then not again for a while.
  bool is_due();
  /// Whether it still may be soon done, and nobody has to be told in a pipe.
  bool is_early() const;
  double seconds() const;  ///< since the work began

 private:
  using clock = std::chrono::steady_clock;

  bool terminal_;
  clock::time_point start_, next_;
};

/// "45 s", "3 min", "2 h 5 min".
std::string time_text(double seconds);

}  // namespace troupe
