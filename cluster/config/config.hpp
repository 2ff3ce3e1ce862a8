// What a cluster is, as its TOML file says it. docs/CONFIG.md describes every key.
//
// Reading checks everything that can be checked without the model; placement checks what needs the number of layers.
// The first thing that is wrong is refused in one line, `file:line:column: what is wrong: what to do`.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_id.hpp"
#include "cluster/cluster_ids.hpp"

namespace troupe {

enum class node_role : std::uint8_t { router, scheduler, worker, trainer };
inline constexpr std::array all_roles{node_role::router, node_role::scheduler, node_role::worker, node_role::trainer};

struct node_config {
  std::string name;
  std::string host = "127.0.0.1";  ///< an address or a name
  std::set<node_role> roles;
  std::optional<layer_range> layers;  ///< set by hand; else placement decides
  std::optional<int> replica;         ///< set by hand; a worker with layers and no replica belongs to replica 0
  device_id device = {};
  int threads = 0;                      ///< 0: as many as there are processors
  std::optional<std::uint64_t> memory;  ///< bytes for weights and KV; else those of the machine
  std::string listen;                   ///< where other nodes connect to this one; never empty, port 0 is any free one
  bool autostart = true;                ///< `troupe up` starts it and waits for it; else it joins at any time
  std::string ssh_target;               ///< user@host; if set, the node is started through ssh even on this machine
  std::vector<std::string> ssh_options;
  std::string program = "troupe";  ///< on a remote host
  std::filesystem::path config;    ///< the cluster's file on a remote host; empty: the same path

  bool has(node_role role) const { return roles.contains(role); }
  bool is_head() const { return has(node_role::router); }
  bool is_worker() const { return has(node_role::worker); }
  bool is_trainer() const { return has(node_role::trainer); }
  /// Whether it takes a part of its machine's memory, as other nodes there do; else it has memory of its own.
  bool shares_memory() const { return device.is_cpu() && !memory; }
  friend bool operator==(const node_config&, const node_config&) = default;
};

struct model_settings {
  std::filesystem::path path;     ///< not checked here
  std::string name;               ///< how requests call it
  std::string quant;              ///< a scheme, not checked here; empty: as the model's files have it
  int context = 0;                ///< tokens of one sequence; 0: the model's own
  std::vector<std::string> keep;  ///< layers to leave unquantized, by any part of their name
  std::string kv = "f16";         ///< what keys and values are cached in; not checked here
  int lookup_tokens = 0;          ///< guesses by prompt lookup per step; 0: none

  friend bool operator==(const model_settings&, const model_settings&) = default;
};

struct scheduler_settings {
  static constexpr int most_steps_in_flight = 256;  ///< as many as a worker keeps that waits for hidden states
  static constexpr int most_sequences = 1 << 16;    ///< that run at a time: a worker opens no more answers at once

  int max_batch_tokens = 2048;
  int max_mixed_prompt_tokens = 0;  ///< tokens of prompts in a step that also computes tokens of answers; 0: learned
  int max_sequences = 256;  ///< where the file says none and the model keeps states, as sequences_with_states() says
  int kept_beginnings = 0;  ///< of a model that keeps states: as beginnings_with_states() says, never from the file
  std::uint64_t kv_memory = std::uint64_t{1} << 30;  ///< bytes of keys, values and states per replica
  int max_waiting = 4096;
  int adapter_patience = 64;  ///< steps that an adapter may be waited for before others give way
  int steps_in_flight = 0;    ///< 0: as many as there are stages that find processors at the same time

  friend bool operator==(const scheduler_settings&, const scheduler_settings&) = default;
};

struct preloaded_adapter {
  std::string name;
  std::filesystem::path folder;  ///< empty: the folder of that name in `dir`, or a version that is known from before

  friend bool operator==(const preloaded_adapter&, const preloaded_adapter&) = default;
};

struct adapter_settings {
  std::filesystem::path dir;  ///< state_dir/adapters unless the file says another one
  std::vector<preloaded_adapter> preload;
  std::uint64_t memory = std::uint64_t{1} << 30;  ///< bytes on each worker
  int max_resident = 32;                          ///< with which requests run at a time

  friend bool operator==(const adapter_settings&, const adapter_settings&) = default;
};

struct training_settings {
  double may_delay = 0.1;       ///< the share of the time between tokens by which training may delay answers
  bool idle_priority = true;    ///< trainers' threads run when nobody else wants the processor
  int checkpoint_seconds = 60;  ///< a trainer that dies loses no more than this of a job

  friend bool operator==(const training_settings&, const training_settings&) = default;
};

struct config_place {
  int line = 1, column = 1;

  friend bool operator==(const config_place&, const config_place&) = default;
};

inline constexpr const char* default_endpoint = "tcp://127.0.0.1:7700";

struct cluster_config {
  std::filesystem::path source;  ///< absolute
  std::string label;             ///< `source` as the user called it
  std::string name;
  std::string listen = default_endpoint;      ///< of the head: nodes and clients connect here
  std::string http = "127.0.0.1:8000";        ///< empty: none
  std::vector<std::string> http_origins;      ///< of web pages that may ask, too
  bool need_keys = false;                     ///< also while there are no keys, so that nobody is let in
  std::filesystem::path state_dir;            ///< journal, logs, pid file
  std::optional<std::filesystem::path> keys;  ///< folder of CURVE keys
  bool insecure = false;
  bool log_prompts = false;         ///< the log of HTTP requests also has their bodies
  int replicas = 0;                 ///< 0: as many as fit
  int stages = 0;                   ///< of each replica; 0: as few as fit
  int tensor = 1;                   ///< workers that share each stage
  std::string collective = "gloo";  ///< by which they exchange: "gloo", or "nccl" between GPUs
  int assemble_seconds = 60;
  int heartbeat_ms = 200;
  int lost_after_ms = 1200;
  bool respawn = true;
  int keep_jobs_days = 30;                 ///< after their end; 0: for ever
  std::uint64_t key_files = 10ULL << 30;   ///< bytes that the files may take which one key has uploaded
  std::vector<std::string> ssh = {"ssh"};  ///< the command that reaches remote hosts

  model_settings model;
  scheduler_settings scheduler;
  adapter_settings adapters;
  training_settings training;
  std::vector<node_config> nodes;  ///< in the order of the file; exactly one is the head

  /// Where keys stand in the file: "model.path", "node.w0", "node.w0.layers".
  std::map<std::string, config_place, std::less<>> places;

  const node_config& head() const;
  const node_config* find(std::string_view node) const;  ///< nullptr if there is none of that name
  /// Where nodes and clients connect: `listen`, or the head's host if the head listens on all addresses.
  std::string head_endpoint() const;
  std::filesystem::path logs() const { return state_dir / "logs"; }
  friend bool operator==(const cluster_config&, const cluster_config&) = default;
};

/// Throws input_error.
cluster_config read_cluster_config(const std::filesystem::path& file);
/// The same from text. `file`: its name in errors, and where relative paths start.
cluster_config parse_cluster_config(std::string_view text, const std::filesystem::path& file);

/// What a model's folder or file is called. Hugging Face's cache names its folders otherwise: of
/// models--Qwen--Qwen3-0.6B/snapshots/c1899de… that is Qwen3-0.6B.
std::string model_name_of(const std::filesystem::path& model);

/// Makes a folder of the cluster's state, for its user alone. Throws input_error.
void make_state_folder(const std::filesystem::path& folder);

std::string_view to_text(node_role role);

/// One key that a cluster file may have. Parsing and the documentation's test use this list.
struct config_key {
  std::string_view section;  ///< "cluster", "model", "scheduler", "adapters", "training" or "node"
  std::string_view name;
};
std::vector<config_key> config_keys();

}  // namespace troupe
