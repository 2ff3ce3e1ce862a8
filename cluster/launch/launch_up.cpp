#include "cluster/launch/launch_up.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "cluster/launch/launch_process.hpp"
#include "cluster/launch/machine.hpp"

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

/// Where process ids are unique: this boot of this machine, and the pid namespace, since containers have their own ids.
std::string this_place() {
  std::error_code ignored;
  return fmt::format("{} {}", machine_id(), std::filesystem::read_symlink("/proc/self/ns/pid", ignored).string());
}

/// Reads two lines: the process id, and the place, which an `up` of an earlier version did not write.
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

/// A process that has taken the lock may not have written its id yet, so this waits a moment for it.
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
  const file_descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(nothing.number(), STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
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

up_lock::up_lock(const cluster_config& config) {
  const std::filesystem::path path = pid_file(config);
  detail::make_state_folder(config.state_dir);
  file_ = file_descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.is_open())
    refuse("{}: cannot be written: {}: choose another state_dir", path.string(), std::strerror(errno));
  struct flock lock = whole_file();
  if (::fcntl(file_.number(), F_OFD_SETLK, &lock) != 0) {
    const auto holder = holder_of(file_.number());
    refuse("{}: the cluster {} is up already{}: end it with troupe down", config.label, config.name,
           holder ? fmt::format(" ({})", holder->text()) : "");
  }
  const std::string own = fmt::format("{}\n{}\n", ::getpid(), this_place());
  if (::ftruncate(file_.number(), 0) != 0 || !write_all(file_.number(), own))
    refuse("{}: cannot be written: {}", path.string(), std::strerror(errno));
}

// The file is not removed: another process could make a new one and lock that, while somebody waits for the old one.
up_lock::~up_lock() {
  [[maybe_unused]] const int done = ::ftruncate(file_.number(), 0);
}

std::string up_process::text() const {
  return fmt::format("process {}{}", pid, elsewhere.empty() ? "" : " on " + elsewhere);
}

std::optional<up_process> find_up(const cluster_config& config) {
  // A lock for writing can only be asked about where the file is open for writing.
  const std::filesystem::path path = pid_file(config);
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open() && errno == EACCES)
    refuse("{}: it is another user's to say whether {} is up: type the command as the user who runs the cluster",
           path.string(), config.name);
  return file.is_open() ? holder_of(file.number()) : std::nullopt;
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
  const file_descriptor log_file = detail::open_log(log);
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
  pipe_ = std::move(told);
  ::signal(SIGPIPE, SIG_IGN);  // the caller may be gone when we report
  is_daemon_ = true;
}

detachment::outcome detachment::wait(const std::function<bool()>& gives_up) {
  constexpr int glance_ms = 50;
  pollfd report{pipe_.number(), POLLIN, 0};
  while (::poll(&report, 1, glance_ms) <= 0)
    if (gives_up()) return {1, "nobody waits until it is ready"};
  const std::string said = read_all(pipe_.number());
  outcome result;
  const auto [end, problem] = std::from_chars(said.data(), said.data() + said.size(), result.code);
  if (problem != std::errc() || end == said.data() + said.size())  // nothing, or cut off
    return {1, fmt::format("it ended before it was ready: see {}", log_.string())};
  result.text.assign(end + 1, said.data() + said.size());
  return result;
}

void detachment::report(int code, std::string_view text) {
  write_all(pipe_.number(), fmt::format("{} {}", code, text));
  pipe_.close();
}

}  // namespace troupe
