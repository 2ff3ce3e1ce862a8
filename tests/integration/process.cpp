#include "tests/integration/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::test {
namespace {

std::string error_file(const std::filesystem::path& out) {
  return out.string() + ".err";
}

void point_at(int descriptor, const std::string& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ::dup2(made, descriptor);
}

}  // namespace

process::process(const words& command, std::filesystem::path out, const words& environment) : out_(std::move(out)) {
  std::vector<char*> pointers;
  for (const std::string& each : command) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  point_at(STDOUT_FILENO, out_.string());
  point_at(STDERR_FILENO, error_file(out_));
  for (const std::string& each : environment) ::putenv(const_cast<char*>(each.c_str()));
  ::execvp(pointers.front(), pointers.data());
  ::_exit(127);
}

process::~process() {
  if (pid_ <= 0 || poll()) return;
  signal(SIGKILL);
  signal(SIGCONT);
  wait();
}

process::process(process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), code_(other.code_), out_(std::move(other.out_)) {}

process& process::operator=(process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(code_, other.code_);
  std::swap(out_, other.out_);
  return *this;
}

void process::signal(int number) const {
  if (pid_ > 0 && !code_) ::kill(pid_, number);
}

std::optional<int> process::poll() {
  int status = 0;
  if (!code_ && ::waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  return code_;
}

int process::wait(std::chrono::seconds longest) {
  if (wait_until([this] { return poll().has_value(); }, longest)) return *code_;
  signal(SIGKILL);
  wait_until([this] { return poll().has_value(); });
  return -1;
}

std::string process::out() const {
  return read_file(out_);
}

std::string process::error() const {
  return read_file(error_file(out_));
}

bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds longest) {
  return is_soon(holds, longest);
}

int count_of(const std::string& text, std::string_view words) {
  int count = 0;
  for (auto at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

long status_number(pid_t pid, const std::string& key) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1));
  return 0;
}

std::size_t open_files(pid_t pid) {
  std::error_code gone;
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd", gone);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace troupe::test
