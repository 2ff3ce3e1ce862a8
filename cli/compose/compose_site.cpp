#include "cli/compose/compose_site.hpp"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <thread>

#include "base/field_error.hpp"
#include "cli/compose/worker_speed.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "cli/program_id.hpp"
#include "cluster/config/config_address.hpp"
#include "cluster/launch/machine.hpp"
#include "model/arch/device.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/ops/isa.hpp"
#include "transport/collective/nccl_ranks.hpp"

namespace troupe {
namespace {

/// A node that is not in the file can be reached only on its own machine: refused in a cluster of several machines. It
/// computes on the processor: refused where GPUs share stages.
void check_joining(const cluster_config& config, const std::string& name) {
  for (const node_config& node : config.nodes)
    if (config.tensor > 1 && node.is_worker() && !node.device.is_cpu())
      refuse(
          "{}: no node is called {}, and one that is not in the file computes on the processor, which shares no stage "
          "with GPUs such as that of {}: add it there, with its device",
          config.label, name, node.name);
  const auto head = split_endpoint(config.head_endpoint());
  if (!head || is_loopback_host(head->host)) return;
  for (const node_config& node : config.nodes)
    if (!is_this_machine(node.host))
      refuse(
          "{}: no node is called {}, and {} on {} could not reach one that is not in the file: add it there, with its "
          "host",
          config.label, name, node.name, node.host);
}

/// A node that is not in the file is a worker that joins a running cluster.
node_config node_of(const cluster_config& config, const std::string& name) {
  if (const node_config* known = config.find(name)) return *known;
  check_joining(config, name);
  node_config joining;
  joining.name = name;
  joining.roles = {node_role::worker};
  joining.listen = "tcp://127.0.0.1:0";
  return joining;
}

/// Workers of one host share its processors.
int threads_of(const cluster_config& config, const node_config& node) {
  if (node.threads > 0) return node.threads;
  const auto shares = std::count_if(config.nodes.begin(), config.nodes.end(), [&](const node_config& other) {
    const bool same_host = other.host == node.host || (is_loopback_host(other.host) && is_loopback_host(node.host));
    return other.is_worker() && other.autostart && same_host;
  });
  if (!node.is_worker()) return available_processors();
  const int processors = available_processors();
  return std::max(1, processors / static_cast<int>(std::max<std::ptrdiff_t>(shares, 1)));
}

kv_kind kv_of(const cluster_config& config) {
  if (config.model.kv == "f32") return kv_kind::f32;
  return config.model.kv == "int8" ? kv_kind::i8 : kv_kind::f16;
}

std::int64_t context_of(const cluster_config& config, const model_config& model) {
  if (config.model.context > model.context)
    refuse_at(config, "model.context", "the model has {} positions: ask for no more", model.context);
  return config.model.context ? config.model.context : model.context;
}

/// A folder that the file names is only read, so nobody would ever make it.
void check_adapter_folder(const cluster_config& config) {
  const std::filesystem::path& folder = config.adapters.dir;
  std::error_code ignored;
  if (config.places.contains("adapters.dir") && !std::filesystem::is_directory(folder, ignored))
    refuse_at(config, "adapters.dir", "{}: there is no such folder: make it, or leave dir out", folder.string());
}

void check_tensor(const cluster_config& config, const model_config& model) {
  if (config.tensor > model.kv_heads)
    refuse_at(config, "cluster.tensor",
              "the model has {} heads of keys and values, and each worker of a stage needs one: use {} at most",
              model.kv_heads, model.kv_heads);
}

void check_collective(const cluster_config& config, const node_config& node) {
  if (config.tensor > 1 && config.collective == "nccl" && node.is_worker() && !has_nccl())
    refuse_at(config, "cluster.collective",
              "this build has no NCCL: configure it where nccl.h and cuda_runtime_api.h are found, or use gloo");
}

std::shared_ptr<const loaded_model> load(const cluster_config& config, int threads) {
  thread_pool pool(threads);
  load_options options = load_options_of(config);
  options.preload = false;  // each worker brings in what it computes, and the head nothing
  try {
    return load_with_progress(config.model.path.string(), options, pool);
  } catch (const field_error& error) {
    refuse_at(config, "model." + error.field(), "{}", error.what());
  } catch (const input_error& error) {
    refuse_at(config, "model.path", "{}", error.what());
  }
}

curve_keys keys_of(const cluster_config& config) {
  try {
    return read_cluster_keys(*config.keys);
  } catch (const input_error& error) {
    refuse_at(config, "cluster.keys", "{}", error.what());
  }
}

std::uint64_t bytes_of(const matrix_view& w) {
  return w.weights ? packed_bytes(w.kind, w.outs, w.ins).total() : 0;
}

/// Roughly: the rows between a layer's parts, those that wait to be sent, scores of attention, logits.
std::uint64_t pass_bytes_of(const node_site& site) {
  const model_config& model = site.model->config;
  const scheduler_settings& of = site.config.scheduler;
  const std::int64_t row = 5 * model.hidden + 2 * (model.heads + model.kv_heads) * model.head_dim + 2 * model.ffn;
  const std::int64_t logits = of.max_sequences * (1 + std::int64_t{site.config.model.lookup_tokens}) * model.vocab_size;
  const std::int64_t scores = site.threads * 16 * site.context;
  return static_cast<std::uint64_t>(of.max_batch_tokens * row + logits + scores) * sizeof(float);
}

model_shape shape_of(const node_site& site) {
  const loaded_model& model = *site.model;
  model_shape shape;
  shape.layers = static_cast<int>(model.config.layers);
  for (const linear_kind kind : every_linear) shape.layer_bytes += bytes_of(model.layers.front()[kind].w);
  shape.embedding_bytes = bytes_of(model.embeddings);
  shape.head_bytes = bytes_of(model.head);
  shape.tied = model.head.weights == model.embeddings.weights;
  shape.kv_heads = static_cast<int>(model.config.kv_heads);
  shape.kv_bytes = static_cast<std::uint64_t>(kv_storage::bytes_per_block(model.config, 1, site.kv)) /
                   static_cast<std::uint64_t>(positions_per_block);
  shape.pass_bytes = pass_bytes_of(site);
  return shape;
}

}  // namespace

step_sizes step_sizes_of(const node_site& site) {
  const auto number = [](auto value) { return static_cast<std::uint64_t>(value); };
  const cluster_config& config = site.config;
  const auto workers = std::count_if(config.nodes.begin(), config.nodes.end(), std::mem_fn(&node_config::is_worker));
  step_sizes sizes;
  sizes.rows = number(config.scheduler.max_batch_tokens);
  sizes.sequences = number(config.scheduler.max_sequences);
  sizes.steps = number(config.scheduler.steps_in_flight);
  if (sizes.steps == 0) sizes.steps = std::max(number(config.stages), number(workers));
  sizes.hidden = number(site.model->config.hidden);
  sizes.context = number(site.context);
  return sizes;
}

void check_device(const cluster_config& config, const node_config& node) {
  check_device(node.device, place_of(config, node_key(node.name, "device")));
}

std::uint64_t memory_of(const node_config& node) {
  constexpr std::int64_t unknown = std::int64_t{1} << 30;
  if (node.memory) return *node.memory;
  return memory_to_offer(node.device, static_cast<std::uint64_t>(free_memory(node.device).value_or(unknown)));
}

node_site make_site(const cluster_config& config, const std::string& name) {
  node_site site;
  site.config = config;
  site.node = node_of(config, name);
  check_device(config, site.node);
  if (site.node.is_head() && is_this_machine(site.node.host)) check_adapter_folder(config);
  check_collective(config, site.node);
  site.threads = threads_of(config, site.node);
  // What ranks exchange is not encrypted: it leaves the machine only if the file allows that.
  if ((config.tensor > 1 && site.node.is_worker()) || site.node.is_trainer())
    site.meeting = std::make_shared<meeting_place>(config.insecure ? site.node.host : "127.0.0.1");
  if (!site.node.is_head() && !site.node.is_worker()) return site;  // a trainer has the model while it has a job
  site.model = load(config, available_processors());
  site.fingerprint = model_id(fingerprint_of(*site.model));
  site.kv = kv_of(config);
  site.context = context_of(config, site.model->config);
  check_tensor(config, site.model->config);
  return site;
}

load_options load_options_of(const cluster_config& config) {
  load_options chosen;
  if (!config.model.quant.empty()) chosen.quant = scheme_from_name(config.model.quant, place_of(config, "model.quant"));
  if (!config.model.keep.empty() && !chosen.quant)
    refuse_at(config, "model.keep",
              "names layers to leave unquantized, but model.quant no scheme for the others: name one");
  chosen.keep = config.model.keep;
  return chosen;
}

bus::options bus_options_of(const node_site& site) {
  bus::options options;
  options.listen = site.node.is_head() ? site.config.listen : site.node.listen;
  options.insecure = site.config.insecure;
  if (site.config.keys) options.keys = keys_of(site.config);
  if (options.keys && !site.node.is_head()) options.keys->clients.clear();
  if (!site.model) return options;
  make_room_for_steps(step_sizes_of(site), options);
  return options;
}

node_hello hello_of(const node_site& site, const std::string& endpoint) {
  node_hello hello;
  hello.cluster = site.config.name;
  hello.name = site.node.name;
  hello.pid = ::getpid();
  hello.host = site.node.host;
  hello.machine = machine_id();
  hello.endpoint = endpoint;
  if (site.meeting) hello.meeting = site.meeting->endpoint();
  for (const node_role role : site.node.roles) hello.roles.emplace_back(to_text(role));
  hello.build = build_id();
  hello.model = site.fingerprint;
  // A GPU needs only one of the processor's threads.
  hello.threads = static_cast<std::uint32_t>(site.node.device.is_cpu() ? site.threads : 1);
  hello.processors = static_cast<std::uint32_t>(available_processors());
  hello.memory_bytes = memory_of(site.node);
  if (site.node.is_worker()) hello.speed = worker_speed(site.model, site.fingerprint, site.threads, site.node.device);
  return hello;
}

supervisor_parts supervisor_of(const node_site& site, std::uint32_t reign) {
  const cluster_config& config = site.config;
  supervisor_parts parts;
  parts.config = config;
  parts.members.cluster = config.name;
  parts.members.build = build_id();
  parts.members.model = site.fingerprint;
  parts.members.detector = failure_detector::options::of(std::chrono::milliseconds(config.lost_after_ms));
  parts.shape = shape_of(site);
  parts.kv = site.kv;
  parts.wanted.replicas = config.replicas;
  parts.wanted.stages = config.stages;
  parts.wanted.tensor = config.tensor;
  parts.wanted.kv_memory = config.scheduler.kv_memory;
  parts.wanted.min_context = site.context;
  parts.batches.context = site.context;
  parts.batches.max_batch_tokens = config.scheduler.max_batch_tokens;
  parts.batches.max_mixed_prompt_tokens = config.scheduler.max_mixed_prompt_tokens;
  parts.batches.max_sequences = config.scheduler.max_sequences;
  parts.batches.max_waiting = static_cast<std::size_t>(config.scheduler.max_waiting);
  parts.batches.max_adapters = config.adapters.max_resident;
  parts.batches.adapter_patience = static_cast<std::uint64_t>(config.scheduler.adapter_patience);
  parts.batches.model = site.fingerprint;
  parts.vocab_size = site.model->config.vocab_size;
  parts.reign = reign;
  parts.say = say;
  return parts;
}

std::string build_id() {
  return fmt::format("troupe {} {}", TROUPE_VERSION, program_id());
}

void say(const std::string& line) {
  const std::time_t now = std::time(nullptr);
  std::fputs(fmt::format("{:%Y-%m-%d %H:%M:%S} {}\n", fmt::localtime(now), line).c_str(), stdout);
  std::fflush(stdout);
}

void warn(const std::string& line) {
  say(line);
  write_error("troupe: " + line + "\n");
}

}  // namespace troupe
