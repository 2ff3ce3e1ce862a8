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

/// Throws input_error, as open_log does.
void make_state_folder(const std::filesystem::path& folder);
/// To append to.
file_descriptor open_log(const std::filesystem::path& log);
/// The end to read from, and the one to write to. Throws runtime_error.
std::pair<file_descriptor, file_descriptor> open_pipe();

/// A child in a process group of its own, that the kernel ends when this thread does.
class child_process {
 public:
  child_process() = default;
  ~child_process();  ///< kills what still runs
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) noexcept;

  /// Output and errors are appended to `log`. With `keeps_input` the child's standard input stays open until this
  /// object goes, else it is empty. Throws input_error where there is no such program or no log, runtime_error
  /// where the system has no more descriptors.
  static child_process start(const std::vector<std::string>& words, const std::filesystem::path& log, bool keeps_input);

  pid_t pid() const { return pid_; }
  bool runs() const { return pid_ > 0; }
  int end_descriptor() const { return pidfd_.number(); }  ///< readable once it has ended; -1: the system has none
  void close_input() { input_.close(); }                  ///< for one that ends when its input does
  void signal(int number);                                ///< to its whole group
  std::optional<int> wait_status();                       ///< of one that has ended, as waitpid gives it; once

 private:
  pid_t pid_ = -1;
  file_descriptor pidfd_, input_;
};

/// "exit code 1", "signal 9 (Killed)".
std::string describe_end(int wait_status);

/// Waits for one of them, or so long. Without any it only waits.
void wait_readable(const std::vector<int>& descriptors, duration at_most);

}  // namespace troupe::detail
