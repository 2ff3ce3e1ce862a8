#include "cli/cluster/up.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <ios>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "actors/http/access/api_keys.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/shell_word.hpp"
#include "cli/cluster/up_watch.hpp"
#include "cli/commands.hpp"
#include "cli/compose/node_log.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cluster/config/config_address.hpp"
#include "cluster/launch/detachment.hpp"
#include "cluster/launch/launch.hpp"
#include "cluster/launch/up_lock.hpp"
#include "model/text/chat_format.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

struct up_options {
  std::string cluster;
  bool detach = false, check = false;
};

/// As the head finds out: without a chat template that can be used, a model serves all the same.
bool can_chat(const cluster_config& config) {
  try {
    (void)chat_format(config.model.path, nullptr);
    return true;
  } catch (const input_error&) {
    return false;
  }
}

/// What is tried first, of what the model can do.
std::string_view first_command(const cluster_config& config) {
  if (can_chat(config)) return "chat";
  return tokenizer_kind(config.model.path).empty() ? "submit --tokens 1,2,3" : "submit --prompt \"Once upon a time\"";
}

/// The one that keygen made, if it is here and lets somebody in.
std::string client_key(const std::filesystem::path& keys) {
  const bool opens = is_seen(keys / "client.key") && is_seen(keys / "clients" / "client.pub");
  return opens ? typed_word((keys / "client.key").string()) : "FILE";
}

/// Of a machine's addresses it names the one that this machine reaches for sure. Keys lie where the head is, which is
/// mostly here.
std::string http_text(const cluster_config& config) {
  std::string text = "page and API: http://" + reachable_address(config.http, config.head().host);
  if (const auto place = split_host_port(config.http); place && is_any_host(place->host))
    text += fmt::format(", and at port {} of this machine's other addresses", place->port);
  if (config.need_keys || path_exists(api_keys_file(config.state_dir)))
    text += fmt::format("; requests need a key: troupe keys add {} NAME makes one", typed_word(config.label));
  return text + "\n";
}

std::string where_text(const cluster_config& config) {
  std::string text = fmt::format("{} serves at {}\n", config.name, config.head_endpoint());
  if (!config.http.empty()) text += http_text(config);
  const std::string head = config.head_endpoint();
  std::string connect = head == default_endpoint ? "" : " --connect " + typed_word(head);
  if (config.keys) connect += " --key " + client_key(*config.keys);
  text += fmt::format("try:  troupe {}{}\n", first_command(config), connect);
  text += fmt::format("      troupe status{}\n      troupe down {}\n", connect, typed_word(config.label));
  text += fmt::format("logs: {}\n", config.logs().string());
  return text;
}

/// Says once, if the cluster takes its time to begin, where one can see what it does.
class start_note {
 public:
  explicit start_note(const cluster_config& config) : config_(config) {}

  void tick() {
    constexpr auto patience = std::chrono::seconds(5);
    if (is_said_ || time_.now() - begin_ < patience) return;
    is_said_ = true;
    write_error(fmt::format("troupe: {} is starting: see {}\n", config_.name, config_.logs().string()));
  }

 private:
  const cluster_config& config_;
  monotonic_clock time_;
  instant begin_ = time_.now();
  bool is_said_ = false;
};

/// Lets the process that waits for a daemon say what that says in its log meanwhile: which nodes die, or do not join.
class log_echo {
 public:
  explicit log_echo(std::filesystem::path log) : log_(std::move(log)) {
    std::error_code none_yet;
    const auto size = std::filesystem::file_size(log_, none_yet);
    if (!none_yet) at_ = static_cast<std::streamoff>(size);
  }

  void tick() {
    std::ifstream file(log_, std::ios::binary);
    file.seekg(at_);
    for (std::string line; std::getline(file, line) && !file.eof(); at_ = file.tellg())
      write_error(fmt::format("troupe: {}\n", without_time(line)));
  }

 private:
  const std::filesystem::path log_;
  std::streamoff at_ = 0;
};

/// Holds the cluster up until a signal comes.
void run_nodes(const cluster_config& config, std::function<void(const std::string&)> say_line, const beginning& begin) {
  const up_lock lock(config);
  launcher::options options;
  options.image = "/proc/self/exe";  // still this build where a newer one has taken its file: nodes run the head's
  options.program = std::filesystem::read_symlink(options.image);
  options.say = std::move(say_line);
  launcher nodes(config, std::move(options));
  nodes.start();
  const interrupt_guard guard;
  watch_nodes(config, nodes, begin);
  nodes.stop();
}

/// To be ended is how a cluster's work is done, but not if it has not begun: then the signal is the outcome. What is
/// said here holds nothing up, and nobody has to read it: nodes are started again all the same.
void run_attached(const cluster_config& config) {
  start_note note(config);
  bool has_served = false;
  const auto on_ready = [&](const std::string& lame) {
    has_served = true;
    print_if_heard(where_text(config) + lame + "Ctrl-C ends it\n");
  };
  const auto say_line = [](const std::string& line) { print_if_heard(line + "\n"); };
  run_nodes(config, say_line, {.on_waiting = [&] { note.tick(); }, .on_late = say_line, .on_ready = on_ready});
  if (::isatty(STDOUT_FILENO) == 1) print_if_heard("\n");  // behind the ^C that the terminal shows
  if (!has_served) check_interrupt();
}

/// Longer than `up` waits for its nodes before it kills them, and than these then take to go: on a machine with much to
/// do, a thread of idle priority waits many seconds for a processor, even to die.
constexpr auto end_patience = std::chrono::seconds(60);

/// In the daemon. What goes wrong before the cluster serves is reported to the calling process.
void run_daemon(const cluster_config& config, detachment& caller) {
  bool ready = false;
  const auto fail = [&](int code, const char* why) { ready ? say(why) : caller.report(code, why); };
  try {
    const auto on_ready = [&](const std::string& lame) {
      ready = true;
      caller.report(0, where_text(config) + lame);
    };
    run_nodes(config, say, {.on_waiting = [] {}, .on_late = say, .on_ready = on_ready});
  } catch (const input_error& error) {
    fail(2, error.what());
  } catch (const std::exception& error) {
    fail(1, error.what());
  }
}

/// In its first moments the daemon does not hold the cluster yet: then it is looked for again. If it has failed,
/// whoever holds the cluster is another one.
void end_daemon(const cluster_config& config, detachment& daemon, detachment::outcome known) {
  if (!known.is_known && daemon.is_settled()) known = daemon.wait([] { return true; });
  if (known.is_known && known.code != 0) return;
  while (end_up(config, end_patience) && !daemon.is_settled()) {
  }
}

void run_detached(const cluster_config& config) {
  const interrupt_guard guard;  // before there is a daemon, which would go on alone
  const std::filesystem::path log = config.logs() / "up.log";
  log_echo echo(log);
  detachment detached(log);
  if (detached.is_daemon()) return run_daemon(config, detached);
  start_note note(config);
  const auto outcome = detached.wait([&] { return note.tick(), echo.tick(), is_interrupted(); });
  if (is_interrupted()) end_daemon(config, detached, outcome);
  check_interrupt();
  if (outcome.code == 2) throw input_error(outcome.text);
  if (outcome.code != 0) throw std::runtime_error(outcome.text);
  print(outcome.text);
}

int up(const up_options& options) {
  const cluster_config config = read_cluster_config(options.cluster);
  if (options.check) {
    check_beside_up(config);
    print(config.label + " can be used\n");
    return 0;
  }
  check_before_up(config);
  hold_up(config, options.detach);
  return 0;
}

/// `troupe serve` writes its file into the state folder: whoever deleted that has deleted both.
cluster_config config_to_end(const std::string& file) {
  const std::filesystem::path path = std::filesystem::absolute(file);
  if (file.find('/') == file.npos && !path_exists(path))
    refuse(
        "{}: there is no such file: name a cluster's TOML file (of troupe serve: "
        "~/.local/state/troupe/NAME/cluster.toml)",
        file);
  if (is_seen(path.parent_path()) || path.filename() != "cluster.toml") return read_cluster_config(file);
  cluster_config gone;
  gone.name = gone.label = file;
  gone.state_dir = path.parent_path();
  return find_up(gone) ? gone : read_cluster_config(file);
}

int down(const std::string& cluster) {
  const cluster_config config = config_to_end(cluster);
  if (!find_up(config))
    refuse("{} is not up on this machine (nobody holds {}): type this where troupe up or troupe serve started it",
           config.name, config.state_dir.string());
  if (!end_up(config, end_patience))
    throw std::runtime_error(fmt::format("{} does not end: see {}", config.name, config.logs().string()));
  print(config.name + " is down\n");
  return 0;
}

}  // namespace

void hold_up(const cluster_config& config, bool detach) {
  if (detach)
    run_detached(config);
  else
    run_attached(config);
}

void add_up(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(program, chosen, "up", "Start a cluster's nodes and keep them running", up);
  own.add_option("CLUSTER", options.cluster, "the cluster's TOML file")->required();
  own.add_flag("--detach", options.detach, "return once all replicas serve; troupe down ends it");
  own.add_flag("--check", options.check, "only check the file, also while the cluster is up");
}

void add_down(CLI::App& program, command& chosen) {
  const auto [own, cluster] = add_command(program, chosen, "down", "End what troupe up started on this machine", down);
  own.add_option("CLUSTER", cluster, "the cluster's TOML file")->required();
}

}  // namespace troupe
