#include <algorithm>
#include <limits>
#include <mutex>
#include <set>

#include "base/file_descriptor.hpp"
#include "tests/cli/program.hpp"
#include "tests/transport/http/handling.hpp"
#include "transport/http/http_server.hpp"

namespace troupe::test {
namespace {

/// A server of somebody else, which answers every request with the same stream.
class bench_serve : public program {
 protected:
  bench_serve()
      : service_([this](http_request&& request, std::shared_ptr<http_exchange> exchange) {
          const std::lock_guard lock(mutex_);
          asked_.push_back(json::parse(request.body, nullptr, false));
          if (asked_.size() > answers_)
            held_.push_back(std::move(exchange));
          else
            exchange->reply({.status = status_, .content_type = "text/event-stream", .body = stream_});
        }),
        server_({}, service_) {
    server_.start();
  }
  /// Further requests get no answer.
  void answer_only(std::size_t requests) {
    const std::lock_guard lock(mutex_);
    answers_ = requests;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_.clear();
  }
  void answer_with(const std::string& stream) {
    const std::lock_guard lock(mutex_);
    stream_ = stream;
  }
  ran measure(const std::string& stream, const words& more = {}) {
    answer_with(stream);
    words all{"bench", "serve", "--url", url(), "--model", "theirs", "--requests", "3", "--concurrency", "1", "--json"};
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  }
  /// It answers all requests with this status and body.
  ran measure_refusal(int status, const std::string& body) {
    {
      const std::lock_guard lock(mutex_);
      status_ = status;
    }
    return measure(body);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  /// The bodies of all requests so far.
  std::vector<json> all_asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  json asked() {
    const auto all = all_asked();
    return all.empty() ? json() : all.back();
  }

 private:
  std::mutex mutex_;
  std::string stream_;
  int status_ = 200;
  std::vector<json> asked_;
  std::size_t answers_ = std::numeric_limits<std::size_t>::max();
  std::vector<std::shared_ptr<http_exchange>> held_;
  handling service_;
  http_server server_;
};

TEST_F(bench_serve, asks_for_a_key_where_the_server_wants_one) {
  for (const int status : {401, 403}) {
    handling refusing([status](http_request&&, const std::shared_ptr<http_exchange>& exchange) {
      exchange->reply({.status = status, .body = R"({"error":{"message":"no valid key"}})"});
    });
    http_server closed({}, refusing);
    closed.start();
    const std::string place = "http://127.0.0.1:" + std::to_string(closed.port());
    refused({"bench", "serve", "--url", place},
            place + ": wants an API key that it knows: give it by --key or in OPENAI_API_KEY: {\"error\"");
  }
}

TEST_F(bench_serve, reads_lines_that_end_with_a_carriage_return) {
  const ran got = measure(
      "data: {\"choices\": [{\"text\": \"a\"}]}\r\n\r\n"
      ": still here\r\n\r\n"
      "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 70, \"completion_tokens\": 4}}\r\n\r\n"
      "data: [DONE]\r\n\r\n");
  EXPECT_EQ(got.code, 0) << got.out << got.error;
  EXPECT_EQ(got.parsed()["completed"], 3);
  EXPECT_EQ(got.parsed()["total_input_tokens"], 3 * 70);
  EXPECT_EQ(got.parsed()["total_output_tokens"], 3 * 4);
}

TEST_F(bench_serve, counts_pieces_with_text_where_a_server_counts_no_tokens) {
  const ran got = measure(
      "data: {\"choices\": [{\"text\": \"a\"}]}\n\n"
      "data: {\"choices\": [{\"text\": \"b\"}]}\n\n"
      "data: {\"choices\": [{\"text\": \"\", \"finish_reason\": \"length\"}]}\n\n"
      "data: [DONE]\n\n");
  EXPECT_EQ(got.code, 0) << got.out << got.error;
  EXPECT_EQ(got.parsed()["total_output_tokens"], 3 * 2);
}

TEST_F(bench_serve, knows_an_error_amid_a_stream_however_it_is_spaced) {
  for (const char* error : {R"({"error":{"message":"lost"}})", R"({ "error" : { "message" : "lost" } })"}) {
    const ran got =
        measure(std::string("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: ") + error + "\n\ndata: [DONE]\n\n");
    EXPECT_EQ(got.code, 1) << got.error;
    EXPECT_EQ(got.parsed()["failed"], 3);
    EXPECT_NE(got.parsed()["first_error"].get<std::string>().find("lost"), std::string::npos);
  }
}

TEST_F(bench_serve, shows_errors_of_servers_without_what_controls_a_terminal) {
  const std::string done = "\n\ndata: [DONE]\n\n";
  for (const std::string error : {"\x1b[2Jno JSON", R"({"error":{"message":"\u009b2J"}})"}) {
    answer_with("data: " + error + done);
    const ran got = run({"bench", "serve", "--url", url(), "--model", "theirs", "--requests", "1"});
    EXPECT_EQ(got.code, 1) << got.error;
    EXPECT_NE(got.out.find("2J"), std::string::npos) << got.out;
    EXPECT_EQ(got.out.find('\x1b'), std::string::npos) << got.out;
    EXPECT_EQ(got.out.find("\u009b"), std::string::npos) << got.out;
  }
  const ran refused = measure_refusal(503, "\x1b[2Jbusy\n" + std::string(1000, '.'));
  EXPECT_EQ(refused.code, 1);
  const std::string first_error = refused.parsed()["first_error"];
  EXPECT_TRUE(first_error.starts_with("503:  [2Jbusy ...")) << first_error;
  EXPECT_LE(first_error.size(), 300u);
}

TEST_F(bench_serve, takes_the_word_error_in_an_answer_for_text) {
  const ran got = measure("data: {\"choices\":[{\"text\":\"\\\"error\\\":{\"}],\"error\":null}\n\ndata: [DONE]\n\n");
  EXPECT_EQ(got.code, 0) << got.out << got.error;
}

TEST_F(bench_serve, asks_with_tokens_or_with_words) {
  const std::string stream = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n";
  const words size{"--prompt-min", "9", "--prompt-max", "9"};
  EXPECT_EQ(measure(stream, size).code, 0);
  EXPECT_EQ(asked()["prompt"].size(), 9u);
  EXPECT_EQ(measure(stream, {"--text", size[0], size[1], size[2], size[3]}).code, 0);
  const std::string prompt = asked()["prompt"];
  EXPECT_EQ(std::count(prompt.begin(), prompt.end(), ' '), 8);
}

TEST_F(bench_serve, asks_with_other_prompts_of_the_same_lengths_in_each_load) {
  const std::string stream = "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n";
  const std::string trace =
      folder().write("trace", R"({"timestamp": 0, "input_length": 90, "output_length": 9, "hash_ids": [7]})").string();
  ASSERT_EQ(measure(stream, {"--concurrency", "1", "--rate", "1000"}).code, 0);
  ASSERT_EQ(measure(stream, {"--concurrency", "1", "--trace", trace}).code, 0);
  ASSERT_EQ(measure(stream, {"--seed", "2", "--trace", trace}).code, 0);
  const auto all = all_asked();
  ASSERT_EQ(all.size(), 3 * 3 + 2 + 1u);
  std::set<json> beginnings;
  for (const json& each : all) {
    const std::vector<int> prompt = each["prompt"];
    beginnings.insert(std::vector<int>(prompt.begin(), prompt.begin() + 16));
  }
  EXPECT_EQ(beginnings.size(), all.size());
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(all[i]["prompt"].size(), all[3 + i]["prompt"].size());
}

TEST_F(bench_serve, draws_models_and_fields_apart) {
  answer_with("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n");
  const ran got = run({"bench", "serve", "--url", url(), "--model", "theirs,others", "--requests", "40", "--fields",
                       R"({"top_k": 1})", "--fields", R"({"top_k": 2})"});
  ASSERT_EQ(got.code, 0) << got.error;
  std::set<std::pair<std::string, int>> seen;
  for (const json& each : all_asked()) seen.emplace(each["model"], each["top_k"]);
  EXPECT_EQ(seen.size(), 2 * 2u);
}

TEST_F(bench_serve, asks_for_a_model_where_the_server_names_none) {
  for (const char* models : {"[]", R"({"data":[]})", R"({"data":["a"]})", R"({"data":[[1]]})", R"({"data":[{}]})",
                             R"({"data":[{"id":7}]})", R"({"data":[{"id":""}]})"}) {
    answer_with(models);
    const ran got = run({"bench", "serve", "--url", url()});
    EXPECT_EQ(got.code, 2) << models;
    EXPECT_NE(got.error.find("say --model"), std::string::npos) << got.error;
  }
}

TEST_F(bench_serve, refuses_flags_that_would_change_nothing) {
  for (const char* flag : {"--prompt-min", "--prompt-max", "--answer-min", "--answer-max"}) {
    const ran got = measure("", {"--trace", "any", flag, "9"});
    expect_one_line(got, 2, flag);
    EXPECT_NE(got.error.find("--trace"), std::string::npos) << got.error;
  }
  expect_one_line(measure("", {"--context", "64"}), 2, "--trace");
  EXPECT_TRUE(asked().is_null());
}

TEST_F(bench_serve, looks_for_the_folder_of_its_files_before_the_load) {
  for (const char* option : {"--out", "--plot"}) {
    const ran got = measure("", {option, path("nowhere/file").string()});
    EXPECT_EQ(got.code, 2);
    EXPECT_NE(got.error.find(std::string(option) + ": " + path("nowhere").string()), std::string::npos) << got.error;
    EXPECT_TRUE(asked().is_null());
  }
}

TEST_F(bench_serve, takes_a_file_that_cannot_be_written_for_bad_input) {
  for (const char* option : {"--out", "--plot"}) {
    const std::string folder = path("").string();
    const ran got = measure("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n", {option, folder});
    EXPECT_EQ(got.code, 2);
    EXPECT_NE(got.error.find(folder + ": cannot be written"), std::string::npos) << got.error;
    EXPECT_TRUE(asked().is_null()) << "it is said before the load";
  }
}

TEST_F(bench_serve, keeps_the_figures_of_loads_before_the_one_that_is_interrupted) {
  answer_with("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n");
  answer_only(4);
  const std::string out = path("out.json").string(), plot = path("plot.svg").string();
  const file_descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  process child = start({"bench", "serve", "--url", url(), "--model", "theirs", "--requests", "3", "--concurrency",
                         "1,2,3", "--out", out, "--plot", plot},
                        nowhere.number(), nowhere.number());
  ASSERT_TRUE(is_soon([&] { return all_asked().size() == 6; })) << "the second load is stuck";
  EXPECT_EQ(json::parse(read_file(out)).size(), 1u);
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 128 + SIGINT);
  let_go();
  const json loads = json::parse(read_file(out));
  ASSERT_EQ(loads.size(), 2u);
  EXPECT_EQ(loads[0]["completed"], 3);
  EXPECT_EQ(loads[1]["completed"], 1);
  EXPECT_EQ(loads[1]["failed"], 2);
  EXPECT_EQ(loads[1]["first_error"], "interrupted");
  EXPECT_TRUE(read_file(plot).starts_with("<svg"));
}

}  // namespace
}  // namespace troupe::test
