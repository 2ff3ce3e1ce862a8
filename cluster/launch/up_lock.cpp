#include "cluster/launch/up_lock.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <system_error>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/shell_word.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
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
  std::array<char, 8192> text{};
  const ssize_t got = ::pread(descriptor, text.data(), text.size(), 0);
  return std::string(text.data(), got > 0 ? to_size(got) : 0);
}

/// A machine may get another name while a cluster is up on it.
std::string_view without_name(std::string_view place) {
  return place.substr(std::min(place.find(' '), place.size()));
}

/// Reads three lines: the process id, and the place and the file, which an `up` of an earlier version did not write.
std::optional<up_process> parse_holder(const std::string& text) {
  up_process holder;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), holder.pid);
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (parsed.ec != std::errc() || holder.pid < 1 || first == std::string::npos) return {};
  if (first + 1 == text.size()) return holder;
  if (second == std::string::npos) return {};
  const std::string place = text.substr(first + 1, second - first - 1), host = place.substr(0, place.find(' '));
  if (without_name(place) != without_name(pid_space()))
    holder.elsewhere = host == machine_name() ? "another container of " + host : host;
  if (const std::size_t third = text.find('\n', second + 1); third != std::string::npos)
    holder.file = text.substr(second + 1, third - second - 1);
  return holder;
}

void pause(std::chrono::milliseconds how_long) {
  ::poll(nullptr, 0, static_cast<int>(how_long.count()));
}

bool is_own(int descriptor) {
  struct stat known {};
  return ::fstat(descriptor, &known) == 0 && known.st_uid == ::geteuid();
}

/// If somebody deleted the state folder while the cluster is up, its process still has the file open. Another user's
/// processes do not tell, except to root, who must not believe them.
file_descriptor open_deleted(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::string wanted = std::filesystem::weakly_canonical(file, ignored).string() + " (deleted)";
  for (const auto& process : entries_of("/proc"))
    for (const auto& opened : entries_of(process / "fd"))
      if (std::filesystem::read_symlink(opened, ignored) == wanted) {
        file_descriptor file(::open(opened.c_str(), O_RDWR | O_CLOEXEC));
        if (file.is_open() && is_own(file.number())) return file;
      }
  return {};
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

/// An `up`'s file, and who holds it.
struct held_file {
  file_descriptor file;
  up_process by;
};
std::optional<held_file> held_by_somebody(file_descriptor file) {
  if (!file.is_open()) return {};
  const auto holder = holder_of(file.number());
  return holder ? std::optional(held_file{std::move(file), *holder}) : std::nullopt;
}

std::optional<held_file> find_held(const cluster_config& config) {
  // A lock for writing can only be asked about where the file is open for writing.
  const std::filesystem::path path = pid_file(config);
  file_descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file.is_open() && errno == EACCES)
    refuse("{}: it is another user's to say whether {} is up: type the command as the user who runs the cluster",
           path.string(), config.name);
  auto held = held_by_somebody(std::move(file));
  return held ? std::move(held) : held_by_somebody(open_deleted(path));
}

/// A file that was moved is gone from its old place. What lies on another machine cannot be seen from here.
bool is_of_other_file(const cluster_config& config, const up_process& holder) {
  if (holder.file.empty() || holder.file == config.source) return false;
  if (!holder.elsewhere.empty()) return true;
  std::error_code ignored;
  return is_seen(holder.file) && !std::filesystem::equivalent(holder.file, config.source, ignored);
}

}  // namespace

up_lock::up_lock(const cluster_config& config) {
  const std::filesystem::path path = pid_file(config);
  make_state_folder(config.state_dir);
  file_ = file_descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file_.is_open()) refuse_to_write(path, errno, "choose another state_dir");
  struct flock lock = whole_file();
  if (::fcntl(file_.number(), F_OFD_SETLK, &lock) != 0) {
    if (const auto holder = holder_of(file_.number())) refuse_second_up(config, *holder);
    refuse("{}: the cluster {} is up already: end it with troupe down", config.label, config.name);
  }
  const std::string own = fmt::format("{}\n{}\n{}\n", ::getpid(), pid_space(), config.source.string());
  if (::ftruncate(file_.number(), 0) != 0 || !write_all(file_.number(), own))
    fail_to_write(path, errno, "choose another state_dir");
}

// The file is not removed: another process could make a new one and lock that, while somebody waits for the old one.
up_lock::~up_lock() {
  [[maybe_unused]] const int done = ::ftruncate(file_.number(), 0);
}

std::string up_process::text() const {
  return fmt::format("process {}{}", pid, elsewhere.empty() ? "" : " on " + elsewhere);
}

void refuse_second_up(const cluster_config& config, const up_process& holder) {
  const char* const there = holder.elsewhere.empty() ? "" : " there";
  if (!is_of_other_file(config, holder))
    refuse("{} is up already ({}): troupe down {} ends it{}", config.name, holder.text(), typed_word(config.label),
           there);
  const bool is_chosen = config.places.contains("cluster.state_dir");  // else it goes by the name
  const std::string what_is_shared =
      is_chosen ? fmt::format("another cluster uses the state folder {}", config.state_dir.string())
                : fmt::format("another file has the name {}", config.name);
  const char* const what_differs = is_chosen ? "state_dir in [cluster]" : "name in [cluster] (troupe serve: --name)";
  refuse("{}: {}, too, and is up ({}): troupe down {} ends it{}; to run beside it this one needs another {}",
         config.label, what_is_shared, holder.text(), typed_word(holder.file.string()), there, what_differs);
}

std::optional<up_process> find_up(const cluster_config& config) {
  const auto held = find_held(config);
  return held ? std::optional(held->by) : std::nullopt;
}

bool end_up(const cluster_config& config, duration patience) {
  const auto held = find_held(config);
  if (!held) return true;
  if (!held->by.elsewhere.empty())
    refuse("{}: the cluster {} is up on {}: end it there", config.label, config.name, held->by.elsewhere);
  if (is_of_other_file(config, held->by)) refuse_second_up(config, held->by);
  if (::kill(held->by.pid, SIGTERM) != 0 && errno != ESRCH)
    refuse("{}: process {} holds the cluster {} up and is not yours: {}", config.label, held->by.pid, config.name,
           std::strerror(errno));
  const monotonic_clock time;
  const instant end = time.now() + patience;
  while (holder_of(held->file.number())) {
    if (time.now() >= end) return false;
    pause(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace troupe
