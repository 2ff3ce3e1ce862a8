#include "cli/progress.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace troupe {
namespace {

constexpr std::size_t bar_width = 30, narrow_bar_width = 10;

}  // namespace

progress::progress(std::string what) : what_(std::move(what)) {}

progress::~progress() {
  if (pace_.on_terminal() && shown_) write_error(clear_line);
}

void progress::update(std::int64_t done, std::int64_t total) {
  check_interrupt();
  if (total <= 0 || !pace_.is_due()) return;
  shown_ = true;
  show(std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0));
}

void progress::show(double share) const {
  const auto left =
      share > 0 ? fmt::format(", {} left", time_text(pace_.seconds() / share * (1 - share))) : std::string();
  if (!pace_.on_terminal()) return write_error(fmt::format("{}: {:.0f}%{}\n", what_, share * 100, left));
  show_line({fmt::format("{} {}{}", what_, share_bar(share, bar_width), left),
             fmt::format("{} {}{}", what_, share_bar(share, narrow_bar_width), left)});
}

}  // namespace troupe
