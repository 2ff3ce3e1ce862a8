#include "cli/compose/node_log.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>

#include <cstdio>
#include <ctime>

#include "cli/output.hpp"

namespace troupe {
namespace {

/// As in the log that `up` makes of both.
bool are_one_file(int a, int b) {
  struct stat of_a, of_b;
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace

void say(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::fputs(fmt::format("{:%Y-%m-%d %H:%M:%S%z} {}\n", fmt::localtime(now), line).c_str(), stdout);
  std::fflush(stdout);
}

void warn(const std::string& line) {
  say(line);
  if (!are_one_file(STDOUT_FILENO, STDERR_FILENO)) write_error("troupe: " + line + "\n");
}

std::string_view without_time(std::string_view line) {
  constexpr std::string_view example = "2026-11-27 20:31:41+0000 ";
  const bool has_time = line.size() > example.size() && line[4] == '-' && line[13] == ':' && line[24] == ' ';
  return has_time ? line.substr(example.size()) : line;
}

}  // namespace troupe
