#include "cluster/config/config_impl.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/host_port.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe::detail {
namespace {

class checker {
 public:
  explicit checker(const cluster_config& config) : config_(config) {}

  void check() const {
    check_model();
    check_numbers();
    check_roles();
    check_counts();
    check_by_hand();
    check_tensor();
    check_shared_gpus();
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse_at(std::string_view key, fmt::format_string<Args...> format, Args&&... args) const {
    troupe::refuse_at(config_, key, format, std::forward<Args>(args)...);
  }
  static std::string key(const node_config& node, std::string_view name) { return node_key(node.name, name); }

  void check_model() const {
    if (config_.model.path.empty()) refuse_at("model", "there is no model: path = \"models/llama\" in [model]");
    if (config_.model.context == 1)
      refuse_at("model.context",
                "context is 1: a sequence has a token of a prompt and one of an answer, use 2 or more");
  }

  void check_numbers() const {
    if (config_.lost_after_ms < 3 * config_.heartbeat_ms)
      refuse_at(
          config_.places.contains("cluster.lost_after_ms") ? "cluster.lost_after_ms" : "cluster.heartbeat_ms",
          "lost_after_ms is {} with a heartbeat_ms of {}: one late heartbeat would be taken for a death, use {} or "
          "more",
          config_.lost_after_ms, config_.heartbeat_ms, 3 * config_.heartbeat_ms);
    const auto& scheduler = config_.scheduler;
    if (scheduler.max_batch_tokens < scheduler.max_sequences)
      refuse_at(config_.places.contains("scheduler.max_batch_tokens") ? "scheduler.max_batch_tokens"
                                                                      : "scheduler.max_sequences",
                "max_batch_tokens is {}, less than max_sequences, {}: a step has a token for every sequence",
                scheduler.max_batch_tokens, scheduler.max_sequences);
    if (config_.ssh.empty()) refuse_at("cluster.ssh", "ssh is empty: name the command, [\"ssh\"]");
  }

  /// The only node with this role. Refuses none and several.
  const node_config& only(node_role role) const {
    const node_config* found = nullptr;
    for (const auto& node : config_.nodes) {
      if (!node.has(role)) continue;
      if (found)
        refuse_at(key(node, "roles"), "{} and {} are both {}: a cluster has one", found->name, node.name,
                  to_text(role));
      found = &node;
    }
    if (!found) refuse_at("node", "no node is {}: give one the roles [\"router\", \"scheduler\"]", to_text(role));
    return *found;
  }

  void check_roles() const {
    for (const auto& node : config_.nodes)
      if (node.roles.empty()) refuse_at(key(node, "roles"), "{} has no roles: roles = [\"worker\"]", node.name);
    const node_config& router = only(node_role::router);
    const node_config& scheduler = only(node_role::scheduler);
    if (&router != &scheduler)
      refuse_at(key(scheduler, "roles"), "{} is router and {} is scheduler: one node, the head, has to be both",
                router.name, scheduler.name);
    if (!router.autostart)
      refuse_at(key(router, "autostart"), "{} is the head: without it there is no cluster", router.name);
    if (router.is_trainer())
      refuse_at(key(router, "roles"),
                "{} is the head and trainer: give the trainer a node of its own, so that the head never waits for it",
                router.name);
    if (workers().empty()) refuse_at("node", "no node is worker: give one the role [\"worker\"]");
  }

  std::vector<const node_config*> workers() const {
    std::vector<const node_config*> found;
    for (const auto& node : config_.nodes)
      if (node.is_worker()) found.push_back(&node);
    return found;
  }

  void check_counts() const {
    const int needed = std::max(config_.replicas, 1) * std::max(config_.stages, 1) * config_.tensor;
    const auto all = workers();
    const auto there = std::count_if(all.begin(), all.end(), [](auto* worker) { return worker->autostart; });
    if (there == 0)
      refuse_at(key(*all.front(), "autostart"), "no worker starts with the cluster: take autostart = false out of one");
    if (needed > there)
      refuse_at(
          config_.tensor > 1   ? "cluster.tensor"
          : config_.stages > 1 ? "cluster.stages"
                               : "cluster.replicas",
          "{} replicas of {} stages with {} workers each need {} workers, but {} start{}{}: add nodes or ask for less",
          std::max(config_.replicas, 1), std::max(config_.stages, 1), config_.tensor, needed, there,
          there == 1 ? "s" : "", who_does_not_count(all));
  }

  /// " (w1, w2: autostart = false, which does not count)"
  static std::string who_does_not_count(const std::vector<const node_config*>& workers) {
    std::vector<std::string_view> names;
    for (const node_config* worker : workers)
      if (!worker->autostart) names.push_back(worker->name);
    return names.empty() ? "" : fmt::format(" ({}: autostart = false, which does not count)", fmt::join(names, ", "));
  }

  /// Ranks of a stage talk over plain TCP. The last bits of a GPU's sums are not a processor's.
  void check_tensor() const {
    if (config_.tensor == 1) return;
    for (const auto* worker : workers()) {
      if (worker->device.is_cpu() != workers().front()->device.is_cpu())
        refuse_at(
            "cluster.tensor",
            "the workers of a stage are all on GPUs or all on processors, and {} has the device {}, {} the device "
            "{}: give all workers a device = \"cuda:0\", or none, or use tensor = 1",
            workers().front()->name, name_of(workers().front()->device), worker->name, name_of(worker->device));
      if (!config_.insecure && !on_one_host(worker->host, workers().front()->host))
        refuse_at("cluster.tensor",
                  "the workers of a stage gather without encryption, and {} and {} are on two hosts: keep all workers "
                  "on one, or say insecure = true",
                  workers().front()->name, worker->name);
    }
    if (config_.collective == "nccl") check_nccl();
  }

  /// It exchanges between GPUs, each of which has one rank.
  void check_nccl() const {
    std::map<std::pair<std::string, int>, std::string> taken;
    for (const auto* worker : workers()) {
      if (worker->device.is_cpu())
        refuse_at("cluster.collective", "nccl exchanges between GPUs, and {} computes on the processor: use gloo",
                  worker->name);
      const auto [other, is_new] = taken.emplace(std::pair(plain_host(worker->host), worker->device.gpu), worker->name);
      if (!is_new)
        refuse_at("cluster.collective", "nccl needs a GPU for each worker, and {} and {} share {}: use gloo",
                  other->second, worker->name, name_of(worker->device));
    }
  }

  /// Each would offer all that is free on it.
  void check_shared_gpus() const {
    std::map<std::pair<std::string, int>, const node_config*> taken;
    for (const auto* worker : workers()) {
      if (worker->device.is_cpu()) continue;
      const auto [found, is_new] = taken.emplace(std::pair(plain_host(worker->host), worker->device.gpu), worker);
      const node_config& other = *found->second;
      if (!is_new && !(other.memory && worker->memory))
        refuse_at(key(*worker, "device"),
                  "{} and {} share {}: give each a GPU of its own, or a memory, such as memory = \"16GiB\"", other.name,
                  worker->name, name_of(worker->device));
    }
  }

  void check_by_hand() const {
    std::set<int> replicas;
    for (const auto& node : config_.nodes) {
      for (const auto* name : {"layers", "replica", "memory"})
        if (!node.is_worker() && config_.places.contains(key(node, name)))
          refuse_at(key(node, name), "{} has {} and is no worker: take it out", node.name, name);
      if (node.replica && config_.replicas > 0 && *node.replica >= config_.replicas)
        refuse_at(key(node, "replica"), "{} is of replica {}, but replicas = {}: the last one is {}", node.name,
                  *node.replica, config_.replicas, config_.replicas - 1);
      if (node.layers) replicas.insert(node.replica.value_or(0));
    }
    for (const int replica : replicas) check_replica(replica);
  }

  void check_replica(int replica) const {
    std::vector<const node_config*> placed;
    bool others_could_help = false;
    for (const auto* worker : workers()) {
      if (worker->layers && worker->replica.value_or(0) == replica) placed.push_back(worker);
      if (!worker->layers && worker->replica.value_or(replica) == replica) others_could_help = true;
    }
    std::stable_sort(placed.begin(), placed.end(), [](auto* a, auto* b) { return *a->layers < *b->layers; });
    if (static_cast<int>(placed.size()) < config_.tensor) others_could_help = false;
    check_stages(placed, replica, others_could_help);
  }

  /// `placed` is in the order of layers. Whether they reach the last layer is checked by placement.
  void check_stages(const std::vector<const node_config*>& placed, int replica, bool others_could_help) const {
    int next = 0;
    for (std::size_t i = 0; i < placed.size();) {
      const node_config& node = *placed[i];
      const layer_range layers = *node.layers;
      if (layers.first < next)
        refuse_at(key(node, "layers"), "layers {} of {} overlap those of {} in replica {}: every layer has one stage",
                  to_text(layers), node.name, placed[i - 1]->name, replica);
      if (layers.first > next && !others_could_help)
        refuse_at(key(node, "layers"), "layers {} of replica {} are on no worker: {} begins at {}",
                  to_text({next, layers.first - 1}), replica, node.name, layers.first);
      i += count_twins(placed, i);
      next = layers.last + 1;
    }
  }

  /// How many workers from `at` on hold the same layers: as many as share a stage.
  std::size_t count_twins(const std::vector<const node_config*>& placed, std::size_t at) const {
    const node_config& node = *placed[at];
    std::size_t count = 0;
    while (at + count < placed.size() && placed[at + count]->layers == node.layers) ++count;
    if (static_cast<int>(count) > config_.tensor)
      refuse_at(key(*placed[at + 1], "layers"), "{} and {} both have the layers {} in replica {}: {}", node.name,
                placed[at + 1]->name, to_text(*node.layers), node.replica.value_or(0),
                config_.tensor == 1 ? "give one another replica, or set tensor = 2"
                                    : "there are more of them than tensor says");
    if (static_cast<int>(count) < config_.tensor)
      refuse_at(key(node, "layers"), "tensor = {}, but the layers {} are on {} worker{} of replica {}: name {} in all",
                config_.tensor, to_text(*node.layers), count, count == 1 ? "" : "s", node.replica.value_or(0),
                config_.tensor);
    return count;
  }

  const cluster_config& config_;
};

}  // namespace

void check_cluster(const cluster_config& config) {
  checker(config).check();
  check_addresses(config);
}

}  // namespace troupe::detail
