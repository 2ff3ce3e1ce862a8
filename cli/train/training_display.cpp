#include "cli/train/training_display.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/output.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int loss_bar_width = 24;

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds);
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", whole / 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

training_display::training_display(std::int64_t steps, std::int64_t done)
    : steps_(steps), first_(done), terminal_(::isatty(STDERR_FILENO) == 1), start_(clock::now()) {
  next_ = start_ + (terminal_ ? 300ms : 5000ms);
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
  next_ = now + (terminal_ ? 100ms : 5000ms);
  const double share = static_cast<double>(step) / static_cast<double>(steps_);
  const double left = seconds() * static_cast<double>(steps_ - step) / static_cast<double>(step - first_);
  const std::string facts = fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s  {} left", step, steps_, loss,
                                        tokens_per_second, time_text(left));
  if (!terminal_) return write_error("training: " + facts + "\n");
  const auto filled = static_cast<std::size_t>(share * loss_bar_width);
  write_error(fmt::format("{}training [{}{}] {:.0f}%  {}", clear_line, std::string(filled, '#'),
                          std::string(loss_bar_width - filled, '.'), share * 100, facts));
}

void training_display::show(std::int64_t step, const validation_report& report) {
  if (!terminal_ && seconds() < 5) return;
  clear();
  write_error(
      fmt::format("validation: step {}  loss {:.4f}  accuracy {:.1f}%\n", step, report.loss, 100 * report.accuracy));
}

}  // namespace troupe
