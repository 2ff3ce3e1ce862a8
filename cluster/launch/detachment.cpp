#include "cluster/launch/detachment.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/number_in.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "cluster/config/config.hpp"
#include "cluster/launch/launch_process.hpp"

namespace troupe {
namespace {

void point_output_at(int log) {
  const file_descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.number(), STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
}

/// What the caller's shell had open, with locks and pipes that somebody waits for, would stay open as long as the
/// cluster is up: nodes inherit it. Asks /proc, since older kernels have no close_range.
void close_all_but(int kept) {
  for (const auto& opened : entries_of("/proc/self/fd")) {
    const auto number = number_in<int>(opened.filename().native());
    if (number && *number > STDERR_FILENO && *number != kept) ::close(*number);
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), to_size(got));
  }
}

}  // namespace

detachment::detachment(const std::filesystem::path& log) : log_(log) {
  make_state_folder(log.parent_path());
  file_descriptor log_file = detail::open_log(log);
  auto [heard, told] = detail::open_pipe();
  const pid_t between = ::fork();
  if (between < 0) throw std::runtime_error(fmt::format("no new process: {}", std::strerror(errno)));
  if (between > 0) {
    pipe_ = std::move(heard);
    told.close();
    ::waitpid(between, nullptr, 0);
    return;
  }
  ::setsid();
  // A second time, so that no terminal can become the daemon's own.
  if (::fork() != 0) ::_exit(0);
  point_output_at(log_file.number());
  log_file.close();
  heard.close();
  close_all_but(told.number());
  pipe_ = std::move(told);
  ::signal(SIGPIPE, SIG_IGN);  // the caller may be gone when we report
  is_daemon_ = true;
}

bool detachment::is_settled() const {
  constexpr int glance_ms = 50;
  pollfd report{pipe_.number(), POLLIN, 0};
  return ::poll(&report, 1, glance_ms) > 0;
}

detachment::outcome detachment::wait(const std::function<bool()>& gives_up) {
  while (!is_settled())
    if (gives_up()) return {1, "nobody waits until it is ready", false};
  const std::string said = read_all(pipe_.number());
  outcome result;
  const auto [end, problem] = std::from_chars(said.data(), said.data() + said.size(), result.code);
  if (problem != std::errc() || end == said.data() + said.size())  // nothing, or cut off
    return {1, fmt::format("it ended before it was ready: see {}", log_.string()), true};
  result.text.assign(end + 1, said.data() + said.size());
  return result;
}

void detachment::report(int code, std::string_view text) {
  write_all(pipe_.number(), fmt::format("{} {}", code, text));
  pipe_.close();
}

}  // namespace troupe
