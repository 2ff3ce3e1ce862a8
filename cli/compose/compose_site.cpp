#include "cli/compose/compose_site.hpp"

#include <algorithm>

#include "base/field_error.hpp"
#include "base/host_port.hpp"
#include "base/paths.hpp"
#include "base/size_text.hpp"
#include "cli/model/model_options.hpp"
#include "cluster/config/config_place.hpp"
#include "cluster/launch/machine.hpp"
#include "cluster/placement/memory_shares.hpp"
#include "model/arch/device.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/arch/gpu.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/tensor_split.hpp"
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
  const int processors = available_processors();
  if (!node.is_worker()) return processors;
  const auto shares = std::count_if(config.nodes.begin(), config.nodes.end(), [&](const node_config& other) {
    return other.is_worker() && other.autostart && on_one_host(other.host, node.host);
  });
  return std::max(1, processors / static_cast<int>(std::max<std::ptrdiff_t>(shares, 1)));
}

std::int64_t context_of(const cluster_config& config, const model_config& model) {
  if (config.model.context > model.context)
    refuse_at(config, "model.context", "context is {}: the model has {} positions: ask for no more",
              config.model.context, model.context);
  return config.model.context ? config.model.context : model.context;
}

/// The usual one may be made later. One that the file names is only read, so nobody would ever make it.
void check_adapter_folder(const cluster_config& config) {
  std::error_code fault;
  const std::filesystem::path& folder = config.adapters.dir;
  const std::filesystem::directory_iterator listed(folder, fault);
  const bool is_absent = fault == std::errc::no_such_file_or_directory || fault == std::errc::not_a_directory;
  if (is_absent && config.places.contains("adapters.dir"))
    refuse_at(config, "adapters.dir", "{}: there is no such folder: make it, or name another", folder.string());
  if (fault && !is_absent)
    refuse_at(config, "adapters.dir", "adapters: {} cannot be listed ({}): check the path and its permissions",
              folder.string(), fault.message());
}

/// Less is taken where workers have less. But what this machine could never give would leave nothing to all others
/// here: it is a mistake. Of other machines nothing is known, and of a GPU's memory some is always left.
void check_kv_memory(const cluster_config& config) {
  const auto is_elsewhere = [](const node_config& node) {
    return node.is_worker() && (!node.device.is_cpu() || !is_this_machine(node.host));
  };
  const bool is_chosen = config.places.contains("scheduler.kv_memory");
  if (!is_chosen || std::any_of(config.nodes.begin(), config.nodes.end(), is_elsewhere)) return;
  const auto here = machine_memory();
  const auto wanted = static_cast<std::int64_t>(config.scheduler.kv_memory);
  if (here && wanted > *here)
    refuse_at(
        config, "scheduler.kv_memory",
        "kv_memory is {}: this machine has {} of memory: write less, and leave room for weights and other programs",
        size_text(wanted), size_text(*here));
}

/// States are kept in the memory for keys and values, for as many sequences as run at a time and for some beginnings.
void fit_states(cluster_config& config, const model_config& model) {
  const std::int64_t each = model.state_bytes(), memory = static_cast<std::int64_t>(config.scheduler.kv_memory);
  if (each == 0) return;
  const auto bytes = static_cast<std::uint64_t>(each);
  int& sequences = config.scheduler.max_sequences;
  if (!config.places.contains("scheduler.max_sequences"))
    sequences = sequences_with_states(config.scheduler.kv_memory, bytes, sequences);
  else if (sequences > 1 && sequences > memory / each)
    refuse_at(config, "scheduler.max_sequences",
              "max_sequences is {}: the states of so many sequences take {}, and kv_memory is {}: write {} at most, or "
              "more kv_memory",
              sequences, size_text(sequences * each), size_text(memory), std::max<std::int64_t>(memory / each, 1));
  config.scheduler.kept_beginnings = beginnings_with_states(config.scheduler.kv_memory, bytes, sequences);
}

void check_tensor(const cluster_config& config, const model_config& model) {
  if (const auto missing = ranks_lack(model); config.tensor > 1 && !missing.empty())
    refuse_at(config, "cluster.tensor", "{}: use 1{}", missing, model.is_one_stage() ? "" : ", and more stages");
  if (config.tensor > model.kv_heads)
    refuse_at(config, "cluster.tensor",
              "the model has {} heads of keys and values, and each worker of a stage needs one: use {} at most",
              model.kv_heads, model.kv_heads);
}

/// Of all nodes in the file: else a worker would end when it gets its layers, and a trainer with its first job.
void check_devices(const cluster_config& config, const loaded_model& model) {
  for (const node_config& node : config.nodes) {
    if (node.device.is_cpu()) continue;
    if (const auto missing = gpus_lack_for_training(model.config); node.is_trainer() && !missing.empty())
      refuse_at(config, node_key(node.name, "device"), "{}: use cpu", missing);
    if (const auto missing = gpus_lack(model); node.is_worker() && !missing.empty())
      refuse_at(config, node_key(node.name, "device"), "{}: use cpu", missing);
  }
}

/// Of a model whose layers all run in one place each replica has one stage, which nobody may ask to be cut.
void fit_stages(cluster_config& config, const model_config& model) {
  constexpr std::string_view reason =
      "layers of the model read keys of others, or what belongs to a row's token, so that one worker must have them "
      "all";
  if (!model.is_one_stage()) return;
  if (config.stages > 1) refuse_at(config, "cluster.stages", "{}: use 1, and more replicas", reason);
  for (const node_config& node : config.nodes)
    if (node.layers && node.layers->count() < model.layers)
      refuse_at(config, node_key(node.name, "layers"), "{}: leave this out", reason);
  config.stages = 1;
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

}  // namespace

void check_device(const cluster_config& config, const node_config& node) {
  if (node.device.is_cpu()) return;
  if (const std::string fault = gpu_fault(node.device.gpu); !fault.empty())
    refuse_at(config, node_key(node.name, "device"), "{}", fault);
}

node_site make_site(const cluster_config& config, const std::string& name) {
  node_site site;
  site.config = config;
  site.node = node_of(config, name);
  check_device(config, site.node);
  if (site.node.is_head() && is_this_machine(site.node.host)) check_adapter_folder(config);
  if (site.node.is_head()) check_kv_memory(config);
  check_collective(config, site.node);
  site.threads = threads_of(config, site.node);
  // What ranks exchange is not encrypted: it leaves the machine only if the file allows that.
  if ((config.tensor > 1 && site.node.is_worker()) || site.node.is_trainer())
    site.meeting = std::make_shared<meeting_place>(config.insecure ? site.node.host : "127.0.0.1");
  if (!site.node.is_head() && !site.node.is_worker()) return site;  // a trainer has the model while it has a job
  site.kv = kv_of(config);                                          // refused before the model is packed
  site.model = load(config, available_processors());
  site.fingerprint = model_id(fingerprint_of(*site.model));
  site.context = context_of(config, site.model->config);
  check_tensor(config, site.model->config);
  check_devices(config, *site.model);
  fit_stages(site.config, site.model->config);
  if (site.node.is_head()) fit_states(site.config, site.model->config);
  return site;
}

load_options load_options_of(const cluster_config& config) {
  load_options chosen;
  if (!config.model.quant.empty())
    chosen.quant = at_key(config, "model.quant", [&] { return scheme_from_name(config.model.quant, "quant"); });
  if (!config.model.keep.empty() && !chosen.quant)
    refuse_at(config, "model.keep",
              "names layers to leave unquantized, but model.quant no scheme for the others: name one");
  chosen.keep = config.model.keep;
  return chosen;
}

kv_kind kv_of(const cluster_config& config) {
  return at_key(config, "model.kv", [&] { return kv_from_name(config.model.kv, "kv"); });
}

}  // namespace troupe
