#include "cluster/launch/launch_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/whole_file.hpp"

namespace troupe::detail {
namespace {

/// Closed if the system has none.
file_descriptor open_pidfd([[maybe_unused]] pid_t pid) {
#ifdef SYS_pidfd_open
  file_descriptor opened(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (opened.is_open()) ::fcntl(opened.number(), F_SETFD, FD_CLOEXEC);
  return opened;
#else
  return {};
#endif
}

/// What the child does between fork and exec. It may not allocate memory or take a lock.
struct child_setup {
  const char* image;
  char* const* words;
  pid_t parent;
  int log, input, failure;
  bool own_session;

  [[noreturn]] void run() const {
    own_session ? ::setsid() : ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before it could be watched
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::signal(number, SIG_DFL);
    if (::dup2(input, STDIN_FILENO) >= 0 && ::dup2(log, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0)
      ::execvp(image, words);
    const int reason = errno;
    [[maybe_unused]] const auto written = ::write(failure, &reason, sizeof reason);
    ::_exit(127);
  }
};

}  // namespace

file_descriptor open_log(const std::filesystem::path& log) {
  file_descriptor opened(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  if (!opened.is_open()) refuse_to_write(log, errno, "choose another state_dir");
  return opened;
}

std::pair<file_descriptor, file_descriptor> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  return {file_descriptor(ends[0]), file_descriptor(ends[1])};
}

child_process::~child_process() {
  if (runs()) {
    signal(SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pidfd_(std::move(other.pidfd_)), input_(std::move(other.input_)) {}

child_process& child_process::operator=(child_process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(input_, other.input_);
  return *this;
}

child_process child_process::start(const std::vector<std::string>& words, const std::filesystem::path& log,
                                   bool keeps_input, const std::filesystem::path& image) {
  std::vector<char*> pointers;
  for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const file_descriptor log_file = open_log(log);
  auto [failed, tells] = open_pipe();
  auto [input, keeps] = open_pipe();
  if (!keeps_input) keeps.close();
  child_setup setup{image.empty() ? pointers.front() : image.c_str(),
                    pointers.data(),
                    ::getpid(),
                    log_file.number(),
                    input.number(),
                    tells.number(),
                    keeps_input};
  child_process child;
  child.pid_ = ::fork();
  if (child.pid_ == 0) setup.run();
  const int no_fork = errno;
  tells.close();
  child.input_ = std::move(keeps);
  int reason = child.pid_ < 0 ? no_fork : 0;
  // The pipe closes with exec, or brings the reason why there was none.
  while (reason == 0 && ::read(failed.number(), &reason, sizeof reason) < 0 && errno == EINTR) {
  }
  if (reason != 0) refuse("{}: cannot be started: {}", words.front(), std::strerror(reason));
  child.pidfd_ = open_pidfd(child.pid_);
  return child;
}

void child_process::signal(int number) {
  if (!runs()) return;
  // The group may not be there yet, the child is.
  if (::kill(-pid_, number) != 0) ::kill(pid_, number);
}

std::optional<int> child_process::wait_status() {
  if (!runs()) return {};
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return {};
  if (got < 0) status = 1 << 8;  // somebody else took the status: it has ended, no more is known
  ::kill(-pid_, SIGKILL);        // what it left behind
  pid_ = -1;
  pidfd_.close();
  input_.close();
  return status;
}

std::string describe_end(int wait_status) {
  if (WIFEXITED(wait_status)) return fmt::format("exit code {}", WEXITSTATUS(wait_status));
  const int number = WTERMSIG(wait_status);
  return fmt::format("signal {} ({})", number, ::strsignal(number));
}

void wait_readable(const std::vector<int>& descriptors, duration at_most) {
  constexpr duration glance = std::chrono::milliseconds(50);
  std::vector<pollfd> polled;
  for (const int each : descriptors) {
    if (each >= 0) {
      polled.push_back({each, POLLIN, 0});
    } else {
      at_most = std::min(at_most, glance);
    }
  }
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(std::clamp<duration>(at_most, {}, std::chrono::hours(1)));
  ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
}

}  // namespace troupe::detail
