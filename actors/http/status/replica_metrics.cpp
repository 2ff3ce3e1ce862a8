#include "actors/http/status/replica_metrics.hpp"

#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "actors/status_board.hpp"

namespace troupe::detail {
namespace {

using json = nlohmann::json;

constexpr auto as_double = [](auto value) { return static_cast<double>(value); };

double rounded_seconds(duration time) {
  return as_double(std::chrono::round<std::chrono::milliseconds>(time).count()) / 1000;
}

double used_share(const replica_figures& replica) {
  return replica.load.blocks > 0 ? 1 - as_double(replica.load.free_blocks) / as_double(replica.load.blocks) : 0;
}

struct described_value {
  const char *name, *type, *help;
  double (*value)(const replica_figures& replica);
};
constexpr described_value replica_values[] = {
    {"vllm:num_requests_running", "gauge", "Sequences in the batch.",
     [](const replica_figures& replica) { return as_double(replica.load.running); }},
    {"vllm:num_requests_waiting", "gauge", "Sequences in the queue.",
     [](const replica_figures& replica) { return as_double(replica.load.waiting); }},
    {"vllm:num_preemptions_total", "counter", "Sequences that gave up their blocks.",
     [](const replica_figures& replica) { return as_double(replica.scheduling.preemptions); }},
    {"vllm:prefix_cache_queries_total", "counter", "Prompt tokens looked for in the prefix cache.",
     [](const replica_figures& replica) { return as_double(replica.scheduling.looked_up_tokens); }},
    {"vllm:prefix_cache_hits_total", "counter", "Prompt tokens found in the prefix cache.",
     [](const replica_figures& replica) { return as_double(replica.scheduling.reused_tokens); }},
    {"troupe:computed_tokens_total", "counter", "Tokens that passed through the model.",
     [](const replica_figures& replica) { return as_double(replica.scheduling.computed_tokens); }},
    {"troupe:replica_tokens_total", "counter", "Tokens that the replica answered.",
     [](const replica_figures& replica) { return as_double(replica.meter.tokens); }},
    {"troupe:steps_total", "counter", "Steps of the replica.",
     [](const replica_figures& replica) { return as_double(replica.scheduling.steps); }},
    {"troupe:tokens_per_second", "gauge", "Tokens that the replica answers now.",
     [](const replica_figures& replica) { return std::round(replica.meter.tokens_per_second * 10) / 10; }},
    {"troupe:resident_adapters", "gauge", "Adapters that are loaded.",
     [](const replica_figures& replica) { return as_double(replica.load.adapters.size()); }},
    {"troupe:epoch", "gauge", "The number of the replica's life, which no other life had.",
     [](const replica_figures& replica) { return as_double(replica.epoch.value); }},
    {"troupe:epoch_changes_total", "counter", "Times that the replica began anew, the first one too.",
     [](const replica_figures& replica) { return as_double(replica.meter.lives); }},
    {"troupe:resumed_sequences_total", "counter",
     "Sequences that lost what was stored of them and went on from their tokens.",
     [](const replica_figures& replica) { return as_double(replica.meter.resumed); }},
    {"troupe:active_seconds_total", "counter", "Time with a step in flight.",
     [](const replica_figures& replica) { return rounded_seconds(replica.meter.active); }},
    {"troupe:pipeline_bubble_seconds_total", "counter",
     "Of the active time, the share that stages were without a step and could have had one.",
     [](const replica_figures& replica) { return rounded_seconds(replica.meter.bubble); }},
    {"vllm:kv_cache_usage_perc", "gauge", "Share of the blocks in use, 1 is all.", used_share},
    {"troupe:replica_running", "gauge", "1 where the replica serves.",
     [](const replica_figures& replica) { return replica.ready ? 1.0 : 0.0; }},
    {"troupe:replica_stages", "gauge", "Stages of the replica.",
     [](const replica_figures& replica) { return as_double(replica.stages); }},
};

std::string labels_of(const std::string& model, replica_id id) {
  return fmt::format("model_name=\"{}\",engine=\"{}\"", label_text(model), id.value);
}

std::string names_label(const std::vector<std::string>& names) {
  return label_text(fmt::format("{}", fmt::join(names, ",")));
}

void write_adapters(std::string& to, const std::string& model, const std::map<replica_id, replica_figures>& replicas) {
  const auto out = std::back_inserter(to);
  describe(to, "vllm:lora_requests_info", "gauge", "Adapters of running and waiting requests; the value is the time.");
  for (const auto& [id, replica] : replicas)
    fmt::format_to(out,
                   "vllm:lora_requests_info{{{},max_lora=\"{}\",running_lora_adapters=\"{}\","
                   "waiting_lora_adapters=\"{}\"}} {}\n",
                   labels_of(model, id), replica.max_adapters, names_label(replica.running_adapters),
                   names_label(replica.waiting_adapters), as_double(std::time(nullptr)));
  describe(to, "troupe:adapter_resident", "gauge", "1 for each adapter that the replica has loaded.");
  for (const auto& [id, replica] : replicas)
    for (const std::string& each : replica.resident_adapters)
      fmt::format_to(out, "troupe:adapter_resident{{{},adapter=\"{}\"}} 1\n", labels_of(model, id), label_text(each));
}

/// One that was silent for a while may be busy: it still has its work. Alerts are for what is gone.
bool is_here(const json& node) {
  const std::string state = node.value("state", "");
  return state == "alive" || state == "suspect";
}

void write_workers(std::string& to, const json& nodes) {
  describe(to, "troupe:worker_busy_seconds_total", "counter", "Time that the worker has spent in steps.");
  for (const json& node : nodes)
    if (node.is_object() && node.value("busy_seconds", json()).is_number() && node["replica"].is_number_unsigned())
      fmt::format_to(std::back_inserter(to), "troupe:worker_busy_seconds_total{{node=\"{}\",engine=\"{}\"}} {}\n",
                     label_text(node.value("name", "")), node["replica"].get<std::size_t>(),
                     node.value("busy_seconds", 0.0));
  describe(to, "troupe:node_alive", "gauge", "1 for a node that has joined and is not lost.");
  for (const json& node : nodes)
    if (node.is_object())
      fmt::format_to(std::back_inserter(to), "troupe:node_alive{{node=\"{}\"}} {}\n",
                     label_text(node.value("name", "")), is_here(node) ? 1 : 0);
}

void write_journal(std::string& to, const status_board& board) {
  describe(to, "troupe:journal_failing", "gauge", "1 while the journal cannot be written: jobs stand still.");
  fmt::format_to(std::back_inserter(to), "troupe:journal_failing {}\n", board.read("journal").empty() ? 0 : 1);
}

}  // namespace

std::string label_text(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n')
      text += "\\n";
    else
      text += c;
  }
  return text;
}

void describe(std::string& to, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(to), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void write_replica_metrics(std::string& to, const std::string& model, const status_board& board) {
  const auto replicas = board.replicas();
  for (const described_value& each : replica_values) {
    describe(to, each.name, each.type, each.help);
    for (const auto& [id, replica] : replicas)
      fmt::format_to(std::back_inserter(to), "{}{{{}}} {}\n", each.name, labels_of(model, id), each.value(replica));
  }
  write_adapters(to, model, replicas);
  const json nodes = json::parse(board.read("nodes"), nullptr, false);
  write_workers(to, nodes.is_array() ? nodes : json::array());
  write_journal(to, board);
}

}  // namespace troupe::detail
