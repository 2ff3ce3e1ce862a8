// `troupe serve`: one model, no cluster's file.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class serve : public testing::Test {
 protected:
  process start(words arguments, const std::string& state = "state") const {
    words environment = site_.environment();
    environment.push_back("XDG_STATE_HOME=" + site_.path(state).string());
    arguments.insert(arguments.begin(), TROUPE_BINARY);
    return {arguments, site_.path(arguments[1]), environment};
  }

  const test_site site_;
  const test_cluster cluster_{site_, {}};  // its address and commands, not its nodes
  const std::string http_ = "127.0.0.1:" + std::to_string(free_port());
  const words serving_ = {"serve",    site_.model().string() + "/", "--quant", "u8", "--threads", "1",
                          "--listen", cluster_.endpoint(),          "--http",  http_};
};

TEST_F(serve, answers_until_it_is_ended_by_the_file_that_it_wrote) {
  site_.give_chat_template();
  words named = serving_;
  named.insert(named.end(), {"--name", "storyteller", "--adapter", "crimson=" + site_.adapter("red").string(),
                             "--http-origins", "http://a", "--http-origins", "http://b:81", "--need-keys"});
  process serving = start(named);
  ASSERT_TRUE(wait_until([&] { return serving.poll() || cluster_.running_replicas() > 0; })) << serving.error();
  EXPECT_NE(cluster_.run({"submit", "--tokens", "1,2,3", "--max-tokens", "4", "--ignore-eos", "--json"}), "");
  EXPECT_NE(cluster_.run({"submit", "--tokens", "1,2,3", "--max-tokens", "4", "--adapter", "crimson", "--json"}), "");
  const std::string file = (site_.path("state") / "troupe/storyteller/cluster.toml").string();
  ASSERT_TRUE(wait_until([&] { return serving.out().find(file) != std::string::npos; })) << serving.out();
  EXPECT_THAT(read_file(file), HasSubstr(R"(http_origins = ["http://a","http://b:81"])"));
  EXPECT_THAT(read_file(file), HasSubstr("need_keys = true\n"));
  EXPECT_THAT(serving.out(), HasSubstr("try:  troupe chat --connect " + cluster_.endpoint()));
  EXPECT_THAT(serving.out(),
              HasSubstr("page and API: http://" + http_ + "; requests need a key: troupe keys add " + file));
  process down({TROUPE_BINARY, "down", file}, site_.path("down"), {"HOME=/nowhere", "XDG_STATE_HOME="});
  EXPECT_EQ(down.wait(), 0) << "by the file alone: " << down.error();
  EXPECT_EQ(down.out(), "storyteller is down\n");
  EXPECT_EQ(serving.wait(), 0) << serving.error();
}

TEST_F(serve, is_ended_by_its_file_even_if_that_was_deleted_with_the_state_folder) {
  process serving = start(serving_);
  const std::filesystem::path file = site_.path("state") / "troupe/model/cluster.toml";
  ASSERT_TRUE(wait_until([&] { return serving.out().find(file.string()) != std::string::npos; })) << serving.error();
  process mistyped = start({"down", (file.parent_path() / "cluster.tml").string()});
  EXPECT_EQ(mistyped.wait(), 2) << "another file's name in a folder where a cluster is up";
  EXPECT_FALSE(serving.poll());
  std::filesystem::remove_all(file.parent_path());
  process down = start({"down", file.string()});
  EXPECT_EQ(down.wait(), 0) << down.error();
  EXPECT_EQ(serving.wait(), 0) << serving.error();
  process again = start({"down", file.string()});
  EXPECT_EQ(again.wait(), 2);
  EXPECT_THAT(again.error(), HasSubstr("there is no such file"));
}

TEST_F(serve, refuses_what_the_cluster_does_not_have_in_the_words_of_the_command_line) {
  words detached = serving_;
  detached.push_back("--detach");
  ASSERT_EQ(start(detached).wait(), 0);
  const auto refusal_of = [&](words arguments) {
    arguments.insert(arguments.begin(), TROUPE_BINARY);
    arguments.insert(arguments.end(), {"--connect", cluster_.endpoint()});
    process asked(arguments, site_.path("asked"), site_.environment());
    EXPECT_EQ(asked.wait(), 2);
    return asked.error();
  };
  EXPECT_THAT(refusal_of({"adapters", "unload", "nobody"}), HasSubstr("there is none: see troupe adapters list"));
  EXPECT_THAT(refusal_of({"adapters", "rollback", "nobody"}), HasSubstr("there is none: see troupe adapters list"));
  EXPECT_THAT(refusal_of({"submit", "--tokens", "1", "--stop-token", "999999"}),
              HasSubstr("troupe: --stop-token names token 999999"));
  const std::string odd = "x\xff", in = site_.write("in.jsonl", "{\"tokens\":[1]}\n").string();
  const std::string out = site_.path("out").string();
  for (const words& command :
       {words{"cancel", odd}, words{"jobs", "follow", odd}, words{"jobs", "forget", odd}, words{"jobs", "collect", odd},
        words{"drain", odd}, words{"adapters", "load", odd}, words{"adapters", "load", "x", "--path", odd},
        words{"adapters", "unload", odd}, words{"adapters", "rollback", odd},
        words{"adapters", "export", odd, "--out", out}, words{"submit", "--file", in, "--out", out, "--stop", odd}})
    EXPECT_EQ(refusal_of(command), "troupe: 'x?' is no UTF-8: write it in UTF-8\n") << command.front();
  EXPECT_EQ(start({"down", (site_.path("state") / "troupe/model/cluster.toml").string()}).wait(), 0);
}

TEST_F(serve, opens_no_http_where_its_address_is_empty) {
  words without = serving_;
  without.back() = "";
  without.push_back("--detach");
  process serving = start(without);
  EXPECT_EQ(serving.wait(), 0) << serving.error();
  EXPECT_THAT(serving.out(), Not(HasSubstr("page and API")));
  const std::string file = (site_.path("state") / "troupe/model/cluster.toml").string();
  EXPECT_THAT(read_file(file), HasSubstr("http = \"\"\n"));
  EXPECT_EQ(start({"down", file}).wait(), 0);
}

TEST_F(serve, says_that_other_addresses_answer_too_where_it_listens_at_all) {
  const std::string port = std::to_string(free_port());
  words everywhere = serving_;
  everywhere.back() = "*:" + port;
  everywhere.insert(everywhere.end(), {"--insecure", "--detach"});
  process serving = start(everywhere);
  EXPECT_EQ(serving.wait(), 0) << serving.error();
  EXPECT_THAT(serving.out(), HasSubstr("page and API: http://127.0.0.1:" + port + ", and at port " + port +
                                       " of this machine's other addresses\n"));
  EXPECT_EQ(start({"down", (site_.path("state") / "troupe/model/cluster.toml").string()}).wait(), 0);
}

TEST_F(serve, does_not_touch_the_file_of_what_is_up) {
  words detached = serving_;
  detached.push_back("--detach");
  ASSERT_EQ(start(detached).wait(), 0);
  const std::string file = (site_.path("state") / "troupe/model/cluster.toml").string();
  const std::string before = read_file(file);
  process again = start({"serve", site_.model().string(), "--quant", "q8"});
  EXPECT_EQ(again.wait(), 2);
  EXPECT_THAT(again.error(), HasSubstr("model is up already"));
  EXPECT_EQ(read_file(file), before);
  EXPECT_EQ(start({"down", file}).wait(), 0);
}

TEST_F(serve, is_not_left_behind_where_its_first_moments_are_interrupted) {
  words detached = serving_;
  detached.push_back("--detach");
  const std::filesystem::path state = site_.path("state") / "troupe/model";
  process serving = start(detached);
  ASSERT_TRUE(wait_until([&] { return std::filesystem::exists(state / "logs/up.log"); })) << serving.error();
  serving.signal(SIGINT);
  EXPECT_EQ(serving.wait(), 128 + SIGINT);
  process down = start({"down", (state / "cluster.toml").string()});
  EXPECT_EQ(down.wait(), 2) << "it went on";
}

TEST_F(serve, needs_no_chat_template_that_can_be_used) {
  const auto file = site_.model() / "tokenizer_config.json";
  auto config = nlohmann::ordered_json::parse(read_file(file));
  config["chat_template"] = 5;
  std::ofstream(file) << config.dump();
  words detached = serving_;
  detached.push_back("--detach");
  process serving = start(detached, "a state");
  ASSERT_EQ(serving.wait(), 0) << serving.error();
  EXPECT_THAT(serving.out(), HasSubstr("try:  troupe submit --prompt \"Once upon a time\" --connect "));
  const std::string written = (site_.path("a state") / "troupe/model/cluster.toml").string();
  EXPECT_THAT(serving.out(), HasSubstr("troupe down '" + written + "'\n")) << "as a shell takes it";
  EXPECT_EQ(start({"down", written}).wait(), 0);
}

TEST_F(serve, says_what_to_try_of_a_model_without_a_tokenizer) {
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) std::filesystem::remove(site_.model() / name);
  words detached = serving_;
  detached.push_back("--detach");
  process serving = start(detached);
  ASSERT_EQ(serving.wait(), 0) << serving.error();
  EXPECT_THAT(serving.out(), HasSubstr("try:  troupe submit --tokens 1,2,3 --connect "));
  EXPECT_NE(cluster_.run({"submit", "--tokens", "1,2,3", "--max-tokens", "4", "--json"}), "");
  EXPECT_EQ(start({"down", (site_.path("state") / "troupe/model/cluster.toml").string()}).wait(), 0);
}

TEST_F(serve, takes_no_folder_of_another_model_of_the_same_name) {
  const std::filesystem::path state = site_.path("state") / "troupe";
  std::filesystem::create_directories(state / "model");
  const std::string other = "[model]\npath = \"/elsewhere/model\"\n";
  std::ofstream(state / "model" / "cluster.toml") << other;
  words detached = serving_;
  detached.push_back("--detach");
  process serving = start(detached);
  ASSERT_EQ(serving.wait(), 0) << serving.error();
  EXPECT_THAT(serving.out(), HasSubstr("try:  troupe submit --prompt \"Once upon a time\" --connect "));
  EXPECT_THAT(serving.error(), HasSubstr("troupe: " + (state / "model").string() +
                                         " is the state folder of the model \"/elsewhere/model\": its keys, adapters "
                                         "and jobs stay there, and this is model-2; to go on there, write this model's "
                                         "path into " +
                                         (state / "model" / "cluster.toml").string() + "\n"));
  EXPECT_EQ(read_file(state / "model" / "cluster.toml"), other);
  process again = start(serving_);
  EXPECT_EQ(again.wait(), 2);
  EXPECT_THAT(again.error(), HasSubstr("model-2 is up already")) << "it finds its own folder again";
  EXPECT_EQ(start({"down", (state / "model-2" / "cluster.toml").string()}).wait(), 0);
}

}  // namespace
}  // namespace troupe::test
