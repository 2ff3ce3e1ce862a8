#include <algorithm>
#include <mutex>

#include "tests/cli/program.hpp"
#include "transport/http/http_server.hpp"

namespace troupe::test {
namespace {

/// A server of somebody else, which answers every request with the same stream.
class bench_serve : public program {
 protected:
  bench_serve()
      : server_({}, [this](http_request&& request, std::shared_ptr<http_exchange> exchange) {
          const std::lock_guard lock(mutex_);
          asked_ = json::parse(request.body, nullptr, false);
          exchange->reply({.content_type = "text/event-stream", .body = stream_});
        }) {
    server_.start();
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
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }
  json asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::string stream_;
  json asked_;
  http_server server_;
};

TEST_F(bench_serve, asks_for_a_key_where_the_server_wants_one) {
  for (const int status : {401, 403}) {
    http_server closed({}, [status](http_request&&, std::shared_ptr<http_exchange> exchange) {
      exchange->reply({.status = status, .body = R"({"error":{"message":"no valid key"}})"});
    });
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

TEST_F(bench_serve, knows_an_error_amid_a_stream_however_it_is_spaced) {
  for (const char* error : {R"({"error":{"message":"lost"}})", R"({ "error" : { "message" : "lost" } })"}) {
    const ran got =
        measure(std::string("data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: ") + error + "\n\ndata: [DONE]\n\n");
    EXPECT_EQ(got.code, 1) << got.error;
    EXPECT_EQ(got.parsed()["failed"], 3);
    EXPECT_NE(got.parsed()["first_error"].get<std::string>().find("lost"), std::string::npos);
  }
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

TEST_F(bench_serve, asks_for_a_model_where_the_server_names_none) {
  for (const char* models : {"[]", R"({"data":[]})", R"({"data":["a"]})", R"({"data":[[1]]})", R"({"data":[{}]})",
                             R"({"data":[{"id":7}]})", R"({"data":[{"id":""}]})"}) {
    answer_with(models);
    const ran got = run({"bench", "serve", "--url", url()});
    EXPECT_EQ(got.code, 2) << models;
    EXPECT_NE(got.error.find("say --model"), std::string::npos) << got.error;
  }
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
  }
}

}  // namespace
}  // namespace troupe::test
