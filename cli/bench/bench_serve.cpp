#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "bench/load.hpp"
#include "bench/serve_figures.hpp"
#include "bench/trace.hpp"
#include "cli/bench/benches.hpp"
#include "cli/bench/serve_load.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "transport/http/http_client.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr int most_requests = 1 << 20;  // of a load

struct bench_serve_options {
  std::string url = "http://127.0.0.1:8000";
  std::string key;
  std::vector<std::string> models;  ///< each request takes one of them at random; empty: the server's first
  std::vector<std::string> fields;  ///< each request has one of these JSON objects' fields besides
  std::vector<int> concurrency;     ///< a load for each
  std::vector<double> rates;        ///< likewise, requests a second; or, with a trace, times its pace
  std::string trace;
  int requests = 128;
  int prompt_min = 64, prompt_max = 256, answer_min = 16, answer_max = 128;
  std::int64_t context = 512;  ///< that a trace's lengths are scaled to
  int vocabulary = 256;        ///< prompts are made of its tokens
  bool text = false;           ///< prompts are words, not tokens
  std::uint32_t seed = 1;
  bench::service_goal goal;
  std::string out, plot;
  bool json = false;
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
  int status = 0;
  client.send("GET", "/v1/models", headers_of(options), {},
              {[&](int answered, const http_headers&) { status = answered; },
               [&](std::string_view piece) { body += piece; }, [&](const std::string& error) { problem = error; }});
  client.run();
  if (!problem.empty())
    refuse("{}: does not answer ({}): start a server there, or name another with --url", options.url, problem);
  if (status == 401 || status == 403)
    refuse("{}: wants an API key that it knows: give it by --key or in OPENAI_API_KEY: {}", options.url,
           body.substr(0, 200));
  const auto parsed = json::parse(body, nullptr, false);
  const json::json_pointer place("/data/0/id");
  const json id = parsed.contains(place) ? parsed.at(place) : json();
  if (id.is_string() && id != "") return id.get<std::string>();
  refuse("{}: names no models at /v1/models: {}: say --model", options.url, body.substr(0, 200));
}

/// As many words as there are tokens: most vocabularies have one token for each.
std::string text_prompt(const std::vector<token_id>& tokens) {
  constexpr std::array words{"time", "year",  "people", "way",  "day",  "man",   "thing", "woman",
                             "life", "child", "world",  "hand", "part", "place", "case",  "week"};
  std::string text;
  for (const token_id token : tokens) {
    if (!text.empty()) text += ' ';
    text += words[to_size(token) % words.size()];
  }
  return text;
}

/// Of the tokens of a load, counted from 0, whose n-th request adds n to it. No prompt begins as one of an earlier
/// load: the server may still have that one in its prefix cache.
std::uint64_t token_seed(const bench_serve_options& options, std::size_t load) {
  return (std::uint64_t{options.seed} << 32) + load * most_requests;
}

/// Prompts and answers of random lengths, at random times where there is a rate. All loads have the same lengths.
std::vector<bench::timed_request> random_requests(const bench_serve_options& options, double rate, std::size_t load) {
  std::mt19937 random(options.seed), pauses(options.seed);
  std::uniform_int_distribution<int> prompt(options.prompt_min, options.prompt_max);
  std::uniform_int_distribution<int> answer(options.answer_min, options.answer_max);
  std::exponential_distribution<double> pause(rate > 0 ? rate : 1);
  std::vector<bench::timed_request> requests;
  double at = 0;
  for (int i = 0; i < options.requests; ++i) {
    const auto seed = token_seed(options, load) + static_cast<std::uint64_t>(i);
    requests.push_back({at, bench::random_tokens(prompt(random), options.vocabulary, seed), answer(random)});
    if (rate > 0) at += pause(pauses);
  }
  return requests;
}

std::vector<bench::timed_request> traced_requests(const bench_serve_options& options, double rate, std::size_t load) {
  const auto trace = bench::read_trace(options.trace, to_size(options.requests));
  return bench::load_of(
      trace,
      {.context = options.context, .vocab = options.vocabulary, .rate = rate, .seed = token_seed(options, load)});
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

std::string body_of(const bench::timed_request& request, const std::string& model, const json& fields, bool as_text) {
  json body{{"model", model},
            {"prompt", as_text ? json(text_prompt(request.prompt)) : json(request.prompt)},
            {"max_tokens", request.answer},
            {"temperature", 0},
            {"ignore_eos", true},
            {"stream", true},
            {"stream_options", {{"include_usage", true}}}};
  body.update(fields);
  return body.dump();
}

std::vector<load_request> requests_of(const bench_serve_options& options, const std::vector<std::string>& models,
                                      double rate, std::size_t load) {
  const auto fields = fields_of(options);
  std::mt19937 random(options.seed);
  std::vector<load_request> requests;
  for (const auto& each :
       options.trace.empty() ? random_requests(options, rate, load) : traced_requests(options, rate, load)) {
    const auto& model = models[random() % models.size()];
    const auto& own = fields[random() % fields.size()];
    requests.push_back({.at = each.at,
                        .prompt_tokens = static_cast<std::int64_t>(each.prompt.size()),
                        .body = body_of(each, model, own, options.text)});
  }
  return requests;
}

bench::serve_figures measure(const bench_serve_options& options, const std::vector<std::string>& models,
                             const std::string& name, double rate, int clients, std::size_t number) {
  serve_load load(base_of(options), headers_of(options), requests_of(options, models, rate, number), to_size(clients));
  const auto results = load.run();
  const double seconds = load.seconds();
  return bench::figures_of(name, results, seconds, options.goal);
}

/// A device or a pipe; a file is replaced instead.
bool is_written_into(const std::string& file) {
  std::error_code ignored;
  return std::filesystem::is_other(file, ignored);
}

/// Before the load, not after it.
void check_file(const char* option, const std::string& file) {
  if (file.empty()) return;
  const auto folder = std::filesystem::absolute(file).parent_path();
  if (!is_folder(folder)) refuse("{}: {}: there is no such folder: make it first", option, folder.string());
  if (is_folder(file)) refuse_to_write(file, EISDIR);
  if (::access(is_written_into(file) ? file.c_str() : folder.c_str(), W_OK) != 0) refuse_to_write(file, errno);
}

/// A file is written after each load, so that a later one that is stuck takes no figures with it; what is written into
/// gets them once.
void write_figures(const bench_serve_options& options, const std::vector<bench::serve_figures>& all, bool is_end) {
  std::string list;
  for (const auto& each : all) list += (list.empty() ? "" : ",\n") + bench::to_json(each);
  const auto write = [&](const std::string& file, const std::string& text) {
    if (!file.empty() && is_written_into(file) == is_end) write_chosen_file(file, text);
  };
  write(options.out, "[" + list + "]\n");
  write(options.plot, bench::latency_plot(all));
}

int bench_serve(const bench_serve_options& options) {
  if (options.prompt_max < options.prompt_min || options.answer_max < options.answer_min)
    refuse("--prompt-max and --answer-max should not be below --prompt-min and --answer-min");
  check_file("--out", options.out);
  check_file("--plot", options.plot);
  const auto models = options.models.empty() ? std::vector{first_model(options)} : options.models;
  const interrupt_guard guard;
  std::vector<bench::serve_figures> all;
  const auto add = [&](const std::string& name, double rate, int clients) {
    if (is_interrupted()) return;
    all.push_back(measure(options, models, name, rate, clients, all.size()));
    print(options.json ? bench::to_json(all.back()) + "\n" : bench::to_text(all.back()));
    write_figures(options, all, false);
  };
  for (const int clients : options.concurrency) add(fmt::format("concurrency {}", clients), 0, clients);
  for (const double rate : options.rates) add(fmt::format("rate {:g}", rate), rate, 0);
  if (all.empty() && options.trace.empty())
    add("concurrency 16", 0, 16);
  else if (all.empty())
    add("rate 1", 1, 0);
  write_figures(options, all, true);
  check_interrupt();
  const bool failed = std::any_of(all.begin(), all.end(), [](const auto& each) { return each.failed > 0; });
  return failed ? 1 : 0;
}

}  // namespace

void add_bench_serve(CLI::App& group, command& chosen) {
  const auto [own, options] =
      add_command(group, chosen, "serve", "Put load on a server of OpenAI's API: throughput and latency", bench_serve);
  own.add_flag("--json", options.json, lines_as_json);
  const auto tokens = CLI::Range(1, 1 << 20);
  own.add_option("--url", options.url,
                 "a server that has OpenAI's /v1/completions, without TLS [http://127.0.0.1:8000]")
      ->type_name("URL");
  own.add_option("--key", options.key, "its API key [OPENAI_API_KEY]")->type_name("KEY");
  own.add_option("--model", options.models, "one of these for each request [the server's first]")
      ->delimiter(',')
      ->type_name("NAME,...");
  own.add_option("--fields", options.fields, "a JSON object of further fields; repeated: one for each request")
      ->type_name("JSON");
  own.add_option("--concurrency", options.concurrency, "so many requests at a time; several: a load each [16]")
      ->delimiter(',')
      ->check(CLI::Range(1, 10000))
      ->type_name("N,...");
  own.add_option("--rate", options.rates, "requests a second, as they happen to come; of a trace, times its pace")
      ->delimiter(',')
      ->check(CLI::Range(1e-3, 1e5))
      ->type_name("R,...");
  CLI::Option* const trace =
      own.add_option("--trace", options.trace, "a recorded load: Azure's CSV or Mooncake's JSON lines")
          ->type_name("FILE");
  own.add_option("--requests", options.requests, "requests of each load [128]")->check(CLI::Range(1, most_requests));
  const auto add_length = [&](const char* flag, auto& to, const char* what) {
    own.add_option(flag, to, what)->check(tokens)->excludes(trace);
  };
  add_length("--prompt-min", options.prompt_min, "tokens of the shortest prompt [64]");
  add_length("--prompt-max", options.prompt_max, "tokens of the longest prompt [256]");
  add_length("--answer-min", options.answer_min, "tokens of the shortest answer [16]");
  add_length("--answer-max", options.answer_max, "tokens of the longest answer [128]");
  own.add_option("--context", options.context, "tokens that a trace's lengths are scaled to [512]")
      ->check(CLI::Range(32, 1 << 20))
      ->needs(trace);
  own.add_option("--vocabulary", options.vocabulary, "prompts are random tokens below this [256]")
      ->check(CLI::Range(2, 1 << 20));
  own.add_flag("--text", options.text, "prompts are words, about a token each: for servers that take no tokens");
  own.add_option("--seed", options.seed, "of prompts and lengths [1]");
  own.add_option("--goal-ttft", options.goal.ttft_ms, "milliseconds to the first token that are good [1000]");
  own.add_option("--goal-tpot", options.goal.tpot_ms, "milliseconds a token that are good [100]");
  own.add_option("--out", options.out, "write all figures there as JSON")->type_name("FILE");
  own.add_option("--plot", options.plot, "write latency over throughput there as SVG")->type_name("FILE");
}

}  // namespace troupe
