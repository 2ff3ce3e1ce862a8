#include "cli/train/training_display.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace troupe {
namespace {

constexpr std::size_t loss_bar_width = 24, narrow_loss_bar_width = 10;

}  // namespace

training_display::training_display(std::int64_t steps, std::int64_t done, bool is_brief)
    : steps_(steps), first_(done), is_brief_(is_brief) {}

training_display::~training_display() {
  clear();
}

void training_display::clear() const {
  if (pace_.on_terminal()) write_error(clear_line);
}

void training_display::show(const step_report& report) {
  tokens_ += report.tokens;
  loss_ = report.step == first_ + 1 ? report.loss : 0.9 * loss_ + 0.1 * report.loss;
  show(report.step, loss_, static_cast<double>(tokens_) / seconds());
}

void training_display::note(const std::string& line) {
  if (::isatty(STDERR_FILENO) == 1) write_error(clear_line);
  write_error("training: " + line + "\n");
}

void training_display::show(std::int64_t step, double loss, double tokens_per_second) {
  if (step <= first_ || step == shown_ || !pace_.is_due()) return;
  shown_ = step;
  const double share = static_cast<double>(step) / static_cast<double>(steps_);
  const double left = seconds() * static_cast<double>(steps_ - step) / static_cast<double>(step - first_);
  const std::string facts =
      fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s", step, steps_, loss, tokens_per_second);
  const std::string with_time = fmt::format("{}  {} left", facts, time_text(left));
  if (!pace_.on_terminal()) return write_error("training: " + with_time + "\n");
  const std::string narrow = "training " + share_bar(share, narrow_loss_bar_width) + "  ";
  show_line({fmt::format("training {}  {}", share_bar(share, loss_bar_width), with_time), narrow + with_time,
             narrow + facts});
}

void training_display::show(std::int64_t step, const validation_report& report) {
  if (!pace_.on_terminal() && is_brief_ && pace_.is_early()) return;
  clear();
  write_error(
      fmt::format("validation: step {}  loss {:.4f}  accuracy {:.1f}%\n", step, report.loss, 100 * report.accuracy));
}

}  // namespace troupe
