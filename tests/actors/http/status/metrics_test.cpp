#include <regex>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/actors/http/fixture.hpp"
#include "tests/transport/http/raw_client.hpp"

namespace troupe::test {
namespace {

std::set<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex names(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), names), end; at != end; ++at) found.insert((*at)[1]);
  return found;
}

class metrics : public api_test {
 protected:
  std::string read() { return ask("GET", "/metrics").get().body; }
  std::set<std::string> names() { return matches(read(), "# TYPE (\\S+) "); }
  /// The value of a line; -1 where there is none.
  static double value(const std::string& all, const std::string& line) {
    const std::size_t at = all.find("\n" + line + " ");
    return at == all.npos ? -1 : std::stod(all.substr(at + line.size() + 2));
  }
};

TEST(histograms, count_for_each_bound_what_is_not_above_it) {
  const std::vector<double> bounds{1, 2.5};
  histogram one(bounds);
  one.add(1);
  one.add(2, 3);
  one.add(9);
  std::string text;
  one.write(text, "name", "x=\"y\"");
  EXPECT_EQ(text,
            "name_bucket{x=\"y\",le=\"1\"} 1\nname_bucket{x=\"y\",le=\"2.5\"} 4\nname_bucket{x=\"y\",le=\"+Inf\"} 5\n"
            "name_sum{x=\"y\"} 16\nname_count{x=\"y\"} 5\n");
}

TEST_F(metrics, of_the_dashboard_all_exist) {
  const auto known = names();
  const auto shown = matches(read_file(configs / "grafana.json"), "((?:vllm|troupe):[a-z0-9_]+)");
  EXPECT_GT(shown.size(), 25u);
  for (const std::string& name : shown)
    EXPECT_TRUE(known.contains(name) ||
                known.contains(std::regex_replace(name, std::regex("_(bucket|sum|count)$"), "")))
        << name;
}

TEST_F(metrics, that_call_for_somebody_are_on_the_dashboard) {
  const std::string dashboard = read_file(configs / "grafana.json");
  for (const char* name : {"replica_running", "node_alive", "journal_failing", "http_refused_connections_total"})
    EXPECT_NE(dashboard.find(std::string("troupe:") + name), dashboard.npos) << name;
}

TEST_F(metrics, of_several_clusters_are_told_apart_by_the_dashboard) {
  const std::string dashboard = read_file(configs / "grafana.json");
  EXPECT_FALSE(matches(dashboard, R"(("expr"))").empty());
  const auto unchosen = matches(dashboard, R"re("expr".*((?:vllm|troupe):[a-z0-9_]+)[^a-z0-9_{])re");
  EXPECT_TRUE(unchosen.empty()) << *unchosen.begin();
}

TEST_F(metrics, are_all_described) {
  const std::string described = read_file(docs / "API.md");
  const auto all = names();
  EXPECT_GT(all.size(), 25u);
  for (const std::string& name : all) {
    const std::string bare = name.substr(name.find(':') + 1);
    EXPECT_NE(described.find("`" + bare + "`"), described.npos) << name;
  }
}

TEST_F(metrics, tell_where_a_requests_time_went) {
  publish_adapter();
  auto answering = post("/v1/completions", {{"model", "pricing"}, {"prompt", "ABCD"}, {"max_tokens", 9}});
  {
    const auto begun = gateway_.take<begin_request>();
    answer_part first = part_of("d");
    first.timing = answer_timing{std::chrono::seconds(2), std::chrono::seconds(3)};
    begun.listener->on_part(first);
    give(begun, "ef", "stop");
  }
  answering.get();
  const std::string all = read(), labels = R"({model_name="pricing@2",engine="0"})";
  EXPECT_GE(value(all, "vllm:request_queue_time_seconds_sum" + labels), 2);
  EXPECT_EQ(value(all, "vllm:request_prefill_time_seconds_sum" + labels), 3);
  EXPECT_GE(value(all, "vllm:request_inference_time_seconds_sum" + labels), 3);
  EXPECT_EQ(value(all, "vllm:request_decode_time_seconds_count" + labels), 1);
  EXPECT_EQ(value(all, "vllm:inter_token_latency_seconds_count" + labels), 2);
  EXPECT_EQ(value(all, "vllm:request_generation_tokens_sum" + labels), 3);
  EXPECT_EQ(value(all, "vllm:request_params_max_tokens_sum" + labels), 9);
  EXPECT_EQ(value(all, "vllm:request_params_n_sum" + labels), 1);
  EXPECT_EQ(value(all, "vllm:generation_tokens_total" + labels), 3);
  EXPECT_GT(value(all, "vllm:request_prompt_tokens_sum" + labels), 0);
  EXPECT_EQ(value(all, "vllm:prompt_tokens_total" + labels), 4);
  EXPECT_EQ(value(all, "vllm:time_to_first_token_seconds_count" + labels), 1);
  EXPECT_EQ(value(all, R"(vllm:request_success_total{model_name="pricing@2",engine="0",finished_reason="stop"})"), 1);
}

TEST_F(metrics, count_how_long_a_long_request_waited_to_be_read) {
  busy_thread busy(*work_);
  auto answering = post("/v1/completions", {{"prompt", "ABC"}, {"padding", std::string(100'000, 'x')}});
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  const monotonic_clock clock;
  const instant since = clock.now();
  EXPECT_EQ(value(read(), R"(vllm:e2e_request_latency_seconds_count{model_name="letters",engine="0"})"), 0);
  const double waited = seconds_of(clock.now() - since);
  busy.go_on();
  const auto begun = gateway_.take<begin_request>();
  answer_part only = part_of("d");
  only.timing = answer_timing{std::chrono::seconds(2), std::chrono::seconds(3)};
  only.end = answer_end{"stop", 3, {}};
  begun.listener->on_part(only);
  answering.get();
  const std::string all = read(), labels = R"(_sum{model_name="letters",engine="0"})";
  EXPECT_GE(value(all, "vllm:request_queue_time_seconds" + labels), 2 + waited);
  EXPECT_GE(value(all, "vllm:time_to_first_token_seconds" + labels), waited);
  EXPECT_GE(value(all, "vllm:e2e_request_latency_seconds" + labels), waited);
}

TEST_F(metrics, are_there_before_the_first_request) {
  const std::string bare = read();
  EXPECT_EQ(value(bare, R"(vllm:generation_tokens_total{model_name="letters",engine="0"})"), 0);
  EXPECT_EQ(value(bare, R"(vllm:time_to_first_token_seconds_count{model_name="letters",engine="0"})"), 0);
  EXPECT_EQ(value(bare, R"(vllm:request_success_total{model_name="letters",engine="0",finished_reason="length"})"), 0);
  for (const int status : {200, 400, 401, 404, 429, 499, 500, 503})
    EXPECT_GE(value(bare, fmt::format("troupe:http_responses_total{{status=\"{}\"}}", status)), 0) << status;
  publish_adapter();
  const std::string all = read();
  EXPECT_EQ(value(all, R"(vllm:generation_tokens_total{model_name="pricing@2",engine="0"})"), 0);
  EXPECT_EQ(value(all, R"(vllm:request_success_total{model_name="pricing@2",engine="0",finished_reason="stop"})"), 0);
}

TEST_F(metrics, of_many_adapters_come_with_their_requests) {
  adapter_directory::snapshot many;
  for (std::uint32_t i = 1; i <= 30; ++i) {
    const std::string name = fmt::format("a{}", i);
    many.names[name] = many.names[name + "@1"] = adapter_version(i);
    many.versions[adapter_version(i)].full_name = name + "@1";
  }
  adapters_->publish(std::move(many));
  EXPECT_EQ(matches(read(), "vllm:generation_tokens_total\\{(\\S+)\\}").size(), 1u);
}

TEST_F(metrics, count_the_longest_answer_to_each_prompt) {
  auto answering = post("/v1/completions", {{"prompt", {"AB", "CD"}}, {"n", 2}});
  const auto first = gateway_.take<begin_request>(), second = gateway_.take<begin_request>();
  give(first, "def", "stop", 1);
  give(second, "d", "stop", 0);
  const std::string name = "vllm:request_max_num_generation_tokens", labels = R"({model_name="letters",engine="0"})";
  EXPECT_EQ(value(read(), name + "_count" + labels), 0) << "others may become longer";
  give(first, "de", "stop", 0);
  give(second, "defgh", "stop", 1);
  answering.get();
  const std::string all = read();
  EXPECT_EQ(value(all, name + "_count" + labels), 2);
  EXPECT_EQ(value(all, name + "_sum" + labels), 8);
  EXPECT_EQ(value(all, "vllm:request_generation_tokens_sum" + labels), 11);
}

TEST_F(metrics, count_the_context_where_a_request_allows_all_tokens) {
  auto answering = post("/v1/completions", {{"prompt", "ABC"}, {"max_tokens", -1}});
  give(gateway_.take<begin_request>(), "d", "stop");
  answering.get();
  EXPECT_EQ(value(read(), "vllm:request_params_max_tokens_sum{model_name=\"letters\",engine=\"0\"}"), 64);
}

TEST_F(metrics, of_versions_that_nobody_asks_for_any_more_end_and_are_counted_once) {
  http_metrics counts;
  const auto in_use = counts.series("in-use@1");
  for (std::size_t i = 0; i < http_metrics::most_series + 50; ++i) {
    counts.series("asked@1")->answered(1);
    counts.series(fmt::format("v@{}", i))->answered(1);
  }
  in_use->answered(7);
  const std::string all = counts.write("letters", status_board());
  const auto tokens_of = [&](const std::string& name) {
    return value(all, fmt::format("vllm:generation_tokens_total{{model_name=\"{}\",engine=\"0\"}}", name));
  };
  EXPECT_EQ(matches(all, "vllm:generation_tokens_total\\{(\\S+)\\}").size(), http_metrics::most_series);
  EXPECT_EQ(tokens_of("in-use@1"), 7);
  EXPECT_EQ(tokens_of("asked@1"), http_metrics::most_series + 50);
  EXPECT_EQ(tokens_of("v@0"), -1);
  EXPECT_EQ(tokens_of("v@149"), 1);
  EXPECT_EQ(tokens_of("other"), -1) << "what was counted under another name would be counted twice";
}

TEST_F(metrics, tell_a_client_that_went_away_from_a_failure) {
  const std::string body = R"({"model":"letters","prompt":"ABC"})";
  raw_client client(front_->port());
  client.say(fmt::format("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{}",
                         body.size(), body));
  {
    const auto begun = gateway_.take<begin_request>();
    client.close();
    EXPECT_EQ(gateway_.take<end_request>().id, begun.id);
  }
  EXPECT_TRUE(is_soon([this] { return !log().empty(); }));
  const std::string all = read();
  EXPECT_NE(log().find("POST /v1/completions 499"), std::string::npos) << log();
  EXPECT_EQ(value(all, R"(troupe:http_responses_total{status="499"})"), 1);
  EXPECT_EQ(value(all, R"(troupe:http_responses_total{status="500"})"), 0);
}

TEST_F(metrics, tell_how_many_connections_were_too_many) {
  EXPECT_EQ(value(read(), "troupe:http_refused_connections_total"), 0);
  front_.reset();
  front_ = std::make_unique<http_front>(http_options{.max_connections = 1}, parts());
  {
    raw_client only(front_->port());
    only.say("POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 14\r\n\r\n{\"prompt\":\"A\"}");
    const auto in_progress = gateway_.take<begin_request>();
    raw_client surplus(front_->port());
    EXPECT_EQ(surplus.hear_all(), "");
  }
  EXPECT_TRUE(is_soon([this] {
    const answered got = ask("GET", "/metrics").get();  // once the first has gone
    return value(got.body, "troupe:http_refused_connections_total") >= 1;
  }));
}

TEST_F(metrics, tell_what_replicas_and_workers_say) {
  replica_figures posted;
  posted.ready = true;
  posted.stages = 2;
  posted.load.running = 3;
  posted.load.waiting = 1;
  posted.load.blocks = 10;
  posted.load.free_blocks = 4;
  posted.scheduling.preemptions = 2;
  posted.scheduling.looked_up_tokens = 8;
  posted.scheduling.reused_tokens = 5;
  posted.meter.lives = 2;
  posted.meter.resumed = 5;
  posted.meter.bubble = std::chrono::milliseconds(250);
  posted.max_adapters = 32;
  posted.resident_adapters = {"a@1"};
  posted.running_adapters = {"a@1", "b@2"};
  board_->post_replica(replica_id(0), posted);
  board_->post("nodes",
               R"([{"name":"head","state":"alive"},{"name":"w0","state":"lost","replica":0,"busy_seconds":7.5}])");
  const std::string all = read(), labels = R"({model_name="letters",engine="0"})";
  EXPECT_EQ(value(all, "vllm:num_requests_running" + labels), 3);
  EXPECT_EQ(value(all, "vllm:kv_cache_usage_perc" + labels), 0.6);
  EXPECT_EQ(value(all, "vllm:num_preemptions_total" + labels), 2);
  EXPECT_EQ(value(all, "vllm:prefix_cache_queries_total" + labels), 8);
  EXPECT_EQ(value(all, "vllm:prefix_cache_hits_total" + labels), 5);
  EXPECT_EQ(value(all, "troupe:epoch_changes_total" + labels), 2);
  EXPECT_EQ(value(all, "troupe:resumed_sequences_total" + labels), 5);
  EXPECT_EQ(value(all, "troupe:pipeline_bubble_seconds_total" + labels), 0.25);
  EXPECT_EQ(value(all, "troupe:replica_stages" + labels), 2);
  EXPECT_EQ(value(all, "troupe:replica_running" + labels), 1);
  EXPECT_EQ(value(all, R"(troupe:adapter_resident{model_name="letters",engine="0",adapter="a@1"})"), 1);
  EXPECT_GT(value(all, R"(vllm:lora_requests_info{model_name="letters",engine="0",max_lora="32",)"
                       R"(running_lora_adapters="a@1,b@2",waiting_lora_adapters=""})"),
            1e9);
  EXPECT_EQ(value(all, R"(troupe:worker_busy_seconds_total{node="w0",engine="0"})"), 7.5);
  EXPECT_EQ(value(all, R"(troupe:node_alive{node="head"})"), 1);
  EXPECT_EQ(value(all, R"(troupe:node_alive{node="w0"})"), 0);
  EXPECT_EQ(value(all, "troupe:journal_failing"), 0);
  board_->post("journal", R"("it is gone")");
  EXPECT_EQ(value(read(), "troupe:journal_failing"), 1);
}

TEST_F(metrics, take_a_node_for_alive_until_it_is_lost) {
  board_->post("nodes", R"([{"name":"busy","state":"suspect"},{"name":"gone","state":"left"},
                            {"name":"late","state":"missing"}])");
  const std::string all = read();
  EXPECT_EQ(value(all, R"(troupe:node_alive{node="busy"})"), 1) << "silent, but not for long";
  EXPECT_EQ(value(all, R"(troupe:node_alive{node="gone"})"), 0);
  EXPECT_EQ(value(all, R"(troupe:node_alive{node="late"})"), 0);
}

}  // namespace
}  // namespace troupe::test
