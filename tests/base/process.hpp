#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::test {

using words = std::vector<std::string>;

/// A process, which is ended with this object. The first word of its command is the program.
class process {
 public:
  /// Standard output and error become files `out` and `out`.err.
  process(const words& command, std::filesystem::path out, const words& environment = {}) : out_(std::move(out)) {
    const auto made = [](const std::string& file) {
      return ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    };
    const int to = made(out_.string()), error = made(error_file());
    start(command, to, error, environment);
    ::close(to);
    ::close(error);
  }
  /// Standard output and error become these, which stay the caller's.
  process(const words& command, int out, int error, const words& environment = {}) {
    start(command, out, error, environment);
  }
  /// SIGKILL if it still runs.
  ~process() {
    if (pid_ <= 0 || poll()) return;
    signal(SIGKILL);
    signal(SIGCONT);
    wait();
  }
  process(process&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), code_(other.code_), out_(std::move(other.out_)) {}
  process& operator=(process&& other) noexcept {
    std::swap(pid_, other.pid_);
    std::swap(code_, other.code_);
    std::swap(out_, other.out_);
    return *this;
  }

  pid_t pid() const { return pid_; }
  void signal(int number) const {
    if (pid_ > 0 && !code_) ::kill(pid_, number);
  }
  /// The exit code, or 1000 + the signal that ended it; empty if it still runs.
  std::optional<int> poll() {
    int status = 0;
    if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return code_;
  }
  /// The same, but waits; after `longest` it kills the process and returns -1.
  int wait(std::chrono::seconds longest = std::chrono::seconds(30)) {
    if (is_soon([this] { return poll().has_value(); }, longest)) return *code_;
    signal(SIGKILL);
    is_soon([this] { return poll().has_value(); });
    return -1;
  }
  std::string out() const { return read_file(out_); }
  std::string error() const { return read_file(error_file()); }

 private:
  std::string error_file() const { return out_.string() + ".err"; }
  void start(const words& command, int out, int error, const words& environment) {
    std::vector<char*> pointers;
    for (const std::string& each : command) pointers.push_back(const_cast<char*>(each.c_str()));
    pointers.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(error, STDERR_FILENO);
    for (const std::string& each : environment) ::putenv(const_cast<char*>(each.c_str()));
    ::execvp(pointers.front(), pointers.data());
    ::_exit(127);
  }

  pid_t pid_ = -1;
  std::optional<int> code_;
  std::filesystem::path out_;
};

}  // namespace troupe::test
