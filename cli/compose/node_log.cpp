#include "cli/compose/node_log.hpp"

#include <fmt/chrono.h>

#include <cstdio>
#include <ctime>

#include "cli/output.hpp"

namespace troupe {

void say(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::fputs(fmt::format("{:%Y-%m-%d %H:%M:%S} {}\n", fmt::localtime(now), line).c_str(), stdout);
  std::fflush(stdout);
}

void warn(const std::string& line) {
  say(line);
  write_error("troupe: " + line + "\n");
}

}  // namespace troupe
