#pragma once
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"

namespace troupe::detail {

/// Opens a log to append to it. Throws input_error.
file_descriptor open_log(const std::filesystem::path& log);
/// The end to read from, and the one to write to. Throws runtime_error.
std::pair<file_descriptor, file_descriptor> open_pipe();

/// A child in a process group of its own. The kernel ends it when this thread ends. It stays in this session, since
/// Linux weighs idle priority only among the processes of one session.
class child_process {
 public:
  child_process() = default;
  ~child_process();  ///< kills the child if it still runs
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) noexcept;

  /// Output and errors are appended to `log`. With `keeps_input` the child's standard input stays open until this
  /// object goes, else it is empty; such a child, ssh, has a session of its own, without a terminal: there it would ask
  /// for a password, and be stopped as one in the background. Throws input_error if the program cannot be started or
  /// the log not be written, runtime_error if the system has no more descriptors. The program is the first word, or
  /// `image`, which the first word then only names.
  static child_process start(const std::vector<std::string>& words, const std::filesystem::path& log, bool keeps_input,
                             const std::filesystem::path& image = {});

  pid_t pid() const { return pid_; }
  bool runs() const { return pid_ > 0; }
  int end_descriptor() const { return pidfd_.number(); }  ///< readable once the child has ended; -1: there is none
  void close_input() { input_.close(); }                  ///< ends a child that ends with its input
  void signal(int number);                                ///< to its whole group
  std::optional<int> wait_status();                       ///< as of waitpid, once, when the child has ended

 private:
  pid_t pid_ = -1;
  file_descriptor pidfd_, input_;
};

/// "exit code 1", "signal 9 (Killed)".
std::string describe_end(int wait_status);

/// Waits until one of them is readable, at most so long.
void wait_readable(const std::vector<int>& descriptors, duration at_most);

}  // namespace troupe::detail
