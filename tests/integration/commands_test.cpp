// What commands say of a running cluster, and what they change in it.
#include <ctime>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"
#include "tests/integration/played_head.hpp"

namespace troupe::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class commands : public testing::Test {
 protected:
  commands() : cluster_(site_, {.trainers = {"coach"}}) {
    cluster_.up();
    cluster_.load_adapters();
  }
  std::string versions() const { return cluster_.run({"adapters", "list"}); }

  test_site site_;
  test_cluster cluster_;
};

TEST_F(commands, show_nodes_replicas_adapters_and_jobs) {
  const std::string in = site_.write("in.jsonl", "{\"tokens\":[1]}\n{\"tokens\":[2]}\n").string();
  cluster_.run({"submit", "--file", in, "--out", site_.path("out").string(), "--max-tokens", "2"});
  ASSERT_TRUE(wait_until([&] { return cluster_.state_of("coach") == "alive"; }));
  ASSERT_TRUE(wait_until([&] { return cluster_.is_at_rest(); }));
  const std::string shown = cluster_.run({"status"});
  for (const char* row :
       {"(^|\n)NODE +STATE +ROLES +LAYERS +REPLICA +HOST +PID +ROWS/S *\n", "\nw0 +alive +worker +0-",
        "\nhead +alive +router, scheduler +- ", "\ncoach +alive +trainer +- ",
        "\n +0 +running +0 +0 +0% .* 0-[0-9]+ w0\n", "\nblue@1 +ready +blue +4 ", "\nred@1 +ready +red +4 ",
        "\nbatch-[0-9a-f]+ +succeeded +[0-9]+ s +100% +2 +0 +- +batch +in.jsonl\n"})
    EXPECT_THAT(shown, ContainsRegex(row));
}

TEST_F(commands, change_which_version_of_an_adapter_answers) {
  EXPECT_EQ(cluster_.run({"adapters", "load", "red", "--path", site_.adapter("blue").string()}), "red@2: ready\n");
  EXPECT_THAT(versions(), ContainsRegex("red@1 +ready +- .*red@2 +ready +red "));
  EXPECT_EQ(cluster_.run({"adapters", "rollback", "red"}), "red@1: answers as red now\n");
  EXPECT_THAT(versions(), ContainsRegex("red@1 +ready +red .*red@2 +ready +- "));
  EXPECT_EQ(cluster_.run({"adapters", "unload", "red"}), "red@2: unloaded\nred@1: unloaded\n");
  EXPECT_EQ(cluster_.run({"adapters", "unload", "red"}), "red: is unloaded already\n");
  process asked = cluster_.start({"submit", "--tokens", "1", "--adapter", "red"});
  EXPECT_EQ(asked.wait(), 2);
  EXPECT_EQ(cluster_.run({"adapters", "load", "red"}), "red@2: ready\n");
}

TEST_F(commands, check_a_file_that_is_to_take_the_place_of_the_one_that_is_up) {
  const auto check = [&](const std::string& changed_line) {
    const auto copy = site_.write("copy.toml", read_file(cluster_.file()) + changed_line);
    return cluster_.start({"up", copy.string(), "--check"});
  };
  process good = check("");
  EXPECT_EQ(good.wait(), 0) << good.error();
  EXPECT_EQ(good.out(), site_.path("copy.toml").string() + " can be used\n");
  process impossible = check("[[node]]\nname = \"w1\"\nroles = [\"worker\"]\nlayers = \"0-99\"\n");
  EXPECT_EQ(impossible.wait(), 2) << impossible.out();
  EXPECT_THAT(impossible.error(), HasSubstr(site_.path("copy.toml").string()));
  EXPECT_EQ(cluster_.running_replicas(), 1);
}

TEST_F(commands, export_no_adapter_whose_file_a_disk_has_damaged) {
  const auto folder = site_.path("exported");
  const words command{"adapters", "export", "red", "--out", folder.string()};
  const auto others = site_.write("others", "precious");
  std::filesystem::create_directory(folder);
  std::filesystem::create_symlink(others, folder / "adapter_config.json.part");
  for (const auto& each : std::filesystem::recursive_directory_iterator(cluster_.state() / "adapters")) {
    if (each.path().filename() != "adapter_model.safetensors") continue;
    std::string bytes = read_file(each.path());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(each.path(), std::ios::binary) << bytes;
  }
  process damaged = cluster_.start(command);
  EXPECT_EQ(damaged.wait(), 1);
  EXPECT_EQ(damaged.error(), "troupe: red@1: came damaged: export it again\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing of it is left";
  EXPECT_EQ(read_file(others), "precious") << "no link is followed";
}

class shown_status : public testing::Test {
 protected:
  /// What the program says where this is the cluster's status.
  std::string said(const json& status, words command) const {
    const played_head head([&](const client_command&) { return status; });
    command.insert(command.begin(), TROUPE_BINARY);
    command.insert(command.end(), {"--connect", head.endpoint()});
    process shown(command, folder_.path() / "said");
    EXPECT_EQ(shown.wait(), 0) << shown.error();
    return shown.out();
  }

  const temp_folder folder_;
};

TEST_F(shown_status, has_jobs_that_run_then_those_that_wait_and_of_many_the_first) {
  auto jobs = json::array();
  for (int i = 0; i < 20; ++i)
    for (const char* state : {"succeeded", "queued", "running"})
      if (i < 9 || state[0] == 's')
        jobs.push_back({{"id", state + std::to_string(i)}, {"kind", "batch"}, {"state", state}});
  const std::string status = said({{"jobs", jobs}}, {"status"});
  std::string expected;
  for (const char* state : {"running", "queued"})
    for (int i = 0; i < 9; ++i) expected += state + std::to_string(i) + " ";
  std::string shown;
  std::istringstream lines(status);
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && !line.starts_with("…");)
    shown += line.substr(0, line.find(' ') + 1);
  EXPECT_EQ(shown, expected + "succeeded0 succeeded1 ");
  EXPECT_THAT(status, HasSubstr("… and 18 more: troupe jobs\n"));
  EXPECT_THAT(said({{"jobs", jobs}, {"other_jobs", 2000}}, {"status"}), HasSubstr("… and 2018 more: troupe jobs\n"));
}

TEST_F(shown_status, tells_jobs_apart_by_what_they_are_about_and_how_long_ago_they_were_made) {
  auto jobs = json::parse(R"([
      {"id":"b","kind":"batch","state":"running","name":"questions.jsonl"},
      {"id":"f","kind":"fine-tune","state":"running","name":"law"},
      {"id":"g","kind":"fine-tune","state":"succeeded","name":"law","result":"law@2"}])");
  jobs[0]["created"] = std::time(nullptr) - (3 * 60 + 2) * 60;
  const std::string status = said({{"jobs", jobs}}, {"status"});
  for (const char* row : {"\nb +running +3 h 2 min .* batch +questions.jsonl\n", "\nf +running +- .* fine-tune +law\n",
                          "\ng +succeeded +- .* fine-tune +law@2\n"})
    EXPECT_THAT(status, ContainsRegex(row));
}

TEST_F(shown_status, says_which_places_of_a_stage_are_vacant_and_which_nodes_are_gone_first) {
  const std::string status = said(json::parse(R"({
      "nodes":[{"name":"head","state":"alive"},{"name":"w0","state":"lost"}],
      "replicas":[{"replica":0,"stages":[{"layers":"0-3","workers":["w2",""]},{"layers":"4-5","workers":[""]}]}]})"),
                                  {"status"});
  EXPECT_THAT(status, HasSubstr(" 0-3 w2, vacant | 4-5 vacant\n"));
  EXPECT_LT(status.find("\nw0 "), status.find("\nhead ")) << status;
}

TEST_F(shown_status, says_why_the_workers_cannot_hold_the_model) {
  EXPECT_EQ(said({{"placement", "w0 is too small"}}, {"status"}), "no replica runs: w0 is too small\n");
}

TEST_F(shown_status, comes_again_with_the_speed_of_all_replicas_above_it) {
  auto replicas = json::array();
  for (int i = 0; i < 2; ++i)
    replicas.push_back(
        {{"replica", i}, {"state", "running"}, {"running", 3}, {"waiting", 1}, {"tokens_per_second", 20}});
  const json status{{"replicas", replicas}};
  const std::string block = "40 tokens/s, 6 sequences running, 2 waiting\n\n" + said(status, {"status"});
  EXPECT_EQ(said(status, {"top", "--blocks", "2"}), block + "\n" + block);
}

}  // namespace
}  // namespace troupe::test
