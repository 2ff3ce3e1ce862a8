// Every key of a cluster's file, and what becomes of its value.
#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>

#include "base/edit_distance.hpp"
#include "cluster/config/config_impl.hpp"
#include "cluster/config/config_place.hpp"
#include "cluster/config/config_value.hpp"

namespace troupe {
namespace {

using detail::config_value;
using detail::setting;

/// A key of a section and what becomes of its value.
template <class Section>
struct key_of {
  std::string_view name;
  void (*read)(Section& into, const config_value& value);
};

using cluster = cluster_config;
constexpr key_of<cluster> cluster_keys[] = {
    {"name", [](cluster& c, const config_value& v) { c.name = v.name(); }},
    {"listen", [](cluster& c, const config_value& v) { c.listen = v.endpoint(); }},
    {"http", [](cluster& c, const config_value& v) { c.http = v.http_place(); }},
    {"http_origins", [](cluster& c, const config_value& v) { c.http_origins = v.origins(); }},
    {"need_keys", [](cluster& c, const config_value& v) { c.need_keys = v.truth(); }},
    {"state_dir", [](cluster& c, const config_value& v) { c.state_dir = v.path(); }},
    {"keys", [](cluster& c, const config_value& v) { c.keys = v.path(); }},
    {"insecure", [](cluster& c, const config_value& v) { c.insecure = v.truth(); }},
    {"log_prompts", [](cluster& c, const config_value& v) { c.log_prompts = v.truth(); }},
    {"replicas", [](cluster& c, const config_value& v) { c.replicas = v.number(0, 4096); }},
    {"stages", [](cluster& c, const config_value& v) { c.stages = v.number(0, 256); }},
    {"tensor", [](cluster& c, const config_value& v) { c.tensor = v.number(1, 64); }},
    {"collective",
     [](cluster& c, const config_value& v) {
       c.collective = v.one_of({"gloo", "nccl"});
     }},
    {"assemble_seconds", [](cluster& c, const config_value& v) { c.assemble_seconds = v.number(1, 86400); }},
    {"heartbeat_ms", [](cluster& c, const config_value& v) { c.heartbeat_ms = v.number(10, 60000); }},
    {"lost_after_ms", [](cluster& c, const config_value& v) { c.lost_after_ms = v.number(50, 600000); }},
    {"keep_jobs_days", [](cluster& c, const config_value& v) { c.keep_jobs_days = v.number(0, 36500); }},
    {"key_files", [](cluster& c, const config_value& v) { c.key_files = v.bytes(); }},
    {"respawn", [](cluster& c, const config_value& v) { c.respawn = v.truth(); }},
    {"ssh", [](cluster& c, const config_value& v) { c.ssh = v.texts(); }},
};

using model = model_settings;
constexpr key_of<model> model_keys[] = {
    {"path", [](model& m, const config_value& v) { m.path = v.path(); }},
    {"name", [](model& m, const config_value& v) { m.name = v.model_name(); }},
    {"quant", [](model& m, const config_value& v) { m.quant = v.text(); }},
    {"context", [](model& m, const config_value& v) { m.context = v.number(0, 1 << 24); }},
    {"keep", [](model& m, const config_value& v) { m.keep = v.texts(); }},
    {"kv", [](model& m, const config_value& v) { m.kv = v.text(); }},
    {"lookup_tokens", [](model& m, const config_value& v) { m.lookup_tokens = v.number(0, 64); }},
};

using scheduler = scheduler_settings;
constexpr key_of<scheduler> scheduler_keys[] = {
    {"max_batch_tokens", [](scheduler& s, const config_value& v) { s.max_batch_tokens = v.number(1, 1 << 20); }},
    {"max_mixed_prompt_tokens",
     [](scheduler& s, const config_value& v) { s.max_mixed_prompt_tokens = v.number(0, 1 << 20); }},
    {"max_sequences", [](scheduler& s, const config_value& v) { s.max_sequences = v.number(1, s.most_sequences); }},
    {"kv_memory", [](scheduler& s, const config_value& v) { s.kv_memory = v.bytes(); }},
    {"max_waiting", [](scheduler& s, const config_value& v) { s.max_waiting = v.number(1, 1 << 24); }},
    {"adapter_patience", [](scheduler& s, const config_value& v) { s.adapter_patience = v.number(1, 1 << 24); }},
    {"steps_in_flight",
     [](scheduler& s, const config_value& v) { s.steps_in_flight = v.number(0, s.most_steps_in_flight); }},
};

using adapters = adapter_settings;
constexpr key_of<adapters> adapter_keys[] = {
    {"dir", [](adapters& a, const config_value& v) { a.dir = v.path(); }},
    {"preload", [](adapters& a, const config_value& v) { a.preload = v.preloaded(); }},
    {"memory", [](adapters& a, const config_value& v) { a.memory = v.bytes(); }},
    {"max_resident", [](adapters& a, const config_value& v) { a.max_resident = v.number(1, 1 << 20); }},
};

using training = training_settings;
constexpr key_of<training> training_keys[] = {
    {"may_delay", [](training& t, const config_value& v) { t.may_delay = v.share(10); }},
    {"idle_priority", [](training& t, const config_value& v) { t.idle_priority = v.truth(); }},
    {"checkpoint_seconds", [](training& t, const config_value& v) { t.checkpoint_seconds = v.number(1, 86400); }},
};

using node = node_config;
constexpr key_of<node> node_keys[] = {
    {"name", [](node& n, const config_value& v) { n.name = v.name(); }},
    {"host", [](node& n, const config_value& v) { n.host = v.host(); }},
    {"roles", [](node& n, const config_value& v) { n.roles = v.roles(); }},
    {"layers", [](node& n, const config_value& v) { n.layers = v.layers(); }},
    {"replica", [](node& n, const config_value& v) { n.replica = v.number(0, 4095); }},
    {"device", [](node& n, const config_value& v) { n.device = v.device(); }},
    {"threads", [](node& n, const config_value& v) { n.threads = v.number(0, 4096); }},
    {"memory", [](node& n, const config_value& v) { n.memory = v.bytes(); }},
    {"listen", [](node& n, const config_value& v) { n.listen = v.endpoint(); }},
    {"autostart", [](node& n, const config_value& v) { n.autostart = v.truth(); }},
    {"ssh", [](node& n, const config_value& v) { n.ssh_target = v.ssh_target(); }},
    {"ssh_options", [](node& n, const config_value& v) { n.ssh_options = v.texts(); }},
    {"program", [](node& n, const config_value& v) { n.program = v.text(); }},
    {"config", [](node& n, const config_value& v) { n.config = v.absolute_path(); }},
};

/// Calls `visit` with the name of each section but the nodes', with what its values go into, and with its keys.
template <class Visit>
void visit_sections(cluster_config& config, const Visit& visit) {
  visit("cluster", config, cluster_keys);
  visit("model", config.model, model_keys);
  visit("scheduler", config.scheduler, scheduler_keys);
  visit("adapters", config.adapters, adapter_keys);
  visit("training", config.training, training_keys);
}

template <class Keys>
std::vector<std::string_view> names_of(const Keys& keys) {
  std::vector<std::string_view> names;
  for (const auto& key : keys) names.push_back(key.name);
  return names;
}

[[noreturn]] void refuse_unknown(const cluster_config& config, const detail::setting_entry& entry,
                                 std::string_view where, const std::vector<std::string_view>& known) {
  const auto meant = nearest(entry.key, known);
  const std::string remedy =
      meant.empty() ? fmt::format("known are {}", fmt::join(known, ", ")) : fmt::format("did you mean \"{}\"?", meant);
  detail::refuse_place(config, entry.place,
                       fmt::format("unknown key \"{}\"{}: {}", entry.key.substr(0, 80), where, remedy));
}

template <class Section, class Keys>
void read_section(cluster_config& config, const setting& content, std::string_view section, const Keys& keys,
                  Section& into) {
  const auto* entries = std::get_if<setting::table>(&content.content);
  if (!entries) config_value(content, section, config).refuse("should be a table");
  for (const auto& entry : *entries) {
    const auto key = std::find_if(std::begin(keys), std::end(keys), [&](const auto& k) { return k.name == entry.key; });
    if (key == std::end(keys)) refuse_unknown(config, entry, fmt::format(" in {}", section), names_of(keys));
    key->read(into, config_value(entry.value, entry.key, config));
  }
}

/// Notes where a table's keys stand in the file: keys of sections as `section.key`, those of nodes as `node.NAME.key`.
void remember_places(cluster_config& config, const setting& content, const std::string& prefix) {
  config.places.emplace(prefix, content.place);
  for (const auto& entry : std::get<setting::table>(content.content))
    config.places.insert_or_assign(prefix + "." + entry.key, entry.value.place);
}

void read_node(cluster_config& config, const setting& content) {
  node_config node;
  read_section(config, content, "[[node]]", node_keys, node);
  if (node.name.empty()) detail::refuse_place(config, content.place, "the node has no name: name = \"w0\"");
  if (const auto* twin = config.find(node.name)) {
    const auto& entries = std::get<setting::table>(content.content);
    const auto entry = std::find_if(entries.begin(), entries.end(), [](const auto& e) { return e.key == "name"; });
    detail::refuse_place(config, entry->value.place,
                         fmt::format("there are two nodes with the name \"{}\": rename one", twin->name));
  }
  config.places.emplace("node", content.place);
  remember_places(config, content, "node." + node.name);
  config.nodes.push_back(std::move(node));
}

void read_nodes(cluster_config& config, const setting& content) {
  const auto* list = std::get_if<setting::list>(&content.content);
  if (!list) config_value(content, "node", config).refuse("should be a list of tables: write [[node]] for each");
  if (list->size() > 65536) config_value(content, "node", config).refuse("has more than 65536 entries");
  for (const auto& each : *list) read_node(config, each);
}

}  // namespace

void detail::read_sections(cluster_config& config, const setting& top) {
  for (const auto& entry : std::get<setting::table>(top.content)) {
    bool is_known = entry.key == "node";
    if (is_known) read_nodes(config, entry.value);
    std::vector<std::string_view> names;
    visit_sections(config, [&](std::string_view name, auto& into, const auto& keys) {
      names.push_back(name);
      if (entry.key != name) return;
      is_known = true;
      read_section(config, entry.value, fmt::format("[{}]", name), keys, into);
      remember_places(config, entry.value, entry.key);
    });
    names.emplace_back("node");
    if (!is_known) refuse_unknown(config, entry, "", names);
  }
}

std::vector<config_key> config_keys() {
  std::vector<config_key> all;
  const auto add = [&](std::string_view section, const auto& /*into*/, const auto& keys) {
    for (const auto& key : keys) all.push_back({section, key.name});
  };
  cluster_config any;
  visit_sections(any, add);
  add("node", any, node_keys);
  return all;
}

}  // namespace troupe
