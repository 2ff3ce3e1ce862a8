#include "cli/compose/compose_site_settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "actors/replicas/supervisor_settings.hpp"
#include "cli/compose/node_log.hpp"
#include "cli/compose/worker_speed.hpp"
#include "cli/program_id.hpp"
#include "cluster/config/config_place.hpp"
#include "cluster/launch/machine.hpp"
#include "cluster/placement/memory_shares.hpp"
#include "model/arch/device.hpp"
#include "model/arch/model_memory.hpp"

namespace troupe {
namespace {

/// What two nodes must have in common to understand each other and to compute alike: the program itself.
std::string build_id() {
  return fmt::format("troupe {} {}", TROUPE_VERSION, program_id());
}

curve_keys keys_of(const cluster_config& config) {
  return at_key(config, "cluster.keys", [&] { return read_cluster_keys(*config.keys); });
}

model_shape shape_of(const node_site& site) {
  const model_config& model = site.model->config;
  const scheduler_settings& of = site.config.scheduler;
  const weight_sizes weights = weight_bytes(*site.model);
  model_shape shape;
  shape.layers = static_cast<int>(model.layers);
  shape.layer_bytes = weights.layer;
  shape.embedding_bytes = weights.embedding;
  shape.head_bytes = weights.head;
  shape.tied = weights.tied;
  shape.kv_heads = static_cast<int>(model.kv_heads);
  shape.kv_bytes = most_kv_bytes_of_token(model, site.kv);
  shape.pass_bytes = pass_bytes(model, {.rows = of.max_batch_tokens,
                                        .sequences = of.max_sequences,
                                        .guesses = site.config.model.lookup_tokens,
                                        .context = site.context,
                                        .threads = site.threads});
  shape.adapter_bytes = site.config.adapters.memory;
  if (!model.keeps_states()) return shape;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    shape.state_bytes.push_back(
        static_cast<std::uint64_t>((of.max_sequences + of.kept_beginnings) * model.state_bytes(layer)));
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

std::uint64_t memory_of(const node_config& node) {
  constexpr std::int64_t unknown = std::int64_t{1} << 30;
  if (node.memory) return *node.memory;
  return memory_to_offer(node.device, static_cast<std::uint64_t>(free_memory(node.device).value_or(unknown)));
}

bus::options bus_options_of(const node_site& site) {
  bus::options options;
  options.listen = site.node.listen;
  options.insecure = site.config.insecure;
  options.forget_after = std::max(options.forget_after, std::chrono::milliseconds(site.config.lost_after_ms));
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
  hello.machine = pid_space();
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

std::chrono::milliseconds patience_with_ranks(const cluster_config& config) {
  return std::chrono::milliseconds(2 * config.lost_after_ms);
}

std::function<void(const std::string& why)> end_without_device(const node_site& site) {
  return [name = site.node.name](const std::string& why) {
    say(fmt::format("{}: {}: this process ends, a new one can use the device", name, why));
    std::_Exit(1);  // destructors would wait for the device
  };
}

supervisor_parts supervisor_parts_of(const node_site& site, std::uint32_t reign) {
  supervisor_parts parts = supervisor_settings_of(site.config);
  parts.members.build = build_id();
  parts.members.model = site.fingerprint;
  parts.shape = shape_of(site);
  parts.kv = site.kv;
  parts.wanted.min_context = site.context;
  parts.batches.context = site.context;
  parts.batches.model = site.fingerprint;
  parts.batches.keeps_states = site.model->config.keeps_states();
  parts.vocab_size = site.model->config.vocab_size;
  parts.reign = reign;
  parts.say = say;
  return parts;
}

}  // namespace troupe
