#include "cli/bench/bench_serve.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "bench/load.hpp"
#include "bench/timing.hpp"
#include "bench/trace.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "transport/http/http_client.hpp"

namespace troupe {
namespace {

using bench::served_request;
using json = nlohmann::ordered_json;

struct order {
  double at = 0;
  std::string model;
  json fields;
  std::vector<token_id> prompt;
  std::int64_t answer = 0;
};

http_headers headers_of(const bench_serve_options& options) {
  http_headers headers{{"content-type", "application/json"}};
  const char* from_environment = std::getenv("OPENAI_API_KEY");
  const std::string key = !options.key.empty() ? options.key : from_environment ? from_environment : "";
  if (!key.empty()) headers.emplace_back("authorization", "Bearer " + key);
  return headers;
}

/// "…/v1" and "…" mean the same.
http_url base_of(const bench_serve_options& options) {
  http_url url = parse_http_url(options.url);
  if (url.path.ends_with("/v1")) url.path.resize(url.path.size() - 3);
  return url;
}

std::string first_model(const bench_serve_options& options) {
  http_client client(base_of(options));
  std::string body, problem;
  client.send("GET", "/v1/models", headers_of(options), {},
              {{}, [&](std::string_view piece) { body += piece; }, [&](const std::string& error) { problem = error; }});
  client.run();
  if (!problem.empty()) refuse("{}: does not answer: {}", options.url, problem);
  const auto parsed = json::parse(body, nullptr, false);
  if (parsed.is_object() && parsed.contains("data") && parsed["data"].is_array() && !parsed["data"].empty())
    return parsed["data"][0].value("id", "");
  refuse("{}: names no models at /v1/models: {}: say --model", options.url, body.substr(0, 200));
}

/// As many words as there are tokens: most vocabularies have one token for each.
std::string text_prompt(const std::vector<token_id>& tokens) {
  constexpr std::array words{"time", "year",  "people", "way",  "day",  "man",   "thing", "woman",
                             "life", "child", "world",  "hand", "part", "place", "case",  "week"};
  std::string text;
  for (const token_id token : tokens) {
    if (!text.empty()) text += ' ';
    text += words[static_cast<std::size_t>(token) % words.size()];
  }
  return text;
}

std::string body_of(const order& what, bool as_text) {
  json body{{"model", what.model},
            {"prompt", as_text ? json(text_prompt(what.prompt)) : json(what.prompt)},
            {"max_tokens", what.answer},
            {"temperature", 0},
            {"ignore_eos", true},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}};
  body.update(what.fields);
  return body.dump();
}

void read_count(const json& from, const char* key, std::int64_t& to) {
  if (const auto found = from.find(key); found != from.end() && found->is_number_integer())
    to = found->get<std::int64_t>();
}

/// One load on its way: who is sent when, and what comes back.
class load_run {
 public:
  load_run(const bench_serve_options& options, std::vector<order> orders, std::size_t clients)
      : client_(base_of(options)),
        headers_(headers_of(options)),
        as_text_(options.text),
        orders_(std::move(orders)),
        clients_(clients),
        results_(orders_.size()) {}

  std::vector<served_request> run() {
    began_ = bench::now();
    if (clients_ > 0)
      while (next_ < std::min(clients_, orders_.size())) send(next_++);
    else
      for (std::size_t i = 0; i < orders_.size(); ++i) client_.after(orders_[i].at, [this, i] { send(i); });
    client_.run();
    return std::move(results_);
  }
  double seconds() const { return bench::now() - began_; }

 private:
  struct reading {
    std::string held, body;
    int status = 0;
    bool done = false;
  };

  void send(std::size_t i) {
    const order& what = orders_[i];
    const auto state = std::make_shared<reading>();
    results_[i].prompt_tokens = static_cast<std::int64_t>(what.prompt.size());
    results_[i].sent = seconds();
    client_.send("POST", "/v1/completions", headers_, body_of(what, as_text_),
                 {[state](int status, const http_headers&) { state->status = status; },
                  [this, i, state](std::string_view piece) { take(results_[i], *state, piece); },
                  [this, i, state](const std::string& error) { end(results_[i], *state, error); }});
  }

  void take(served_request& result, reading& state, std::string_view piece) {
    if (state.status != 200) {
      if (state.body.size() < 1000) state.body += piece;
      return;
    }
    state.held += piece;
    std::size_t from = 0;
    for (std::size_t end; (end = state.held.find('\n', from)) != state.held.npos; from = end + 1)
      take_line(result, state, std::string_view(state.held).substr(from, end - from));
    state.held.erase(0, from);
  }
  /// Some servers end lines with CR LF. A chunk is one line of data at all of them.
  void take_line(served_request& result, reading& state, std::string_view line) {
    constexpr std::string_view data = "data:";
    if (!line.starts_with(data)) return;
    line.remove_prefix(data.size());
    const json chunk = json::parse(line, nullptr, false);
    if (chunk.is_object()) return take_chunk(result, chunk);
    if (line.find("[DONE]") != line.npos)
      state.done = true;
    else
      result.error = fmt::format("a chunk is no JSON object: {}", line.substr(0, 300));
  }
  void take_chunk(served_request& result, const json& chunk) {
    if (const auto error = chunk.find("error"); error != chunk.end() && !error->is_null())
      result.error = error->dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 300);
    if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) {
      read_count(*usage, "prompt_tokens", result.prompt_tokens);
      read_count(*usage, "completion_tokens", result.answer_tokens);
    }
    const auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array() || choices->empty()) return;
    const double now = seconds();
    if (result.first == 0)
      result.first = now;
    else
      result.gaps.push_back(now - result.last);
    result.last = now;
  }
  void end(served_request& result, const reading& state, const std::string& error) {
    if (!error.empty()) result.error = error;
    if (state.status != 200 && result.error.empty()) result.error = fmt::format("{}: {}", state.status, state.body);
    if (result.error.empty() && (!state.done || result.first == 0)) result.error = "the stream ended early";
    if (result.answer_tokens == 0) result.answer_tokens = static_cast<std::int64_t>(result.gaps.size()) + 1;
    if (is_interrupted()) return client_.stop();
    if (clients_ > 0 && next_ < orders_.size()) send(next_++);
  }

  http_client client_;
  http_headers headers_;
  bool as_text_;
  std::vector<order> orders_;
  std::size_t clients_, next_ = 0;
  std::vector<served_request> results_;
  double began_ = 0;
};

std::vector<order> random_orders(const bench_serve_options& options, double rate) {
  std::mt19937 random(options.seed);
  std::uniform_int_distribution<int> prompt(options.prompt_min, options.prompt_max);
  std::uniform_int_distribution<int> answer(options.answer_min, options.answer_max);
  std::exponential_distribution<double> pause(rate > 0 ? rate : 1);
  std::vector<order> orders;
  double at = 0;
  for (int i = 0; i < options.requests; ++i) {
    const auto seed = (std::uint64_t{options.seed} << 32) + static_cast<std::uint64_t>(i);
    orders.push_back(
        {at, {}, json::object(), bench::random_tokens(prompt(random), options.vocabulary, seed), answer(random)});
    if (rate > 0) at += pause(random);
  }
  return orders;
}

std::vector<order> traced_orders(const bench_serve_options& options, double rate) {
  bench::load_shape shape;
  shape.context = options.context;
  shape.vocab = options.vocabulary;
  shape.rate = rate;
  std::vector<order> orders;
  for (auto& each : bench::load_of(bench::read_trace(options.trace, static_cast<std::size_t>(options.requests)), shape))
    orders.push_back({each.at, {}, json::object(), std::move(each.prompt), each.answer});
  return orders;
}

std::vector<json> fields_of(const bench_serve_options& options) {
  if (options.fields.empty()) return {json::object()};
  std::vector<json> all;
  for (const std::string& text : options.fields) {
    all.push_back(json::parse(text, nullptr, false));
    if (!all.back().is_object()) refuse("--fields: '{}' is no JSON object: write one like {{\"top_k\": 5}}", text);
  }
  return all;
}

bench::serve_figures measure(const bench_serve_options& options, const std::vector<std::string>& models,
                             const std::string& name, double rate, int clients) {
  auto orders = options.trace.empty() ? random_orders(options, rate) : traced_orders(options, rate);
  const auto fields = fields_of(options);
  std::mt19937 random(options.seed);
  for (order& each : orders) {
    const auto drawn = random();
    each.model = models[drawn % models.size()];
    each.fields = fields[drawn % fields.size()];
  }
  load_run run(options, std::move(orders), static_cast<std::size_t>(clients));
  const auto results = run.run();
  const double seconds = run.seconds();
  check_interrupt();
  return bench::figures_of(name, results, seconds, options.goal);
}

/// Before the load, not after it.
void check_folder_of(const char* option, const std::string& file) {
  std::error_code ignored;
  const auto folder = std::filesystem::absolute(file, ignored).parent_path();
  if (!file.empty() && !std::filesystem::is_directory(folder, ignored))
    refuse("{}: {}: there is no such folder: make it first", option, folder.string());
}

}  // namespace

int bench_serve(const bench_serve_options& options) {
  if (options.prompt_max < options.prompt_min || options.answer_max < options.answer_min)
    refuse("--prompt-max and --answer-max should not be below --prompt-min and --answer-min");
  check_folder_of("--out", options.out);
  check_folder_of("--plot", options.plot);
  const interrupt_guard guard;
  const auto models = options.models.empty() ? std::vector{first_model(options)} : options.models;
  std::vector<bench::serve_figures> all;
  const auto add = [&](const std::string& name, double rate, int clients) {
    all.push_back(measure(options, models, name, rate, clients));
    print(options.json ? bench::to_json(all.back()) + "\n" : bench::to_text(all.back()));
  };
  for (const int clients : options.concurrency) add(fmt::format("concurrency {}", clients), 0, clients);
  for (const double rate : options.rates) add(fmt::format("rate {:g}", rate), rate, 0);
  if (all.empty() && options.trace.empty())
    add("concurrency 16", 0, 16);
  else if (all.empty())
    add("rate 1", 1, 0);
  std::string list;
  for (const auto& each : all) list += (list.empty() ? "" : ",\n") + bench::to_json(each);
  if (!options.out.empty()) write_file(options.out, "[" + list + "]\n");
  if (!options.plot.empty()) write_file(options.plot, bench::latency_plot(all));
  const bool failed = std::any_of(all.begin(), all.end(), [](const auto& each) { return each.failed > 0; });
  return failed ? 1 : 0;
}

void add_bench_serve(CLI::App& command, bench_serve_options& options) {
  const auto tokens = CLI::Range(1, 1 << 20);
  command
      .add_option("--url", options.url,
                  "a server that has OpenAI's /v1/completions, without TLS [http://127.0.0.1:8000]")
      ->type_name("URL");
  command.add_option("--key", options.key, "its API key [OPENAI_API_KEY]")->type_name("KEY");
  command.add_option("--model", options.models, "one of these for each request [the server's first]")
      ->delimiter(',')
      ->type_name("NAME,…");
  command.add_option("--fields", options.fields, "a JSON object of further fields; several: one for each request")
      ->type_name("JSON");
  command.add_option("--concurrency", options.concurrency, "so many requests at a time; several: a load each [16]")
      ->delimiter(',')
      ->check(CLI::Range(1, 10000))
      ->type_name("N,…");
  command.add_option("--rate", options.rates, "requests a second, as they happen to come; of a trace, times its pace")
      ->delimiter(',')
      ->check(CLI::Range(1e-3, 1e5))
      ->type_name("R,…");
  command.add_option("--trace", options.trace, "a recorded load: Azure's CSV or Mooncake's JSON lines")
      ->type_name("FILE");
  command.add_option("--requests", options.requests, "of each load [128]")->check(CLI::Range(1, 1 << 20));
  command.add_option("--prompt-min", options.prompt_min, "tokens of the shortest prompt [64]")->check(tokens);
  command.add_option("--prompt-max", options.prompt_max, "of the longest [256]")->check(tokens);
  command.add_option("--answer-min", options.answer_min, "tokens of the shortest answer [16]")->check(tokens);
  command.add_option("--answer-max", options.answer_max, "of the longest [128]")->check(tokens);
  command.add_option("--context", options.context, "tokens that a trace's lengths are scaled to [512]")
      ->check(CLI::Range(32, 1 << 20));
  command.add_option("--vocabulary", options.vocabulary, "prompts are random tokens below this [256]")
      ->check(CLI::Range(2, 1 << 20));
  command.add_flag("--text", options.text, "prompts are words, about a token each: for servers that take no tokens");
  command.add_option("--seed", options.seed, "of prompts and lengths [1]");
  command.add_option("--goal-ttft", options.goal.ttft_ms, "milliseconds to the first token that are good [1000]");
  command.add_option("--goal-tpot", options.goal.tpot_ms, "milliseconds a token that are good [100]");
  command.add_option("--out", options.out, "write all figures there as JSON")->type_name("FILE");
  command.add_option("--plot", options.plot, "write latency over throughput there as SVG")->type_name("FILE");
}

}  // namespace troupe
