#include <algorithm>

#include "base/file_descriptor.hpp"
#include "tests/base/loopback.hpp"
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

/// A port of loopback at which this process listens.
class taken_port {
 public:
  taken_port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    socklen_t size = sizeof address_;
    EXPECT_EQ(::bind(socket_.number(), reinterpret_cast<sockaddr*>(&address_), size), 0);
    EXPECT_EQ(::listen(socket_.number(), 1), 0);
    EXPECT_EQ(::getsockname(socket_.number(), reinterpret_cast<sockaddr*>(&address_), &size), 0);
  }
  int number() const { return ntohs(address_.sin_port); }

 private:
  file_descriptor socket_;
  sockaddr_in address_ = loopback(0);
};

/// What a cluster's file has.
struct file_plan {
  std::string listen = "tcp://127.0.0.1:7700";
  std::string in_cluster = {};
  std::string model = "model";
  std::string in_model = {};
  std::string in_head = {};
  std::string nodes = {};  ///< besides the head, which works
};

class cluster_commands : public program {
 protected:
  static constexpr const char* nobodys_port = "127.0.0.1:1";

  /// A line each for name, listen, http and state_dir, then what the plan has; [model] and [[node]] likewise.
  std::string cluster_file(const file_plan& has = {}) const {
    const std::string text =
        "[cluster]\nname = \"one\"\nlisten = \"" + has.listen + "\"\nhttp = \"\"\nstate_dir = \"" +
        path("state").string() + "\"\n" + has.in_cluster + "[model]\npath = \"" + has.model + "\"\n" + has.in_model +
        "\n[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\", \"worker\"]\n" + has.in_head + has.nodes;
    return folder().write("one.toml", text).string();
  }
  static std::string node(const std::string& name, const std::string& role, const std::string& more = {}) {
    return "[[node]]\nname = \"" + name + "\"\nroles = [\"" + role + "\"]\n" + more;
  }
  void head_refuses(const file_plan& has, const std::string& part) const {
    refused({"node", cluster_file(has), "--name", "head"}, part);
  }
  ran serve(words arguments, const std::string& http = nobodys_port,
            const std::string& listen = "tcp://127.0.0.1:2") const {
    arguments.insert(arguments.begin(), "serve");
    arguments.insert(arguments.end(), {"--http", http, "--listen", listen});
    return run(arguments, {"XDG_STATE_HOME=" + path("home").string()});
  }
};

TEST_F(cluster_commands, refuse_a_command_line_that_they_do_not_understand) {
  refused({"submit"}, "give one of them");
  refused({"submit", "--prompt", "x", "--tokens", "1"}, "give one of them");
  refused({"submit", "--file", "x"}, "--file and --out belong together");
  refused({"submit", "--prompt", "x", "--out", "x"}, "--file and --out belong together");
  refused({"submit", "--prompt", "x", "--new"}, "give --file");
  refused({"submit", "--tokens", "1", "--chat"}, "give --prompt");
  refused({"submit", "--prompt", "x", "--system", "y"}, "add --chat");
  refused({"submit", "--prompt", "x", "--logprobs", "1"}, "add --json");
  refused({"submit", "--prompt", "x", "--temperature", "-1"}, "troupe: --temperature is -1");
  refused({"submit", "--prompt", "x", "--top-p", "3"}, "troupe: --top-p is 3");
  refused({"chat", "--stop-token", "-4"}, "troupe: --stop-token names token -4");
  refused({"submit", "--prompt", "x", "--seed", "-2"}, "--seed");
  refused({"submit", "--prompt", "x", "--connect", "nonsense"}, "nonsense");
  refused({"submit", "--prompt", "x", "--key", path("nowhere").string()}, "nowhere");
  refused({"chat", "--json"}, "--json");
  refused({"adapters"}, "adapters");
  refused({"adapters", "load"}, "NAME");
  refused({"adapters", "load", "./law"}, "./law is a path: write troupe adapters load NAME --path ./law");
  refused({"adapters", "export", "x"}, "--out");
  refused({"cancel"}, "ID");
  refused({"drain"}, "NAME");
  refused({"up", (golden / "llama").string()}, "troupe serve takes a model, and says which file it writes");
  refused({"down", (golden / "llama").string()}, "troupe serve takes a model, and says which file it writes");
  refused({"keygen"}, "--out");
  refused({"status", "--blocks", "1"}, "unknown option --blocks");
  refused({"top", "--blocks", "-1"}, "--blocks");
}

TEST_F(cluster_commands, train_refuses_settings_by_their_flags_before_it_looks_for_a_cluster) {
  const auto train = [&](const words& flags, const std::string& part) {
    words all{"train", "--data", "lines.jsonl", "--adapter", "x", "--connect", "tcp://127.0.0.1:1"};
    all.insert(all.end(), flags.begin(), flags.end());
    refused(all, part);
  };
  train({"--lr", "-1"}, "troupe: --lr is -1: use a small positive number");
  train({"--rank", "513"}, "troupe: --rank is 513: use 1 to 512");
  train({"--held-out", "2"}, "troupe: --held-out is 2: use");
  train({"--trainers", "0"}, "troupe: --trainers is 0: use 1 to 64");
  train({"--trainers", "3", "--accumulate", "2"}, "it has 2: add --accumulate 3");
}

TEST_F(cluster_commands, refuse_words_that_no_cluster_could_be_told) {
  const std::string word = "x\xff";
  expect_one_line(serve({word}), 2, "troupe: 'x?' is no UTF-8, as a cluster's file must be: rename it");
}

TEST_F(cluster_commands, say_that_the_folder_that_they_run_in_was_deleted) {
  const std::string script = R"(mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$0" "$@")";
  for (const words& command : {words{"serve", readable_model().string()}, words{"adapters", "load", "x", "--path", "y"},
                               words{"bench", "serve", "--url", "http://127.0.0.1:1", "--out", "x"}}) {
    words all{"/bin/sh", "-c", script, TROUPE_BINARY, path("gone").string()};
    all.insert(all.end(), command.begin(), command.end());
    process lost(all, path("said"));
    EXPECT_EQ(lost.wait(), 2);
    EXPECT_EQ(lost.error(), "troupe: the folder that this runs in was deleted: change to another (cd)\n");
  }
}

TEST_F(cluster_commands, say_that_no_cluster_answers) {
  expect_one_line(run({"status", "--connect", "tcp://127.0.0.1:1"}), 1,
                  "no cluster answers at tcp://127.0.0.1:1: start one with troupe up or troupe serve, or");
  expect_one_line(run({"status"}, {"TROUPE_CONNECT=tcp://127.0.0.1:2"}), 1, "tcp://127.0.0.1:2");
}

TEST_F(cluster_commands, say_that_the_key_may_be_the_wrong_one) {
  EXPECT_EQ(run({"keygen", "--out", path("keys").string()}).code, 0);
  expect_one_line(run({"status", "--connect", "tcp://127.0.0.1:1", "--key", (path("keys") / "client.key").string()}), 1,
                  "or the key is another cluster's");
}

TEST_F(cluster_commands, make_keys_and_overwrite_none) {
  const ran made = run({"keygen", "--out", path("keys").string()});
  EXPECT_EQ(made.code, 0);
  EXPECT_NE(made.out.find("keys = \"" + path("keys").string() + "\" in [cluster]"), std::string::npos) << made.out;
  EXPECT_TRUE(std::filesystem::exists(path("keys") / "client.key"));
  refused({"keygen", "--out", path("keys").string()}, "is there already");
  refused({"keygen", "--out", path(std::string(300, 'k')).string()}, "cannot be written");
  EXPECT_EQ(run({"keygen", "--out", path("keys").string(), "--client", "ann"}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(path("keys") / "clients" / "ann.pub"));
}

TEST_F(cluster_commands, serve_refuses_what_cannot_work_and_names_no_file_that_the_user_did_not_write) {
  const std::string model = readable_model().string();
  refused({"serve"}, "MODEL is required");
  refused({"serve", ""}, "MODEL is empty");
  const std::string nowhere = path("nowhere").string();
  expect_one_line(serve({nowhere}), 2, "troupe: " + nowhere + ": there is no such model");
  expect_one_line(serve({model}, "0.0.0.0:8000"), 2,
                  "troupe: --http 0.0.0.0:8000 can be reached from other machines, without encryption: add --insecure");
  expect_one_line(serve({model}, nobodys_port, "tcp://*:7700"), 2, "troupe: --listen tcp://*:7700 can be reached");
  expect_one_line(serve({model, "--context", "999999"}), 2, "troupe: --context is 999999: the model has ");
  expect_one_line(serve({model, "--quant", "u9"}), 2, "troupe: --quant: unknown quantization 'u9': use f32");
  expect_one_line(serve({model, "--kv", "i4"}), 2, "troupe: --kv: unknown kind 'i4': use f16");
  for (const char* name : {"a\x01z", "a\x7fz"})
    expect_one_line(serve({model, "--name", name}), 2, "troupe: --name holds a control character");
  expect_one_line(serve({model}, "nonsense"), 2, "troupe: --http is \"nonsense\": write");
  expect_one_line(serve({model, "--http-origins", "http://a", "--http-origins", "http://b/page"}), 2,
                  "troupe: --http-origins has \"http://b/page\": write each page's origin");
  expect_one_line(serve({model, "--adapter", "law"}), 2, "troupe: --adapter law: write NAME=PATH");
  expect_one_line(serve({model, "--adapter", "law=" + nowhere}), 2,
                  "troupe: --adapter law: there is no folder or file " + nowhere);
  expect_one_line(serve({model, "--adapter", "law=" + path(std::string(300, 'l')).string()}), 2,
                  "lll: cannot be opened (File name too long): check the path and its permissions");
  expect_one_line(serve({model, "--adapter", "law=a", "--adapter", "law=b"}), 2,
                  "troupe: --adapter law has two folders: give one\n");
  std::filesystem::create_symlink(path("loop"), path("loop"));
  expect_one_line(serve({model, "--adapters", path("loop").string()}), 2,
                  "troupe: --adapters: " + path("loop").string() + " cannot be listed (Too many levels of symbolic");
  const std::string foreign = (golden / "gpt2" / "adapter").string();
  expect_one_line(serve({model, "--adapter", "law=" + foreign}), 2, foreign);
  const std::string own_name = std::filesystem::path(model).filename().string();
  for (const std::string& name : {std::string("of law"), std::string("base"), own_name})
    expect_one_line(serve({model, "--adapter", name + "=" + path(".").string()}), 2,
                    "troupe: --adapter name '" + name + "': take ");
  expect_one_line(serve({model, "--threads", "-1"}), 2, "--threads is -1");
  expect_one_line(serve({model, "--keep", "x"}), 2, "--keep without --quant");
  EXPECT_FALSE(std::filesystem::exists(path("home")));
}

TEST_F(cluster_commands, serve_says_which_adapters_no_request_can_name) {
  for (const char* name : {"my lora", "fine", ".hidden", "für uns"})
    std::filesystem::create_directories(path("all") / name);
  folder().write("all/a b.txt", "");
  const ran got =
      serve({readable_model().string(), "--adapters", path("all").string(), "--adapter", "x=" + path("none").string()});
  EXPECT_EQ(got.code, 2);
  EXPECT_EQ(got.error.find("troupe: " + path("all").string() +
                           ": no request can name für uns and 1 more: take 1 to 64 letters, digits, "),
            0u)
      << got.error;
}

TEST_F(cluster_commands, serve_opens_no_model_that_moved_away_from_its_keys) {
  const taken_port taken;
  const std::string model = readable_model().string(), address = "127.0.0.1:" + std::to_string(taken.number());
  const std::filesystem::path before = path("home") / "troupe" / "readable";
  std::filesystem::create_directories(before);
  folder().write("home/troupe/readable/cluster.toml", "[model]\npath = \"/elsewhere/readable\"\n");
  expect_one_line(serve({model}, address), 1, "the port is in use");
  folder().write("home/troupe/readable/api_keys.json", R"({"keys": []})");
  expect_one_line(serve({model}, address), 2,
                  before.string() +
                      " is the state folder of the model \"/elsewhere/readable\", which has API keys, and "
                      "readable-2 would answer without: to go on there, write this model's path into " +
                      (before / "cluster.toml").string() + "; --need-keys gives it keys of its own");
  expect_one_line(serve({model, "--need-keys"}, address), 1, "the port is in use");
  expect_one_line(serve({model, "--name", "other"}, address), 1, "the port is in use");
  std::filesystem::create_directories(path("home") / "troupe" / "readable-2");
  folder().write("home/troupe/readable-2/cluster.toml", "[model]\npath = \"" + model + "\"\n");
  folder().write("home/troupe/readable-2/api_keys.json", R"({"keys": []})");
  expect_one_line(serve({model}, address), 1, "the port is in use");
}

TEST_F(cluster_commands, find_a_port_that_is_taken_before_anything_starts) {
  const taken_port taken;
  const std::string model = readable_model().string(), address = "127.0.0.1:" + std::to_string(taken.number());
  const std::string problem = address + ": the port is in use: set another ";
  expect_one_line(serve({model}, address), 1, "troupe: http " + problem + "http in [cluster] (troupe serve: --http)");
  expect_one_line(serve({model}, nobodys_port, "tcp://" + address), 1,
                  "troupe: listen tcp://" + problem + "listen in [cluster] (troupe serve: --listen)");
  expect_one_line(serve({path("nowhere").string()}, address), 2, "there is no such model");
  EXPECT_FALSE(std::filesystem::exists(path("home")));
}

TEST_F(cluster_commands, refuse_layers_to_leave_unquantized_where_nothing_is_quantized) {
  head_refuses({.in_model = "keep = [\"zzz\"]"}, "but model.quant no scheme for the others");
}

TEST_F(cluster_commands, refuse_more_memory_for_keys_and_values_than_the_machine_has) {
  head_refuses({.in_model = "[scheduler]\nkv_memory = \"100TiB\""},
               "one.toml:9:13: kv_memory is 100.0 TiB: this machine has ");
}

TEST_F(cluster_commands, refuse_to_train_a_mixture_of_experts_on_gpus_even_of_other_nodes) {
  head_refuses({.model = (golden / "mixtral").string(), .nodes = node("coach", "trainer", "device = \"cuda:0\"\n")},
               "one.toml:15:10: the model is a mixture of experts, which only processors train so far: use cpu");
}

TEST_F(cluster_commands, refuse_gpus_for_experts_of_several_schemes) {
  head_refuses({.model = (golden / "mixtral").string(),
                .in_model = "quant = \"u8\"\nkeep = [\"experts.0.\"]",
                .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
               "one.toml:16:10: GPUs want the experts of a layer in one scheme, so keep all of them or none: use cpu");
}

TEST_F(cluster_commands, refuse_a_gpu_for_what_processors_alone_compute) {
  head_refuses(
      {.model = (golden / "gpt-oss").string(), .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
      "one.toml:15:10: attention sinks and gpt-oss's experts are computed by processors alone so far: use cpu");
  head_refuses({.model = (golden / "qwen2-moe").string(), .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
               "one.toml:15:10: experts with an mlp beside them, or chosen by sigmoids, are computed by processors");
  head_refuses({.model = (golden / "ministral3").string(), .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
               "one.toml:15:10: queries that grow with the position are computed by processors alone so far: use cpu");
  for (const char* role : {"worker", "trainer"})
    head_refuses(
        {.model = (golden / "cohere2").string(), .nodes = node("w1", role, "device = \"cuda:0\"\n")},
        "one.toml:15:10: attention and mlp beside each other are computed by processors alone so far: use cpu");
}

TEST_F(cluster_commands, refuse_to_cut_the_layers_of_a_mixture_of_experts) {
  head_refuses({.in_cluster = "tensor = 2\n", .model = (golden / "qwen3-moe").string(), .nodes = node("w1", "worker")},
               "one.toml:6:10: the model is a mixture of experts, which the workers of a stage cannot share");
}

TEST_F(cluster_commands, refuse_what_models_that_keep_states_cannot_have) {
  const std::string model = (golden / "qwen3.5").string();
  head_refuses({.in_cluster = "tensor = 2\n", .model = model, .nodes = node("w1", "worker")},
               "one.toml:6:10: the model has layers that keep states, or gates of attention, which the workers of a "
               "stage cannot share: use 1, and more stages");
  head_refuses({.model = model, .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
               "one.toml:15:10: layers that keep states, and gates of attention, are computed by processors alone so "
               "far: use cpu");
  head_refuses({.model = model, .in_model = "[scheduler]\nkv_memory = \"1MiB\"\nmax_sequences = 50"},
               "one.toml:10:17: max_sequences is 50: the states of so many sequences take 1.00 MiB, and kv_memory is "
               "1.00 MiB: write 49 at most, or more kv_memory");
}

TEST_F(cluster_commands, refuse_to_cut_layers_that_read_what_others_made) {
  const std::string model = (golden / "gemma4-small").string();
  const std::string reason = "layers of the model read keys of others, or what belongs to a row's token";
  head_refuses({.in_cluster = "stages = 2\n", .model = model, .nodes = node("w1", "worker")},
               "one.toml:6:10: " + reason + ", so that one worker must have them all: use 1, and more replicas");
  head_refuses({.model = model, .nodes = node("w1", "worker", "layers = \"0-1\"\n")}, "one.toml:15:10: " + reason);
  const std::string of_two_heads = (golden / "gemma4").string();
  head_refuses({.in_cluster = "tensor = 2\n", .model = of_two_heads, .nodes = node("w1", "worker")},
               "one.toml:6:10: the model has layers whose heads differ, or that share keys and values, which the");
  head_refuses({.model = model, .nodes = node("w1", "worker", "device = \"cuda:0\"\n")},
               "one.toml:15:10: layers whose heads differ, or that share keys and values, are computed by processors");
}

TEST_F(cluster_commands, refuse_nodes_that_are_not_in_the_file) {
  refused({"node", cluster_file(), "--name", ""}, "--name is empty");
  for (const char* name : {"w 7", "../w7", ".w7"})
    refused({"node", cluster_file(), "--name", name}, "--name " + std::string(name) + ": use at most 64 letters");
  const file_plan apart{
      .listen = "tcp://192.0.2.1:7700", .in_cluster = "insecure = true\n", .in_head = "host = \"192.0.2.1\"\n"};
  refused({"node", cluster_file(apart), "--name", "w7"},
          "head on 192.0.2.1 could not reach one that is not in the file");
  const file_plan on_gpus{.in_cluster = "tensor = 2\n",
                          .in_head = "device = \"cuda:0\"\n",
                          .nodes = node("w1", "worker", "device = \"cuda:1\"\n")};
  refused({"node", cluster_file(on_gpus), "--name", "w7"}, "shares no stage with GPUs such as that of head");
}

/// After an exit code of failure `up` would start it for ever.
TEST_F(cluster_commands, end_in_peace_a_node_that_was_taken_out_of_the_file) {
  expect_one_line(run({"node", cluster_file(), "--name", "w7", "--listed"}), 0, "no node is called w7 any more");
}

TEST_F(cluster_commands, refuse_a_state_folder_that_cannot_be_made_as_what_would_fail_again) {
  readable_model("model");
  folder().write("state", "no folder");
  head_refuses({.listen = "ipc://" + path("socket").string()}, path("state").string() + ": cannot be written");
}

TEST_F(cluster_commands, serve_refuses_a_state_home_that_cannot_be_made_as_what_would_fail_again) {
  const words serve{"serve", readable_model().string(), "--http", nobodys_port, "--listen", "tcp://127.0.0.1:2"};
  expect_one_line(run(serve, {"XDG_STATE_HOME=/proc/nowhere"}), 2,
                  "choose another folder by state_dir or XDG_STATE_HOME");
}

TEST_F(cluster_commands, say_that_nobody_is_let_in_where_the_file_needs_keys_and_there_are_none) {
  const ran listed = run({"keys", "list", cluster_file({.in_cluster = "need_keys = true\n"})});
  EXPECT_EQ(listed.code, 0) << listed.error;
  EXPECT_EQ(listed.out, "there are no keys in " + (path("state") / "api_keys.json").string() +
                            ", and the cluster's file says need_keys: the server lets nobody in until one is added\n");
}

TEST_F(cluster_commands, say_what_keys_there_are) {
  const std::string file = cluster_file();
  const auto keys = [&](words more) {
    more.insert(more.begin() + 1, file);
    more.insert(more.begin(), "keys");
    const ran got = run(more);
    EXPECT_EQ(got.code, 0) << got.error;
    const std::string changed = "changed: " + (path("state") / "api_keys.json").string() + "\n";
    EXPECT_EQ(got.error.find("keys are for HTTP alone") != std::string::npos, more[1] == "add") << "others need none";
    EXPECT_TRUE(got.error.ends_with(more[1] == "list" ? "" : changed)) << got.error;
    return got.out;
  };
  EXPECT_NE(keys({"list"}).find("whoever reaches the server may use it"), std::string::npos);
  EXPECT_EQ(run_json({"keys", "list", file}), nullptr);
  keys({"add", "ann", "--weight", "3", "--tokens-per-minute", "9"});
  EXPECT_EQ(keys({"limit", "ann", "--concurrent", "2"}), "ann: 9 tokens/min, 2 at a time, weight 3\n");
  EXPECT_EQ(keys({"limit", "ann", "--tokens-per-minute", "0"}), "ann: 2 at a time, weight 3\n");
  keys({"revoke", "ann"});
  EXPECT_EQ(run_json({"keys", "list", file}), json::array());
  keys({"add", "eve", "--admin"});
  const json list = run_json({"keys", "list", file});
  EXPECT_EQ(list[0]["name"], "eve");
  EXPECT_EQ(list[0]["admin"], true);
  EXPECT_NE(keys({"list"}).find(" UTC  no limits, admin\n"), std::string::npos);
  keys({"revoke", "eve"});
  const std::string theirs = folder().write("theirs", "sk-1234567890abcdef\n").string();
  EXPECT_EQ(keys({"add", "old", "--from", theirs}), "old: added\n");
  EXPECT_EQ(run_json({"keys", "list", file})[0]["shown"], "sk-123");
  refused({"keys", "add", file, "again", "--from", theirs}, "key again: old has the same: revoke it first");
  keys({"revoke", "old"});
  for (const char* bad : {"sk-123", "sk-1234567890 abcdef", "sk-1234567890abcdef\n\n"})
    refused({"keys", "add", file, "old", "--from", folder().write("bad", bad).string()},
            "key old: a key's text has 16 to 256 letters, digits and signs");
  refused({"keys", "add", file, "old", "--from", folder().write("bad", "\n").string()}, "bad: is empty: write the key");
  EXPECT_EQ(keys({"list"}), "no key is left: the server lets nobody in until one is added\n");
}

}  // namespace
}  // namespace troupe::test
