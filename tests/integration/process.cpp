#include "tests/integration/process.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/to_size.hpp"

namespace troupe::test {

bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds longest) {
  return is_soon(holds, longest);
}

void pass(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
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
  return to_size(std::distance(begin(files), end(files)));
}

}  // namespace troupe::test
