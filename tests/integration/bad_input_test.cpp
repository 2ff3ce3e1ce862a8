// What is wrong is refused with a reason, and nobody else notices.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/host_port.hpp"
#include "tests/base/loopback.hpp"
#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

std::string random_bytes(std::mt19937& random, std::size_t most) {
  std::string text(random() % (most + 1), '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

void send_random_bytes(const std::string& endpoint, std::mt19937& random) {
  const file_descriptor socket = connected_to(split_endpoint(endpoint).value().port);
  const std::string text = random_bytes(random, 4096);
  (void)::send(socket.number(), text.data(), text.size(), MSG_NOSIGNAL);
}

/// ZeroMQ's own handshake, and then anything.
void send_random_parts(const std::string& endpoint, std::mt19937& random) {
  void* context = ::zmq_ctx_new();
  void* socket = ::zmq_socket(context, ZMQ_DEALER);
  const int linger = 200;
  ::zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
  ::zmq_connect(socket, endpoint.c_str());
  for (int message = 0; message < 20; ++message)
    for (int parts = static_cast<int>(random() % 5); parts >= 0; --parts) {
      const std::string text = random_bytes(random, 200);
      ::zmq_send(socket, text.data(), text.size(), parts > 0 ? ZMQ_SNDMORE : 0);
    }
  ::zmq_close(socket);
  ::zmq_ctx_term(context);
}

/// A link of its own for each message: what is no message closes it.
class stranger {
 public:
  explicit stranger(const std::string& endpoint) : bus_({}, {[](link_id, frame) {}, [](link_id, const auto&) {}}) {
    link_ = bus_.connect(endpoint);
  }
  template <message M>
  void say(M what) {
    bus_.send(link_, to_frame(std::move(what)));
  }
  void say(frame what) { bus_.send(link_, std::move(what)); }

 private:
  bus bus_;
  link_id link_;
};

/// Well-formed messages from somebody whom they do not become.
void pretend(const std::string& endpoint, std::mt19937& random) {
  const replica_life life{replica_id(0), epoch_id((std::uint64_t{1} << 32) + 1 + random() % 4)};
  stranger(endpoint).say(stage_failed{life, 0, 0, {}, "so it is said"});
  stranger(endpoint).say(stage_started{life, 0, 0, {}, "so it is said"});
  step_done done;
  done.life = life;
  done.outcome.step = step_id(random() % 1000);
  stranger(endpoint).say(done);
  stranger(endpoint).say(adapter_loaded{life, adapter_version(1), "so it is said"});
  stranger(endpoint).say(leave_cluster{incarnation_id(random())});
  stranger(endpoint).say(heartbeat{incarnation_id(random()), {}});
  join_cluster join;
  join.hello.name = random_bytes(random, 100);
  join.hello.incarnation = incarnation_id(random());
  stranger(endpoint).say(join);
  stranger(endpoint).say(want_piece{"../..", "passwd", random()});
  stranger(endpoint).say(client_command{random_bytes(random, 20), random_bytes(random, 50)});
  client_request request;
  request.tokens = {-1, 1 << 30};
  stranger(endpoint).say(request);
  start_stage start;
  start.life = life;
  stranger(endpoint).say(start);
  stranger(endpoint).say(end_node{incarnation_id(1), "so it is said"});
  frame noise;
  noise.kind = static_cast<std::uint16_t>(random() % 80);
  for (const char c : random_bytes(random, 300)) noise.body.push_back(static_cast<std::byte>(c));
  stranger(endpoint).say(noise);
}

TEST(bad_input, a_request_as_large_as_can_be_is_answered_and_so_is_the_next) {
  const test_site site;
  test_cluster cluster(site, {});
  cluster.up();
  streams asked(cluster.endpoint());
  client_request large;
  large.text = "Once";
  large.answers = 128;
  large.sampling.max_tokens = 4;
  large.sampling.constraint.kind = constraint_kind::json_schema;
  large.sampling.constraint.text = R"({"type":"boolean","description":")" + std::string(250'000, 'a') + "\"}";
  asked.begin(large);
  EXPECT_TRUE(asked.finish(seconds(30))) << cluster.log("head");
  asked.begin(site.request(1, 20));
  EXPECT_TRUE(asked.finish(seconds(30)));
  EXPECT_EQ(asked.faults(), std::vector<std::string>());
}

TEST(bad_input, garbage_on_the_ports_of_head_and_workers_disturbs_no_stream) {
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  cluster.load_adapters();
  const std::string worker = cluster.node("w1").at("endpoint");
  load traffic(site, cluster.endpoint(), 32, 600);
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 500; }));
  const auto disturb = [](const std::string& endpoint, unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < 30; ++i) {
      send_random_bytes(endpoint, random);
      if (i % 5 == 0) send_random_parts(endpoint, random);
      if (i % 5 == 0) pretend(endpoint, random);
    }
  };
  std::thread at_the_worker(disturb, worker, 8);
  disturb(cluster.endpoint(), 7);
  at_the_worker.join();
  EXPECT_EQ(traffic.wrong_answers(), 0);
  EXPECT_EQ(cluster.log("head").find("lost"), std::string::npos) << cluster.log("head");
  EXPECT_EQ(cluster.log("head").find("so it is said"), std::string::npos) << cluster.log("head");
}

TEST(bad_input, a_node_with_another_model_is_refused) {
  const test_site site;
  test_cluster cluster(site, {.workers = {"w0"}});
  cluster.up();
  std::string other = read_file(cluster.file());
  other.replace(other.find("\"u8\""), 4, "\"q8\"");
  const auto file = site.write("other.toml", other);
  process refused = cluster.start({"node", file.string(), "--name", "w5"});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.out().find("has model"), std::string::npos) << refused.out() << refused.error();
  EXPECT_NE(refused.error().find("has model"), std::string::npos) << refused.error();
  EXPECT_TRUE(cluster.node("w5").is_null());
}

TEST(bad_input, a_node_whose_model_computes_by_other_numbers_is_refused) {
  const test_site site;
  test_cluster cluster(site, {.workers = {"w0"}});
  cluster.up();
  const std::filesystem::path other = site.path("other");
  std::filesystem::copy(site.model(), other);
  auto config = json::parse(read_file(other / "config.json"));
  config["rope_theta"] = 20000.0;
  std::ofstream(other / "config.json") << config.dump();
  std::string file = read_file(cluster.file());
  const std::string path = site.model().string();
  file.replace(file.find(path), path.size(), other.string());
  process refused = cluster.start({"node", site.write("other.toml", file).string(), "--name", "w5"});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.error().find("give it the same files and quant"), std::string::npos) << refused.error();
}

TEST(bad_input, a_node_that_runs_another_program_is_refused) {
  const test_site site;
  test_cluster cluster(site, {.workers = {"w0"}});
  cluster.up();
  const std::string version = cluster.run({"--version"}), key = "\nprogram          ";
  const std::string id = version.substr(version.find(key) + key.size(), 40);
  std::string number;  // as it lies in the program
  for (std::size_t i = 0; i < id.size(); i += 2) number += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
  const std::filesystem::path other = site.path("other-troupe");
  std::string program = read_file(TROUPE_BINARY);
  const auto at = program.find(number);
  ASSERT_NE(at, std::string::npos) << version;
  program[at] = static_cast<char>(program[at] ^ 1);
  std::ofstream(other, std::ios::binary) << program;
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  process refused({other.string(), "node", cluster.file().string(), "--name", "w5"}, site.path("refused"),
                  site.environment());
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.error().find("copy the head's program"), std::string::npos) << refused.error();
  process client({other.string(), "status", "--connect", cluster.endpoint()}, site.path("status"));
  EXPECT_EQ(client.wait(), 0) << "commands are no nodes";
}

TEST(bad_input, what_a_node_s_own_file_says_of_keys_and_values_does_not_count) {
  const test_site site;
  test_cluster cluster(site, {.replicas = 0, .workers = {"w0"}});
  cluster.up();
  cluster.load_adapters();
  std::string file = read_file(cluster.file());
  file.insert(file.find("quant ="), "kv = \"int8\"\n");
  process newcomer = cluster.start({"node", site.write("other.toml", file).string(), "--name", "w5"});
  ASSERT_TRUE(wait_until([&] { return cluster.running_replicas() == 2; })) << newcomer.error();
  load traffic(site, cluster.endpoint(), 32, 200);
  EXPECT_EQ(traffic.wrong_answers(), 0);
}

TEST(bad_input, a_name_that_lives_is_not_taken) {
  const test_site site;
  test_cluster cluster(site, {.workers = {"w0"}});
  cluster.up();
  const pid_t before = cluster.pid_of("w0");
  process second = cluster.start_node("w0");
  EXPECT_TRUE(wait_until([&] { return second.out().find("stop it first") != std::string::npos; })) << second.out();
  EXPECT_TRUE(wait_until([&] { return second.error().find("stop it first") != std::string::npos; })) << second.error();
  EXPECT_EQ(cluster.pid_of("w0"), before);
  EXPECT_EQ(cluster.running_replicas(), 1);
}

TEST(bad_input, with_keys_only_those_who_have_one_are_heard) {
  const test_site site;
  const auto keys = [&](const char* name) { return site.path(name).string(); };
  const auto keygen = [&](const char* name) {
    process made({TROUPE_BINARY, "keygen", "--out", keys(name)}, site.path("keygen"));
    ASSERT_EQ(made.wait(), 0) << made.error();
  };
  keygen("right");
  keygen("wrong");
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}, .in_cluster = "keys = \"" + keys("right") + "\""});
  ::setenv("TROUPE_KEY", (keys("right") + "/client.key").c_str(), 1);
  cluster.up();
  EXPECT_TRUE(wait_until([&] {
    return cluster.said().find(" --key " + keys("right") + "/client.key\n") != std::string::npos;
  })) << cluster.said();
  const std::string answer = cluster.run({"submit", "--tokens", "1,2,3", "--json"});
  EXPECT_FALSE(json::parse(answer).at("tokens").empty());
  ::setenv("TROUPE_KEY", (keys("wrong") + "/client.key").c_str(), 1);
  process with_wrong_key = cluster.start({"status"});
  ::unsetenv("TROUPE_KEY");
  process without_key = cluster.start({"status"});
  ::setenv("TROUPE_KEY", (keys("right") + "/client.key").c_str(), 1);
  std::string other = read_file(cluster.file());
  other.replace(other.find("/right\""), 7, "/wrong\"");
  process outsider = cluster.start({"node", site.write("other.toml", other).string(), "--name", "w5"});
  for (process* refused : {&with_wrong_key, &without_key}) {
    EXPECT_EQ(refused->wait(), 1);
    EXPECT_EQ(refused->error().rfind("troupe: ", 0), 0u) << refused->error();
  }
  EXPECT_FALSE(outsider.poll()) << "after the seconds that those two have waited";
  EXPECT_TRUE(cluster.node("w5").is_null());
  EXPECT_EQ(cluster.running_replicas(), 1);
  ::unsetenv("TROUPE_KEY");
}

TEST(bad_input, up_sees_its_cluster_whatever_keys_clients_have) {
  const test_site site;
  const std::string keys = site.path("keys").string();
  process made({TROUPE_BINARY, "keygen", "--out", keys}, site.path("keygen"));
  ASSERT_EQ(made.wait(), 0) << made.error();
  for (const char* file : {"client.key", "clients/client.pub"}) std::filesystem::remove(site.path("keys") / file);
  ::setenv("TROUPE_KEY", (keys + "/cluster.key").c_str(), 1);
  for (const std::string& in_cluster : {"keys = \"" + keys + "\"", std::string()}) {
    const test_cluster cluster(site, {.workers = {}, .head_works = true, .in_cluster = in_cluster});
    process up = cluster.start({"up", cluster.file().string()});
    EXPECT_TRUE(wait_until([&] { return up.out().find(" serves at ") != std::string::npos; }))
        << up.out() << in_cluster;
    const bool names_a_key = up.out().find(" --key FILE\n") != std::string::npos;
    EXPECT_EQ(names_a_key, !in_cluster.empty()) << "the key of keygen is not here: " << up.out();
    up.signal(SIGTERM);
    EXPECT_EQ(up.wait(), 0) << up.error();
  }
  ::unsetenv("TROUPE_KEY");
}

TEST(bad_input, a_head_that_cannot_start_ends_with_its_reason) {
  const test_site site;
  const test_cluster cluster(site, {.workers = {}, .head_works = true});
  const std::string file = read_file(cluster.file()) + "\n[adapters]\npreload = [\"nobody\"]\n";
  process refused = cluster.start({"node", site.write("preload.toml", file).string(), "--name", "head"});
  EXPECT_EQ(refused.wait(), 2) << refused.out() << refused.error();
  EXPECT_NE(refused.error().find("nobody"), std::string::npos) << refused.error();
}

/// A cluster's file whose worker listens there.
std::filesystem::path file_with_worker_at(const test_site& site, const test_cluster& cluster,
                                          const std::string& endpoint) {
  std::string text = read_file(cluster.file());
  const std::string node = "name = \"w0\"\n";
  text.insert(text.find(node) + node.size(), "listen = \"" + endpoint + "\"\n");
  return site.write("listening.toml", text);
}

std::unique_ptr<bus> listener() {
  bus::options options;
  options.listen = "tcp://127.0.0.1:0";
  return std::make_unique<bus>(options, bus::events{[](link_id, frame) {}, [](link_id, const auto&) {}});
}

TEST(bad_input, a_worker_that_cannot_listen_ends_with_its_reason) {
  const test_site site;
  const test_cluster cluster(site, {.in_cluster = "insecure = true"});
  const auto other = listener();
  const auto expect_end = [&](const std::string& endpoint, int code, const std::string& why) {
    const auto file = file_with_worker_at(site, cluster, endpoint);
    process worker = cluster.start({"node", file.string(), "--name", "w0"});
    EXPECT_EQ(worker.wait(), code) << worker.out() << worker.error();
    EXPECT_NE(worker.error().find("troupe: " + endpoint + ": " + why), std::string::npos) << worker.error();
  };
  expect_end(other->endpoint(), 1, "the address is taken");
  expect_end("tcp://192.0.2.9:0", 2, "that is no address of this machine");
}

TEST(bad_input, a_worker_whose_port_is_taken_is_seen_before_anything_starts) {
  const test_site site;
  const test_cluster cluster(site, {});
  const auto other = listener();
  process refused = cluster.start({"up", file_with_worker_at(site, cluster, other->endpoint()).string()});
  EXPECT_EQ(refused.wait(), 1) << refused.out() << refused.error();
  EXPECT_EQ(refused.error(), "troupe: w0: listen " + other->endpoint() +
                                 ": the port is in use: set another listen for w0, or end what uses it\n");
  EXPECT_FALSE(std::filesystem::exists(cluster.state() / "logs" / "head.log"));
}

TEST(bad_input, adapters_that_people_put_there_are_not_taken_for_those_of_a_lost_journal) {
  const test_site site;
  test_cluster cluster(site, {.workers = {}, .head_works = true});
  std::filesystem::create_directories(cluster.state() / "adapters/lost+found");  // as where a volume is mounted
  std::filesystem::copy(site.adapter("red"), cluster.state() / "adapters/crimson");
  cluster.up();
  EXPECT_NE(cluster.run({"submit", "--tokens", "1,2,3", "--max-tokens", "4", "--adapter", "crimson", "--json"}), "");
  cluster.down();
  std::filesystem::remove(cluster.state() / "journal.db");
  process refused = cluster.start_node("head");
  EXPECT_EQ(refused.wait(), 2) << refused.out();
  EXPECT_NE(refused.error().find("/adapters/"), std::string::npos) << refused.error();
}

/// What looks left over in its folders may be what the first one writes.
TEST(bad_input, a_second_head_is_refused_before_it_removes_anything) {
  const test_site site;
  test_cluster cluster(site, {.workers = {}, .head_works = true});
  cluster.up();
  const std::filesystem::path folder = cluster.state() / "files", half = folder / "file-1.data.1.partial";
  std::filesystem::create_directories(folder);
  std::ofstream(half) << "half";
  process second = cluster.start_node("head");
  EXPECT_EQ(second.wait(), 2) << second.out() << second.error();
  EXPECT_NE(second.error().find("another head uses it"), std::string::npos) << second.error();
  EXPECT_TRUE(std::filesystem::exists(half));
}

/// The head's answer to a node that comes with these keys.
join_answer answer_to(const curve_keys& keys, const std::string& endpoint) {
  join_cluster join;
  join.hello.name = "w0";
  join.hello.incarnation = incarnation_id(5);
  join.hello.roles = {"worker"};
  join.hello.build = "another";
  const auto answer = ask<join_answer>(endpoint, keys, std::move(join), seconds(20));
  EXPECT_TRUE(answer) << "no answer";
  return answer.value_or(join_answer{});
}

TEST(bad_input, a_clients_key_makes_no_node) {
  const test_site site;
  const std::filesystem::path keys = site.path("keys");
  write_keys(keys);
  const test_cluster cluster(site, {.in_cluster = "keys = \"" + keys.string() + "\""});
  const process head = cluster.start_node("head");
  const join_answer to_client = answer_to(read_client_key(keys / "client.key"), cluster.endpoint());
  EXPECT_FALSE(to_client.accepted || to_client.try_again);
  EXPECT_NE(to_client.reason.find("a client's"), std::string::npos) << to_client.reason;
  const join_answer to_node = answer_to(read_cluster_keys(keys), cluster.endpoint());
  EXPECT_NE(to_node.reason.find("another"), std::string::npos) << to_node.reason;  // heard, and of another build
}

TEST(bad_input, more_ranks_than_the_model_has_heads_are_refused) {
  const test_site site;
  const test_cluster cluster(site, {.tensor = 3, .workers = {"w0", "w1", "w2"}});
  process refused = cluster.start({"up", cluster.file().string()});
  EXPECT_EQ(refused.wait(), 2) << refused.out() << refused.error();
  EXPECT_NE(refused.error().find("the model has 2 heads"), std::string::npos) << refused.error();
}

struct broken_config {
  const char* name;
  const char* in_place_of;
  const char* text;
  const char* says;
};

TEST(bad_input, a_cluster_that_cannot_work_is_refused_before_anything_starts) {
  const test_site site;
  const test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  const std::string right = read_file(cluster.file());
  const broken_config cases[] = {
      {"more stages than layers", "stages = 2", "stages = 5", "5"},
      {"more stages than workers", "stages = 2", "stages = 3", "need 3 workers"},
      {"more replicas than workers", "replicas = 1", "replicas = 2", "need 4 workers"},
      {"more ranks than workers", "tensor = 1", "tensor = 2", "need 4 workers"},
      {"an unknown key", "stages = 2", "stagse = 2", "stagse"},
      {"an unknown scheme", "\"u8\"", "\"u9\"", "broken.toml:12:9: quant: unknown quantization 'u9': use f32"},
      {"an unknown kind of cache", "\"u8\"", "\"u8\"\nkv = \"i4\"", "broken.toml:13:6: kv: unknown kind 'i4': use f16"},
      {"a model that is not there", "/model\"", "/nowhere\"", "broken.toml:11:"},
      {"layers to keep that are none", "\"u8\"", "\"u8\"\nkeep = [\"zzz\"]", "broken.toml:13:"},
      {"a state folder within a file", "-state\"", ".toml/state\"", "broken.toml:5:"},
      {"a socket in no folder", "tcp://127.0.0.1:", "ipc:///nowhere/", "broken.toml:3:"},
      {"too much context", "quant = \"u8\"", "quant = \"u8\"\ncontext = 1000000", "4096"},
      {"everybody's address without keys", "tcp://127.0.0.1", "tcp://0.0.0.0", "keys"},
      {"no worker", "\"worker\"", "\"trainer\"", "worker"},
      {"a name twice", "\"w1\"", "\"w0\"", "w0"},
      {"no head", "\"router\", ", "", "router"},
      {"layers that nobody has", "name = \"w0\"\n", "name = \"w0\"\nlayers = \"7-9\"\n", "7-9"},
      {"no graphics card", "name = \"w0\"\n", "name = \"w0\"\ndevice = \"cuda:63\"\n", "use the device cpu"},
      {"no graphics card for a trainer", "[scheduler]",
       "[[node]]\nname = \"coach\"\nroles = [\"trainer\"]\ndevice = \"cuda:63\"\n[scheduler]", "use the device cpu"},
      {"impossible times", "stages = 2", "stages = 2\nlost_after_ms = 100", "lost_after_ms"},
      {"no keys where they should be", "stages = 2", "stages = 2\nkeys = \"nowhere\"", "broken.toml:8:"},
      {"a listening address that is none", "tcp://127.0.0.1", "udp://127.0.0.1", "listen"},
      {"the line of a folder of adapters that is nowhere", "[model]", "[adapters]\ndir = \"nowhere\"\n[model]",
       "broken.toml:11:"},
      {"an adapter that is nowhere", "[model]", "[adapters]\npreload = [\"nobody\"]\n[model]", "nobody"},
      {"a folder that is no adapter", "[model]", "[adapters]\npreload = [\"..\"]\n[model]", "there is none"},
      {"the line of a folder without an adapter", "[model]", "[adapters]\npreload = [\"law=.\"]\n[model]",
       "broken.toml:11:"},
      {"no TOML", "[model]", "[model", "no valid TOML"},
  };
  for (const broken_config& each : cases) {
    std::string text = right;
    const std::string from = each.in_place_of;
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += std::strlen(each.text))
      text.replace(at, from.size(), each.text);
    process refused = cluster.start({"up", site.write("broken.toml", text).string()});
    EXPECT_EQ(refused.wait(), 2) << each.name << ": " << refused.out() << refused.error();
    const std::string error = refused.error();
    EXPECT_EQ(error.rfind("troupe: ", 0), 0u) << each.name << ": " << error;
    EXPECT_EQ(std::count(error.begin(), error.end(), '\n'), 1) << each.name << ": " << error;
    EXPECT_NE(error.find(each.says), std::string::npos) << each.name << ": " << error;
    EXPECT_EQ(refused.out(), "") << each.name;
    EXPECT_FALSE(std::filesystem::exists(cluster.state() / "logs" / "head.log")) << each.name;
  }
}

}  // namespace
}  // namespace troupe::test
