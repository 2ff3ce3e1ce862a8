// Every key of a cluster's file is read, and documented with its default.
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "cluster/config/config.hpp"
#include "tests/base/places.hpp"

namespace troupe {
namespace {

using cluster = cluster_config;

/// A line in a section, and what it makes of the cluster. Sections are named as config_keys() names them; "node" is the
/// last one.
struct key_row {
  std::string_view section, line;
  bool (*is_read)(const cluster& c) = nullptr;

  std::string_view key() const { return line.substr(0, line.find(' ')); }
};

constexpr std::string_view sections[] = {"cluster", "model", "scheduler", "adapters", "training", "node"};

/// What a file must have.
constexpr key_row required[] = {{"cluster", "name = \"rooms\""},
                                {"cluster", "state_dir = \"state\""},
                                {"model", "path = \"models/llama\""},
                                {"node", "name = \"w0\""},
                                {"node", "roles = [\"worker\"]"}};
constexpr std::string_view other_nodes = R"(
[[node]]
name = "head"
roles = ["router", "scheduler"]
[[node]]
name = "w1"
roles = ["worker"]
)";

/// The file of a small cluster with this line.
cluster with_row(const key_row& row) {
  std::string text(other_nodes);
  for (const std::string_view section : sections) {
    text += section == "node" ? "[[node]]\n" : "[" + std::string(section) + "]\n";
    for (const key_row& each : required)
      if (each.section == section && (row.section != section || row.key() != each.key()))
        text += std::string(each.line) + "\n";
    if (row.section == section) text += std::string(row.line) + "\n";
  }
  return parse_cluster_config(text, "/etc/rooms.toml");
}

const node_config& last(const cluster& c) {
  return c.nodes.back();
}

using words = std::vector<std::string>;

/// Never the default.
const key_row every_key[] = {
    {"cluster", "name = \"houses\"", [](const cluster& c) { return c.name == "houses"; }},
    {"cluster", "listen = \"tcp://127.0.0.1:7801\"",
     [](const cluster& c) { return c.listen == "tcp://127.0.0.1:7801"; }},
    {"cluster", "http = \"\"", [](const cluster& c) { return c.http.empty(); }},
    {"cluster", "http_origins = [\"https://chat.example.org\"]",
     [](const cluster& c) { return c.http_origins == words{"https://chat.example.org"}; }},
    {"cluster", "need_keys = true", [](const cluster& c) { return c.need_keys; }},
    {"cluster", "state_dir = \"/var/lib/troupe\"", [](const cluster& c) { return c.state_dir == "/var/lib/troupe"; }},
    {"cluster", "keys = \"keys\"", [](const cluster& c) { return c.keys == "/etc/keys"; }},
    {"cluster", "insecure = true", [](const cluster& c) { return c.insecure; }},
    {"cluster", "log_prompts = true", [](const cluster& c) { return c.log_prompts; }},
    {"cluster", "replicas = 2", [](const cluster& c) { return c.replicas == 2; }},
    {"cluster", "stages = 2", [](const cluster& c) { return c.stages == 2; }},
    {"cluster", "tensor = 2", [](const cluster& c) { return c.tensor == 2; }},
    {"cluster", "collective = \"nccl\"", [](const cluster& c) { return c.collective == "nccl"; }},
    {"cluster", "assemble_seconds = 7", [](const cluster& c) { return c.assemble_seconds == 7; }},
    {"cluster", "heartbeat_ms = 100", [](const cluster& c) { return c.heartbeat_ms == 100; }},
    {"cluster", "lost_after_ms = 900", [](const cluster& c) { return c.lost_after_ms == 900; }},
    {"cluster", "keep_jobs_days = 7", [](const cluster& c) { return c.keep_jobs_days == 7; }},
    {"cluster", "key_files = \"2GiB\"", [](const cluster& c) { return c.key_files == 2ULL << 30; }},
    {"cluster", "respawn = false", [](const cluster& c) { return !c.respawn; }},
    {"cluster", "ssh = [\"ssh\", \"-4\"]",
     [](const cluster& c) {
       return c.ssh == words{"ssh", "-4"};
     }},
    {"model", "path = \"/models/m\"", [](const cluster& c) { return c.model.path == "/models/m"; }},
    {"model", "name = \"qwen\"", [](const cluster& c) { return c.model.name == "qwen"; }},
    {"model", "quant = \"u8g64\"", [](const cluster& c) { return c.model.quant == "u8g64"; }},
    {"model", "context = 4096", [](const cluster& c) { return c.model.context == 4096; }},
    {"model", "keep = [\"lm_head\"]", [](const cluster& c) { return c.model.keep == words{"lm_head"}; }},
    {"model", "kv = \"int8\"", [](const cluster& c) { return c.model.kv == "int8"; }},
    {"model", "lookup_tokens = 4", [](const cluster& c) { return c.model.lookup_tokens == 4; }},
    {"scheduler", "max_batch_tokens = 512", [](const cluster& c) { return c.scheduler.max_batch_tokens == 512; }},
    {"scheduler", "max_mixed_prompt_tokens = 64",
     [](const cluster& c) { return c.scheduler.max_mixed_prompt_tokens == 64; }},
    {"scheduler", "max_sequences = 32", [](const cluster& c) { return c.scheduler.max_sequences == 32; }},
    {"scheduler", "kv_memory = \"1.5GiB\"", [](const cluster& c) { return c.scheduler.kv_memory == 3ULL << 29; }},
    {"scheduler", "max_waiting = 10", [](const cluster& c) { return c.scheduler.max_waiting == 10; }},
    {"scheduler", "adapter_patience = 9", [](const cluster& c) { return c.scheduler.adapter_patience == 9; }},
    {"scheduler", "steps_in_flight = 3", [](const cluster& c) { return c.scheduler.steps_in_flight == 3; }},
    {"adapters", "dir = \"lora\"", [](const cluster& c) { return c.adapters.dir == "/etc/lora"; }},
    {"adapters", "preload = [\"pricing\", \"law=nets/law/\"]",
     [](const cluster& c) {
       const auto& all = c.adapters.preload;
       return all.size() == 2 && all[0].name == "pricing" && all[0].folder.empty() && all[1].name == "law" &&
              all[1].folder == c.source.parent_path() / "nets/law";
     }},
    {"adapters", "memory = \"256 MiB\"", [](const cluster& c) { return c.adapters.memory == 256ULL << 20; }},
    {"adapters", "max_resident = 8", [](const cluster& c) { return c.adapters.max_resident == 8; }},
    {"training", "may_delay = 0.5", [](const cluster& c) { return c.training.may_delay == 0.5; }},
    {"training", "idle_priority = false", [](const cluster& c) { return !c.training.idle_priority; }},
    {"training", "checkpoint_seconds = 7", [](const cluster& c) { return c.training.checkpoint_seconds == 7; }},
    {"node", "name = \"w9\"", [](const cluster& c) { return last(c).name == "w9"; }},
    {"node", "host = \"localhost\"", [](const cluster& c) { return last(c).host == "localhost"; }},
    {"node", "roles = [\"worker\", \"trainer\"]",
     [](const cluster& c) {
       return last(c).roles == std::set{node_role::worker, node_role::trainer};
     }},
    {"node", "layers = \"0-10\"",
     [](const cluster& c) {
       return last(c).layers == layer_range{0, 10};
     }},
    {"node", "replica = 1", [](const cluster& c) { return last(c).replica == 1; }},
    {"node", "device = \"cuda:1\"", [](const cluster& c) { return last(c).device == device_id{1}; }},
    {"node", "threads = 3", [](const cluster& c) { return last(c).threads == 3; }},
    {"node", "memory = 123456789", [](const cluster& c) { return last(c).memory == 123456789u; }},
    {"node", "listen = \"tcp://127.0.0.1:7900\"",
     [](const cluster& c) { return last(c).listen == "tcp://127.0.0.1:7900"; }},
    {"node", "autostart = false", [](const cluster& c) { return !last(c).autostart; }},
    {"node", "ssh = \"ops@10.0.0.2\"", [](const cluster& c) { return last(c).ssh_target == "ops@10.0.0.2"; }},
    {"node", "ssh_options = [\"-p\", \"2222\"]",
     [](const cluster& c) {
       return last(c).ssh_options == words{"-p", "2222"};
     }},
    {"node", "program = \"/opt/troupe\"", [](const cluster& c) { return last(c).program == "/opt/troupe"; }},
    {"node", "config = \"/etc/all.toml\"", [](const cluster& c) { return last(c).config == "/etc/all.toml"; }},
};

TEST(config_keys, each_is_read) {
  const cluster without = with_row({});
  for (const key_row& row : every_key) {
    try {
      EXPECT_TRUE(row.is_read(with_row(row))) << row.line << " in " << row.section;
    } catch (const input_error& error) {
      ADD_FAILURE() << row.line << ": " << error.what();
    }
    EXPECT_FALSE(row.is_read(without)) << row.line << " holds without being said";
  }
}

TEST(config_keys, each_has_a_row_here) {
  std::vector<std::string> known, here;
  for (const config_key& key : config_keys()) known.push_back(std::string(key.section) + "." + std::string(key.name));
  for (const key_row& row : every_key) here.push_back(std::string(row.section) + "." + std::string(row.key()));
  EXPECT_EQ(here, known);
}

/// What the page calls a key: "[cluster] name".
std::string name_on_page(const config_key& key) {
  const std::string heading = key.section == "node" ? "[[node]]" : "[" + std::string(key.section) + "]";
  return heading + " " + std::string(key.name);
}

/// The keys that the page has, each with what stands there as its default.
std::map<std::string, std::string> documented_keys() {
  std::ifstream page(test::docs / "CONFIG.md");
  std::map<std::string, std::string> documented;
  std::string section;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) section = line.substr(3);
    if (!line.starts_with("| `")) continue;
    std::istringstream cells(line.substr(3));
    std::string key, otherwise;
    std::getline(cells, key, '`');
    std::getline(cells, otherwise, '|');  // behind the key
    std::getline(cells, otherwise, '|');
    documented[section + " " + key] = otherwise;
  }
  return documented;
}

/// A default as a file would say it; nothing where the page says it in words, or there is none.
std::optional<std::string> value_in(const std::string& cell) {
  if (!cell.starts_with(" `") || !cell.ends_with("` ")) return {};
  const std::string value = cell.substr(2, cell.size() - 4);
  const bool is_value = value == "true" || value == "false" || value.find_first_of("\"[0123456789") == 0;
  return is_value ? std::optional(value) : std::nullopt;
}

TEST(config_keys, each_is_documented_in_its_section) {
  auto documented = documented_keys();
  for (const config_key& key : config_keys()) EXPECT_EQ(documented.erase(name_on_page(key)), 1u) << name_on_page(key);
  EXPECT_TRUE(documented.empty()) << documented.begin()->first << " is documented and is no key";
}

TEST(config_keys, have_the_defaults_that_are_documented) {
  const std::set<std::string> in_words{"[cluster] name",  "[cluster] state_dir", "[cluster] keys",   "[model] path",
                                       "[model] name",    "[model] quant",       "[adapters] dir",   "[[node]] name",
                                       "[[node]] roles",  "[[node]] layers",     "[[node]] replica", "[[node]] memory",
                                       "[[node]] listen", "[[node]] ssh",        "[[node]] config"};
  auto documented = documented_keys();
  const cluster without = with_row({});
  for (const config_key& key : config_keys()) {
    const auto value = value_in(documented[name_on_page(key)]);
    EXPECT_EQ(value.has_value(), !in_words.contains(name_on_page(key)))
        << name_on_page(key) << documented[name_on_page(key)];
    if (!value) continue;
    const std::string line = std::string(key.name) + " = " + *value;
    cluster with = with_row({key.section, line});
    with.places = without.places;
    EXPECT_TRUE(with == without) << name_on_page(key) << " is something else than " << *value << " if it is left out";
  }
}

}  // namespace
}  // namespace troupe
