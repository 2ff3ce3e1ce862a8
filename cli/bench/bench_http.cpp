// The client is a process of its own, so that memory can be measured for the server alone. Each token's text is the
// time at which it was handed to the interface; both processes use the machine's clock, so the client sees how long the
// token took.
#include "cli/bench/bench_http.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "actors/http/http_front.hpp"
#include "base/error.hpp"
#include "bench/percentiles.hpp"
#include "bench/random_model.hpp"
#include "bench/report.hpp"
#include "bench/temporary_folder.hpp"
#include "transport/http/http_client.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

std::int64_t now_ns() {
  return steady_clock::now().time_since_epoch().count();
}

/// Begun requests, for whoever hands out tokens.
struct stream_list {
  std::mutex mutex;
  std::vector<std::shared_ptr<answer_listener>> listeners;

  std::size_t size() {
    const std::lock_guard lock(mutex);
    return listeners.size();
  }
};

/// Takes the gateway's place and only remembers the listeners.
class idle_gateway {
 public:
  using handle = gateway_actor;
  static constexpr const char* name = "idle_gateway";

  idle_gateway(handle::pointer, std::shared_ptr<stream_list> to) : to_(std::move(to)) {}
  handle::behavior_type make_behavior() {
    return {[](token_batch&) {},
            [](const request_refused&) {},
            [this](begin_request& r) {
              const std::lock_guard lock(to_->mutex);
              to_->listeners.push_back(r.listener);
            },
            [](const end_request&) {},
            [](const adapter_found&) {},
            [](wake) {},
            [](stop_now) {}};
  }

 private:
  std::shared_ptr<stream_list> to_;
};

// --- the client's process ---

/// What a client saw: how late tokens were, and by how much gaps grew.
struct seen_stream {
  std::string held;
  double last = -1;  ///< delay of the token before
};

class stream_clients {
 public:
  stream_clients(std::uint16_t port, int streams)
      : client_(parse_http_url(fmt::format("http://127.0.0.1:{}", port))), seen_(static_cast<std::size_t>(streams)) {}

  void run() {
    for (seen_stream& stream : seen_)
      client_.send("POST", "/v1/completions", {{"content-type", "application/json"}},
                   R"({"prompt":"a","stream":true,"max_tokens":4000})",
                   {[](int, const http_headers&) {}, [&](std::string_view piece) { take(stream, piece); },
                    [&](const std::string& error) { failed_ += !error.empty(); }});
    client_.run();
  }
  /// p50 and p99 of delays, p99 of grown gaps (all in ms), tokens, streams that broke.
  std::string figures() const {
    return fmt::format("{} {} {} {} {}\n", bench::percentile(delays_, 0.5), bench::percentile(delays_, 0.99),
                       bench::percentile(grown_, 0.99), delays_.size(), failed_);
  }

 private:
  void take(seen_stream& stream, std::string_view piece) {
    stream.held += piece;
    for (std::size_t end; (end = stream.held.find("\n\n")) != std::string::npos; stream.held.erase(0, end + 2)) {
      constexpr std::string_view before = "\"text\":\"";
      const std::size_t at = stream.held.find(before);
      std::int64_t sent = 0;
      if (at >= end) continue;
      std::from_chars(stream.held.data() + at + before.size(), stream.held.data() + end, sent);
      if (sent > 0) note(stream, static_cast<double>(now_ns() - sent) * 1e-6);
    }
  }
  void note(seen_stream& stream, double delay) {
    delays_.push_back(delay);
    if (stream.last >= 0) grown_.push_back(delay - stream.last);
    stream.last = delay;
  }

  http_client client_;
  std::vector<seen_stream> seen_;
  std::vector<double> delays_, grown_;
  int failed_ = 0;
};

/// The client's process: reads the server's port from one pipe and writes what it saw to another.
struct client_process {
  int port_to = -1, figures_from = -1;
  pid_t pid = -1;

  explicit client_process(int streams) {
    int port[2], figures[2];
    if (::pipe(port) != 0 || ::pipe(figures) != 0) throw std::runtime_error("no pipes are left");
    pid = ::fork();
    if (pid < 0) throw std::runtime_error("no process can be started");
    if (pid == 0) ::_exit(run(streams, port[0], figures[1]));
    ::close(port[0]);
    ::close(figures[1]);
    port_to = port[1];
    figures_from = figures[0];
  }
  static int run(int streams, int port_from, int figures_to) {
    std::uint16_t port = 0;
    if (::read(port_from, &port, sizeof port) != sizeof port) return 1;
    stream_clients clients(port, streams);
    clients.run();
    const std::string text = clients.figures();
    return ::write(figures_to, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  }
  std::string figures() const {
    std::string text;
    char piece[256];
    for (ssize_t got; (got = ::read(figures_from, piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<std::size_t>(got));
    ::waitpid(pid, nullptr, 0);
    return text;
  }
};

// --- the server ---

/// A folder with only a tokenizer: the interface needs no more of a model.
class temporary_model {
 public:
  temporary_model() { write_random_model("tiny", model()); }

  fs::path model() const { return folder_.path() / "model"; }
  fs::path state() const { return folder_.path() / "state"; }

 private:
  bench::temporary_folder folder_{"troupe-bench-http"};
};

http_parts parts_of(const temporary_model& files, gateway_actor gateway) {
  http_parts parts;
  parts.served.model = "tiny";
  parts.served.prompts = std::make_shared<const prompting>(files.model(), read_hf_config(files.model()), 0);
  parts.served.adapters = std::make_shared<adapter_directory>();
  parts.gateway = std::move(gateway);
  parts.numbers = std::make_shared<request_numbers>();
  parts.board = std::make_shared<status_board>();
  parts.state_dir = files.state();
  return parts;
}

void give_token(answer_listener& to, bool is_last) {
  answer_part part;
  part.tokens = {1};
  part.text = std::to_string(now_ns()) + " ";
  if (is_last) part.end = answer_end{"length", 1, {}};
  to.on_part(std::move(part));
}

/// Stream after stream in turn, evenly over time.
void feed(stream_list& streams, const bench_http_options& options) {
  const auto between = std::chrono::duration<double>(1 / options.tokens_per_second);
  const auto tokens = static_cast<std::int64_t>(options.seconds * options.tokens_per_second);
  const auto began = steady_clock::now();
  for (std::int64_t i = 0; i < tokens; ++i) {
    std::this_thread::sleep_until(began + std::chrono::duration_cast<steady_clock::duration>(between * i));
    give_token(*streams.listeners[static_cast<std::size_t>(i) % streams.listeners.size()], false);
  }
}

double resident_kb() {
  std::ifstream file("/proc/self/statm");
  double total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1024;
}

bool wait_for_streams(stream_list& streams, std::size_t wanted) {
  for (int tries = 0; tries < 3000 && streams.size() < wanted; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return streams.size() >= wanted;
}

void report_figures(const bench_http_options& options, double kb_per_stream, const std::string& seen) {
  double p50 = 0, p99 = 0, grown = 0, tokens = 0, failed = 0;
  std::istringstream(seen) >> p50 >> p99 >> grown >> tokens >> failed;
  bench::report(options.json)
      .add({fmt::format("{} streams, {:g} tokens/s", options.streams, options.tokens_per_second),
            {{"KB a stream", kb_per_stream},
             {"delay p50 ms", p50},
             {"delay p99 ms", p99},
             {"gap grown p99 ms", grown},
             {"tokens", tokens},
             {"dropped", failed}}});
}

}  // namespace

void add_bench_http(CLI::App& command, bench_http_options& options) {
  command.add_option("--streams", options.streams, "open at a time [500]")->check(CLI::Range(1, 4000));
  command.add_option("--tokens-per-second", options.tokens_per_second, "of all streams together [1000]")
      ->check(CLI::Range(1.0, 1e6));
  command.add_option("--seconds", options.seconds, "for so long [10]")->check(CLI::Range(0.1, 3600.0));
}

int bench_http(const bench_http_options& options) {
  const client_process clients(options.streams);  // before there are threads
  const temporary_model files;
  const auto streams = std::make_shared<stream_list>();
  caf::actor_system_config config;
  share_threads(config, 2);
  caf::actor_system system(config);
  {
    http_front front({.threads = 2}, parts_of(files, spawn_state<idle_gateway>(system, streams)));
    const double before = resident_kb();
    const std::uint16_t port = front.port();
    if (::write(clients.port_to, &port, sizeof port) != sizeof port) throw std::runtime_error("the client is gone");
    if (!wait_for_streams(*streams, static_cast<std::size_t>(options.streams)))
      throw std::runtime_error("not all streams came: raise `ulimit -n`");
    for (const auto& each : streams->listeners) give_token(*each, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until all of it has gone
    const double kb = (resident_kb() - before) / options.streams;
    feed(*streams, options);
    for (const auto& each : streams->listeners) give_token(*each, true);
    report_figures(options, kb, clients.figures());
    streams->listeners.clear();
  }
  return 0;
}

}  // namespace troupe
