// A process of the built program, which is ended with this object.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::test {

using words = std::vector<std::string>;

class process {
 public:
  /// The first word is the program. Standard output and error become files `out` and `out`.err.
  process(const words& command, std::filesystem::path out, const words& environment = {});
  ~process();  ///< SIGKILL if it still runs
  process(process&& other) noexcept;
  process& operator=(process&& other) noexcept;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// The exit code, or 1000 + the signal that ended it; empty if it still runs.
  std::optional<int> poll();
  /// The same, but waits; after `longest` it kills the process and returns -1.
  int wait(std::chrono::seconds longest = std::chrono::seconds(30));
  std::string out() const;
  std::string error() const;

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
  std::filesystem::path out_;
};

/// Checks again and again until `holds` returns true. Returns false after `longest`.
bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds longest = std::chrono::seconds(15));

/// How often the words stand in a text.
int count_of(const std::string& text, std::string_view words);

/// Of a process: a number from /proc/PID/status (like "VmRSS", in kB), and how many files it has open.
long status_number(pid_t pid, const std::string& key);
std::size_t open_files(pid_t pid);

}  // namespace troupe::test
