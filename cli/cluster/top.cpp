#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/status_view.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace troupe {
namespace {

struct top_options {
  connect_options cluster;
  int blocks = 0;  ///< 0: until told to end
};

/// Single keys instead of lines, without their echo, for as long as this lives.
class key_reader {
 public:
  key_reader() : active_(::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!active_) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  ~key_reader() {
    if (active_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  key_reader(const key_reader&) = delete;
  key_reader& operator=(const key_reader&) = delete;

  /// Waits; true once q was typed.
  bool quits_within(std::chrono::milliseconds longest) const {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    const int ready = ::poll(&input, active_ ? 1 : 0, static_cast<int>(longest.count()));
    return ready > 0 && ::read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
  }

 private:
  termios before_{};
  bool active_;
};

/// As much as fits the terminal; otherwise one would only see the end.
std::string fitted(const nlohmann::ordered_json& status, const terminal_size& size) {
  constexpr std::string_view end = "\nq ends\n";
  const std::size_t rows = std::max<std::size_t>(size.rows, 4) - 3;
  std::string text;
  for (std::size_t jobs = size.rows; jobs > 0; --jobs) {
    text = headline(status) + status_text(status, jobs);
    if (std::cmp_less_equal(std::ranges::count(text, '\n'), rows)) break;
  }
  std::string shown;
  std::istringstream lines(text);
  std::string line;
  for (std::size_t row = 0; row < rows && std::getline(lines, line); ++row)
    shown.append(cut_to_width(line, size.columns)).append("\n");
  return shown.append(end);
}

int show_top(const top_options& options) {
  using namespace std::chrono_literals;
  constexpr auto interval = 1000ms, look = 100ms;
  const interrupt_guard guard;
  cluster_client cluster(options.cluster);
  const key_reader keys;
  for (int block = 1;; ++block) {
    const auto next = std::chrono::steady_clock::now() + interval;
    const auto status = read_answer(cluster.command("status", "{}"));
    if (const auto terminal = terminal_of(STDOUT_FILENO))
      print("\x1b[H\x1b[J" + fitted(status, *terminal));
    else
      print((block > 1 ? "\n" : "") + headline(status) + status_text(status));
    if (block == options.blocks) return 0;
    while (std::chrono::steady_clock::now() < next) {
      if (keys.quits_within(look)) return 0;
      check_interrupt();
    }
  }
}

}  // namespace

void add_top(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "top", "Show the same as status, again every second; q ends", show_top);
  add_connect(own, options.cluster);
  own.add_option("--blocks", options.blocks, "end after so many; 0: never [0]")->check(CLI::Range(0, 1 << 30));
}

}  // namespace troupe
