#pragma once
#include <exception>

namespace troupe {

/// Thrown by check_interrupt: the user wants the program to end, and what is half done must be tidied up first.
class interrupted : public std::exception {
 public:
  explicit interrupted(int signal) : signal_(signal) {}
  int exit_code() const { return 128 + signal_; }
  const char* what() const noexcept override { return "interrupted"; }

 private:
  int signal_;
};

/// From now on SIGINT, SIGTERM and SIGHUP (its terminal was closed) end the program at once, with 128 + signal, unless
/// an interrupt_guard is alive. A SIGHUP that is ignored stays so.
void handle_interrupts();

/// While one lives, a signal waits for the next check_interrupt. Around all work that leaves partial files.
class interrupt_guard {
 public:
  interrupt_guard();
  ~interrupt_guard();
  interrupt_guard(const interrupt_guard&) = delete;
  interrupt_guard& operator=(const interrupt_guard&) = delete;
};

/// Throws interrupted when a signal came while guarded.
void check_interrupt();
/// The same as a question.
bool is_interrupted();
/// Readable once a signal came while guarded: for who waits for something else as well. Throws input_error where no
/// more files can be opened.
int interrupt_descriptor();
/// Whether the signal was Ctrl-C, which then counts as seen: for work that ends while the program goes on.
bool take_ctrl_c();

}  // namespace troupe
