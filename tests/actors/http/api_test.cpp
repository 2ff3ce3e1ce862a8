#include <fstream>
#include <thread>

#include "actors/http/api_keys.hpp"
#include "actors/http/file_store.hpp"
#include "base/error.hpp"
#include "tests/actors/http/fixture.hpp"
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
  for (const char* unknown : {"/v1/models/none", "/v1/models/some/other", "/v1/models/some%2Fother"})
    EXPECT_EQ(ask("GET", unknown).get().parsed()["error"]["code"], "model_not_found") << unknown;
}

TEST_F(api, is_alive_before_it_is_ready) {
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
  EXPECT_EQ(ask("GET", "/ready").get().status, 503);
  replica_figures starting, running;
  running.ready = true;
  board_->post_replica(replica_id(0), starting);
  EXPECT_EQ(ask("GET", "/ready").get().status, 503);
  board_->post_replica(replica_id(1), running);
  EXPECT_EQ(ask("GET", "/ready").get().status, 200);
}

TEST_F(api, measures_what_it_answers) {
  replica_figures posted;
  posted.load.running = 3;
  posted.load.blocks = 10;
  posted.load.free_blocks = 4;
  posted.scheduling.looked_up_tokens = 8;
  posted.scheduling.reused_tokens = 5;
  board_->post_replica(replica_id(0), posted);
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
  has(R"(vllm:prefix_cache_queries_total{model_name="letters",engine="0"} 8)");
  has(R"(vllm:prefix_cache_hits_total{model_name="letters",engine="0"} 5)");
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
  const answered refused = unloading.get();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.parsed()["error"]["param"], "lora_name");
}

TEST_F(api, names_the_field_of_an_adapter_that_cannot_be_loaded) {
  const auto field_of = [&](const json& body, command_fault fault) {
    auto loading = post("/v1/load_lora_adapter", body);
    store_.take<command_call>().answer({{}, "why it is refused", fault});
    return loading.get().parsed()["error"]["param"];
  };
  EXPECT_EQ(field_of({{"lora_name", "pricing"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_path");
  EXPECT_EQ(field_of({{"lora_name", "a b"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "letters"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "pricing"}}, command_fault::unknown), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "pricing"}, {"lora_path", "/none"}}, command_fault::failed), nullptr);
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
  const std::string key = add_api_key(file, {.name = "ann", .weight = 4});
  start();
  EXPECT_EQ(ask("GET", "/v1/models").get().status, 401);
  const answered wrong = ask("GET", "/v1/models", {}, {{"authorization", "Bearer sk-troupe-nonsense"}}).get();
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.parsed()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"authorization", "bearer " + key}}).get().status, 200);
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
  auto answer = ask("POST", "/v1/completions", R"({"prompt":"A"})", {{"authorization", "Bearer " + key}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_NE(begun.engine.sequence.tenant, tenant_id(0)) << "keys share fairly";
  EXPECT_EQ(begun.engine.sequence.weight, 4u) << "by their weights";
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(api, lets_nobody_in_where_the_file_of_keys_leads_nowhere) {
  const auto file = folder_.path() / "keys.json";
  std::filesystem::create_symlink(folder_.path() / "not mounted", file);
  EXPECT_THROW(api_key_ring{file}, input_error);
  EXPECT_THROW(read_api_keys(file), input_error);
  std::filesystem::remove(file);
  EXPECT_TRUE(api_key_ring(file).is_open());
}

TEST_F(api, keeps_digests_of_keys_alone) {
  const auto file = folder_.path() / "keys" / "k.json";
  const std::string key = add_api_key(file, {.name = "ann"});
  EXPECT_THROW(add_api_key(file, {.name = "ann"}), input_error);
  EXPECT_THROW(add_api_key(file, {.name = "a b"}), input_error);
  add_api_key(file, {.name = "bob"});
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text.find(key), text.npos);
  revoke_api_key(file, "ann");
  EXPECT_THROW(revoke_api_key(file, "ann"), input_error);
  EXPECT_EQ(read_api_keys(file)->size(), 1u);
}

TEST_F(api, two_commands_at_once_lose_no_key) {
  const auto file = api_keys_file(folder_.path() / "state");
  const auto add = [&](const std::string& prefix) {
    for (int i = 0; i < 20; ++i) add_api_key(file, {.name = fmt::format("{}{}", prefix, i)});
  };
  std::thread other(add, "ann");
  add("bob");
  other.join();
  EXPECT_EQ(read_api_keys(file)->size(), 40u);
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
  const std::string key = add_api_key(api_keys_file(folder_.path() / "state"), {.name = "ann"});
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

TEST_F(api, asks_for_the_jobs_of_a_key_alone) {
  const auto keys = api_keys_file(folder_.path() / "state");
  const auto headers_of = [](const std::string& key) { return http_headers{{"authorization", "Bearer " + key}}; };
  const auto ann = headers_of(add_api_key(keys, {.name = "ann"})),
             root = headers_of(add_api_key(keys, {.name = "root", .is_admin = true}));
  start();
  file_store(folder_.path() / "state" / "files").keep_job_record("batch_1", "{}");
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

}  // namespace
}  // namespace troupe::test
