#include "cli/output.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/file_descriptor.hpp"
#include "base/utf8.hpp"

namespace troupe {

void open_standard_files() {
  int descriptor = 0;
  do descriptor = ::open("/dev/null", O_RDWR);
  while (descriptor >= 0 && descriptor <= STDERR_FILENO);
  if (descriptor >= 0) ::close(descriptor);
}

void print(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return;
  if (errno == EPIPE) throw output_closed();
  throw std::runtime_error(
      fmt::format("standard output cannot be written ({}): send it elsewhere", std::strerror(errno)));
}

void print_if_heard(std::string_view text) {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) (void)write_all(STDOUT_FILENO, text);
}

std::string json_line(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void print_json(const nlohmann::ordered_json& value) {
  print(json_line(value) + "\n");
}

void write_error(std::string_view text) {
  [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text.data(), text.size());
}

std::string one_line(std::string_view text) {
  std::string line = without_controls(text, ' ');
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

}  // namespace troupe
