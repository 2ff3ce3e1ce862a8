#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/to_size.hpp"
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

/// Single keys instead of lines, without their echo, for as long as this lives. Only where output goes to the terminal,
/// too: a pager behind this reads the keys itself, and what writes into a file may run behind another program.
class key_reader {
 public:
  key_reader()
      : active_(::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 &&
                ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (active_) take_keys(before_);
  }
  ~key_reader() {
    if (active_ && is_in_front()) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  key_reader(const key_reader&) = delete;
  key_reader& operator=(const key_reader&) = delete;

  /// Waits; true once q was typed.
  bool quits_within(std::chrono::milliseconds longest) const {
    if (active_ && is_in_front()) take_keys_again();
    pollfd input{STDIN_FILENO, POLLIN, 0};
    char key = 0;
    const int ready = ::poll(&input, active_ ? 1 : 0, static_cast<int>(longest.count()));
    return ready > 0 && ::read(STDIN_FILENO, &key, 1) == 1 && (key == 'q' || key == 'Q');
  }

 private:
  static void take_keys(termios modes) {
    modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &modes);
  }
  /// After Ctrl-Z and fg the shell has made the terminal give lines.
  static void take_keys_again() {
    termios now{};
    if (::tcgetattr(STDIN_FILENO, &now) == 0 && (now.c_lflag & ICANON) != 0) take_keys(now);
  }
  /// Who changes a terminal from behind is stopped. None is in front in one that controls no processes.
  static bool is_in_front() {
    const pid_t front = ::tcgetpgrp(STDIN_FILENO);
    return front < 0 || front == ::getpgrp();
  }

  termios before_{};
  bool active_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream from(text);
  for (std::string line; std::getline(from, line);) lines.push_back(line);
  return lines;
}

using shown_parts = std::vector<std::vector<std::string>>;

/// With an empty one between two parts.
std::size_t count_lines(const shown_parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), parts.size() - 1,
                         [](std::size_t sum, const auto& part) { return sum + part.size(); });
}

shown_parts parts_of(const nlohmann::ordered_json& status, std::size_t most_jobs) {
  shown_parts parts;
  for (const std::string& part : status_parts(status, most_jobs)) parts.push_back(lines_of(part));
  return parts;
}

/// To how many lines the longest parts are to be cut, so that all have so many together.
std::size_t fair_lines(shown_parts parts, std::size_t rows) {
  std::size_t most = rows;
  while (most > 0 && count_lines(parts) > rows) {
    --most;
    for (auto& part : parts) part.resize(std::min(part.size(), most));
  }
  return most;
}

/// With as many jobs as the other tables leave rows for, but some in any case: how many more there are is said behind
/// them.
shown_parts parts_for(const nlohmann::ordered_json& status, std::size_t rows) {
  constexpr std::size_t fewest = 2, around = 2;  // the table's head, and what says how many more there are
  shown_parts parts = parts_of(status, rows);
  const std::size_t most = fair_lines(parts, rows);
  return parts.back().size() <= most ? parts : parts_of(status, std::max(most, fewest + around) - around);
}

/// So that all parts together have so many lines: the longest part loses most.
void shorten(shown_parts& parts, std::size_t rows) {
  std::vector<std::size_t> left_out(parts.size());
  for (std::size_t all = count_lines(parts); all > rows; --all) {
    const auto longest = std::ranges::max_element(parts, {}, [](const auto& part) { return part.size(); });
    if (longest->size() < 3) return;  // a table's head, and a line
    auto& lost = left_out[to_size(longest - parts.begin())];
    lost += lost == 0 ? 2 : 1;  // the first also gives its place to the line that says so
    longest->pop_back();
    longest->back() = fmt::format("… and {} more lines", lost);
  }
}

/// As much as fits the terminal, of each table something; otherwise one would only see the end.
std::string fitted(const nlohmann::ordered_json& status, const terminal_size& size) {
  constexpr std::size_t around = 5;  // the headline, "q ends", an empty line each, and the row that the cursor is in
  const std::size_t rows = std::max(size.rows, around) - around;
  shown_parts parts = parts_for(status, rows);
  shorten(parts, rows);
  std::vector<std::string> lines = lines_of(headline(status));
  const std::size_t most = lines.size() + rows;
  for (const auto& part : parts) {
    if (&part != &parts.front()) lines.emplace_back();
    lines.insert(lines.end(), part.begin(), part.end());
  }
  lines.resize(std::min(lines.size(), most));
  std::string shown;
  for (const std::string& line : lines) shown.append(cut_to_width(line, size.columns)).append("\n");
  return shown.append("\nq ends\n");
}

void show_block(const nlohmann::ordered_json& status, bool is_first) {
  if (const auto terminal = terminal_of(STDOUT_FILENO))
    print("\x1b[H\x1b[J" + fitted(status, *terminal));
  else
    print((is_first ? "" : "\n") + headline(status) + status_text(status));
}

/// Thrown once q was typed, also where a head is waited for that does not answer.
struct told_to_end {};

void watch_status(const connect_options& head, int blocks) {
  using namespace std::chrono_literals;
  constexpr auto interval = 1000ms, look = 100ms;
  const key_reader keys;
  const auto check = [&](std::chrono::milliseconds longest) {
    if (keys.quits_within(longest)) throw told_to_end();
    check_interrupt();
  };
  cluster_client cluster(head, [&] { check(0ms); });
  for (int block = 1;; ++block) {
    const auto next = std::chrono::steady_clock::now() + interval;
    show_block(cluster.command("status", {}), block == 1);
    if (block == blocks) return;
    while (std::chrono::steady_clock::now() < next) check(look);
  }
}

int show_top(const top_options& options) {
  const interrupt_guard guard;
  try {
    watch_status(options.cluster, options.blocks);
    return 0;
  } catch (const told_to_end&) {
    return 0;
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
