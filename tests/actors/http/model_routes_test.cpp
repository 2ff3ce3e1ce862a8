#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class api_models : public api_test {};

TEST_F(api_models, lists_the_base_and_its_adapters) {
  publish_adapter();
  const json list = ask("GET", "/v1/models").get().parsed();
  ASSERT_EQ(list["data"].size(), 3u);
  EXPECT_EQ(list["data"][0]["id"], "letters");
  EXPECT_EQ(list["data"][0]["max_model_len"], 64);
  EXPECT_EQ(list["data"][0]["root"], "letters");
  EXPECT_TRUE(list["data"][0]["parent"].is_null());
  EXPECT_EQ(list["data"][2]["id"], "pricing@2");
  EXPECT_EQ(ask("GET", "/v1/models/letters").get().parsed(), list["data"][0]);
  EXPECT_EQ(ask("GET", "/v1/models/some/letters").get().parsed(), list["data"][0]);
  EXPECT_EQ(list["data"][1]["id"], "pricing");
  EXPECT_EQ(list["data"][1]["root"], "pricing@2");
  EXPECT_EQ(list["data"][1]["parent"], "letters");
  EXPECT_EQ(list["data"][1]["created"], 1234567890) << "when it was published";
  EXPECT_GT(list["data"][0]["created"], 1234567890) << "when the head began";
  EXPECT_EQ(ask("GET", "/v1/models/pricing%402").get().parsed(), list["data"][2]);
  EXPECT_EQ(ask("GET", "/v1/models/org/pricing").get().parsed(), list["data"][1]);
  for (const char* unknown : {"/v1/models/none", "/v1/models/some/other", "/v1/models/some%2Fother"})
    EXPECT_EQ(ask("GET", unknown).get().parsed()["error"]["code"], "model_not_found") << unknown;
}

TEST_F(api_models, publishes_adapters_in_vllms_way) {
  auto loading = post("/v1/load_lora_adapter", {{"lora_name", "pricing"}, {"lora_path", "/somewhere"}});
  const auto call = store_.take<command_call>();
  EXPECT_EQ(call.command.name, "adapters.load");
  EXPECT_EQ(json::parse(call.command.arguments), json({{"name", "pricing"}, {"path", "/somewhere"}}));
  call.answer({R"({"adapter":"pricing@1"})"});
  EXPECT_EQ(loading.get().parsed()["adapter"], "pricing@1");
  for (const char* path : {"/v1/load_lora_adapter", "/v1/unload_lora_adapter"}) {
    auto asking = post(path, {{"lora_name", "org/pricing"}});
    const auto asked = store_.take<command_call>();
    EXPECT_EQ(json::parse(asked.command.arguments), json({{"name", "pricing"}})) << "as Hugging Face calls it";
    asked.answer({R"({"adapter":"pricing@1"})"});
    EXPECT_EQ(asking.get().status, 200);
  }
  auto unloading = post("/v1/unload_lora_adapter", {{"lora_name", "none"}});
  store_.take<command_call>().answer({{}, "adapter none: is not here", command_fault::unknown});
  const answered refused = unloading.get();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.parsed()["error"]["param"], "lora_name");
}

TEST_F(api_models, tell_nobody_where_the_head_looks_for_adapters) {
  auto loading = post("/v1/load_lora_adapter", {{"lora_name", "pricing"}});
  store_.take<command_call>().answer({{}, "adapter pricing: no folder /srv/adapters/pricing", command_fault::unknown});
  const answered refused = loading.get();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.parsed()["error"]["message"],
            "adapter pricing: there is none: name its folder or file in lora_path");
}

TEST_F(api_models, tell_nobody_but_the_log_where_the_disk_is_full) {
  auto loading = post("/v1/load_lora_adapter", {{"lora_name", "pricing"}, {"lora_path", "/none"}});
  store_.take<command_call>().answer({.error = "/srv/store/x: cannot be written",
                                      .fault = command_fault::failed,
                                      .error_outside = "the server's disk is full"});
  const answered refused = loading.get();
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.parsed()["error"]["message"], "the server's disk is full");
  EXPECT_TRUE(is_soon([&] { return log().find("/srv/store/x: cannot be written") != std::string::npos; })) << log();
}

TEST_F(api_models, unloads_the_adapter_that_openais_clients_delete) {
  auto deleting = ask("DELETE", "/v1/models/pricing@2");
  const auto call = store_.take<command_call>();
  EXPECT_EQ(call.command.name, "adapters.unload");
  EXPECT_EQ(json::parse(call.command.arguments), json({{"name", "pricing@2"}}));
  call.answer({R"({"unloaded":["pricing@2"]})"});
  EXPECT_EQ(deleting.get().parsed(), json({{"id", "pricing@2"}, {"object", "model"}, {"deleted", true}}));
  deleting = ask("DELETE", "/v1/models/none");
  store_.take<command_call>().answer({{}, "adapter none: there is none", command_fault::unknown});
  const answered refused = deleting.get();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.parsed()["error"]["param"], "model");
}

TEST_F(api_models, names_the_field_of_an_adapter_that_cannot_be_loaded) {
  const auto field_of = [&](const json& body, command_fault fault) {
    auto loading = post("/v1/load_lora_adapter", body);
    store_.take<command_call>().answer({{}, "why it is refused", fault});
    return loading.get().parsed()["error"]["param"];
  };
  EXPECT_EQ(field_of({{"lora_name", "pricing"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_path");
  EXPECT_EQ(field_of({{"lora_name", "a b"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "letters"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "letters.gguf"}, {"lora_path", "/none"}}, command_fault::bad_input), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "pricing"}}, command_fault::unknown), "lora_name");
  EXPECT_EQ(field_of({{"lora_name", "pricing"}, {"lora_path", "/none"}}, command_fault::failed), nullptr);
}

}  // namespace
}  // namespace troupe::test
