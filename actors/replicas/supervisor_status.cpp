// What the supervisor posts on the board.
#include <unistd.h>

#include <cmath>

#include "actors/json_dump_impl.hpp"
#include "actors/replicas/supervisor_impl.hpp"

namespace troupe {
namespace {

/// Of a node that the members do not tell of.
json listed_json(const node_config& node, const char* state) {
  json roles = json::array();
  for (const node_role role : node.roles) roles.push_back(to_text(role));
  return {{"name", node.name},         {"pid", 0},          {"state", state},
          {"roles", std::move(roles)}, {"host", node.host}, {"layers", ""}};
}

/// The head's own entry: a head that computes nothing is not among the members.
json head_json(const cluster_config& config) {
  json entry = listed_json(config.head(), "alive");
  entry["pid"] = ::getpid();
  entry["endpoint"] = config.head_endpoint();
  return entry;
}

json node_json(const node_entry& node, instant now) {
  json out;
  out["name"] = node.hello.name;
  out["pid"] = node.hello.pid;
  out["state"] = name_of(node.state);
  out["roles"] = node.hello.roles;
  out["host"] = node.hello.host;
  out["endpoint"] = node.hello.endpoint;
  out["threads"] = node.hello.threads;
  out["processors"] = node.hello.processors;
  out["memory"] = node.hello.memory_bytes;
  out["speed"] = node.hello.speed;
  out["silent_ms"] = std::chrono::duration_cast<std::chrono::milliseconds>(now - node.heard_at).count();
  if (!node.report) return out;
  out["steps"] = node.report->steps;
  out["busy_ms"] = node.report->busy_ms;
  out["rows_per_second"] = node.report->rows_per_second;
  out["busy_seconds"] = node.report->busy_seconds;
  out["resident"] = node.report->resident_bytes;
  return out;
}

json stages_json(const replica_placement& where) {
  json stages = json::array();
  for (const stage_placement& stage : where.stages)
    stages.push_back({{"layers", to_text(stage.layers)}, {"workers", stage.workers}});
  return stages;
}

double rounded(double value, int digits) {
  const double scale = std::pow(10.0, digits);
  return std::round(value * scale) / scale;
}

json to_json(const replica_figures& figures) {
  return {{"ready", figures.ready},
          {"running", figures.load.running},
          {"waiting", figures.load.waiting},
          {"max_sequences", figures.load.max_sequences},
          {"blocks", figures.load.blocks},
          {"free_blocks", figures.load.free_blocks},
          {"tokens_per_second", rounded(figures.meter.tokens_per_second, 1)},
          {"tokens", figures.meter.tokens},
          {"steps", figures.scheduling.steps},
          {"preemptions", figures.scheduling.preemptions},
          {"computed_tokens", figures.scheduling.computed_tokens},
          {"looked_up_tokens", figures.scheduling.looked_up_tokens},
          {"reused_tokens", figures.scheduling.reused_tokens},
          {"resident_adapters", figures.load.adapters.size()},
          {"max_adapters", figures.max_adapters},
          {"epoch", figures.epoch.value},
          {"lives", figures.meter.lives},
          {"resumed", figures.meter.resumed},
          {"active_seconds", rounded(seconds_of(figures.meter.active), 3)},
          {"bubble_seconds", rounded(seconds_of(figures.meter.bubble), 3)},
          {"resident", figures.resident_adapters},
          {"running_adapters", figures.running_adapters},
          {"waiting_adapters", figures.waiting_adapters}};
}

}  // namespace

void supervisor_state::post_status() const {
  parts_.board->post("nodes", nodes_text());
  parts_.board->post("replicas", replicas_text());
}

std::string supervisor_state::nodes_text() const {
  const instant now = clock_.now();
  json nodes = json::array();
  if (!local_) nodes.push_back(head_json(parts_.config));
  for (const node_entry& node : members_.list()) {
    json entry = node_json(node, now);
    const auto at = placement_ ? find_worker(*placement_, node.hello.name) : std::nullopt;
    entry["replica"] = at ? json(at->replica) : json(nullptr);
    entry["rank"] = at && parts_.wanted.tensor > 1 ? json(at->rank) : json(nullptr);
    entry["layers"] = at ? to_text(placement_->replicas[at->replica].stages[at->stage].layers) : "";
    nodes.push_back(std::move(entry));
  }
  // Those that have not joined since this head began, or were lost so long ago that they are forgotten.
  for (const node_config& node : parts_.config.nodes)
    if (node.autostart && !node.is_head() && !members_.find(node.name)) nodes.push_back(listed_json(node, "missing"));
  return dump(nodes);
}

std::string supervisor_state::replicas_text() const {
  const auto figures = parts_.board->replicas();
  json replicas = json::array();
  for (std::size_t i = 0; placement_ && i < replicas_.size(); ++i) {
    const replica_course& course = replicas_[i].course;
    const replica_placement& where = placement_->replicas[i];
    json entry = {{"replica", i},
                  {"state", name_of(course.current())},
                  {"stages", stages_json(where)},
                  {"kv_tokens", where.kv_tokens}};
    if (const auto found = figures.find(replicas_[i].life.replica); found != figures.end())
      entry.update(to_json(found->second));
    if (!course.problem().empty()) entry.update(json{{"failures", course.failures()}, {"problem", course.problem()}});
    replicas.push_back(std::move(entry));
  }
  return dump(replicas);
}

}  // namespace troupe
