#include "cluster/config/config.hpp"
#include "cluster/config/config_address.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

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

/// two_workers, with these lines in their nodes.
std::string with_in_both(const std::string& in_w0, const std::string& in_w1) {
  return changed(changed(two_workers, "name = \"w0\"", in_w0 + "name = \"w0\""), "name = \"w1\"",
                 in_w1 + "name = \"w1\"");
}

TEST(config, workers_that_say_their_memory_share_a_gpu) {
  const std::string gpu = "device = \"cuda:0\"\n", memory = "memory = \"16GiB\"\n";
  EXPECT_EQ(parse(with_in_both(gpu + memory, gpu + memory)).find("w1")->device, device_id{0});
  EXPECT_EQ(parse(with_in_both(gpu, "device = \"cuda:1\"\n")).find("w1")->device, device_id{1});
}

struct broken {
  std::string text, place, words;
};

TEST(config, refuses_with_file_line_and_column) {
  const std::string remote = "[[node]]\nname = \"far\"\nhost = \"10.0.0.9\"\nroles = [\"worker\"]\n";
  const broken cases[] = {
      {"[cluster\n", "1:9", "no valid TOML"},
      {changed(two_workers, "\"state\"", "\"~/state\""), "4:13", "state_dir is \"~/state\": write the whole path"},
      {changed(two_workers, "\"models/llama\"", "\"$HOME/llama\""), "6:8", "path is \"$HOME/llama\": write the whole"},
      {with("", "[adapters]\npreload = [\"law=~/law\"]\n"), "17:11", "preload is \"~/law\": write the whole path"},
      {with("repilcas = 2\n"), "4:1", "unknown key \"repilcas\" in [cluster]: did you mean \"replicas\"?"},
      {with("qqq = 2\n"), "4:1", "known are name, listen"},
      {two_workers + "[nodes]\n", "16:2", "did you mean \"node\"?"},
      {"[cluster]\nname = \"a\"\nname = \"b\"\n", "3:8", "no valid TOML"},
      {"[node]\nname = \"a\"\n[node]\n", "3:1", "write [[node]] for each"},
      {with("replicas = \"two\"\n"), "4:12", "replicas should be a whole number, but is a text"},
      {with("replicas = 1.5\n"), "4:12", "replicas should be a whole number, but is a number with a fraction"},
      {with("replicas = -1\n"), "4:12", "replicas is -1: allowed are 0 to"},
      {with("replicas = 1979-05-27\n"), "4:12", "a date or time"},
      {with("respawn = \"yes\"\n"), "4:11", "should be true or false"},
      {with("listen = 7700\n"), "4:10", "should be a text"},
      {with("listen = \"tcp://127.0.0.1\"\n"), "4:10", "write \"tcp://HOST:PORT\""},
      {with("listen = \"tcp://127.0.0.1:65536\"\n"), "4:10", "the port at most 65535"},
      {with("listen = \"tcp://127.0.0.1:0\"\n"), "4:10", "have to know the port"},
      {with("listen = \"tcp://vm:7700\"\ninsecure = true\n"), "4:10", "or listen at every one with tcp://*:7700"},
      {with("insecure = true\n", "listen = \"tcp://vm:0\"\n"), "17:10", "listen has the name vm"},
      {with("listen = \"udp://127.0.0.1:1\"\n"), "4:10", "tcp://HOST:PORT"},
      {with("http = \"8000\"\n"), "4:8", "write \"HOST:PORT\""},
      {with("http = \"127.0.0.1:7700\"\n"), "4:8", "use another port"},
      {with("http_origins = [\"*\"]\n"), "4:16", "http_origins has \"*\": write each page's origin"},
      {with("http_origins = \"https://a.example\"\n"), "4:16", "should be a list of texts"},
      {with("http = \"0.0.0.0:8000\"\n"), "4:8", "insecure = true (troupe serve: --insecure)"},
      {with("listen = \"tcp://0.0.0.0:7700\"\n"), "4:10", "troupe keygen"},
      {with("listen = \"tcp://10.1.2.3:7700\"\n"), "4:10", "troupe keygen"},
      {with("lost_after_ms = 300\n"), "4:17", "use 600 or more"},
      {with("heartbeat_ms = 500\n"), "4:16", "use 1500 or more"},
      {with("http = \"127.0.0.1:0\"\n"), "4:8", "clients have to know it"},
      {with("ssh = []\n"), "4:7", "name the command"},
      {with("ssh = [\"ssh\", 4]\n"), "4:15", "should be a text"},
      {with("replicas = 3\n"), "4:12", "need 3 workers, but 2 start"},
      {with("stages = 3\n"), "4:10", "need 3 workers"},
      {with("tensor = 4\n"), "4:10", "need 4 workers"},
      {with("collective = \"mpi\"\n"), "4:14", "choose one of gloo, nccl"},
      {with("collective = \"nccl\"\ntensor = 2\n"), "4:14", "w0 computes on the processor: use gloo"},
      {changed(
           changed(with("collective = \"nccl\"\ntensor = 2\n"), "name = \"w0\"", "device = \"cuda:1\"\nname = \"w0\""),
           "name = \"w1\"", "device = \"cuda:1\"\nname = \"w1\""),
       "4:14", "w0 and w1 share cuda:1: use gloo"},
      {changed(changed(with("collective = \"nccl\"\ntensor = 2\n"), "name = \"w0\"",
                       "host = \"localhost\"\ndevice = \"cuda:1\"\nname = \"w0\""),
               "name = \"w1\"", "device = \"cuda:1\"\nname = \"w1\""),
       "4:14", "w0 and w1 share cuda:1: use gloo"},
      {with_in_both("device = \"cuda:0\"\n", "device = \"cuda:0\"\n"), "15:10",
       "w0 and w1 share cuda:0: give each a GPU of its own, or a memory"},
      {with_in_both("host = \"localhost\"\ndevice = \"cuda:0\"\n", "device = \"cuda:0\"\nmemory = \"16GiB\"\n"),
       "16:10", "w0 and w1 share cuda:0"},
      {with("keep_jobs_days = -1\n"), "4:18", "allowed are 0 to 36500"},
      {with("", "[scheduler]\nsteps_in_flight = 257\n"), "17:19", "allowed are 0 to 256"},
      {changed(with("tensor = 2\n"), "name = \"w1\"", "device = \"cuda:0\"\nname = \"w1\""), "4:10",
       "w0 has the device cpu, w1 the device cuda:0"},
      {changed(with("tensor = 2\n"), "name = \"w1\"",
               "host = \"10.0.0.9\"\nlisten = \"tcp://127.0.0.1:0\"\nname = \"w1\""),
       "4:10", "w0 and w1 are on two hosts"},
      {with("", "autostart = false\n[scheduler]\nmax_sequences = 4096\n"), "18:17", "less than max_sequences"},
      {changed(with("replicas = 2\n"), "name = \"w1\"", "autostart = false\nname = \"w1\""), "4:12",
       "but 1 starts (w1: autostart = false, which does not count): add nodes"},
      {changed(two_workers, "name = \"rooms\"\n", ""), "2:1", "the cluster has no name"},
      {changed(two_workers, "\"rooms\"", "\"../rooms\""), "3:8", "use at most 64 letters"},
      {changed(two_workers, "path = \"models/llama\"\n", ""), "5:1", "there is no model"},
      {changed(two_workers, "path = \"models/llama\"", "name = \"org/mine\""), "6:8",
       "name is \"org/mine\": write \"mine\", which requests may call \"org/mine\", too"},
      {changed(two_workers, "[model]", "[scheduler]\nkv_memory = \"4 apples\"\n[model]"), "6:13", "amount of memory"},
      {changed(two_workers, "path = \"models/llama\"", "path = \"m\"\ncontext = 1"), "7:11", "use 2 or more"},
      {changed(changed(two_workers, "name = \"w0\"", "name = \"w0\"\nautostart = false"), "name = \"w1\"",
               "name = \"w1\"\nautostart = false"),
       "12:13", "no worker starts with the cluster"},
      {changed(two_workers, "[model]", "[scheduler]\nkv_memory = 0\n[model]"), "6:13", "amount of memory"},
      {changed(two_workers, "\"w1\"", "\"w0\""), "14:8", "two nodes with the name \"w0\""},
      {changed(two_workers, "name = \"w1\"\n", ""), "13:1", "has no name"},
      {changed(two_workers, "\"router\", ", ""), "7:1", "no node is router"},
      {changed(two_workers, ", \"scheduler\"", ""), "7:1", "no node is scheduler"},
      {changed(two_workers, "[\"worker\"]", "[\"router\"]"), "12:9", "head and w0 are both router"},
      {changed(changed(two_workers, ", \"scheduler\"", ""), "\"worker\"", "\"worker\", \"scheduler\""), "12:9",
       "one node, the head"},
      {changed(two_workers, "[\"worker\"]", "[]"), "12:9", "is empty: choose some of"},
      {changed(two_workers, "[\"worker\"]", "[\"warker\"]"), "12:10", "choose one of router"},
      {changed(two_workers, "[\"worker\"]", "[\"worker\", \"worker\"]"), "12:20", "twice"},
      {changed(two_workers, "[\"worker\"]", "\"worker\""), "12:9", "should be a list of roles"},
      {changed(changed(two_workers, "[\"worker\"]", "[\"trainer\"]"), "[\"worker\"]", "[\"trainer\"]"), "7:1",
       "no node is worker"},
      {with("", "layers = \"3-1\"\n"), "16:10", "write \"0-10\""},
      {with("", "layers = 4\n"), "16:10", "should be layers as \"0-10\""},
      {with("", "device = \"gpu\"\n"), "16:10", "write \"cpu\" or \"cuda:0\""},
      {with("", "host = \"-oProxyCommand=x\"\n"), "16:8", "one machine"},
      {with("", "ssh = \"-oProxyCommand=x\"\n"), "16:7", "USER@HOST"},
      {with("", "listen = \"tcp://0.0.0.0:0\"\n"), "16:10", "troupe keygen"},
      {with("", "listen = \"tcp://127.0.0.1:7700\"\n"), "16:10", "use another port"},
      {with("", "config = \"here.toml\"\n"), "16:10", "whole path"},
      {with("", "keep = \"x\"\n"), "16:1", "unknown key \"keep\" in [[node]]"},
      {with("replicas = 1\n", "replica = 1\n"), "17:11", "the last one is 0"},
      {changed(two_workers, "[\"router\", \"scheduler\"]", "[\"router\", \"scheduler\"]\nlayers = \"0-1\""), "10:10",
       "is no worker"},
      {with("", "[[node]]\nname = \"t0\"\nroles = [\"trainer\"]\nmemory = \"1GiB\"\n"), "19:10",
       "t0 has memory and is no worker: take it out"},
      {changed(two_workers, "[\"router\", \"scheduler\"]",
               "[\"router\", \"scheduler\"]\nlisten = \"tcp://127.0.0.1:1\""),
       "10:10", "is the head"},
      {changed(two_workers, "[\"router\", \"scheduler\"]", "[\"router\", \"scheduler\"]\nautostart = false"), "10:13",
       "without it there is no cluster"},
      {two_workers + remote, "18:8", "troupe keygen"},
      {with("insecure = true\n") + remote, "2:1", "head listens at tcp://127.0.0.1:7700, where far on 10.0.0.9 cannot"},
      {with("insecure = true\nlisten = \"tcp://*:7700\"\n") + remote, "9:1",
       "far on 10.0.0.9 cannot reach it: give the host by an address that the other hosts see"},
      {"node = 3\n", "1:8", "write [[node]] for each"},
      {"[adapters]\npreload = [\"law=a\", \"tax=a\", \"law=b\"]\n", "2:11", "adapter law has two folders: give one"},
      {"[adapters]\npreload = [\"law=\"]\n", "2:11", "write \"NAME\" or \"NAME=FOLDER\""},
      {"[[cluster]]\n", "1:1", "should be a table"},
  };
  for (const auto& each : cases) {
    const std::string said = refusal_of(each.text);
    EXPECT_TRUE(said.starts_with("/etc/rooms.toml:" + each.place + ": ")) << said << "\nexpected " << each.place;
    EXPECT_NE(said.find(each.words), std::string::npos) << said << "\nexpected: " << each.words;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
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
