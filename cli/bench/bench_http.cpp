#include <filesystem>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "actors/http/http_front.hpp"
#include "base/error.hpp"
#include "base/resident_bytes.hpp"
#include "base/to_size.hpp"
#include "bench/report.hpp"
#include "bench/temporary_model.hpp"
#include "cli/bench/benches.hpp"
#include "cli/bench/client_process.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "model/formats/hf/hf_config.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

/// What the HTTP interface itself costs: many streams of it, fed by something that only keeps time.
struct bench_http_options {
  int streams = 500;
  double tokens_per_second = 1000;  ///< of all streams together
  double seconds = 10;
  bool json = false;
};

/// Begun requests, for whoever hands out tokens.
struct stream_list {
  std::mutex mutex;
  std::vector<std::shared_ptr<answer_listener>> listeners;
  bool is_over = false;

  std::size_t size() {
    const std::lock_guard lock(mutex);
    return listeners.size();
  }
  void add(std::shared_ptr<answer_listener> listener) {
    const std::lock_guard lock(mutex);
    if (!is_over) listeners.push_back(std::move(listener));
  }
  void end() {
    const std::lock_guard lock(mutex);
    is_over = true;
    listeners.clear();
  }
};

/// However the measurement ends: listeners keep the actor that they speak to, and the system of actors waits for it.
struct streams_end {
  stream_list& streams;
  ~streams_end() { streams.end(); }
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
            [this](begin_request& r) { to_->add(r.listener); },
            [](const end_request&) {},
            [](const adapter_found&) {},
            [](wake) {},
            [](stop_now) {}};
  }

 private:
  std::shared_ptr<stream_list> to_;
};

http_parts parts_of(const bench::temporary_model& model, gateway_actor gateway) {
  const fs::path state = model.beside("state");
  http_parts parts;
  parts.served.model = "tiny";
  parts.served.prompts = std::make_shared<const prompting>(model.path(), read_hf_config(model.path()), 0);
  parts.served.adapters = std::make_shared<adapter_directory>();
  parts.gateway = std::move(gateway);
  parts.numbers = std::make_shared<request_numbers>();
  parts.board = std::make_shared<status_board>();
  parts.state_dir = state;
  parts.records = std::make_shared<job_records>(state / "files");
  return parts;
}

/// Of tokens that all streams get at once, when they open and when they close: these are no part of the load, so the
/// clients are told no time and measure nothing.
constexpr const char* untimed_text = "a ";

void give_token(answer_listener& to, std::string text, bool is_last) {
  answer_part part;
  part.tokens = {1};
  part.text = std::move(text);
  if (is_last) part.end = answer_end{"length", 1, {}};
  to.on_part(std::move(part));
}

/// Of all streams together.
std::int64_t tokens_of(const bench_http_options& options) {
  return static_cast<std::int64_t>(options.seconds * options.tokens_per_second);
}

/// Stream after stream in turn, evenly over time.
void feed(stream_list& streams, const bench_http_options& options) {
  const auto between = std::chrono::duration<double>(1 / options.tokens_per_second);
  const std::int64_t tokens = tokens_of(options);
  const auto began = steady_clock::now();
  for (std::int64_t i = 0; i < tokens; ++i) {
    check_interrupt();
    std::this_thread::sleep_until(began + std::chrono::duration_cast<steady_clock::duration>(between * i));
    give_token(*streams.listeners[to_size(i) % streams.listeners.size()], std::to_string(now_ns()) + " ", false);
  }
}

double resident_kb() {
  return static_cast<double>(resident_bytes()) / 1024;
}

bool wait_for_streams(stream_list& streams, std::size_t wanted) {
  for (int tries = 0; tries < 3000 && streams.size() < wanted; ++tries) {
    check_interrupt();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return streams.size() >= wanted;
}

void report_figures(const bench_http_options& options, double kb_per_stream, const client_figures& seen) {
  bench::report(options.json, print)
      .add({fmt::format("{} streams, {:g} tokens/s", options.streams, options.tokens_per_second),
            {{"KB a stream", kb_per_stream},
             {"delay p50 ms", seen.delay_p50},
             {"delay p99 ms", seen.delay_p99},
             {"gap grown p99 ms", seen.grown_p99},
             {"tokens", seen.tokens},
             {"dropped", seen.broken}}});
}

int bench_http(const bench_http_options& options) {
  if (tokens_of(options) < 2 * options.streams)
    refuse(
        "{} streams get {} tokens, and a gap is between two of one stream: give more --seconds or --tokens-per-second",
        options.streams, tokens_of(options));
  const client_process clients(options.streams);  // before there are threads
  const interrupt_guard guard;
  // The interface needs a tokenizer and a configuration alone.
  const bench::temporary_model model("troupe-bench-http", "tiny");
  const auto streams = std::make_shared<stream_list>();
  caf::actor_system_config config = system_config(2);
  caf::actor_system system(config);
  {
    http_front front({.threads = 2}, parts_of(model, spawn_state<idle_gateway>(system, streams)));
    const streams_end end{*streams};
    const double before = resident_kb();
    clients.begin(front.port());
    if (!wait_for_streams(*streams, to_size(options.streams)))
      throw std::runtime_error("not all streams came: raise `ulimit -Hn`");
    for (const auto& each : streams->listeners) give_token(*each, untimed_text, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // until all of it has gone
    const double kb = (resident_kb() - before) / options.streams;
    feed(*streams, options);
    for (const auto& each : streams->listeners) give_token(*each, untimed_text, true);
    report_figures(options, kb, clients.figures());
  }
  return 0;
}

}  // namespace

void add_bench_http(CLI::App& group, command& chosen) {
  const auto [own, options] = add_command(
      group, chosen, "http", "Measure what the HTTP interface costs with many streams, without a model", bench_http);
  own.add_flag("--json", options.json, lines_as_json);
  own.add_option("--streams", options.streams, "open at a time [500]")->check(CLI::Range(1, 4000));
  own.add_option("--tokens-per-second", options.tokens_per_second, "of all streams together [1000]")
      ->check(CLI::Range(1.0, 1e6));
  own.add_option("--seconds", options.seconds, "for so long [10]")->check(CLI::Range(0.1, 3600.0));
}

}  // namespace troupe
