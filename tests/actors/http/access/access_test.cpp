#include <algorithm>
#include <chrono>

#include <gmock/gmock.h>

#include "actors/http/access/api_keys.hpp"
#include "actors/http/jobs/job_records.hpp"
#include "tests/actors/http/fixture.hpp"
#include "tests/transport/http/raw_client.hpp"

namespace troupe::test {
namespace {

class api_access : public api_test {};

TEST_F(api_access, lets_nobody_in_without_a_key_once_there_is_one) {
  const std::string key = add_api_key(keys_file(), {.name = "ann", .weight = 4});
  start();
  EXPECT_EQ(ask("GET", "/v1/models").get().status, 401);
  const answered wrong = ask("GET", "/v1/models", {}, {{"authorization", "Bearer sk-troupe-nonsense"}}).get();
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.parsed()["error"]["code"], "invalid_api_key");
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"authorization", "bearer " + key}}).get().status, 200);
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"x-api-key", key}}).get().status, 200) << "as Anthropic's clients send it";
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"x-api-key", "nonsense"}}).get().status, 401);
  EXPECT_EQ(ask("GET", "/status").get().status, 401);
  for (const char* open : {"/health", "/ready", "/metrics", "/"})
    EXPECT_NE(ask("GET", open).get().status, 401) << open << " is for probes, Prometheus and browsers";
  auto answer = ask("POST", "/v1/completions", R"({"prompt":"A"})", as_key(key));
  const auto begun = gateway_.take<begin_request>();
  EXPECT_NE(begun.engine.sequence.tenant, tenant_id(0)) << "keys share fairly";
  EXPECT_EQ(begun.engine.sequence.weight, 4u) << "by their weights";
  give(begun, "", "stop");
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(api_access, finds_no_prompts_cached_that_others_have_asked) {
  const std::string ann = add_api_key(keys_file(), {.name = "ann"}), bob = add_api_key(keys_file(), {.name = "bob"});
  start();
  const auto salt = [&](const std::string& key, const char* body) {
    auto answer = ask("POST", "/v1/completions", body, as_key(key));
    const auto begun = gateway_.take<begin_request>();
    give(begun, "", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun.engine.sequence.cache_salt;
  };
  constexpr auto plain = R"({"prompt":"A"})", salted = R"({"prompt":"A","cache_salt":"x"})";
  const std::uint64_t of_ann = salt(ann, plain);
  EXPECT_EQ(salt(ann, plain), of_ann);
  EXPECT_NE(salt(bob, plain), of_ann);
  EXPECT_NE(salt(ann, salted), of_ann);
  EXPECT_NE(salt(ann, salted), salt(bob, salted));
}

TEST_F(api_access, lets_nobody_in_where_keys_are_needed_and_there_are_none) {
  need_keys_ = true;
  start();
  EXPECT_EQ(ask("GET", "/v1/models").get().status, 401);
  EXPECT_EQ(ask("GET", "/health").get().status, 200);
}

TEST_F(api_access, is_refused_without_a_key_before_a_long_body_is_read) {
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  const std::string head = "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n";
  raw_client stranger(front_->port()), known(front_->port());
  stranger.say(head + "\r\n");
  EXPECT_NE(stranger.hear_all().find("invalid_api_key"), std::string::npos);
  known.say(head + "expect: 100-continue\r\nauthorization: Bearer " + key + "\r\n\r\n");
  EXPECT_EQ(known.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  front_->stop();
  EXPECT_NE(log().find("POST /v1/completions 401"), std::string::npos) << log();
}

TEST_F(api_access, is_logged_by_the_keys_name) {
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  auto answer = ask("POST", "/v1/completions", R"({"prompt":"A"})", as_key(key));
  give(gateway_.take<begin_request>(), "", "stop");
  answer.get();
  ask("POST", "/v1/completions", R"({"prompt":"A"})").get();
  front_->stop();
  EXPECT_NE(log().find(" ms, key ann\n"), std::string::npos) << log();
  EXPECT_NE(log().find(" 127.0.0.1 POST /v1/completions 200 "), std::string::npos) << "and the address: " << log();
  EXPECT_NE(log().find(" ms\n"), std::string::npos) << "nobody's name for whom nobody knows: " << log();
}

TEST_F(api_access, is_not_logged_where_it_only_reads_and_succeeds_or_is_a_probe) {
  EXPECT_EQ(ask("GET", "/v1/models").get().status, 200);
  for (const char* path : {"/ready", "/ready/"}) EXPECT_EQ(ask("GET", path).get().status, 503);
  raw_client probe(front_->port());
  probe.say("HEAD /ready HTTP/1.1\r\nhost: localhost\r\n\r\n");
  EXPECT_TRUE(probe.hear_until("\r\n\r\n").starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(ask("GET", "/none").get().status, 404);
  front_->stop();
  EXPECT_EQ(std::count(log_.begin(), log_.end(), '\n'), 1) << log_;
  EXPECT_NE(log().find(" GET /none 404 "), std::string::npos) << log_;
}

/// What a client sends as its path cannot look like the rest of a line, or move a terminal's cursor.
TEST_F(api_access, is_logged_with_the_path_as_it_was_sent) {
  start();
  raw_client client(front_->port());
  const std::string path = "/v1/x%20200%200.1%20ms,%20key%20root%c2%9b31m";
  std::string odd, encoded;
  for (int i = 0; i < 50; ++i) odd += '\xff';
  for (int i = 0; i < 42; ++i) encoded += "%ff";
  for (const std::string& each : {path, std::string("/v1/\xc2\x9b\xff"), "/" + odd}) {
    client.say("GET " + each + " HTTP/1.1\r\nhost: localhost\r\n\r\n");
    client.hear_response();
  }
  front_->stop();
  EXPECT_NE(log().find(" 127.0.0.1 GET " + path + " 404 "), std::string::npos) << log();
  EXPECT_NE(log().find(" GET /v1/%c2%9b%ff 404 "), std::string::npos) << log();
  EXPECT_NE(log().find(" GET /" + encoded + " 404 "), std::string::npos) << "no longer than others: " << log();
}

TEST_F(api_access, is_logged_and_counted_where_the_server_refuses_it_before_it_is_read) {
  start();
  raw_client packed(front_->port()), endless(front_->port());
  packed.say(
      "POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ncontent-encoding: gzip\r\n\r\nok");
  EXPECT_TRUE(packed.hear_response().starts_with("HTTP/1.1 415 "));
  endless.say("GET / HTTP/1.1\r\nx: " + std::string(20'000, 'x'));
  EXPECT_TRUE(endless.hear_response().starts_with("HTTP/1.1 431 "));
  const std::string figures = ask("GET", "/metrics").get().body;
  for (const char* status : {"415", "431"})
    EXPECT_NE(figures.find(fmt::format("troupe:http_responses_total{{status=\"{}\"}} 1\n", status)), std::string::npos);
  front_->stop();
  EXPECT_NE(log().find(" 127.0.0.1 POST /v1/completions 415 "), std::string::npos) << log();
  EXPECT_NE(log().find(" 127.0.0.1 GET / 431 "), std::string::npos) << log();
}

TEST_F(api_access, is_logged_with_all_that_had_come_where_the_server_refuses_it) {
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  raw_client lengthy(front_->port()), nothing(front_->port()), wrong(front_->port());
  const std::string head = "host: localhost\r\nauthorization: Bearer " + key + "\r\n";
  lengthy.say("POST /v1/files?x=1 HTTP/1.1\r\n" + head + "x-request-id: mine\r\ncontent-length: 20000000\r\n\r\n");
  EXPECT_TRUE(lengthy.hear_response().starts_with("HTTP/1.1 413 "));
  nothing.say("no request\r\n\r\n");
  EXPECT_TRUE(nothing.hear_response().starts_with("HTTP/1.1 400 "));
  wrong.say("POST /none HTTP/1.1\r\n" + head + "\r\n");
  EXPECT_TRUE(wrong.hear_response().starts_with("HTTP/1.1 404 "));
  front_->stop();
  EXPECT_THAT(log(), testing::ContainsRegex("mine 127.0.0.1 POST /v1/files 413 [0-9.]* ms, key ann\n"));
  EXPECT_THAT(log(), testing::HasSubstr(" 127.0.0.1 - - 400 "));
  EXPECT_THAT(log(), testing::ContainsRegex(" POST /none 404 [0-9.]* ms, key ann\n"));
}

TEST_F(api_access, is_logged_without_what_moves_a_terminals_cursor) {
  log_bodies_ = true;
  start();
  ask("POST", "/v1/completions", "\x1b[31m\xc2\x9b\xc2\xa9\x9b").get();
  front_->stop();
  EXPECT_NE(log().find(" ms ?[31m?\xc2\xa9?\n"), std::string::npos) << log();
}

TEST_F(api_access, fills_the_log_with_lines_of_key_holders_alone) {
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  const auto ask_for_nothing = [&](int times, const std::string& header) {
    std::string requests;
    for (int i = 0; i < times; ++i) requests += "GET /none HTTP/1.1\r\nhost: localhost\r\n" + header + "\r\n";
    raw_client client(front_->port());
    client.say(requests);
    while (times-- > 0) client.hear_response();
  };
  const auto began = std::chrono::steady_clock::now();
  ask_for_nothing(2000, "");
  for (int i = 0; i < 200; ++i) {  // each on a connection of its own, which ends with the refusal
    raw_client client(front_->port());
    client.say("POST /none HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: identity\r\n\r\n");
    EXPECT_TRUE(client.hear_response().starts_with("HTTP/1.1 501 "));
  }
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - began).count();
  const auto lines_in = [](const std::string& log) { return std::count(log.begin(), log.end(), '\n'); };
  const std::string strangers = log();
  EXPECT_GE(lines_in(strangers), 50);
  EXPECT_LE(lines_in(strangers), 50 + seconds * 2) << "each second one, and one that says how many were left out";
  ask_for_nothing(100, "authorization: Bearer " + key + "\r\n");
  front_->stop();
  EXPECT_GE(lines_in(log()), lines_in(strangers) + 100);
}

TEST_F(api_access, does_not_serve_pages_from_elsewhere) {
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"origin", "http://evil.example"}}).get().status, 403);
  const std::string own = "http://127.0.0.1:" + std::to_string(front_->port());
  EXPECT_EQ(ask("GET", "/v1/models", {}, {{"origin", own}}).get().status, 200);
}

TEST_F(api_access, serves_pages_whose_origin_the_file_names) {
  origins_ = {"https://chat.example.org", "http://localhost:3000"};
  start();
  const auto from = [&](const std::string& origin, const std::string& path = "/v1/models") {
    return ask("GET", path, {}, {{"origin", origin}}).get();
  };
  for (const std::string& origin : origins_) {
    const answered own = from(origin);
    EXPECT_EQ(own.status, 200);
    EXPECT_EQ(own.headers.at("access-control-allow-origin"), origin) << "its own alone, not the list";
    EXPECT_EQ(own.headers.at("vary"), "Origin");
    EXPECT_EQ(own.headers.at("access-control-expose-headers"), "*");
  }
  const answered nowhere = from("https://chat.example.org", "/v1/nothing");
  EXPECT_EQ(nowhere.status, 404);
  EXPECT_EQ(nowhere.headers.at("access-control-allow-origin"), "https://chat.example.org") << "pages read errors, too";
  const answered unread =
      ask("POST", "/v1/completions", "x", {{"origin", origins_[0]}, {"content-encoding", "br"}}).get();
  EXPECT_EQ(unread.status, 415);
  EXPECT_EQ(unread.headers.at("access-control-allow-origin"), origins_[0]) << "which no route has seen";
  for (const char* other : {"https://evil.example", "https://chat.example.org.evil.example", "https://chat.example.or",
                            "http://chat.example.org", "https://chat.example.org:8443", "null"}) {
    const answered refused = from(other);
    EXPECT_EQ(refused.status, 403) << other;
    EXPECT_FALSE(refused.headers.contains("access-control-allow-origin"));
    EXPECT_EQ(refused.headers.at("vary"), "Origin") << "no cache may give this to a page that is named";
    EXPECT_NE(refused.body.find("http_origins"), std::string::npos);
  }
  const answered program = ask("GET", "/v1/models").get();
  EXPECT_EQ(program.headers.at("vary"), "Origin");
  EXPECT_FALSE(program.headers.contains("access-control-allow-origin"));
}

TEST_F(api_access, streams_to_pages_whose_origin_the_file_names) {
  origins_ = {"https://chat.example.org"};
  start();
  auto answer = ask("POST", "/v1/completions", R"({"prompt":"A","stream":true})", {{"origin", origins_[0]}});
  give(gateway_.take<begin_request>(), "B", "stop");
  const answered got = answer.get();
  EXPECT_EQ(got.headers.at("access-control-allow-origin"), "https://chat.example.org");
  EXPECT_NE(got.body.find("data: [DONE]"), std::string::npos);
}

TEST_F(api_access, tells_browsers_of_such_pages_what_they_may_send) {
  origins_ = {"https://chat.example.org"};
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  const auto may_send = [&](const std::string& origin, const std::string& path) {
    return ask("OPTIONS", path, {},
               {{"origin", origin},
                {"access-control-request-method", "POST"},
                {"access-control-request-headers", "authorization,content-type,x-stainless-os"}})
        .get();
  };
  for (const char* path : {"/v1/chat/completions", "/v1/nothing"}) {
    const answered yes = may_send(origins_[0], path);
    EXPECT_EQ(yes.status, 200) << "browsers send no key with this";
    EXPECT_EQ(yes.headers.at("access-control-allow-origin"), "https://chat.example.org");
    EXPECT_EQ(yes.headers.at("access-control-allow-methods"), "GET, POST, DELETE");
    EXPECT_EQ(yes.headers.at("access-control-allow-headers"), "authorization,content-type,x-stainless-os");
    EXPECT_EQ(yes.headers.at("vary"), "Origin");
  }
  const answered no = may_send("https://evil.example", "/v1/chat/completions");
  EXPECT_EQ(no.status, 405);
  EXPECT_FALSE(no.headers.contains("access-control-allow-origin"));
  const answered keyless = ask("GET", "/v1/models", {}, {{"origin", origins_[0]}}).get();
  EXPECT_EQ(keyless.status, 401) << "keys are still needed";
  EXPECT_EQ(keyless.headers.at("access-control-allow-origin"), "https://chat.example.org");
}

TEST_F(api_access, tells_no_page_anything_where_the_file_names_none) {
  const answered got = ask("OPTIONS", "/v1/models", {},
                           {{"origin", "https://chat.example.org"}, {"access-control-request-method", "GET"}})
                           .get();
  EXPECT_EQ(got.status, 405);
  EXPECT_FALSE(got.headers.contains("vary"));
}

TEST_F(api_access, serves_its_own_page_behind_a_proxy_that_says_by_what_name_it_was_asked) {
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

TEST_F(api_access, is_not_asked_by_a_strangers_name) {
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
  const std::string key = add_api_key(keys_file(), {.name = "ann"});
  start();
  EXPECT_EQ(status("models.example", "authorization: Bearer " + key + "\r\n"), "200") << "as behind a proxy";
}

TEST_F(api_access, asks_for_the_jobs_of_a_key_alone) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann"})),
             root = as_key(add_api_key(keys_file(), {.name = "root", .is_admin = true}));
  start();
  job_records(folder_.path() / "state" / "files").keep("batch_1", "{}");
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

TEST_F(api_access, leaves_it_to_admins_which_adapters_there_are) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann"})),
             root = as_key(add_api_key(keys_file(), {.name = "root", .is_admin = true}));
  start();
  const std::string body = R"({"lora_name":"pricing","lora_path":"/somewhere"})";
  const std::pair<const char*, const char*> all[] = {
      {"POST", "/v1/load_lora_adapter"}, {"POST", "/v1/unload_lora_adapter"}, {"DELETE", "/v1/models/pricing"}};
  for (const auto& [method, path] : all) {
    EXPECT_EQ(ask(method, path, body, ann).get().status, 403) << path;
    auto asked = ask(method, path, body, root);
    store_.take<command_call>().answer({"{}", "", {}});
    EXPECT_EQ(asked.get().status, 200) << path;
  }
}

TEST_F(api_access, runs_jobs_on_the_share_of_the_key_that_ordered_them) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann", .weight = 3}));
  start();
  const auto file_of = [&](const std::string& purpose, const std::string& content) {
    http_headers headers = ann;
    headers.insert(headers.end(), form_type.begin(), form_type.end());
    return ask("POST", "/v1/files", form(purpose, content, "in.jsonl"), headers).get().parsed()["id"];
  };
  const auto ordered = [&](const std::string& path, const json& body, auto& desk) {
    auto asked = ask("POST", path, body.dump(), ann);
    auto call = desk.template take<command_call>();
    call.answer({{}, "no", command_fault::bad_input});
    EXPECT_EQ(asked.get().status, 400);
    return json::parse(call.command.arguments);
  };
  const std::string line =
      R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"model": "letters", "prompt": "A"}})";
  const json batch =
      ordered("/v1/batches", {{"input_file_id", file_of("batch", line)}, {"endpoint", "/v1/completions"}}, jobs_);
  EXPECT_EQ(batch["tenant"], "ann");
  EXPECT_EQ(batch["options"]["weight"], 3);
  const json tuning =
      ordered("/v1/fine_tuning/jobs",
              {{"model", "letters"}, {"training_file", file_of("fine-tune", R"({"text": "abc"})")}}, training_);
  EXPECT_EQ(tuning["tenant"], "ann");
}

}  // namespace
}  // namespace troupe::test
