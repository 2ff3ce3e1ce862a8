// The process that holds a cluster up: only one, found again, and in the background if it should be.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "cluster/launch/launch.hpp"
#include "cluster/launch/state_folder_impl.hpp"

namespace troupe {
namespace {

std::filesystem::path pid_file(const cluster_config& config) {
  return config.state_dir / "up.pid";
}

/// The whole file, for a lock that lasts as long as the open file does.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string read_short(int descriptor) {
  std::array<char, 512> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  return std::string(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
}

/// The place where process ids are unique: this boot of this machine, and the pid namespace, since a container counts
/// its own.
std::string this_place() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code ignored;
  return fmt::format("{} {} {}", machine_name(), boot,
                     std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string());
}

/// Of two lines: the process id and the place, which an `up` of an earlier version does not say.
std::optional<up_process> parse_holder(const std::string& text) {
  up_process holder;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), holder.pid);
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (parsed.ec != std::errc() || holder.pid < 1 || first == std::string::npos) return {};
  if (first + 1 == text.size()) return holder;
  if (second == std::string::npos) return {};
  const std::string place = text.substr(first + 1, second - first - 1), host = place.substr(0, place.find(' '));
  if (place != this_place()) holder.elsewhere = host == machine_name() ? "another container of " + host : host;
  return holder;
}

void pause(std::chrono::milliseconds how_long) {
  ::poll(nullptr, 0, static_cast<int>(how_long.count()));
}

/// Whoever took the lock writes its process id right after: that may take a moment.
std::optional<up_process> holder_of(int descriptor) {
  for (int tries = 0; tries < 50; ++tries) {
    struct flock lock = whole_file();
    if (::fcntl(descriptor, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
    if (auto holder = parse_holder(read_short(descriptor))) return holder;
    pause(std::chrono::milliseconds(10));
  }
  return {};
}

void point_output_at(int log) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::close(nothing);
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t got = ::read(descriptor, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

up_lock::up_lock(const cluster_config& config) : file_(pid_file(config)) {
  detail::make_state_folder(config.state_dir);
  descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0)
    refuse("{}: cannot be written: {}: choose another state_dir", file_.string(), std::strerror(errno));
  struct flock lock = whole_file();
  if (::fcntl(descriptor_, F_OFD_SETLK, &lock) != 0) {
    const auto holder = holder_of(descriptor_);
    ::close(descriptor_);
    refuse("{}: the cluster {} is up already{}: end it with troupe down", config.label, config.name,
           holder ? fmt::format(" ({})", holder->text()) : "");
  }
  const std::string own = fmt::format("{}\n{}\n", ::getpid(), this_place());
  if (::ftruncate(descriptor_, 0) != 0 || !write_all(descriptor_, own)) {
    const int reason = errno;
    ::close(descriptor_);
    refuse("{}: cannot be written: {}", file_.string(), std::strerror(reason));
  }
}

// The file is not removed: another process could make a new one and lock that, while somebody waits for the old one.
up_lock::~up_lock() {
  [[maybe_unused]] const int done = ::ftruncate(descriptor_, 0);
  ::close(descriptor_);
}

std::string up_process::text() const {
  return fmt::format("process {}{}", pid, elsewhere.empty() ? "" : " on " + elsewhere);
}

std::optional<up_process> find_up(const cluster_config& config) {
  // A lock for writing can only be asked about where the file is open for writing.
  const int descriptor = ::open(pid_file(config).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return {};
  auto holder = holder_of(descriptor);
  ::close(descriptor);
  return holder;
}

bool end_up(const cluster_config& config, duration patience) {
  const auto holder = find_up(config);
  if (!holder) return true;
  if (!holder->elsewhere.empty())
    refuse("{}: the cluster {} is up on {}: end it there", config.label, config.name, holder->elsewhere);
  if (::kill(holder->pid, SIGTERM) != 0 && errno != ESRCH)
    refuse("{}: process {} holds the cluster {} up and is not yours: {}", config.label, holder->pid, config.name,
           std::strerror(errno));
  const monotonic_clock time;
  const instant end = time.now() + patience;
  while (find_up(config)) {
    if (time.now() >= end) return false;
    pause(std::chrono::milliseconds(20));
  }
  return true;
}

detachment::detachment(const std::filesystem::path& log) : log_(log) {
  detail::make_state_folder(log.parent_path());
  const int log_file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
  if (log_file < 0) refuse("{}: cannot be written: {}: choose another state_dir", log.string(), std::strerror(errno));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  const pid_t between = ::fork();
  if (between < 0) throw std::runtime_error(fmt::format("no new process: {}", std::strerror(errno)));
  if (between > 0) {
    ::close(ends[1]);
    ::close(log_file);
    pipe_ = ends[0];
    ::waitpid(between, nullptr, 0);
    return;
  }
  ::setsid();
  // A second time, so that no terminal can become the daemon's own.
  if (::fork() != 0) ::_exit(0);
  point_output_at(log_file);
  ::close(log_file);
  ::close(ends[0]);
  pipe_ = ends[1];
  ::signal(SIGPIPE, SIG_IGN);  // the caller may be gone when we report
  is_daemon_ = true;
}

detachment::~detachment() {
  if (pipe_ >= 0) ::close(pipe_);
}

detachment::outcome detachment::wait() {
  const std::string said = read_all(pipe_);
  outcome result;
  const auto [end, problem] = std::from_chars(said.data(), said.data() + said.size(), result.code);
  if (problem != std::errc() || end == said.data() + said.size())  // nothing, or cut off
    return {1, fmt::format("it ended before it was ready: see {}", log_.string())};
  result.text.assign(end + 1, said.data() + said.size());
  return result;
}

void detachment::report(int code, std::string_view text) {
  write_all(pipe_, fmt::format("{} {}", code, text));
  ::close(std::exchange(pipe_, -1));
}

}  // namespace troupe
