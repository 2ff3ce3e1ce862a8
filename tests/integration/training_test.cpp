// Fine-tunes beside serving: what is trained is what one process would train, whoever dies meanwhile, and nobody who
// streams notices.
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include "base/whole_file.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/integration/cluster.hpp"
#include "tests/integration/played_head.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

class training : public testing::Test {
 protected:
  void start(cluster_plan plan = {.trainers = {"coach"}}) {
    cluster_ = std::make_unique<test_cluster>(site_, plan);
    cluster_->up();
    write_data("data.jsonl", 120);
  }
  void write_data(const std::string& name, int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i)
      text +=
          json{{"prompt", "question " + std::to_string(i) + ":"}, {"completion", " answer " + std::to_string(i % 7)}}
              .dump() +
          "\n";
    site_.write(name, text);
  }
  test_cluster& cluster() { return *cluster_; }
  test_site& site() { return site_; }

  words train_words(const std::string& adapter, int steps, const words& more = {}) const {
    words made{"train",
               "--data",
               site_.path("data.jsonl").string(),
               "--adapter",
               adapter,
               "--steps",
               std::to_string(steps),
               "--lr",
               "0.01",
               "--length",
               "64",
               "--batch",
               "2",
               "--rank",
               "4",
               "--seed",
               "7",
               "--dropout",
               "0.1",
               "--checkpoint-every",
               "3",
               "--validate-every",
               "10",
               "--json"};
    made.insert(made.end(), more.begin(), more.end());
    return made;
  }
  std::string submit(const std::string& adapter, int steps, const words& more = {}) {
    return json::parse(cluster_->run(train_words(adapter, steps, more))).at("id");
  }
  json job(const std::string& id) const { return cluster_->answer_to("job.get", {{"id", id}}); }
  std::string state(const std::string& id) const {
    const json now = job(id);
    return now.is_null() ? "" : now.value("state", "");
  }
  bool reaches(const std::string& id, std::int64_t step) {
    return wait_until([&] {
      const json now = job(id);
      return !now.is_null() && (now.value("step", std::int64_t{0}) >= step || now.value("state", "") == "succeeded");
    });
  }
  bool ends(const std::string& id, const std::string& how, seconds longest = seconds(60)) {
    return wait_until([&] { return state(id) == how; }, longest);
  }
  std::string weights_of(const std::string& version) {
    const auto folder = site_.path("out-" + version);
    cluster_->run({"adapters", "export", version, "--out", folder.string()});
    return read_file(folder / "adapter_model.safetensors");
  }
  /// By one process, without a cluster.
  std::string weights_alone(int steps, const words& more = {}) {
    words command = train_words(site_.path("alone").string(), steps, more);
    command.insert(command.end(), {"--local", site_.model().string(), "--quant", "u8"});
    cluster_->run(command);
    return read_file(site_.path("alone") / "adapter_model.safetensors");
  }
  const test_cluster& cluster() const { return *cluster_; }
  bool is_shared(const std::string& id) {
    return wait_until([&] {
      const json now = job(id);
      return !now.is_null() && now.value("trainer", "").find(", ") != std::string::npos;
    });
  }

 private:
  test_site site_;
  std::unique_ptr<test_cluster> cluster_;
};

TEST_F(training, beside_streams_ends_with_an_adapter_that_answers) {
  start();
  cluster().load_adapters();
  load traffic(site(), cluster().endpoint(), 16, 300);
  words command = train_words("taught", 30);
  command.emplace_back("--follow");
  const json done = json::parse(cluster().run(command));
  EXPECT_EQ(done.at("state"), "succeeded");
  ASSERT_EQ(done.at("result"), "taught@1");
  const std::string shown = cluster().run({"jobs", "follow", done.at("id").get<std::string>()});
  EXPECT_NE(shown.find("taught@1 answers now: try troupe submit --adapter taught --prompt"), std::string::npos)
      << shown;
  EXPECT_EQ(weights_of("taught@1"), weights_alone(30));
  site().take_adapter("taught", site().path("out-taught@1"));
  client_request request = site().request(2, 60);
  request.adapter = "taught";
  streams answers(cluster().endpoint());
  const auto id = answers.begin(request);
  ASSERT_TRUE(answers.finish(seconds(30)));
  EXPECT_EQ(answers.answer(id), site().expected(request));
  EXPECT_EQ(answers.version_of(id), "taught@1");
  EXPECT_EQ(traffic.wrong_answers(), 0);
}

TEST_F(training, goes_on_where_its_trainer_was_killed) {
  start();
  const std::string id = submit("taught", 200);
  const auto torn = cluster().state() / "training" / id / "checkpoint.safetensors.7.partial";
  std::ofstream(torn) << "of a process that died while it wrote";
  for (const int step : {10, 60}) {
    ASSERT_TRUE(reaches(id, step)) << job(id);
    cluster().kill("coach");
  }
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::exists(torn); }));
  ASSERT_TRUE(ends(id, "succeeded")) << job(id) << cluster().log("head") << cluster().log("coach");
  EXPECT_NE(cluster().run({"jobs", "events", id}).find("goes on from step"), std::string::npos);
  EXPECT_EQ(weights_of("taught@1"), weights_alone(200));
}

const words two_passes{"--accumulate", "2"}, two_trainers{"--accumulate", "2", "--trainers", "2"};

TEST_F(training, shared_by_two_trainers_goes_on_whoever_is_killed) {
  start({.trainers = {"coach", "helper"}});
  const std::string id = submit("taught", 300, two_trainers);
  for (const char* victim : {"helper", "coach"}) {
    const std::int64_t before = job(id).value("step", std::int64_t{0});
    ASSERT_TRUE(is_shared(id)) << job(id) << cluster().log("head");
    ASSERT_TRUE(reaches(id, before + 20)) << job(id);
    cluster().kill(victim);
  }
  ASSERT_TRUE(ends(id, "succeeded")) << job(id) << cluster().log("head") << cluster().log("coach");
  EXPECT_NE(cluster().run({"jobs", "events", id}).find(", 2 trainers"), std::string::npos);
  EXPECT_EQ(weights_of("taught@1"), weights_alone(300, two_passes));
}

TEST_F(training, shared_by_two_trainers_goes_on_where_one_hangs) {
  start({.trainers = {"coach", "helper"}, .in_cluster = "lost_after_ms = 1000\nheartbeat_ms = 100"});
  const std::string id = submit("taught", 200, two_trainers);
  ASSERT_TRUE(is_shared(id)) << job(id) << cluster().log("head");
  ASSERT_TRUE(reaches(id, 10)) << job(id);
  cluster().kill("helper", SIGSTOP);
  ASSERT_TRUE(ends(id, "succeeded")) << job(id) << cluster().log("head") << cluster().log("coach");
  EXPECT_EQ(weights_of("taught@1"), weights_alone(200, two_passes));
}

/// Of the job's curve, in the order in which they were written down.
std::vector<std::int64_t> steps_in(const std::string& events) {
  std::vector<std::int64_t> steps;
  std::istringstream lines(events);
  for (std::string line; std::getline(lines, line);) {
    const json data = json::parse(line).at("data");
    if (data.is_object() && data.contains("loss")) steps.push_back(data.at("step"));
  }
  return steps;
}

TEST_F(training, goes_on_after_the_head_was_killed) {
  start({.trainers = {"coach", "helper"}});
  const std::string id = submit("taught", 200);
  ASSERT_TRUE(reaches(id, 20));
  cluster().kill("head");
  ASSERT_TRUE(ends(id, "succeeded")) << job(id) << cluster().log("head") << cluster().log("coach");
  EXPECT_EQ(weights_of("taught@1"), weights_alone(200));
  const auto steps = steps_in(cluster().run({"jobs", "events", id}));
  EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end(), std::greater_equal()), steps.end()) << "each step once";
  EXPECT_EQ(steps.back(), 200) << "though the head was away for some";
}

TEST_F(training, for_one_base_does_not_go_on_with_another) {
  start();
  const std::string id = submit("taught", 100000);
  ASSERT_TRUE(reaches(id, 5));
  cluster().run({"jobs", "pause", id});
  cluster().down();
  std::string file = read_file(cluster().file());
  file.replace(file.find("\"u8\""), 4, "\"q4\"");
  std::ofstream(cluster().file()) << file;
  cluster().up();
  EXPECT_EQ(state(id), "paused") << "nothing is lost where the base comes back";
  cluster().run({"jobs", "resume", id});
  ASSERT_TRUE(ends(id, "failed")) << job(id);
  EXPECT_NE(cluster().run({"jobs", "events", id}).find("was accepted for another base"), std::string::npos);
}

TEST_F(training, stands_still_while_it_is_paused_and_ends_when_it_is_cancelled) {
  start();
  const std::string id = submit("taught", 100000);
  ASSERT_TRUE(reaches(id, 5));
  EXPECT_EQ(cluster().run({"jobs", "pause", id}), id + ": paused\n");
  EXPECT_EQ(state(id), "paused");
  process follower = cluster().start({"jobs", "follow", id});
  EXPECT_EQ(follower.wait(), 1) << "no adapter answers yet";
  EXPECT_NE(follower.error().find("troupe jobs resume " + id), std::string::npos) << follower.error();
  const std::string other = submit("other", 5);  // the trainer is free
  ASSERT_TRUE(ends(other, "succeeded")) << job(other);
  const auto step = job(id).at("step").get<std::int64_t>();
  EXPECT_EQ(cluster().run({"jobs", "resume", id}), id + ": queued\n");
  ASSERT_TRUE(reaches(id, step + 5)) << job(id);
  EXPECT_NE(cluster().run({"jobs", "curve", id}).find("<polyline"), std::string::npos);
  process nowhere = cluster().start({"jobs", "curve", id, "--out", site().path("nowhere/curve.svg").string()});
  EXPECT_EQ(nowhere.wait(), 2);
  EXPECT_NE(nowhere.error().find("nowhere/curve.svg: cannot be written"), std::string::npos) << nowhere.error();
  EXPECT_EQ(cluster().run({"cancel", id}), id + ": cancelled\n");
  const auto folder = cluster().state() / "training" / id;
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::exists(folder); }));
  EXPECT_EQ(json::parse(cluster().run({"adapters", "list", "--json"})).size(), 1u);
}

TEST_F(training, waits_for_a_trainer_that_joins_later) {
  start({});
  const std::string id = submit("taught", 5);
  EXPECT_EQ(state(id), "queued");
  site().write("coach.toml", read_file(cluster().file()) + "[[node]]\nname = \"coach\"\nroles = [\"trainer\"]\n");
  process coach = cluster().start({"node", site().path("coach.toml").string(), "--name", "coach"});
  EXPECT_TRUE(ends(id, "succeeded")) << coach.out() << coach.error();
}

TEST_F(training, refuses_data_that_cannot_be_read_whole_by_line) {
  start();
  std::string text = read_file(site().path("data.jsonl"));
  text += "{\"prompt\": \"torn\", \"compl";
  site().write("data.jsonl", text);
  process refused = cluster().start(train_words("taught", 5));
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.error().find("data.jsonl:121:"), std::string::npos) << refused.error();
  EXPECT_EQ(json::parse(cluster().run({"jobs", "--json"})).size(), 0u);
  site().write("data.jsonl", "{\"text\": \"good\"}\n{\"text\": \"\xff\xfe\"}\n");
  process binary = cluster().start(train_words("taught", 5));
  EXPECT_EQ(binary.wait(), 2);
  EXPECT_NE(binary.error().find("data.jsonl:2: is no UTF-8"), std::string::npos) << binary.error();
}

TEST_F(training, says_why_a_job_failed_and_publishes_nothing) {
  start();
  words command = train_words("taught", 5);
  command.insert(command.end(), {"--targets", "no_such_layer", "--follow"});
  process refused = cluster().start(command);
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.error().find("no_such_layer"), std::string::npos) << refused.error();
  process named = cluster().start(train_words("base", 5));
  EXPECT_EQ(named.wait(), 2);
  EXPECT_NE(named.error().find("the base's name"), std::string::npos) << named.error();
  const auto store = cluster().state() / "adapters";
  std::filesystem::remove_all(store);
  write_file(store, "no folder");
  command = train_words("taught", 5);
  command.emplace_back("--follow");
  process failed = cluster().start(command);
  EXPECT_EQ(failed.wait(), 1);
  EXPECT_NE(failed.error().find("adapters"), std::string::npos) << failed.error();
  EXPECT_EQ(json::parse(cluster().run({"adapters", "list", "--json"})).size(), 0u);
}

TEST_F(training, a_full_disk_pauses_a_job_with_its_reason_and_harms_nothing_else) {
  start();
  cluster().load_adapters();
  load traffic(site(), cluster().endpoint(), 16, 300);
  const std::string id = submit("taught", 100000);
  ASSERT_TRUE(reaches(id, 5)) << job(id);
  {
    const full_disk of_the_trainer(1 << 10, cluster().pid_of("coach"));
    ASSERT_TRUE(ends(id, "paused")) << job(id);
  }
  EXPECT_NE(cluster().run({"jobs", "events", id}).find("cannot be written"), std::string::npos);
  cluster().run({"jobs", "resume", id});
  ASSERT_TRUE(reaches(id, job(id).value("step", std::int64_t{0}) + 5)) << job(id);
  cluster().run({"cancel", id});
  {
    const full_disk of_the_head(1 << 10, cluster().pid_of("head"));
    process refused = cluster().start(train_words("taught", 5));
    EXPECT_NE(refused.wait(), 0);
    EXPECT_NE(refused.error().find("free some space"), std::string::npos) << refused.error();
  }
  EXPECT_EQ(traffic.wrong_answers(), 0);
  EXPECT_EQ(json::parse(cluster().run({"adapters", "list", "--json"})).size(), 2u);
  ASSERT_TRUE(ends(submit("taught", 5), "succeeded")) << "there is room again";
}

/// Versions come and go while requests run: each answer is of one version from its first token to its last, and says
/// which.
void publish_and_roll_back(test_cluster& cluster, test_site& site, int rounds) {
  constexpr int versions = 3;
  std::map<std::string, std::vector<token_id>> expected;
  client_request request;
  request.tokens = {5, 6, 7, 8};
  request.adapter = "moving";
  request.sampling.max_tokens = 40;
  request.sampling.ignore_eos = true;
  const char* sources[versions] = {"red", "blue", "red"};
  for (int i = 0; i < versions - 1; ++i) {
    cluster.run({"adapters", "load", "moving", "--path", site.adapter(sources[i]).string()});
    client_request alone = request;
    alone.adapter = sources[i];
    expected["moving@" + std::to_string(i + 1)] = site.expected(alone);
  }
  ASSERT_NE(expected["moving@1"], expected["moving@2"]);
  streams traffic(cluster.endpoint());
  std::vector<std::uint64_t> asked;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 8; ++i) asked.push_back(traffic.begin(request));
    cluster.run({"adapters", "rollback", "moving", "--to", std::to_string(round % 2 + 1)});
    const std::string name = "fresh" + std::to_string(round);
    cluster.run({"adapters", "load", name, "--path", site.adapter(sources[round % 2]).string()});
  }
  ASSERT_TRUE(traffic.finish(seconds(60)));
  EXPECT_EQ(traffic.faults(), std::vector<std::string>());
  std::map<std::string, int> answered;
  for (const std::uint64_t id : asked) {
    const std::string version = traffic.version_of(id);
    ASSERT_TRUE(expected.contains(version)) << version;
    EXPECT_EQ(traffic.answer(id), expected[version]) << version;
    ++answered[version];
  }
  EXPECT_EQ(answered.size(), 2u) << "both versions have answered";
}

TEST_F(training, every_answer_is_of_one_version_and_says_which) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  publish_and_roll_back(cluster(), site(), 20);
}

TEST_F(training, slow_every_answer_is_of_one_version_and_says_which) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  publish_and_roll_back(cluster(), site(), 100);
}

TEST(sent_data, that_cannot_be_read_is_refused_with_what_is_wrong_and_what_to_do) {
  const temp_folder folder;
  const played_head head([](const client_command&) { return json::object(); });
  const auto refused = [&](const std::string& data, const std::string& why) {
    process sending({TROUPE_BINARY, "train", "--data", data, "--adapter", "a", "--connect", head.endpoint()},
                    folder.path() / "said");
    EXPECT_EQ(sending.wait(), 2);
    EXPECT_EQ(sending.error(), "troupe: " + data + why + "\n");
  };
  refused(folder.path() / "nope", ": cannot be read: No such file or directory: check the path and its permissions");
  refused(folder.write("empty.jsonl", ""), ": is empty: give it an example in each line");
  refused("/dev/null", ": is no regular file, and is read twice: save it first");
}

TEST(sent_data, comes_in_pieces_that_a_slow_link_passes) {
  const temp_folder folder;
  const played_head head([](const client_command& asked) -> json {
    if (asked.name != "train.data") return {{"trainers", 1}};
    const json piece = json::parse(asked.arguments);
    return {{"received", piece.at("offset").get<std::size_t>() + piece.at("text").get<std::string>().size()}};
  });
  std::string text, sent;
  while (text.size() < (1 << 20) + 1000) text += json{{"prompt", "in"}, {"completion", "out"}}.dump() + "\n";
  process sending({TROUPE_BINARY, "train", "--data", folder.write("long.jsonl", text), "--adapter", "a", "--connect",
                   head.endpoint()},
                  folder.path() / "said");
  ASSERT_EQ(sending.wait(), 0) << sending.error();
  for (const json& piece : head.commanded("train.data")) {
    const std::string part = piece.at("text");
    EXPECT_LE(part.size(), 512u << 10);
    sent += part;
  }
  EXPECT_TRUE(sent == text) << sent.size();
}

TEST(followed_job, says_what_to_type_next_with_the_flags_that_name_the_cluster) {
  const temp_folder folder;
  std::atomic<pid_t> following = 0;
  bool is_interrupted = false;
  played_head head([&](const client_command& asked) -> json {
    const json arguments = json::parse(asked.arguments);
    const std::string id = arguments.at("id");
    if (id == "endless" && !std::exchange(is_interrupted, true) && is_soon([&] { return following > 0; }))
      ::kill(following, SIGINT);
    const char* state = id == "endless" ? "running" : "succeeded";
    return {{"job", {{"id", id}, {"kind", "fine-tune"}, {"state", state}, {"result", "taught@1"}}},
            {"events", id == "chats" && arguments.at("after") == 0
                           ? json::parse(R"([{"number":1,"kind":"message","data":{"text":"\u009b2Jseen","chats":2}}])")
                           : json::array()}};
  });
  const std::string connect = " --connect " + head.endpoint();
  const auto follow = [&](const std::string& id) {
    return process({TROUPE_BINARY, "jobs", "follow", id, "--connect", head.endpoint()}, folder.path() / id);
  };
  process client = follow("endless");
  following = client.pid();
  EXPECT_EQ(client.wait(), 128 + SIGINT);
  const std::string how =
      "troupe jobs follow endless" + connect + " shows it, troupe cancel endless" + connect + " ends it";
  EXPECT_NE(client.error().find(how), std::string::npos) << client.error();
  process ended = follow("over");
  EXPECT_EQ(ended.wait(), 0) << ended.error();
  EXPECT_NE(ended.out().find("troupe submit --adapter taught" + connect + " --prompt"), std::string::npos)
      << ended.out();
  process of_chats = follow("chats");
  EXPECT_EQ(of_chats.wait(), 0) << of_chats.error();
  EXPECT_EQ(of_chats.error(), "training:  2Jseen\n") << "without what moves a terminal's cursor";
  EXPECT_NE(of_chats.out().find("troupe submit --chat --adapter taught" + connect + " --prompt"), std::string::npos)
      << of_chats.out();
}

TEST(followed_job, is_drawn_without_the_steps_that_it_made_again) {
  const temp_folder folder;
  const auto curve_of = [&](const std::vector<int>& steps) {
    json events = json::array();
    for (const int step : steps)
      events.push_back({{"number", events.size() + 1},
                        {"kind", "metrics"},
                        {"data", {{"step", step}, {"loss", 9 - step}, {"validation_loss", 8 - step}}}});
    const played_head head([&](const client_command& asked) -> json {
      return {{"job", {{"id", "again"}, {"kind", "fine-tune"}, {"state", "succeeded"}}},
              {"events", json::parse(asked.arguments).at("after") == 0 ? events : json::array()}};
    });
    process client({TROUPE_BINARY, "jobs", "curve", "again", "--connect", head.endpoint()}, folder.path() / "curve");
    EXPECT_EQ(client.wait(), 0) << client.error();
    return client.out();
  };
  const std::string once = curve_of({1, 2, 3, 4});
  EXPECT_NE(once.find("<polyline"), std::string::npos) << once;
  EXPECT_EQ(curve_of({1, 2, 3, 2, 3, 4}), once);
  EXPECT_EQ(curve_of({3, 4, 1, 2, 3, 4}), once) << "from the beginning";
}

TEST(followed_job, is_shown_to_its_end_where_it_was_over_before) {
  const temp_folder folder;
  static constexpr int pages = 3;  // of one event each
  const played_head head([](const client_command& asked) -> json {
    const int after = json::parse(asked.arguments).at("after");
    const json event{
        {"number", after + 1}, {"kind", "metrics"}, {"data", {{"step", after + 1}, {"validation_loss", 2}}}};
    return {{"job",
             {{"id", "over"}, {"kind", "fine-tune"}, {"state", "succeeded"}, {"steps", pages}, {"result", "taught@1"}}},
            {"events", after < pages ? json::array({event}) : json::array()}};
  });
  process client({TROUPE_BINARY, "jobs", "follow", "over", "--connect", head.endpoint()}, folder.path() / "over");
  EXPECT_EQ(client.wait(), 0) << client.error();
  for (int step = 1; step <= pages; ++step)
    EXPECT_NE(client.error().find("validation: step " + std::to_string(step) + " "), std::string::npos)
        << client.error();
}

}  // namespace
}  // namespace troupe::test
