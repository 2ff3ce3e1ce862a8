#pragma once
#include <future>
#include <map>
#include <string>
#include <thread>

#include "actors/http/http_front.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "tests/actors/busy_thread.hpp"
#include "tests/actors/support.hpp"
#include "transport/http/http_client.hpp"

namespace troupe::test {

struct answered {
  int status = 0;
  std::map<std::string, std::string> headers;
  std::string body, error;

  json parsed() const { return json::parse(body); }
};

/// The body of a form with a file, and its type.
inline std::string form(const std::string& purpose, const std::string& content,
                        const std::string& filename = "in.jsonl") {
  return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
         "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + filename +
         "\"\r\nContent-Type: application/octet-stream\r\n\r\n" + content + "\r\n--b--\r\n";
}
inline const http_headers form_type{{"content-type", "multipart/form-data; boundary=b"}};

inline std::shared_ptr<const prompting> prompting_without_tokenizer(std::int64_t context) {
  return std::make_shared<const prompting>(golden / "llama", read_hf_config(golden / "llama"), context);
}

inline token_id letter(char c) {
  return letters({&c, 1})[0];
}
/// A part of an answer with this text, a letter a token.
inline answer_part part_of(std::string text) {
  answer_part part;
  part.tokens = letters(text);
  part.text = std::move(text);
  return part;
}

/// A front whose other actors are mocks.
class api_test : public testing::Test {
 protected:
  api_test() { start(); }

  void start(const std::string& chat_template = {}) {
    front_.reset();
    front_ = std::make_unique<http_front>(http_options{.grace = std::chrono::milliseconds(20)}, parts(chat_template));
  }
  /// Serves the model with this tokenizer.
  void start_with(const json& tokens) {
    front_.reset();
    http_parts with_tokens = parts();
    folder_.write("letters/tokenizer.json", tokens.dump());
    with_tokens.served.prompts =
        std::make_shared<const prompting>(folder_.path() / "letters", read_hf_config(golden / "llama"), 64);
    front_ = std::make_unique<http_front>(http_options{.grace = std::chrono::milliseconds(20)}, with_tokens);
  }
  served_model served(const std::string& chat_template = {}) const {
    return {.model = "letters",
            .advice = advice_,
            .prompts = has_tokenizer_ ? letters_prompting(folder_, context_, chat_template, post_processor_)
                                      : prompting_without_tokenizer(context_),
            .adapters = adapters_};
  }
  http_parts parts(const std::string& chat_template = {}) {
    work_ = std::make_shared<task_thread>(work_bytes_);
    file_work_ = std::make_shared<task_thread>();
    return {.served = served(chat_template),
            .gateway = gateway_.handle(),
            .store = store_.handle(),
            .jobs = jobs_.handle(),
            .training = training_.handle(),
            .numbers = numbers_,
            .board = board_,
            .records = std::make_shared<job_records>(folder_.path() / "state" / "files"),
            .state_dir = folder_.path() / "state",
            .log =
                [this](const std::string& line) {
                  const std::lock_guard lock(mutex_);
                  log_ += line + "\n";
                },
            .log_bodies = log_bodies_,
            .origins = origins_,
            .need_keys = need_keys_,
            .file_bytes_per_key = file_bytes_per_key_,
            .work = work_,
            .file_work = file_work_};
  }
  std::future<answered> ask(const std::string& method, const std::string& path, const std::string& body = {},
                            http_headers headers = {}) {
    const std::string url = "http://127.0.0.1:" + std::to_string(front_->port());
    return std::async(std::launch::async, [=] {
      http_client client(parse_http_url(url));
      answered got;
      client.send(method, path, headers, body,
                  {.on_head =
                       [&](int status, const http_headers& all) {
                         got.status = status;
                         got.headers.insert(all.begin(), all.end());
                       },
                   .on_data = [&](std::string_view piece) { got.body += piece; },
                   .on_end = [&](const std::string& error) { got.error = error; }});
      client.run();
      return got;
    });
  }
  std::future<answered> post(const std::string& path, const json& body) { return ask("POST", path, body.dump()); }
  std::filesystem::path keys_file() const { return api_keys_file(folder_.path() / "state"); }
  static http_headers as_key(const std::string& key) { return {{"authorization", "Bearer " + key}}; }
  /// The id that the file gets.
  std::string upload(const std::string& purpose, const std::string& content, const std::string& filename = "in.jsonl") {
    const answered got = ask("POST", "/v1/files", form(purpose, content, filename), form_type).get();
    EXPECT_EQ(got.status, 200) << got.body;
    return got.parsed()["id"];
  }
  json error_of(const std::string& path, const json& body, int status) {
    const answered got = post(path, body).get();
    EXPECT_EQ(got.status, status) << got.body;
    return got.parsed()["error"];
  }
  static void give(const begin_request& to, std::string text, std::optional<std::string> finish = {},
                   std::int32_t index = 0) {
    answer_part part = part_of(std::move(text));
    part.index = index;
    if (finish) part.end = answer_end{*finish, static_cast<std::int64_t>(to.engine.sequence.prompt.size()), to.adapter};
    to.listener->on_part(std::move(part));
  }
  void publish_adapter(const std::string& name = "pricing") {
    adapter_directory::snapshot now;
    now.names[name] = now.names[name + "@2"] = now.names["letters:" + name] = adapter_version(4);
    now.versions[adapter_version(4)] = {.full_name = name + "@2", .sha256 = {}, .files = {}, .created = 1234567890};
    adapters_->publish(std::move(now));
  }
  /// How many jobs have a record in the files' folder.
  std::size_t kept_jobs() const {
    std::size_t count = 0;
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(folder_.path() / "state" / "files", none))
      count += each.path().extension() == ".job";
    return count;
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  temp_folder folder_;
  std::mutex mutex_;
  std::string log_;
  bool log_bodies_ = false, need_keys_ = false;
  std::vector<std::string> origins_;
  sampling_advice advice_;
  bool has_tokenizer_ = true;
  json post_processor_ = nullptr;
  std::int64_t context_ = 64;
  std::size_t work_bytes_ = std::size_t{256} << 20;
  std::uint64_t file_bytes_per_key_ = UINT64_MAX;
  std::shared_ptr<task_thread> work_, file_work_;
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  std::shared_ptr<request_numbers> numbers_ = std::make_shared<request_numbers>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<gateway_actor> gateway_{system_};
  mock<adapter_store_actor> store_{system_};
  mock<jobs_actor> jobs_{system_};
  mock<training_desk_actor> training_{system_};
  std::unique_ptr<http_front> front_;
};

/// What stands between a stream's empty lines.
inline std::vector<std::string> frames_of(const std::string& stream) {
  std::vector<std::string> frames;
  for (std::size_t at = 0; at < stream.size();) {
    const std::size_t end = stream.find("\n\n", at);
    frames.push_back(stream.substr(at, end - at));
    at = end == stream.npos ? end : end + 2;
  }
  return frames;
}
inline json chunk_of(const std::string& frame) {
  return json::parse(frame.substr(std::string("data: ").size()));
}

}  // namespace troupe::test
