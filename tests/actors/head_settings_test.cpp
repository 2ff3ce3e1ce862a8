// A key of the cluster's file reaches whom on the head it is for.
#include "actors/front_settings.hpp"
#include "actors/replicas/supervisor_settings.hpp"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

/// A key in its section, and whether it has come where it counts.
struct reached_key {
  std::string section, line;
  bool (*has_come)(const cluster_config& config);
};

front_parts parts_of(const cluster_config& config) {
  front_parts parts;
  parts.config = &config;
  return parts;
}

const reached_key reached_keys[] = {
    {"cluster", "keep_jobs_days = 3",
     [](const cluster_config& c) { return jobs_parts_of(parts_of(c), {}).keep == std::chrono::days(3); }},
    {"cluster", "key_files = 4096",
     [](const cluster_config& c) { return journal_options_of(c).max_tenant_bytes == 4096; }},
    {"model", "name = \"letters\"",
     [](const cluster_config& c) {
       return shelf_options_of(c).base_name == "letters" &&
              training_parts_of(parts_of(c), {}).intake.base_name == "letters";
     }},
    {"scheduler", "max_sequences = 9",
     [](const cluster_config& c) { return jobs_parts_of(parts_of(c), {}).in_flight == 18; }},
    {"adapters", "dir = \"/nets\"",
     [](const cluster_config& c) {
       return shelf_options_of(c).source == "/nets" && training_parts_of(parts_of(c), {}).adapter_folder == "/nets";
     }},
    {"adapters", "memory = 4096",
     [](const cluster_config& c) {
       return shelf_options_of(c).memory == 4096 && training_parts_of(parts_of(c), {}).adapter_memory == 4096;
     }},
    {"cluster", "lost_after_ms = 5000",
     [](const cluster_config& c) {
       return supervisor_settings_of(c).members.detector.lost_after == std::chrono::milliseconds(5000);
     }},
    {"cluster", "replicas = 1", [](const cluster_config& c) { return supervisor_settings_of(c).wanted.replicas == 1; }},
    {"cluster", "stages = 1", [](const cluster_config& c) { return supervisor_settings_of(c).wanted.stages == 1; }},
    {"scheduler", "kv_memory = 4096",
     [](const cluster_config& c) { return supervisor_settings_of(c).wanted.kv_memory == 4096; }},
    {"scheduler", "max_batch_tokens = 300",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.max_batch_tokens == 300; }},
    {"scheduler", "max_mixed_prompt_tokens = 30",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.max_mixed_prompt_tokens == 30; }},
    {"scheduler", "max_sequences = 9",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.max_sequences == 9; }},
    {"scheduler", "max_waiting = 7",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.max_waiting == 7; }},
    {"scheduler", "adapter_patience = 3",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.adapter_patience == 3; }},
    {"adapters", "max_resident = 8",
     [](const cluster_config& c) { return supervisor_settings_of(c).batches.max_adapters == 8; }},
    {"training", "may_delay = 0.5",
     [](const cluster_config& c) { return training_parts_of(parts_of(c), {}).may_delay == 0.5; }},
    {"training", "idle_priority = false",
     [](const cluster_config& c) { return !training_parts_of(parts_of(c), {}).idle_priority; }},
    {"scheduler", "max_waiting = 7",
     [](const cluster_config& c) { return gateway_parts_of(parts_of(c), {}).max_waiting == 7; }},
};

cluster_config with_line(const std::string& section, const std::string& line) {
  std::string text;
  for (const std::string_view each : {"[cluster]\nname = \"rooms\"\nstate_dir = \"state\"\n",
                                      "[model]\npath = \"model\"\n", "[scheduler]\n", "[adapters]\n", "[training]\n"}) {
    text += each;
    if (each.starts_with("[" + section + "]")) text += line + "\n";
  }
  text += "[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\", \"worker\"]\n";
  return parse_cluster_config(text, "/etc/rooms.toml");
}

TEST(head_settings, have_what_the_file_says) {
  for (const reached_key& each : reached_keys) {
    EXPECT_TRUE(each.has_come(with_line(each.section, each.line))) << each.line;
    EXPECT_FALSE(each.has_come(with_line(each.section, ""))) << each.line;
  }
}

}  // namespace
}  // namespace troupe::test
