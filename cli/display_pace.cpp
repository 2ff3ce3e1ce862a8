#include "cli/display_pace.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 5000ms;  // also between the lines in a pipe

}  // namespace

display_pace::display_pace()
    : terminal_(::isatty(STDERR_FILENO) == 1), start_(clock::now()), next_(start_ + (terminal_ ? 300ms : soon)) {}

bool display_pace::is_due() {
  const auto now = clock::now();
  if (now < next_) return false;
  next_ = now + (terminal_ ? 100ms : soon);
  return true;
}

bool display_pace::is_early() const {
  return clock::now() < start_ + soon;
}

double display_pace::seconds() const {
  return std::chrono::duration<double>(clock::now() - start_).count();
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace troupe
