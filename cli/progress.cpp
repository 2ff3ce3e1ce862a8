#include "cli/progress.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t bar_width = 30, narrow_bar_width = 10;

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
  show_line({fmt::format("{} {}{}", what_, share_bar(share, bar_width), left),
             fmt::format("{} {}{}", what_, share_bar(share, narrow_bar_width), left)});
}

}  // namespace troupe
