#include "cli/progress.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int bar_width = 30;

}  // namespace

progress::progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(STDERR_FILENO) == 1), start_(clock::now()) {
  next_ = start_ + (terminal_ ? 300ms : 5000ms);
}

progress::~progress() {
  if (terminal_ && shown_) write_error(clear_line);
}

void progress::update(std::int64_t done, std::int64_t total) {
  check_interrupt();
  const auto now = clock::now();
  if (now < next_ || total <= 0) return;
  next_ = now + (terminal_ ? 100ms : 5000ms);
  shown_ = true;
  show(std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0),
       std::chrono::duration<double>(now - start_).count());
}

void progress::show(double share, double seconds) {
  const auto left = share > 0 ? fmt::format(", {:.0f} s left", seconds / share * (1 - share)) : std::string();
  if (!terminal_) return write_error(fmt::format("{}: {:.0f}%{}\n", what_, share * 100, left));
  const auto filled = static_cast<std::size_t>(share * bar_width);
  const std::string bar = std::string(filled, '#') + std::string(bar_width - filled, '.');
  write_error(fmt::format("{}{} [{}] {:.0f}%{}", clear_line, what_, bar, share * 100, left));
}

}  // namespace troupe
