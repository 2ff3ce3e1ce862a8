#include "actors/http/replica_metrics.hpp"

#include <ctime>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace troupe::detail {
namespace {

using json = nlohmann::json;

double number_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? 0 : found->get<double>();
}

struct described_value {
  const char *name, *type, *key, *help;
};
constexpr described_value replica_values[] = {
    {"vllm:num_requests_running", "gauge", "running", "Sequences in the batch."},
    {"vllm:num_requests_waiting", "gauge", "waiting", "Sequences in the queue."},
    {"vllm:num_preemptions_total", "counter", "preemptions", "Sequences that gave up their blocks."},
    {"vllm:prefix_cache_queries_total", "counter", "looked_up_tokens", "Prompt tokens looked for in the prefix cache."},
    {"vllm:prefix_cache_hits_total", "counter", "reused_tokens", "Prompt tokens found in the prefix cache."},
    {"troupe:computed_tokens_total", "counter", "computed_tokens", "Tokens that passed through the model."},
    {"troupe:replica_tokens_total", "counter", "tokens", "Tokens that the replica answered."},
    {"troupe:steps_total", "counter", "steps", "Steps of the replica."},
    {"troupe:tokens_per_second", "gauge", "tokens_per_second", "Tokens that the replica answers now."},
    {"troupe:resident_adapters", "gauge", "resident_adapters", "Adapters that are loaded."},
    {"troupe:epoch", "gauge", "epoch", "The number of the replica's life, which no other life had."},
    {"troupe:epoch_changes_total", "counter", "lives", "Times that the replica began anew, the first one too."},
    {"troupe:resumed_sequences_total", "counter", "resumed",
     "Sequences that lost what was stored of them and went on from their tokens."},
    {"troupe:active_seconds_total", "counter", "active_seconds", "Time with a step in flight."},
    {"troupe:pipeline_bubble_seconds_total", "counter", "bubble_seconds",
     "Of the active time, the share that stages were without a step and could have had one."},
};

/// Writes the lines of one metric, one for each replica.
class replica_lines {
 public:
  replica_lines(std::string& to, const std::string& model, const json& replicas)
      : to_(to), model_(label_text(model)), replicas_(replicas) {}

  template <class Value>
  void add(std::string_view name, std::string_view type, std::string_view help, Value value_of) {
    describe(to_, name, type, help);
    for (std::size_t i = 0; i < replicas_.size(); ++i) line(name, i, "", value_of(replicas_[i]));
  }
  void line(std::string_view name, std::size_t engine, std::string_view more, double value) {
    fmt::format_to(std::back_inserter(to_), "{}{{model_name=\"{}\",engine=\"{}\"{}}} {}\n", name, model_, engine, more,
                   value);
  }
  const json& replicas() const { return replicas_; }

 private:
  std::string& to_;
  std::string model_;
  const json& replicas_;
};

double kv_share(const json& replica) {
  const double blocks = number_in(replica, "blocks"), free = number_in(replica, "free_blocks");
  return blocks > 0 ? 1 - free / blocks : 0;
}

std::vector<std::string> names_in(const json& replica, const char* key) {
  std::vector<std::string> names;
  if (const auto found = replica.find(key); found != replica.end() && found->is_array())
    for (const json& each : *found)
      if (each.is_string()) names.push_back(each);
  return names;
}

std::string joined_names(const json& replica, const char* key) {
  return label_text(fmt::format("{}", fmt::join(names_in(replica, key), ",")));
}

void write_adapters(std::string& to, replica_lines& lines) {
  describe(to, "vllm:lora_requests_info", "gauge", "Adapters of running and waiting requests; the value is the time.");
  for (std::size_t i = 0; i < lines.replicas().size(); ++i) {
    const json& replica = lines.replicas()[i];
    lines.line("vllm:lora_requests_info", i,
               fmt::format(",max_lora=\"{}\",running_lora_adapters=\"{}\",waiting_lora_adapters=\"{}\"",
                           number_in(replica, "max_adapters"), joined_names(replica, "running_adapters"),
                           joined_names(replica, "waiting_adapters")),
               static_cast<double>(std::time(nullptr)));
  }
  describe(to, "troupe:adapter_resident", "gauge", "1 for each adapter that the replica has loaded.");
  for (std::size_t i = 0; i < lines.replicas().size(); ++i)
    for (const std::string& each : names_in(lines.replicas()[i], "resident"))
      lines.line("troupe:adapter_resident", i, fmt::format(",adapter=\"{}\"", label_text(each)), 1);
}

void write_workers(std::string& to, const json& nodes) {
  describe(to, "troupe:worker_busy_seconds_total", "counter", "Time that the worker has spent in steps.");
  for (const json& node : nodes)
    if (node.is_object() && node.contains("busy_seconds") && node["replica"].is_number_unsigned())
      fmt::format_to(std::back_inserter(to), "troupe:worker_busy_seconds_total{{node=\"{}\",engine=\"{}\"}} {}\n",
                     label_text(node.value("name", "")), node["replica"].get<std::size_t>(),
                     number_in(node, "busy_seconds"));
  describe(to, "troupe:node_alive", "gauge", "1 for a node that is heard of.");
  for (const json& node : nodes)
    if (node.is_object())
      fmt::format_to(std::back_inserter(to), "troupe:node_alive{{node=\"{}\"}} {}\n",
                     label_text(node.value("name", "")), node.value("state", "") == "alive" ? 1 : 0);
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

void write_replica_metrics(std::string& to, const std::string& model, const std::string& replicas,
                           const std::string& nodes) {
  const auto parsed = [](const std::string& text) {
    json list = json::parse(text, nullptr, false);
    return list.is_array() ? list : json::array();
  };
  const json list = parsed(replicas);
  replica_lines lines(to, model, list);
  for (const described_value& each : replica_values)
    lines.add(each.name, each.type, each.help, [&](const json& replica) { return number_in(replica, each.key); });
  lines.add("vllm:kv_cache_usage_perc", "gauge", "Share of the blocks in use, 1 is all.", kv_share);
  lines.add("troupe:replica_running", "gauge", "1 where the replica serves.",
            [](const json& r) { return r.value("state", "") == "running" ? 1.0 : 0.0; });
  lines.add("troupe:replica_stages", "gauge", "Stages of the replica.",
            [](const json& r) { return static_cast<double>(r.contains("stages") ? r["stages"].size() : 0); });
  write_adapters(to, lines);
  write_workers(to, parsed(nodes));
}

}  // namespace troupe::detail
