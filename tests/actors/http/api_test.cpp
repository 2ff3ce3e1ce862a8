#include <fstream>

#include "actors/http/api_keys.hpp"
#include "actors/http/batch_outputs.hpp"
#include "actors/http/file_store.hpp"
#include "base/error.hpp"
#include "tests/actors/http/fixture.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/transport/http/raw_client.hpp"

namespace troupe::test {
namespace {

class api : public api_test {};

TEST_F(api, lists_the_base_and_its_adapters) {
  publish_adapter();
  const json list = ask("GET", "/v1/models").get().parsed();
  ASSERT_EQ(list["data"].size(), 3u);
  EXPECT_EQ(list["data"][0]["id"], "letters");
  EXPECT_EQ(list["data"][0]["max_model_len"], 64);
  EXPECT_EQ(list["data"][0]["root"], "letters");
  EXPECT_TRUE(list["data"][0]["parent"].is_null());
  EXPECT_EQ(list["data"][2]["id"], "pricing@2");
  EXPECT_EQ(ask("GET", "/v1/models/letters").get().parsed(), list["data"][0]);
  EXPECT_EQ(list["data"][1]["id"], "pricing");
  EXPECT_EQ(list["data"][1]["root"], "pricing@2");
  EXPECT_EQ(list["data"][1]["parent"], "letters");
  EXPECT_EQ(ask("GET", "/v1/models/pricing%402").get().parsed()["id"], "pricing@2");
  EXPECT_EQ(ask("GET", "/v1/models/none").get().status, 404);
}

TEST_F(api, is_alive_before_it_is_ready) {
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
  EXPECT_EQ(ask("GET", "/ready").get().status, 503);
  board_->post("replicas", R"([{"state":"starting"},{"state":"running"}])");
  EXPECT_EQ(ask("GET", "/ready").get().status, 200);
}

TEST_F(api, measures_what_it_answers) {
  board_->post("replicas", R"([{"state":"running","running":3,"blocks":10,"free_blocks":4,"reused_tokens":5}])");
  auto answer = post("/v1/completions", {{"prompt", "AB"}});
  const auto begun = gateway_.take<begin_request>();
  give(begun, "xy");
  give(begun, "z", "stop");
  (void)answer.get();
  const std::string text = ask("GET", "/metrics").get().body;
  const auto has = [&](const std::string& line) {
    EXPECT_NE(text.find(line + "\n"), text.npos) << line << "\n" << text;
  };
  has(R"(vllm:num_requests_running{model_name="letters",engine="0"} 3)");
  has(R"(vllm:kv_cache_usage_perc{model_name="letters",engine="0"} 0.6)");
  has(R"(vllm:generation_tokens_total{model_name="letters",engine="0"} 3)");
  has(R"(vllm:prompt_tokens_total{model_name="letters",engine="0"} 2)");
  has(R"(vllm:request_success_total{model_name="letters",engine="0",finished_reason="stop"} 1)");
  has(R"(vllm:time_to_first_token_seconds_count{model_name="letters",engine="0"} 1)");
  has(R"(vllm:inter_token_latency_seconds_bucket{model_name="letters",engine="0",le="+Inf"} 1)");
}

TEST_F(api, tokenizes_and_back) {
  const json made = post("/tokenize", {{"prompt", "Hi"}, {"return_token_strs", true}}).get().parsed();
  EXPECT_EQ(made["tokens"], json(letters("Hi")));
  EXPECT_EQ(made["count"], 2);
  EXPECT_EQ(made["token_strs"], json({"H", "i"}));
  EXPECT_EQ(post("/detokenize", {{"tokens", letters("Hi")}}).get().parsed()["prompt"], "Hi");
  EXPECT_EQ(post("/detokenize", {{"tokens", {100000}}}).get().status, 400);
}

TEST_F(api, publishes_adapters_in_vllms_way) {
  auto loading = post("/v1/load_lora_adapter", {{"lora_name", "pricing"}, {"lora_path", "/somewhere"}});
  const auto call = store_.take<command_call>();
  EXPECT_EQ(call.command.name, "adapters.load");
  EXPECT_EQ(json::parse(call.command.arguments), json({{"name", "pricing"}, {"path", "/somewhere"}}));
  call.answer({R"({"adapter":"pricing@1"})"});
  EXPECT_EQ(loading.get().parsed()["adapter"], "pricing@1");
  auto unloading = post("/v1/unload_lora_adapter", {{"lora_name", "none"}});
  store_.take<command_call>().answer({{}, "adapter none: is not here", command_fault::unknown});
  EXPECT_EQ(unloading.get().status, 404);
}

TEST_F(api, answers_by_a_command_s_fault_whatever_its_text) {
  const auto status_of = [&](command_fault fault) {
    auto loading = post("/v1/load_lora_adapter", {{"lora_name", "pricing"}, {"lora_path", "/there is none"}});
    store_.take<command_call>().answer({{}, "/there is none: is no folder", fault});
    return loading.get().status;
  };
  EXPECT_EQ(status_of(command_fault::bad_input), 400);
  EXPECT_EQ(status_of(command_fault::unknown), 404);
  EXPECT_EQ(status_of(command_fault::failed), 500);
}

TEST_F(api, lets_nobody_in_without_a_key_once_there_is_one) {
  const auto file = api_keys_file(folder_.path() / "state");
  const std::string key = add_api_key(file, "ann", {}, 4);
  start();
  EXPECT_EQ(ask("GET", "/v1/models").get().status, 401);
  const answered wrong = ask("GET", "/v1/models", {}, {{"authorization", "Bearer sk-troupe-nonsense"}}).get();
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.parsed()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"authorization", "bearer " + key}}).get().status, 200);
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
  auto answer = ask("POST", "/v1/completions", R"({"prompt":"A"})", {{"authorization", "Bearer " + key}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_NE(begun.prepared.engine.what.tenant, tenant_id(0)) << "keys share fairly";
  EXPECT_EQ(begun.prepared.engine.what.weight, 4u) << "by their weights";
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(api, keeps_digests_of_keys_alone) {
  const auto file = folder_.path() / "keys" / "k.json";
  const std::string key = add_api_key(file, "ann");
  EXPECT_THROW(add_api_key(file, "ann"), input_error);
  EXPECT_THROW(add_api_key(file, "a b"), input_error);
  add_api_key(file, "bob");
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text.find(key), text.npos);
  revoke_api_key(file, "ann");
  EXPECT_THROW(revoke_api_key(file, "ann"), input_error);
  EXPECT_EQ(read_api_keys(file)->size(), 1u);
}

TEST_F(api, does_not_serve_pages_from_elsewhere) {
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"origin", "http://evil.example"}}).get().status, 403);
  const std::string own = "http://127.0.0.1:" + std::to_string(front_->port());
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"origin", own}}).get().status, 200);
}

TEST_F(api, serves_its_own_page_behind_a_proxy_that_says_by_what_name_it_was_asked) {
  const auto status = [&](const std::string& origin, const std::string& forwarded) {
    return ask("GET", "/v1/models", {}, {{"origin", origin}, {"x-forwarded-host", forwarded}}).get().status;
  };
  EXPECT_EQ(status("https://models.internal", "models.internal"), 200);
  EXPECT_EQ(status("https://models.internal", "models.internal, inner:8080"), 200) << "two proxies";
  EXPECT_EQ(status("https://evil.example", "models.internal"), 403);
  EXPECT_EQ(status("https://evil.example", "evil.example"), 403) << "whose name was made to lead to the proxy";
  EXPECT_EQ(status("https://evil.example", ""), 403);
  raw_client rebound(front_->port());
  rebound.say("GET /v1/models HTTP/1.1\r\nhost: evil.example\r\nx-forwarded-host: localhost\r\n\r\n");
  EXPECT_EQ(rebound.hear_response().substr(9, 3), "403") << "the host itself counts";
}

TEST_F(api, is_not_asked_by_a_strangers_name) {
  const auto status = [&](const std::string& host, const std::string& more = {}) {
    raw_client client(front_->port());
    client.say("GET /v1/models HTTP/1.1\r\nhost: " + host + "\r\n" + more + "\r\n");
    return client.hear_response().substr(9, 3);
  };
  EXPECT_EQ(status("evil.example"), "403") << "whose address was made to be this machine's";
  EXPECT_EQ(status("evil.example:8000", "origin: http://evil.example:8000\r\n"), "403");
  for (const char* own : {"localhost:8000", "127.0.0.1", "127.8.0.1:8000", "[::1]:8000", "192.168.0.7", "box",
                          "host.docker.internal:8000"})
    EXPECT_EQ(status(own), "200") << own;
  const std::string key = add_api_key(api_keys_file(folder_.path() / "state"), "ann");
  start();
  EXPECT_EQ(status("models.example", "authorization: Bearer " + key + "\r\n"), "200") << "as behind a proxy";
}

TEST_F(api, handles_long_requests_elsewhere) {
  busy_thread busy(*work_);
  const std::string padding(100'000, 'x');
  auto asked = post("/tokenize", {{"prompt", "Hi"}, {"padding", padding}});
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  EXPECT_EQ(post("/tokenize", {{"prompt", "Hi"}}).get().status, 200) << "others do not wait for it";
  busy.go_on();
  EXPECT_EQ(asked.get().parsed()["count"], 2);
}

TEST_F(api, takes_only_so_many_long_requests_at_a_time) {
  work_bytes_ = 150'000;
  start();
  busy_thread busy(*work_);
  const json body{{"prompt", "Hi"}, {"padding", std::string(100'000, 'x')}};
  auto first = post("/tokenize", body);
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  answered second = post("/tokenize", body).get();
  EXPECT_EQ(second.status, 503);
  EXPECT_EQ(second.headers["retry-after"], "1");
  busy.go_on();
  EXPECT_EQ(first.get().status, 200);
}

TEST_F(api, does_not_tokenize_what_cannot_fit) {
  EXPECT_EQ(post("/tokenize", {{"prompt", std::string(100, 'A')}}).get().parsed()["count"], 100) << "to see its length";
  const json error = error_of("/tokenize", {{"prompt", std::string(1000, 'A')}}, 400);
  EXPECT_EQ(error["param"], "prompt");
  EXPECT_EQ(error["code"], "context_length_exceeded");
}

TEST_F(api, says_what_it_does_not_have) {
  const answered nothing = ask("GET", "/v2/other").get();
  EXPECT_EQ(nothing.status, 404);
  EXPECT_EQ(nothing.parsed()["error"]["code"], "unknown_url");
  answered method = ask("GET", "/v1/completions").get();
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers["allow"], "POST");
}

TEST_F(api, tells_who_asks_in_the_wrong_place_where_it_is) {
  const auto told = [&](const std::string& method, const std::string& path, int status) {
    const answered got = ask(method, path, "{}").get();
    EXPECT_EQ(got.status, status) << path;
    EXPECT_TRUE(got.parsed()["error"]["message"].get<std::string>().ends_with(
        "OpenAI's API is at /v1: /v1/chat/completions, /v1/completions"))
        << got.body;
  };
  for (const char* path : {"/chat/completions", "/completion", "/generate", "/v1/messages"}) told("POST", path, 404);
  for (const char* path : {"/models", "/api/tags"}) told("GET", path, 404);
  told("POST", "/", 405);
}

TEST_F(api, takes_a_slash_behind_a_path_for_none) {
  EXPECT_EQ(ask("GET", "/v1/models/").get().parsed()["object"], "list");
}

TEST_F(api, has_a_page_that_asks_nobody_else) {
  answered page = ask("GET", "/").get();
  EXPECT_EQ(page.headers["content-type"], "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n"));
  for (const char* outside : {"src=", "href=", "@import", "https://"})
    EXPECT_EQ(page.body.find(outside), page.body.npos) << outside;
  board_->post("jobs", "[]");
  EXPECT_EQ(ask("GET", "/status").get().parsed()["model"], "letters");
}

std::string form(const std::string& purpose, const std::string& content) {
  return "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n" + purpose +
         "\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n"
         "Content-Type: application/octet-stream\r\n\r\n" +
         content + "\r\n--b--\r\n";
}
const http_headers form_type{{"content-type", "multipart/form-data; boundary=b"}};

TEST_F(api, keeps_nothing_of_files_that_the_disk_does_not_take) {
  const std::filesystem::path files = folder_.path() / "state" / "files";
  for (const rlim_t room : {rlim_t{1}, rlim_t{64}}) {  // too little for the file, and for what is said of it
    const full_disk small(room);
    const answered got = ask("POST", "/v1/files", form("batch", "a\r\nb"), form_type).get();
    EXPECT_EQ(got.status, 500);
    EXPECT_NE(got.body.find("cannot be written"), got.body.npos) << got.body;
    EXPECT_TRUE(std::filesystem::is_empty(files));
  }
  folder_.write("state/files/file-1.data.7.partial", "of a process that died");
  start();
  EXPECT_TRUE(std::filesystem::is_empty(files));
}

TEST_F(api, keeps_files) {
  const json file = ask("POST", "/v1/files", form("batch", "a\r\nb"), form_type).get().parsed();
  EXPECT_EQ(file["filename"], "in.jsonl");
  EXPECT_EQ(file["bytes"], 4);
  const std::string id = file["id"];
  EXPECT_EQ(ask("GET", "/v1/files/" + id + "/content").get().body, "a\r\nb");
  auto listing = ask("GET", "/v1/files");
  jobs_.take<command_call>().answer({"[]"});
  EXPECT_EQ(listing.get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", "/v1/files?purpose=fine-tune").get().parsed()["data"].size(), 0u);
  const json lost = ask("POST", "/v1/files", form("batch", "b"), form_type).get().parsed();
  std::filesystem::remove(folder_.path() / "state" / "files" / (lost["id"].get<std::string>() + ".data"));
  EXPECT_EQ(ask("GET", "/v1/files/" + lost["id"].get<std::string>() + "/content").get().status, 404);
  EXPECT_EQ(ask("DELETE", "/v1/files/" + id).get().parsed()["deleted"], true);
  EXPECT_EQ(ask("GET", "/v1/files/" + id).get().status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/..%2f..%2fapi_keys/content").get().status, 404);
  EXPECT_EQ(ask("POST", "/v1/files", form("batch", "a"), {{"content-type", "text/plain"}}).get().status, 400);
  EXPECT_EQ(ask("POST", "/v1/files", "--b\r\nbroken", form_type).get().status, 400);
  EXPECT_EQ(ask("POST", "/v1/files", form("else", "a"), form_type).get().parsed()["error"]["param"], "purpose");
}

TEST_F(api, shows_files_to_the_key_that_sent_them) {
  const auto keys = api_keys_file(folder_.path() / "state");
  const auto headers_of = [](const std::string& key) { return http_headers{{"authorization", "Bearer " + key}}; };
  const auto ann = headers_of(add_api_key(keys, "ann")), bob = headers_of(add_api_key(keys, "bob"));
  const auto root = headers_of(add_api_key(keys, "root", {}, 1, true));
  start();
  http_headers sending = ann;
  sending.insert(sending.end(), form_type.begin(), form_type.end());
  const std::string id = ask("POST", "/v1/files", form("batch", "a"), sending).get().parsed()["id"];
  const std::string file = "/v1/files/" + id;
  for (const auto& [method, path] :
       {std::pair("GET", file), std::pair("GET", file + "/content"), std::pair("DELETE", file)})
    EXPECT_EQ(ask(method, path, {}, bob).get().status, 404) << method << path;
  const json batch{{"input_file_id", id}, {"endpoint", "/v1/completions"}};
  EXPECT_EQ(ask("POST", "/v1/batches", batch.dump(), bob).get().status, 404);
  const std::string uploads = "/v1/files?purpose=batch";
  EXPECT_EQ(ask("GET", uploads, {}, bob).get().parsed()["data"].size(), 0u);
  EXPECT_EQ(ask("GET", uploads, {}, ann).get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", uploads, {}, root).get().parsed()["data"].size(), 1u);
  EXPECT_EQ(ask("GET", file, {}, root).get().status, 200);
  EXPECT_EQ(ask("DELETE", file, {}, ann).get().status, 200);
}

TEST_F(api, asks_for_the_jobs_of_a_key_alone) {
  const auto keys = api_keys_file(folder_.path() / "state");
  const auto headers_of = [](const std::string& key) { return http_headers{{"authorization", "Bearer " + key}}; };
  const auto ann = headers_of(add_api_key(keys, "ann")), root = headers_of(add_api_key(keys, "root", {}, 1, true));
  start();
  file_store(folder_.path() / "state" / "files").keep_about("batch_1", "{}");
  const std::pair<const char*, const char*> all[] = {{"GET", "/v1/batches"},
                                                     {"GET", "/v1/batches/batch_1"},
                                                     {"POST", "/v1/batches/batch_1/cancel"},
                                                     {"GET", "/v1/files"},
                                                     {"GET", "/v1/files/file-output-batch_1"},
                                                     {"DELETE", "/v1/files/file-output-batch_1"},
                                                     {"GET", "/v1/files/file-output-batch_1/content"},
                                                     {"GET", "/v1/fine_tuning/jobs"},
                                                     {"GET", "/v1/fine_tuning/jobs/ftjob-1"},
                                                     {"POST", "/v1/fine_tuning/jobs/ftjob-1/cancel"},
                                                     {"POST", "/v1/fine_tuning/jobs/ftjob-1/pause"},
                                                     {"GET", "/v1/fine_tuning/jobs/ftjob-1/events"},
                                                     {"GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints"}};
  for (const auto& [method, path] : all)
    for (const bool is_admin : {false, true}) {
      auto asked = ask(method, path, {}, is_admin ? root : ann);
      auto call = jobs_.take<command_call>();
      EXPECT_EQ(json::parse(call.command.arguments).value("owner", "everybody"), is_admin ? "everybody" : "ann")
          << path;
      call.answer({{}, "job: there is none", command_fault::unknown});
      EXPECT_EQ(asked.get().status, 404) << method << path;
    }
}

class api_batches : public api_test {
 protected:
  static json line() {
    return {{"custom_id", "one"},
            {"method", "POST"},
            {"url", "/v1/completions"},
            {"body", {{"prompt", "A"}, {"max_tokens", 4}, {"model", "letters"}}}};
  }
  std::string upload_lines() {
    return ask("POST", "/v1/files", form("batch", line().dump()), form_type).get().parsed()["id"];
  }
  /// What the jobs' actor is told; each is answered with what `answer` makes of it.
  json create(const std::function<command_answer(const client_command&)>& answer) {
    auto creating = post("/v1/batches", {{"input_file_id", upload_lines()}, {"endpoint", "/v1/completions"}});
    for (const char* name : {"job.create", "job.lines", "job.seal"}) {
      const auto call = jobs_.take<command_call>();
      EXPECT_EQ(call.command.name, name);
      call.answer(answer(call.command));
    }
    return creating.get().parsed();
  }
  json create() {
    return create([](const auto&) { return command_answer{R"({"state":"queued","lines":1,"created":5})"}; });
  }
  void answer_next(const std::string& command, const json& result) {
    const auto call = jobs_.take<command_call>();
    EXPECT_EQ(call.command.name, command);
    call.answer({result.dump()});
  }
  static json page(const std::vector<std::pair<bool, json>>& outputs) {
    json list = json::array();
    for (const auto& [ok, output] : outputs)
      list.push_back({{"index", list.size()}, {"ok", ok}, {"text", output.dump()}});
    return {{"outputs", list}};
  }
  json answered_line() const {
    return {{"index", 0}, {"custom_id", "one"}, {"object", "text_completion"}, {"choices", json::array()}};
  }
  json failed_line() const { return {{"index", 1}, {"custom_id", "two"}, {"error", "too long"}}; }
};

TEST_F(api_batches, run_as_jobs) {
  std::vector<client_command> told;
  const json batch = create([&](const client_command& command) {
    told.push_back(command);
    return command_answer{R"({"state":"queued","lines":1,"created":5})"};
  });
  const json sent = json::parse(json::parse(told[1].arguments)["lines"][0].get<std::string>());
  EXPECT_EQ(sent, line()) << "as it is in the file";
  EXPECT_EQ(json::parse(told[0].arguments)["options"], json({{"endpoint", "/v1/completions"}, {"weight", 1}}));
  EXPECT_EQ(batch["status"], "in_progress");
  EXPECT_EQ(batch["request_counts"]["total"], 1);
  auto looking = ask("GET", "/v1/batches/" + batch["id"].get<std::string>());
  answer_next("job.get", {{"state", "succeeded"}, {"lines", 1}, {"ok", 1}, {"created", 5}, {"finished", 9}});
  const json done = looking.get().parsed();
  EXPECT_EQ(done["status"], "completed");
  auto reading = ask("GET", "/v1/files/" + done["output_file_id"].get<std::string>() + "/content");
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const json result = json::parse(reading.get().body);
  EXPECT_EQ(result["custom_id"], "one");
  EXPECT_EQ(result["response"]["body"], json({{"object", "text_completion"}, {"choices", json::array()}}));
}

TEST_F(api_batches, leave_nothing_behind_where_they_are_refused) {
  const json refused = create([](const auto&) {
    return command_answer{{}, "too many jobs: end some first", command_fault::bad_input};
  });
  EXPECT_EQ(refused["error"]["message"], "too many jobs: end some first");
  EXPECT_EQ(kept_jobs(), 0u);
  create();
  EXPECT_EQ(kept_jobs(), 1u);
}

/// A client that reads when it is told to, or has gone.
class slow_exchange final : public http_exchange {
 public:
  explicit slow_exchange(bool is_there) : is_there_(is_there) {}

  void reply(http_response) override { ADD_FAILURE() << "it is a stream"; }
  void begin_stream(http_response head) override { EXPECT_EQ(head.status, 200); }
  bool send(std::string_view piece) override {
    heard.put(std::string(piece));
    return is_there_;
  }
  void on_sent(std::function<void()> then) override { heard.put(std::move(then)); }
  void end_stream() override { heard.put(true); }
  void on_gone(std::function<void()>) override {}
  const std::string& id() const override { return id_; }

  inbox heard;

 private:
  bool is_there_;
  std::string id_;
};

TEST_F(api_batches, have_outputs_that_come_as_the_client_reads_them) {
  const std::string id = create()["id"];
  const auto context = std::make_shared<api_context>(parts());
  const auto reader = std::make_shared<slow_exchange>(true), gone = std::make_shared<slow_exchange>(false);
  send_batch_file({context, {}, {}, reader}, {id, false});
  answer_next("job.outputs", page({{true, answered_line()}}));
  EXPECT_EQ(json::parse(reader->heard.take<std::string>())["custom_id"], "one");
  const auto has_read = reader->heard.take<std::function<void()>>();
  EXPECT_EQ(jobs_.count<command_call>(), 0u) << "while the client has not read the first page";
  has_read();
  answer_next("job.outputs", page({}));
  EXPECT_TRUE(reader->heard.take<bool>());

  send_batch_file({context, {}, {}, gone}, {id, false});
  answer_next("job.outputs", page({{true, answered_line()}}));
  EXPECT_TRUE(is_soon([&] { return gone.use_count() == 1; })) << "nobody reads any more for who has gone";
  EXPECT_EQ(jobs_.count<command_call>(), 0u);
  context->parts.file_work->stop();
}

TEST_F(api_batches, have_outputs_with_a_size_and_a_time) {
  const std::string id = create()["id"], output = "file-output-" + id, errors = "file-errors-" + id;
  const json job{{"id", id}, {"ok", 1}, {"failed", 1}, {"created", 5}, {"finished", 9}};
  auto reading = ask("GET", "/v1/files/" + output + "/content");
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const std::size_t bytes = reading.get().body.size();
  auto listing = ask("GET", "/v1/files");
  answer_next("job.list", json::array({job}));
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const json list = listing.get().parsed()["data"];
  ASSERT_EQ(list.size(), 3u) << "and the one that was uploaded";
  const auto described = [&](const std::string& which) {
    for (const json& each : list)
      if (each["id"] == which) return each;
    return json();
  };
  EXPECT_EQ(described(output)["bytes"], bytes);
  EXPECT_EQ(described(output)["created_at"], 9);
  EXPECT_EQ(described(output)["purpose"], "batch_output");
  EXPECT_GT(described(errors)["bytes"], 0);
  auto asked = ask("GET", "/v1/files/" + errors);
  answer_next("job.get", job);
  EXPECT_EQ(asked.get().parsed(), described(errors)) << "which is known by now";
  auto deleting = ask("DELETE", "/v1/files/" + errors);
  answer_next("job.get", job);
  const answered kept = deleting.get();
  EXPECT_EQ(kept.status, 400);
  EXPECT_EQ(kept.parsed()["error"]["param"], "id");
  EXPECT_NE(kept.body.find("troupe jobs forget " + id), std::string::npos) << kept.body;
  EXPECT_EQ(ask("DELETE", "/v1/files/file-output-batch_none").get().status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/file-output-batch_none").get().status, 404);
}

TEST_F(api_batches, have_outputs_whose_sizes_are_read_once) {
  const std::string id = create()["id"];
  const json job{{"id", id}, {"ok", 1}, {"failed", 0}, {"created", 5}, {"finished", 9}};
  for (const bool is_first : {true, false}) {
    auto listing = ask("GET", "/v1/files?purpose=batch_output");
    answer_next("job.list", json::array({job}));
    if (is_first) {
      answer_next("job.outputs", page({{true, answered_line()}}));
      answer_next("job.outputs", page({}));
    }
    EXPECT_EQ(listing.get().parsed()["data"].size(), 1u);
    std::filesystem::remove(folder_.path() / "state" / "files" / (id + ".batch"));
  }
}

TEST_F(api_batches, are_listed_by_pages_of_the_journal) {
  const std::string first = create()["id"], second = create()["id"];
  const auto job_of = [](const std::string& id) { return json{{"id", id}, {"state", "running"}, {"created", 5}}; };
  auto listing = ask("GET", "/v1/batches?limit=1&after=batch_x");
  auto call = jobs_.take<command_call>();
  json wanted = json::parse(call.command.arguments);
  EXPECT_EQ(wanted["after"], "batch_x");
  json others = json::array();
  for (std::size_t i = 0; i < wanted["limit"].get<std::size_t>(); ++i)
    others.push_back(job_of("other-" + std::to_string(i)));
  EXPECT_LT(others.size(), 1000u);
  call.answer({others.dump()});
  call = jobs_.take<command_call>();
  EXPECT_EQ(json::parse(call.command.arguments)["after"], others.back()["id"])
      << "those were made by no client of this API";
  call.answer({json::array({job_of(second), job_of(first)}).dump()});
  const json list = listing.get().parsed();
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], second);
  EXPECT_EQ(list["has_more"], true);
}

TEST_F(api, refuses_batches_that_name_a_wrong_line) {
  const std::string bad = R"({"custom_id":"a","url":"/v1/completions","body":{"prompt":"A"}})"
                          "\n"
                          R"({"custom_id":"b","url":"/v1/completions","body":{"prompt":"A","temperature":-1}})";
  const std::string file = ask("POST", "/v1/files", form("batch", bad), form_type).get().parsed()["id"];
  const json error = error_of("/v1/batches", {{"input_file_id", file}, {"endpoint", "/v1/chat/completions"}}, 400);
  EXPECT_NE(error["message"].get<std::string>().find("line 1"), std::string::npos) << error.dump();
  EXPECT_EQ(error_of("/v1/batches", {{"input_file_id", "file-x"}, {"endpoint", "/v1/completions"}}, 404)["param"],
            "input_file_id");
}

}  // namespace
}  // namespace troupe::test
