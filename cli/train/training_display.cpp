#include "cli/train/training_display.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t loss_bar_width = 24, narrow_loss_bar_width = 10;
constexpr auto soon = 5000ms;

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

training_display::training_display(std::int64_t steps, std::int64_t done, bool is_brief)
    : steps_(steps), first_(done), is_brief_(is_brief), terminal_(::isatty(STDERR_FILENO) == 1), start_(clock::now()) {
  next_ = start_ + (terminal_ ? 300ms : soon);
}

training_display::~training_display() {
  clear();
}

void training_display::clear() const {
  if (terminal_) write_error(clear_line);
}

double training_display::seconds() const {
  return std::chrono::duration<double>(clock::now() - start_).count();
}

void training_display::show(const step_report& report) {
  tokens_ += report.tokens;
  loss_ = report.step == first_ + 1 ? report.loss : 0.9 * loss_ + 0.1 * report.loss;
  draw(report.step, loss_, static_cast<double>(tokens_) / seconds());
}

void training_display::show(std::int64_t step, double loss, double tokens_per_second) {
  draw(step, loss, tokens_per_second);
}

void training_display::note(const std::string& line) {
  if (::isatty(STDERR_FILENO) == 1) write_error(clear_line);
  write_error("training: " + line + "\n");
}

void training_display::draw(std::int64_t step, double loss, double tokens_per_second) {
  const auto now = clock::now();
  if (now < next_ || step <= first_ || step == shown_) return;
  shown_ = step;
  next_ = now + (terminal_ ? 100ms : soon);
  const double share = static_cast<double>(step) / static_cast<double>(steps_);
  const double left = seconds() * static_cast<double>(steps_ - step) / static_cast<double>(step - first_);
  const std::string facts =
      fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s", step, steps_, loss, tokens_per_second);
  const std::string with_time = fmt::format("{}  {} left", facts, time_text(left));
  if (!terminal_) return write_error("training: " + with_time + "\n");
  const std::string narrow = "training " + share_bar(share, narrow_loss_bar_width) + "  ";
  show_line({fmt::format("training {}  {}", share_bar(share, loss_bar_width), with_time), narrow + with_time,
             narrow + facts});
}

void training_display::show(std::int64_t step, const validation_report& report) {
  if (!terminal_ && is_brief_ && clock::now() < start_ + soon) return;
  clear();
  write_error(
      fmt::format("validation: step {}  loss {:.4f}  accuracy {:.1f}%\n", step, report.loss, 100 * report.accuracy));
}

}  // namespace troupe
