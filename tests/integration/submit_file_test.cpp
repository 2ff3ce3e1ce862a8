// `submit --file`: what it reads and where it writes.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/integration/cluster.hpp"
#include "tests/integration/played_head.hpp"

namespace troupe::test {
namespace {

class submit_file : public testing::Test {
 protected:
  submit_file() : cluster_(site_, {}) { cluster_.up(); }

  words command(const std::string& in, const std::string& out) const {
    return {"submit", "--file", in, "--out", out, "--max-tokens", "2"};
  }
  void refused(const std::string& in, const std::string& out, const std::string& part) const {
    process done = cluster_.start(command(in, out));
    EXPECT_EQ(done.wait(), 2) << done.error();
    EXPECT_NE(done.error().find(part), std::string::npos) << done.error();
  }
  std::size_t jobs() const { return json::parse(cluster_.run({"jobs", "list", "--json"})).size(); }

  test_site site_;
  test_cluster cluster_;
  std::string in_ = site_.write("in.jsonl", "{\"tokens\":[1]}\n{\"tokens\":[2]}\n{\"tokens\":[3]}\n").string();
};

TEST_F(submit_file, leaves_files_alone_that_hold_something_else) {
  for (const std::string text : {"{\"x\":1}", "line one\nprecious line two", "{\"index\":0,\"x\":1}\nmore"}) {
    const std::string mine = site_.write("mine", text).string();
    refused(in_, mine, "mine: holds something else");
    EXPECT_EQ(read_file(mine), text);
  }
  const std::string before = read_file(in_);
  refused(in_, in_, "name another file");
  EXPECT_EQ(read_file(in_), before);
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(submit_file, begins_no_job_that_it_cannot_read_or_write) {
  refused(in_, site_.path("nowhere/out").string(), "cannot be written");
  const std::string pipe = site_.path("pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe, site_.path("out").string(), "save it first");
  refused("-", site_.path("out").string(), "save it first");
  refused(site_.path("nothing").string(), site_.path("out").string(), "No such file or directory: check the path");
  for (const char* text : {"", "\n\n"})
    refused(site_.write("empty.jsonl", text).string(), site_.path("out").string(), "empty.jsonl: has no lines: write");
  for (const auto& [text, part] :
       {std::pair("[\n  {\"prompt\": \"x\"}\n]\n", ": is one list of JSON: write one object a line (jq -c '.[]')"),
        std::pair("[{\"prompt\": \"x\"}]", ": is one list of JSON"),
        std::pair("\n{\n\"prompt\": \"x\"\n}\n", ": has objects of several lines: write one object a line (jq -c .)"),
        std::pair("Once upon a time\nThe end\n",
                  ": its first line is no JSON object: write one into each line, such as"),
        std::pair("{\"prompt\": x}\n{\"prompt\": \"y\"}\n", ": its first line is no JSON object")})
    refused(site_.write("other.txt", text).string(), site_.path("out").string(), "other.txt" + std::string(part));
  const std::string latin = site_.write("latin.jsonl", "{\"tokens\":[1]}\n\n{\"prompt\":\"caf\xe9\"}\n").string();
  refused(latin, site_.path("out").string(), "latin.jsonl:3: is no UTF-8: convert the file");
  const std::string text(std::size_t{8} << 20, 'a');
  const std::string large = site_.write("large.jsonl", "{\"tokens\":[1]}\n{\"prompt\":\"" + text + "\"}\n").string();
  refused(large, site_.path("out").string(), "large.jsonl:2: has 8388621 bytes, and a line of a job may have 8388608");
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(submit_file, is_told_when_a_prompt_is_longer_than_a_message) {
  const std::string prompt = site_.write("prompt.txt", std::string(std::size_t{16} << 20, 'a')).string();
  process done = cluster_.start({"submit", "--prompt-file", prompt});
  EXPECT_EQ(done.wait(), 2);
  EXPECT_NE(done.error().find("bytes, and a cluster takes 16777216 at once: shorten it"), std::string::npos)
      << done.error();
}

TEST_F(submit_file, begins_no_new_job_whose_answers_have_no_place) {
  const std::string out = site_.path("out").string();
  cluster_.run(command(in_, out));
  const std::string whole = read_file(out);
  words again = command(in_, out);
  again.push_back("--new");
  process done = cluster_.start(again);
  EXPECT_EQ(done.wait(), 2) << done.error();
  EXPECT_NE(done.error().find("out: has lines already: move it away, or name another file for the new job"),
            std::string::npos)
      << done.error();
  EXPECT_EQ(read_file(out), whole);
  EXPECT_EQ(jobs(), 1u);
}

TEST_F(submit_file, goes_on_behind_the_last_whole_line) {
  const std::string out = site_.path("out").string();
  cluster_.run(command(in_, out));
  const std::string whole = read_file(out);
  EXPECT_EQ(std::count(whole.begin(), whole.end(), '\n'), 3);
  for (const std::size_t torn : {std::size_t{4}, whole.size() / 2, whole.size() - 1}) {
    std::filesystem::resize_file(out, torn);
    cluster_.run(command(in_, out));
    EXPECT_EQ(read_file(out), whole);
  }
}

TEST_F(submit_file, says_why_the_first_line_without_an_answer_has_none) {
  const std::string in =
      site_.write("bad.jsonl", "{\"tokens\":[1]}\n{\"promt\":\"x\"}\n{\"method\":\"POST\",\"body\":{}}\n").string();
  process done = cluster_.start(command(in, site_.path("out").string()));
  EXPECT_EQ(done.wait(), 1);
  EXPECT_NE(done.error().find("2 of 3 lines have no answer: see \"error\" in "), std::string::npos) << done.error();
  EXPECT_NE(done.error().find("; index 1: unknown key \"promt\": "), std::string::npos) << done.error();
  EXPECT_NE(read_file(site_.path("out")).find("is one of OpenAI's batches"), std::string::npos);
}

TEST_F(submit_file, draws_each_lines_seed_and_goes_on_with_the_same_job) {
  const std::string same = "{\"tokens\":[1]}\n", out = site_.path("out").string();
  const words drawn{"submit",
                    "--file",
                    site_.write("same.jsonl", same + same).string(),
                    "--out",
                    out,
                    "--seed",
                    "-1",
                    "--temperature",
                    "2",
                    "--max-tokens",
                    "40",
                    "--ignore-eos"};
  cluster_.run(drawn);
  const std::string whole = read_file(out), first = whole.substr(0, whole.find('\n'));
  const auto tokens_of = [](const std::string& line) { return json::parse(line).at("tokens"); };
  EXPECT_NE(tokens_of(first), tokens_of(whole.substr(first.size())));
  cluster_.run(drawn);
  EXPECT_EQ(read_file(out), whole);
  EXPECT_EQ(jobs(), 1u);
}

TEST_F(submit_file, makes_a_job_that_is_not_shown_as_a_fine_tune) {
  cluster_.run(command(in_, site_.path("out").string()));
  const std::string id = json::parse(cluster_.run({"jobs", "--json"})).at(0).at("id");
  for (const char* how : {"follow", "events", "curve"}) {
    process shown = cluster_.start({"jobs", how, id});
    EXPECT_EQ(shown.wait(), 2) << how;
    EXPECT_NE(shown.error().find("is a batch: troupe jobs collect " + id), std::string::npos) << shown.error();
  }
}

TEST_F(submit_file, makes_a_job_whose_answers_can_be_collected_by_its_id) {
  const std::string out = site_.path("out").string(), other = site_.path("other").string();
  words is_new = command(in_, out);
  is_new.emplace_back("--new");
  cluster_.run(is_new);
  const std::string whole = read_file(out);
  const json job = json::parse(cluster_.run({"jobs", "--json"})).at(0);
  EXPECT_EQ(job.at("name"), "in.jsonl");
  const std::string id = job.at("id");
  EXPECT_EQ(cluster_.run({"jobs", "collect", id}), whole);
  cluster_.run({"jobs", "collect", id, "--out", other});
  EXPECT_EQ(read_file(other), whole);
  std::filesystem::resize_file(other, whole.size() / 2);
  cluster_.run({"jobs", "collect", id, "--out", other});
  EXPECT_EQ(read_file(other), whole);
  const std::string mine = site_.write("mine", "{\"index\":0,\"x\":1}\n").string();
  process refused = cluster_.start({"jobs", "collect", id, "--out", mine});
  EXPECT_EQ(refused.wait(), 2);
  EXPECT_NE(refused.error().find("mine: holds something else than answers of job " + id), std::string::npos)
      << refused.error();
}

TEST_F(submit_file, is_collected_with_an_error_where_lines_have_no_answer) {
  const std::string in = site_.write("bad.jsonl", "{\"tokens\":[1]}\n{\"promt\":\"x\"}\n").string();
  process submitted = cluster_.start(command(in, site_.path("out").string()));
  EXPECT_EQ(submitted.wait(), 1);
  const std::string id = json::parse(cluster_.run({"jobs", "--json"})).at(0).at("id");
  process collected = cluster_.start({"jobs", "collect", id});
  EXPECT_EQ(collected.wait(), 1);
  EXPECT_EQ(collected.out(), read_file(site_.path("out")));
  EXPECT_NE(collected.error().find("1 of 2 lines have no answer: see \"error\" in standard output; index 1: "),
            std::string::npos)
      << collected.error();
}

TEST_F(submit_file, leaves_nothing_of_a_job_that_is_forgotten) {
  cluster_.run(command(in_, site_.path("out").string()));
  const std::string id = json::parse(cluster_.run({"jobs", "--json"})).at(0).at("id");
  const auto beside = cluster_.state() / "files" / (id + ".job");
  std::filesystem::create_directories(beside.parent_path());
  std::ofstream(beside) << "{}";
  EXPECT_EQ(cluster_.run({"jobs", "forget", id}), id + ": forgotten\n");
  EXPECT_FALSE(std::filesystem::exists(beside));
  EXPECT_EQ(jobs(), 0u);
}

TEST_F(submit_file, leaves_nothing_of_a_job_that_a_head_died_before_making) {
  cluster_.run(command(in_, site_.path("out").string()));
  const std::string id = json::parse(cluster_.run({"jobs", "--json"})).at(0).at("id");
  const auto files = cluster_.state() / "files";
  std::filesystem::create_directories(files);
  for (const std::string& job : {id, std::string("batch_1")}) std::ofstream(files / (job + ".job")) << "{}";
  cluster_.kill("head");
  EXPECT_TRUE(wait_until([&] { return !std::filesystem::exists(files / "batch_1.job"); }));
  EXPECT_TRUE(std::filesystem::exists(files / (id + ".job")));
}

TEST_F(submit_file, writes_into_what_is_no_file) {
  const std::string out = site_.path("out").string();
  cluster_.run(command(in_, out));
  EXPECT_EQ(cluster_.run(command(in_, "-")), read_file(out));
  EXPECT_FALSE(std::filesystem::exists("-"));
  cluster_.run(command(in_, "/dev/null"));
  process full = cluster_.start(command(in_, "/dev/full"));
  EXPECT_EQ(full.wait(), 1);
  EXPECT_NE(full.error().find("/dev/full: cannot be written"), std::string::npos) << full.error();

  const std::string pipe = site_.path("pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  process piped = cluster_.start(command(in_, pipe));
  EXPECT_EQ(read_file(pipe), read_file(out));
  EXPECT_EQ(piped.wait(), 0) << piped.error();
}

/// What was interrupted goes on behind the lines that the head has; it is sent in pieces of at most 5,000.
TEST(submit_file_that_was_interrupted, sends_the_lines_that_the_job_does_not_have_yet) {
  constexpr std::uint64_t lines = 12'000, received = 3000;
  const temp_folder folder;
  const auto answer = [&](const client_command& asked) -> json {
    if (asked.name == "job.create") return {{"state", "receiving"}, {"received", received}};
    const json job{{"state", "succeeded"}, {"ok", lines}, {"failed", 0}, {"lines", lines}};
    return {{"job", job}, {"outputs", json::array()}};
  };
  played_head head(answer);
  std::string text;
  auto missing = json::array();
  for (std::uint64_t i = 0; i < lines; ++i) {
    const std::string line = "{\"tokens\":[" + std::to_string(i) + "]}";
    text += line + "\n";
    if (i >= received) missing.push_back(line);
  }
  process client({TROUPE_BINARY, "submit", "--connect", head.endpoint(), "--file",
                  folder.write("in.jsonl", text).string(), "--out", (folder.path() / "out").string()},
                 folder.path() / "said");
  ASSERT_EQ(client.wait(), 0) << client.error();
  auto sent = json::array();
  for (const json& piece : head.commanded("job.lines")) {
    EXPECT_EQ(piece.at("first"), received + sent.size());
    EXPECT_LE(piece.at("lines").size(), 5000u);
    sent.insert(sent.end(), piece.at("lines").begin(), piece.at("lines").end());
  }
  EXPECT_TRUE(sent == missing) << sent.size();
  EXPECT_EQ(head.commanded("job.seal").size(), 1u);
}

TEST(submit_file_with_long_lines, sends_them_in_pieces_that_a_slow_link_passes) {
  const temp_folder folder;
  played_head head([](const client_command& asked) -> json {
    if (asked.name == "job.create") return {{"state", "receiving"}, {"received", 0}};
    return {{"job", {{"state", "succeeded"}, {"ok", 3}, {"failed", 0}, {"lines", 3}}}, {"outputs", json::array()}};
  });
  std::string text;
  for (int i = 0; i < 3; ++i) text += json{{"prompt", std::string(300 << 10, 'x')}}.dump() + "\n";
  process client({TROUPE_BINARY, "submit", "--connect", head.endpoint(), "--file",
                  folder.write("in.jsonl", text).string(), "--out", (folder.path() / "out").string()},
                 folder.path() / "said");
  ASSERT_EQ(client.wait(), 0) << client.error();
  const auto pieces = head.commanded("job.lines");
  ASSERT_EQ(pieces.size(), 3u);
  for (const json& piece : pieces) EXPECT_EQ(piece.at("lines").size(), 1u);
}

TEST(submit_file_that_was_interrupted, does_not_leave_a_new_job_to_wait_for_its_lines) {
  const temp_folder folder;
  std::atomic<pid_t> sending = 0;
  played_head head([&](const client_command& asked) -> json {
    if (asked.name == "job.create") return {{"state", "receiving"}, {"received", 0}};
    if (asked.name == "job.lines" && is_soon([&] { return sending > 0; })) ::kill(sending, SIGINT);
    return json::object();
  });
  const std::string in = folder.write("in.jsonl", "{\"tokens\":[1]}\n").string();
  process client({TROUPE_BINARY, "submit", "--connect", head.endpoint(), "--file", in, "--out",
                  (folder.path() / "out").string(), "--new"},
                 folder.path() / "said");
  sending = client.pid();
  EXPECT_EQ(client.wait(), 128 + SIGINT);
  EXPECT_NE(client.error().find("it is cancelled"), std::string::npos) << client.error();
  EXPECT_TRUE(is_soon([&] { return head.commanded("job.cancel").size() == 1; }));
  EXPECT_EQ(head.commanded("job.cancel").at(0)["id"], head.commanded("job.create").at(0)["id"]);
}

TEST(submit_file_that_was_interrupted, says_how_to_go_on_in_words_that_can_be_typed) {
  const temp_folder folder;
  std::atomic<pid_t> waiting = 0;
  bool is_interrupted = false;
  played_head head([&](const client_command& asked) -> json {
    if (asked.name == "job.create") return {{"state", "running"}};
    if (asked.name == "job.outputs" && !std::exchange(is_interrupted, true) && is_soon([&] { return waiting > 0; }))
      ::kill(waiting, SIGINT);
    return {{"job", {{"state", "running"}}}, {"outputs", json::array()}};
  });
  const std::string in = folder.write("in.jsonl", "{\"tokens\":[1]}\n").string();
  const std::string out = (folder.path() / "two words").string();
  process client({TROUPE_BINARY, "submit", "--connect", head.endpoint(), "--file", in, "--out", out, "--new"},
                 folder.path() / "said");
  waiting = client.pid();
  EXPECT_EQ(client.wait(), 128 + SIGINT);
  const std::string id = head.commanded("job.create").at(0)["id"], connect = " --connect " + head.endpoint();
  const std::string how = "troupe jobs collect " + id + " --out '" + out + "'" + connect +
                          " collects the rest, troupe cancel " + id + connect + " ends it";
  EXPECT_NE(client.error().find(how), std::string::npos) << client.error();
}

/// A batch of six lines that was cancelled when three of them had their answers, and perhaps forgotten since then.
class submit_file_of_a_job_that_is_over : public testing::Test {
 protected:
  static std::string line(int index) { return fmt::format(R"({{"index":{},"text":"x"}})", index); }
  json answer(const client_command& asked) const {
    if (is_forgotten) throw unknown_error("there is no such job");
    const json job{{"id", "batch-1"},
                   {"kind", "batch"},
                   {"state", has_succeeded ? "succeeded" : "cancelled"},
                   {"error", "cancelled"},
                   {"lines", 6}};
    if (asked.name != "job.outputs") return job;
    const json arguments = json::parse(asked.arguments);
    auto outputs = json::array();
    for (const int index : {0, 2, 5})
      if (index >= arguments.at("from").get<int>() && outputs.size() < arguments.at("limit").get<std::size_t>())
        outputs.push_back({{"index", index}, {"text", line(index)}});
    return {{"job", job}, {"outputs", outputs}};
  }
  std::string collected() const { return line(0) + "\n" + line(2) + "\n" + line(5) + "\n"; }
  std::string out() const { return (folder.path() / "out").string(); }
  void fails(words arguments, int code, const std::string& part) const {
    arguments.insert(arguments.begin(), TROUPE_BINARY);
    arguments.insert(arguments.end(), {"--out", out(), "--connect", head.endpoint()});
    process client(arguments, folder.path() / "said");
    EXPECT_EQ(client.wait(), code);
    EXPECT_NE(client.error().find(part), std::string::npos) << client.error();
  }
  words submitted() const { return {"submit", "--file", (folder.path() / "in.jsonl").string()}; }

  const temp_folder folder;
  std::atomic<bool> is_forgotten = false, has_succeeded = false;
  const played_head head{[this](const client_command& asked) { return answer(asked); }};
  const std::filesystem::path in = folder.write("in.jsonl", "{}\n{}\n{}\n{}\n{}\n{}\n");
};

TEST_F(submit_file_of_a_job_that_is_over, is_collected_again_and_again_though_lines_have_no_answer) {
  const words collect{"jobs", "collect", "batch-1"};
  for (int i = 0; i < 2; ++i) {
    fails(collect, 1, "batch-1: cancelled");
    EXPECT_EQ(read_file(out()), collected());
  }
  for (const std::size_t torn : {line(0).size() + 10, collected().size() - 20, collected().size() - 1}) {
    std::filesystem::resize_file(out(), torn);
    fails(collect, 1, "batch-1: cancelled");
    EXPECT_EQ(read_file(out()), collected()) << torn;
  }
}

TEST_F(submit_file_of_a_job_that_is_over, is_told_of_a_cancelled_one_to_begin_anew) {
  folder.write("out", collected());
  fails(submitted(), 2, "was cancelled before: add --new to begin anew");
  EXPECT_EQ(read_file(out()), collected());
}

TEST_F(submit_file_of_a_job_that_is_over, leaves_lines_alone_that_are_not_those_of_the_job) {
  const std::string others[] = {line(0) + "\n" + line(3) + "\n", line(1) + "\n" + line(5) + "\n",
                                line(0) + "\n" + line(6) + "\n", line(2) + "\n" + line(0) + "\n",
                                line(2) + "\n" + line(2) + "\n", line(2) + "\n" + line(1)};
  for (const std::string& text : others) {
    folder.write("out", text);
    fails(submitted(), 2, "out: holds something else than answers");
    EXPECT_EQ(read_file(out()), text);
  }
}

TEST_F(submit_file_of_a_job_that_is_over, knows_lines_that_somebody_took_out_for_what_they_are) {
  folder.write("out", collected());
  has_succeeded = true;
  fails(submitted(), 2, "out: holds something else than answers");
  EXPECT_EQ(read_file(out()), collected());
}

TEST_F(submit_file_of_a_job_that_is_over, is_told_of_a_forgotten_one_that_nobody_knows_it_any_more) {
  folder.write("out", collected());
  is_forgotten = true;
  fails(submitted(), 2, "name another file to have it answered anew");
  EXPECT_EQ(read_file(out()), collected());
  EXPECT_TRUE(head.commanded("job.create").empty());
}

TEST(submit_file_without_a_replica, says_why_no_answers_come_and_how_to_end_it) {
  const test_site site;
  test_cluster cluster(site, {.in_cluster = "respawn = false"});
  cluster.up();
  ASSERT_TRUE(cluster.up_has_seen_it_serve());
  ASSERT_GT(cluster.pid_of("w0"), 1);
  ::kill(cluster.pid_of("w0"), SIGKILL);
  const std::string in = site.write("in.jsonl", "{\"tokens\":[1]}\n").string();
  process waits = cluster.start({"submit", "--file", in, "--out", site.path("out").string()});
  process is_new = cluster.start({"submit", "--file", in, "--out", site.path("other").string(), "--new"});
  for (process* each : {&waits, &is_new}) {
    EXPECT_TRUE(
        wait_until([&] { return each->error().find("no replica runs: see troupe status") != std::string::npos; },
                   std::chrono::minutes(1)))
        << each->error();
    ::kill(each->pid(), SIGINT);
    EXPECT_EQ(each->wait(), 130);
  }
  int told = 0;
  for (const json& job : json::parse(cluster.run({"jobs", "--json"}))) {
    const std::string id = job.at("id"), end = "troupe cancel " + id + " ends it";
    told += waits.error().find(id + " goes on: the same command collects the rest, " + end) != std::string::npos;
    const std::string by_id = "troupe jobs collect " + id + " --out " + site.path("other").string();
    told += is_new.error().find(id + " goes on: " + by_id + " collects the rest, " + end) != std::string::npos;
  }
  EXPECT_EQ(told, 2) << waits.error() << is_new.error();
}

/// Its second answer does not come: the only worker is gone while it computes.
TEST(submit_file_of_a_running_job, is_refused_where_the_first_answer_is_another) {
  const test_site site;
  test_cluster cluster(site, {.in_cluster = "respawn = false"});
  cluster.up();
  ASSERT_TRUE(cluster.up_has_seen_it_serve());
  std::string lines = "{\"tokens\":[1],\"max_tokens\":1}\n";
  for (int i = 0; i < 63; ++i) lines += "{\"tokens\":[2],\"max_tokens\":4000,\"ignore_eos\":true}\n";
  const std::string in = site.write("in.jsonl", lines).string(), out = site.path("out").string();
  const process first = cluster.start({"submit", "--file", in, "--out", out});
  std::error_code none_yet;
  ASSERT_TRUE(wait_until([&] {
    const auto bytes = std::filesystem::file_size(out, none_yet);
    return !none_yet && bytes > 0;
  }));
  ::kill(cluster.pid_of("w0"), SIGKILL);
  const std::string mine = site.write("mine", "{\"index\":0,\"x\":1}\n{\"index\":1,\"x\":1}\n").string();
  process second = cluster.start({"submit", "--file", in, "--out", mine});
  EXPECT_EQ(second.wait(), 2) << second.error();
  EXPECT_NE(second.error().find("mine: holds something else"), std::string::npos) << second.error();
}

}  // namespace
}  // namespace troupe::test
