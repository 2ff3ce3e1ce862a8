#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class api : public api_test {};

TEST_F(api, tokenizes_and_back) {
  const json made = post("/tokenize", {{"prompt", "Hi"}, {"return_token_strs", true}}).get().parsed();
  EXPECT_EQ(made["tokens"], json(letters("Hi")));
  EXPECT_EQ(made["count"], 2);
  EXPECT_EQ(made["token_strs"], json({"H", "i"}));
  EXPECT_EQ(post("/detokenize", {{"tokens", letters("Hi")}}).get().parsed()["prompt"], "Hi");
  EXPECT_EQ(post("/detokenize", {{"tokens", {100000}}}).get().status, 400);
}

TEST_F(api, tokenizes_a_chat_as_it_would_be_answered) {
  start("{{ messages[0]['content'] }}");
  const json chat{{"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  const auto with = [&](const char* name, const json& value) {
    json body = chat;
    body[name] = value;
    return body;
  };
  for (const auto& [name, value] : {std::pair("add_special_tokens", json(false)), {"chat_template", nullptr}})
    EXPECT_EQ(post("/tokenize", with(name, value)).get().parsed()["tokens"], json(letters("Hi"))) << name;
  EXPECT_EQ(post("/tokenize", with("truncate_prompt_tokens", 1)).get().parsed()["tokens"], json(letters("i")));
  json shortened = with("truncate_prompt_tokens", -1);
  shortened["max_tokens"] = 63;
  EXPECT_EQ(post("/tokenize", shortened).get().parsed()["count"], 1) << "of a context of 64";
  for (const auto& [name, value] :
       {std::pair("add_special_tokens", json(true)), {"chat_template", "{{ 1 }}"}, {"documents", {{{"text", "A"}}}}}) {
    const json error = error_of("/tokenize", with(name, value), 400);
    EXPECT_EQ(error["param"], name);
    EXPECT_EQ(error, error_of("/v1/chat/completions", with(name, value), 400));
  }
  EXPECT_EQ(error_of("/tokenize", with("prompt", "Hi"), 400)["message"],
            "prompt does not go with messages: leave one out");
}

TEST_F(api, says_where_texts_are_asked_for_that_the_model_has_no_tokenizer) {
  has_tokenizer_ = false;
  start();
  for (const char* path : {"/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize"})
    EXPECT_EQ(error_of(path, {{"prompt", "Hi"}, {"tokens", {1}}}, 501)["message"], "the model has no tokenizer")
        << path;
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

TEST_F(api, says_when_to_ask_again_where_too_many_bodies_are_on_their_way) {
  front_.reset();
  front_ = std::make_unique<http_front>(http_options{.bodies_bytes = 100'000}, parts());
  answered refused = post("/tokenize", {{"prompt", "Hi"}, {"padding", std::string(100'000, 'x')}}).get();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.headers["retry-after"], "1");
  EXPECT_EQ(refused.headers["retry-after-ms"], "1000");
  EXPECT_EQ(refused.parsed()["error"]["code"], "service_unavailable");
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
  EXPECT_TRUE(nothing.parsed()["error"]["message"].get<std::string>().starts_with("there is nothing at /v2/other: "));
  answered method = ask("GET", "/v1/completions").get();
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers["allow"], "POST");
  EXPECT_EQ(method.parsed()["error"]["message"], "/v1/completions has no GET: use POST");
}

TEST_F(api, tells_who_asks_in_the_wrong_place_where_it_is) {
  const auto told = [&](const std::string& method, const std::string& path, int status) {
    const answered got = ask(method, path, "{}").get();
    EXPECT_EQ(got.status, status) << path;
    EXPECT_TRUE(got.parsed()["error"]["message"].get<std::string>().ends_with(
        "OpenAI's API is at /v1: /v1/chat/completions, /v1/completions; Anthropic's at /v1/messages; LoRAX's and TGI's "
        "at /generate"))
        << got.body;
  };
  for (const char* path : {"/chat/completions", "/completion"}) told("POST", path, 404);
  for (const char* path : {"/models", "/api/tags"}) told("GET", path, 404);
}

TEST_F(api, takes_a_slash_behind_a_path_for_none) {
  EXPECT_EQ(ask("GET", "/v1/models/").get().parsed()["object"], "list");
}

}  // namespace
}  // namespace troupe::test
