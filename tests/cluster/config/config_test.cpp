#include "cluster/config/config.hpp"
#include "cluster/config/config_address.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cluster/config/config_place.hpp"
#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

const std::string two_workers = R"(
[cluster]
name = "rooms"
state_dir = "state"
[model]
path = "models/llama"
[[node]]
name = "head"
roles = ["router", "scheduler"]
[[node]]
name = "w0"
roles = ["worker"]
[[node]]
name = "w1"
roles = ["worker"]
)";

cluster_config parse(const std::string& text) {
  return parse_cluster_config(text, "/etc/rooms.toml");
}

/// The error of a text that must be refused.
std::string refusal_of(const std::string& text) {
  return test::refusal([&] { parse(text); });
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// Two workers, with further lines in [cluster] or at the end of w1.
std::string with(const std::string& cluster_lines, const std::string& last_lines = "") {
  return changed(two_workers, "name = \"rooms\"\n", "name = \"rooms\"\n" + cluster_lines) + last_lines;
}

TEST(config, fills_in_what_is_left_out) {
  const cluster_config config = parse(two_workers);
  EXPECT_EQ(config.name, "rooms");
  EXPECT_EQ(config.source, "/etc/rooms.toml");
  EXPECT_EQ(config.listen, "tcp://127.0.0.1:7700");
  EXPECT_EQ(config.head_endpoint(), "tcp://127.0.0.1:7700");
  EXPECT_EQ(config.http, "127.0.0.1:8000");
  EXPECT_EQ(config.state_dir, "/etc/state");
  EXPECT_EQ(config.adapters.dir, "/etc/state/adapters");
  EXPECT_EQ(config.model.path, "/etc/models/llama");
  EXPECT_EQ(config.model.quant, "");
  EXPECT_LT(config.heartbeat_ms + config.lost_after_ms, 2000) << "a dead worker is noticed within two seconds";
  ASSERT_EQ(config.nodes.size(), 3u);
  EXPECT_EQ(config.head().name, "head");
  EXPECT_EQ(config.head().listen, config.listen);
  EXPECT_EQ(config.nodes[1].listen, "tcp://127.0.0.1:0");
  EXPECT_TRUE(config.find("w1")->is_worker());
  EXPECT_EQ(config.find("w2"), nullptr);
}

TEST(config, takes_a_models_name_from_a_path_that_ends_with_a_slash) {
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "models/llama/")).model.path, "/etc/models/llama");
}

TEST(config, calls_a_model_in_a_file_by_its_name_without_the_ending) {
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "models/tiny-Q8_0.gguf")).model.name, "tiny-Q8_0");
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "models/TINY.GGUF")).model.name, "TINY");
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "models/.gguf")).model.name, ".gguf");
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "models/Big-00001-of-00002.gguf")).model.name, "Big");
}

TEST(config, calls_a_model_in_a_blob_of_ollama_by_the_first_digits) {
  const std::string digits = "183715c435899236895da3869489cc30ac241476b4971a20285b1a462818a5b4";
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "blobs/sha256-" + digits)).model.name, "sha256-183715c43589");
  EXPECT_EQ(parse(changed(two_workers, "models/llama", "sha256-" + digits + "-f16")).model.name,
            "sha256-" + digits + "-f16");
}

TEST(config, knows_a_models_name_in_hugging_faces_cache) {
  EXPECT_EQ(model_name_of("/m/Qwen3-0.6B"), "Qwen3-0.6B");
  EXPECT_EQ(model_name_of("/m/tiny.gguf"), "tiny.gguf");
  EXPECT_EQ(model_name_of("/hub/models--Qwen--Qwen3-0.6B/snapshots/c1899de289a0"), "Qwen3-0.6B");
  EXPECT_EQ(model_name_of("/hub/models--Qwen--Qwen3-0.6B"), "Qwen3-0.6B");
  EXPECT_EQ(model_name_of("/m/snapshots/mine"), "mine");
}

TEST(config, hosts_say_where_nodes_listen_and_are_reached) {
  std::string text = with("insecure = true\nlisten = \"tcp://0.0.0.0:7801\"\n");
  for (const auto& [node, host] : {std::pair{"head", "10.0.0.1"}, {"w0", "10.0.0.3"}, {"w1", "node-3"}})
    text =
        changed(text, fmt::format("name = \"{}\"\n", node), fmt::format("name = \"{}\"\nhost = \"{}\"\n", node, host));
  const cluster_config config = parse(text);
  EXPECT_EQ(config.head_endpoint(), "tcp://10.0.0.1:7801");
  EXPECT_EQ(config.find("w0")->listen, "tcp://10.0.0.3:0");
  EXPECT_EQ(config.find("w1")->listen, "tcp://*:0") << "a name is no address to bind to";
  EXPECT_EQ(parse(two_workers).find("w1")->listen, "tcp://127.0.0.1:0");
}

TEST(config, says_where_a_key_stands) {
  const cluster_config config = parse(with("", "layers = \"11\"\n"));
  EXPECT_EQ(config.find("w1")->layers, (layer_range{11, 11}));
  EXPECT_EQ(place_of(config, "node.w1.layers"), "/etc/rooms.toml:16:10");
  EXPECT_EQ(place_of(config, "node.w1.memory"), "/etc/rooms.toml:13:1") << "the node, where the key is not there";
  EXPECT_EQ(place_of(config, "nothing.at.all"), "/etc/rooms.toml:1:1");
}

/// two_workers, with these lines in their nodes and in [cluster].
std::string with_in_both(const std::string& in_w0, const std::string& in_w1, const std::string& cluster_lines = "") {
  return changed(changed(with(cluster_lines), "name = \"w0\"", in_w0 + "name = \"w0\""), "name = \"w1\"",
                 in_w1 + "name = \"w1\"");
}

TEST(config, workers_that_say_their_memory_share_a_gpu) {
  const std::string gpu = "device = \"cuda:0\"\n", memory = "memory = \"16GiB\"\n";
  EXPECT_EQ(parse(with_in_both(gpu + memory, gpu + memory)).find("w1")->device, device_id{0});
  EXPECT_EQ(parse(with_in_both(gpu, "device = \"cuda:1\"\n")).find("w1")->device, device_id{1});
}

struct broken {
  std::string text;  ///< with a mark, which is none of it, where the fault is
  std::string words;
};

/// Before the first such part.
std::string marked(const std::string& text, const std::string& part) {
  return changed(text, part, "«" + part);
}

/// "4:13" for a mark in the fourth line, which is taken out.
std::string take_place(std::string& text) {
  constexpr std::string_view mark = "«";
  const std::size_t at = text.find(mark);
  if (at == std::string::npos) return "no mark";
  text.erase(at, mark.size());
  const std::string before = "\n" + text.substr(0, at);
  return fmt::format("{}:{}", std::count(before.begin(), before.end(), '\n'), before.size() - before.rfind('\n'));
}

void expect_refused(const std::vector<broken>& cases) {
  for (auto [text, words] : cases) {
    const std::string place = take_place(text), said = refusal_of(text);
    EXPECT_TRUE(said.starts_with("/etc/rooms.toml:" + place + ": ")) << said << "\nexpected " << place;
    EXPECT_NE(said.find(words), std::string::npos) << said << "\nexpected: " << words;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

/// two_workers, with other lines in [model].
std::string with_model(const std::string& lines) {
  return changed(two_workers, "path = \"models/llama\"\n", lines);
}

/// The same, with these lines at the end of the head.
std::string with_in_head(const std::string& lines) {
  return changed(two_workers, "\"scheduler\"]\n", "\"scheduler\"]\n" + lines);
}

/// The same, with other roles of w0.
std::string with_roles(const std::string& roles) {
  return changed(two_workers, "[\"worker\"]", roles);
}

TEST(config, refuses_what_it_cannot_read) {
  expect_refused({
      {"[cluster«\n", "no valid TOML"},
      {"[cluster]\nname = \"a\"\nname = «\"b\"\n", "no valid TOML"},
      {"[node]\nname = \"a\"\n«[node]\n", "write [[node]] for each"},
      {"node = «3\n", "write [[node]] for each"},
      {"«[[cluster]]\n", "should be a table"},
      {with("«repilcas = 2\n"), "unknown key \"repilcas\" in [cluster]: did you mean \"replicas\"?"},
      {with("«qqq = 2\n"), "known are name, listen"},
      {two_workers + "[«nodes]\n", "did you mean \"node\"?"},
      {with("", "«keep = \"x\"\n"), "unknown key \"keep\" in [[node]]"},
      {with("replicas = «\"two\"\n"), "replicas should be a whole number, but is a text"},
      {with("replicas = «1.5\n"), "replicas should be a whole number, but is a number with a fraction"},
      {with("replicas = «1979-05-27\n"), "a date or time"},
      {with("respawn = «\"yes\"\n"), "should be true or false"},
      {with("listen = «7700\n"), "should be a text"},
      {with("http_origins = «\"https://a.example\"\n"), "should be a list of texts"},
      {with("ssh = [\"ssh\", «4]\n"), "should be a text"},
      {with_roles("«\"worker\""), "should be a list of roles"},
      {with("", "layers = «4\n"), "should be layers as \"0-10\""},
      {with("", "layers = «\"3-1\"\n"), "write \"0-10\""},
      {"[adapters]\npreload = «[\"law=\"]\n", "write \"NAME\" or \"NAME=FOLDER\""},
  });
}

TEST(config, refuses_values) {
  expect_refused({
      {changed(two_workers, "\"state\"", "«\"~/state\""), "state_dir is \"~/state\": write the whole path"},
      {changed(two_workers, "\"models/llama\"", "«\"$HOME/llama\""), "path is \"$HOME/llama\": write the whole"},
      {with("", "[adapters]\npreload = «[\"law=~/law\"]\n"), "preload is \"~/law\": write the whole path"},
      {with("", "config = «\"here.toml\"\n"), "whole path"},
      {with("replicas = «-1\n"), "replicas is -1: allowed are 0 to"},
      {with("keep_jobs_days = «-1\n"), "allowed are 0 to 36500"},
      {with("", "[scheduler]\nsteps_in_flight = «257\n"), "allowed are 0 to 256"},
      {with("lost_after_ms = «300\n"), "use 600 or more"},
      {with("heartbeat_ms = «500\n"), "use 1500 or more"},
      {with("ssh = «[]\n"), "name the command"},
      {with("", "ssh = «\"-oProxyCommand=x\"\n"), "USER@HOST"},
      {with("collective = «\"mpi\"\n"), "choose one of gloo, nccl"},
      {marked(changed(two_workers, "name = \"rooms\"\n", ""), "[cluster]"), "the cluster has no name"},
      {changed(two_workers, "\"rooms\"", "«\"../rooms\""), "use at most 64 letters"},
      {marked(changed(two_workers, "path = \"models/llama\"\n", ""), "[model]"), "there is no model"},
      {with_model("name = «\"org/mine\"\n"),
       "name is \"org/mine\": write \"mine\", which requests may call \"org/mine\", too"},
      {with_model("path = \"m\"\ncontext = «1\n"), "use 2 or more"},
      {with("", "[scheduler]\nkv_memory = «\"4 apples\"\n"), "amount of memory"},
      {with("", "[scheduler]\nkv_memory = «0\n"), "amount of memory"},
      {with("", "device = «\"gpu\"\n"), "write \"cpu\" or \"cuda:0\""},
      {"[adapters]\npreload = «[\"law=a\", \"tax=a\", \"law=b\"]\n", "adapter law has two folders: give one"},
  });
}

TEST(config, refuses_addresses) {
  const std::string far = "[[node]]\nname = \"far\"\nhost = \"10.0.0.9\"\nroles = [\"worker\"]\n";
  expect_refused({
      {with("listen = «\"tcp://127.0.0.1\"\n"), "write \"tcp://HOST:PORT\""},
      {with("listen = «\"tcp://127.0.0.1:65536\"\n"), "the port at most 65535"},
      {with("listen = «\"tcp://127.0.0.1:0\"\n"), "have to know the port"},
      {with("listen = «\"tcp://vm:7700\"\ninsecure = true\n"), "or listen at every one with tcp://*:7700"},
      {with("insecure = true\n", "listen = «\"tcp://vm:0\"\n"), "listen has the name vm"},
      {with("listen = «\"udp://127.0.0.1:1\"\n"), "tcp://HOST:PORT"},
      {with("http = «\"8000\"\n"), "write \"HOST:PORT\""},
      {with("http = «\"127.0.0.1:7700\"\n"), "use another port"},
      {with("http_origins = «[\"*\"]\n"), "http_origins has \"*\": write each page's origin"},
      {with("http = «\"0.0.0.0:8000\"\n"), "insecure = true (troupe serve: --insecure)"},
      {with("listen = «\"tcp://0.0.0.0:7700\"\n"), "troupe keygen"},
      {with("listen = «\"tcp://10.1.2.3:7700\"\n"), "troupe keygen"},
      {with("http = «\"127.0.0.1:0\"\n"), "clients have to know it"},
      {with("", "host = «\"-oProxyCommand=x\"\n"), "one machine"},
      {with("", "listen = «\"tcp://0.0.0.0:0\"\n"), "troupe keygen"},
      {with("", "listen = «\"tcp://127.0.0.1:7700\"\n"), "use another port"},
      {two_workers + marked(far, "\"10.0.0.9\""), "troupe keygen"},
      {marked(with("insecure = true\n") + far, "[cluster]"),
       "head listens at tcp://127.0.0.1:7700, where far on 10.0.0.9 cannot"},
      {marked(with("insecure = true\nlisten = \"tcp://*:7700\"\n") + far, "[[node]]"),
       "far on 10.0.0.9 cannot reach it: give the host by an address that the other hosts see"},
  });
}

TEST(config, refuses_roles) {
  expect_refused({
      {changed(two_workers, "[[node]]\nname = \"w1\"\n", "«[[node]]\n"), "has no name"},
      {changed(two_workers, "\"w1\"", "«\"w0\""), "two nodes with the name \"w0\""},
      {marked(changed(two_workers, "\"router\", ", ""), "[[node]]"), "no node is router"},
      {marked(changed(two_workers, ", \"scheduler\"", ""), "[[node]]"), "no node is scheduler"},
      {with_roles("«[\"router\"]"), "head and w0 are both router"},
      {changed(with_roles("«[\"worker\", \"scheduler\"]"), "\"router\", \"scheduler\"", "\"router\""),
       "one node, the head"},
      {with_roles("«[]"), "is empty: choose some of"},
      {with_roles("[«\"warker\"]"), "choose one of router"},
      {with_roles("[\"worker\", «\"worker\"]"), "twice"},
      {marked(changed(with_roles("[\"trainer\"]"), "[\"worker\"]", "[\"trainer\"]"), "[[node]]"), "no node is worker"},
      {with_in_head("layers = «\"0-1\"\n"), "is no worker"},
      {with("", "[[node]]\nname = \"t0\"\nroles = [\"trainer\"]\nmemory = «\"1GiB\"\n"),
       "t0 has memory and is no worker: take it out"},
      {with_in_head("listen = «\"tcp://127.0.0.1:1\"\n"), "is the head"},
      {with_in_head("autostart = «false\n"), "without it there is no cluster"},
  });
}

TEST(config, refuses_what_does_not_fit_together) {
  expect_refused({
      {with("replicas = «3\n"), "need 3 workers, but 2 start"},
      {with("stages = «3\n"), "need 3 workers"},
      {with("tensor = «4\n"), "need 4 workers"},
      {with("replicas = 1\n", "replica = «1\n"), "the last one is 0"},
      {with("collective = «\"nccl\"\ntensor = 2\n"), "w0 computes on the processor: use gloo"},
      {with_in_both("device = \"cuda:1\"\n", "device = \"cuda:1\"\n", "collective = «\"nccl\"\ntensor = 2\n"),
       "w0 and w1 share cuda:1: use gloo"},
      {with_in_both("host = \"localhost\"\ndevice = \"cuda:1\"\n", "device = \"cuda:1\"\n",
                    "collective = «\"nccl\"\ntensor = 2\n"),
       "w0 and w1 share cuda:1: use gloo"},
      {with_in_both("", "device = \"cuda:0\"\n", "tensor = «2\n"), "w0 has the device cpu, w1 the device cuda:0"},
      {with_in_both("", "host = \"10.0.0.9\"\nlisten = \"tcp://127.0.0.1:0\"\n", "tensor = «2\n"),
       "w0 and w1 are on two hosts"},
      {with_in_both("device = \"cuda:0\"\n", "device = «\"cuda:0\"\n"),
       "w0 and w1 share cuda:0: give each a GPU of its own, or a memory"},
      {with_in_both("host = \"localhost\"\ndevice = \"cuda:0\"\n", "device = «\"cuda:0\"\nmemory = \"16GiB\"\n"),
       "w0 and w1 share cuda:0"},
      {with("", "autostart = false\n[scheduler]\nmax_sequences = «4096\n"), "less than max_sequences"},
      {with_in_both("", "autostart = false\n", "replicas = «2\n"),
       "but 1 starts (w1: autostart = false, which does not count): add nodes"},
      {with_in_both("autostart = «false\n", "autostart = false\n"), "no worker starts with the cluster"},
  });
}

std::string by_hand(const std::string& first, const std::string& second, const std::string& cluster_lines = "") {
  return changed(with(cluster_lines, second + "\n"), "name = \"w0\"\n", "name = \"w0\"\n" + first + "\n");
}

TEST(config, checks_layers_that_were_placed_by_hand) {
  EXPECT_EQ(refusal_of(by_hand("layers = \"0-3\"", "layers = \"4-7\"")), "");
  EXPECT_NE(
      refusal_of(by_hand("layers = \"0-3\"", "layers = \"3-7\"")).find("17:10: layers 3-7 of w1 overlap those of w0"),
      std::string::npos);
  EXPECT_NE(
      refusal_of(by_hand("layers = \"0-3\"", "layers = \"5-7\"")).find("17:10: layers 4-4 of replica 0 are on no"),
      std::string::npos);
  EXPECT_NE(
      refusal_of(by_hand("layers = \"1-3\"", "layers = \"4-7\"")).find("12:10: layers 0-0 of replica 0 are on no"),
      std::string::npos);
  EXPECT_EQ(refusal_of(by_hand("layers = \"0-3\"", "")), "") << "w1 may take the rest";
  EXPECT_EQ(refusal_of(by_hand("layers = \"4-7\"", "")), "") << "w1 may take the beginning";
  EXPECT_NE(refusal_of(by_hand("layers = \"4-7\"", "replica = 1")), "") << "w1 is of another replica";
  EXPECT_EQ(refusal_of(by_hand("layers = \"0-7\"", "layers = \"0-7\"\nreplica = 1")), "");
  EXPECT_EQ(refusal_of(by_hand("layers = \"0-7\"", "layers = \"0-7\"", "tensor = 2\n")), "");
  EXPECT_NE(refusal_of(by_hand("layers = \"0-7\"", "layers = \"0-7\"")).find("both have the layers 0-7"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(by_hand("layers = \"0-3\"", "layers = \"4-7\"", "tensor = 2\n")).find("tensor = 2, but the layers"),
      std::string::npos);
}

TEST(config, knows_a_loopback_however_it_is_written) {
  EXPECT_EQ(refusal_of(with("listen = \"tcp://[0:0:0:0:0:0:0:1]:7700\"\n")), "");
}

TEST(config, takes_a_machine_whose_name_is_written_in_two_ways_for_one) {
  const std::string text = changed(with("tensor = 2\n"), "name = \"w0\"", "host = \"localhost\"\nname = \"w0\"");
  EXPECT_EQ(refusal_of(text), "");
}

TEST(config, lets_a_cluster_be_open_with_keys_or_when_told) {
  EXPECT_EQ(refusal_of(with("listen = \"tcp://10.0.0.1:7700\"\nkeys = \"k\"\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"tcp://10.0.0.1:7700\"\ninsecure = true\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"tcp://[::1]:7700\"\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"tcp://localhost:7700\"\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"tcp://*:7700\"\ninsecure = true\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"tcp://[fe80::1%eth0]:7700\"\ninsecure = true\n")), "");
  EXPECT_EQ(refusal_of(with("http = \"vm:24801\"\ninsecure = true\n")), "");
  EXPECT_EQ(refusal_of(with("listen = \"ipc:///run/troupe.sock\"\n")), "");
}

TEST(config, keeps_the_state_in_the_users_folder) {
  const char* before = std::getenv("XDG_STATE_HOME");
  const std::string kept = before ? before : "";
  ::setenv("XDG_STATE_HOME", "/home/somebody/state", 1);
  const std::string text = changed(two_workers, "state_dir = \"state\"\n", "");
  EXPECT_EQ(parse(text).state_dir, "/home/somebody/state/troupe/rooms");
  EXPECT_EQ(parse(text).logs(), "/home/somebody/state/troupe/rooms/logs");
  if (before) {
    ::setenv("XDG_STATE_HOME", kept.c_str(), 1);
  } else {
    ::unsetenv("XDG_STATE_HOME");
  }
}

TEST(config, says_what_is_wrong_with_the_file_itself) {
  const test::temp_folder folder;
  const auto said = [](const std::filesystem::path& file) { return test::refusal([&] { read_cluster_config(file); }); };
  EXPECT_NE(said(folder.path() / "none.toml").find("no such file"), std::string::npos);
  EXPECT_NE(said(folder.path()).find("is no file"), std::string::npos);
  EXPECT_NE(said(folder.write("large.toml", std::string(2 << 20, '#'))).find("more than 1 MiB"), std::string::npos);
  EXPECT_NE(said(folder.write("empty.toml", "")).find("the cluster has no name"), std::string::npos);
  EXPECT_EQ(said(folder.write("good.toml", two_workers)), "");
}

TEST(config, survives_any_bytes) {
  std::string text = two_workers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    refusal_of(text.substr(0, i));
    std::string bent = text;
    bent[i] = static_cast<char>(bent[i] ^ (1 << (i % 8)));
    refusal_of(bent);
  }
  refusal_of("a = " + std::string(100000, '['));
}

TEST(config, a_node_that_listens_everywhere_is_reached_by_its_host) {
  EXPECT_EQ(reachable_endpoint("tcp://0.0.0.0:38771", "w1.troupe"), "tcp://w1.troupe:38771");
  EXPECT_EQ(reachable_endpoint("tcp://192.168.7.11:5", "w1"), "tcp://192.168.7.11:5");
  EXPECT_EQ(reachable_endpoint("ipc:///tmp/x", "w1"), "ipc:///tmp/x");
  EXPECT_EQ(reachable_address("*:8000", "::1"), "[::1]:8000");
  EXPECT_EQ(reachable_address("127.0.0.1:8000", "w1"), "127.0.0.1:8000");
}

TEST(config, the_ready_clusters_are_good) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::configs)) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(read_cluster_config(entry.path())) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace troupe
