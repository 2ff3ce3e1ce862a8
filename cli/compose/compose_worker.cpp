#include "cli/compose/compose_worker.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "actors/adapters/adapter_fetcher.hpp"
#include "actors/training/trainer.hpp"
#include "actors/workers/worker.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/compose/link_news.hpp"
#include "cli/compose/node_log.hpp"
#include "cluster/config/config_address.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

/// How long ranks wait for one that hangs. By then the head has given it up, and the others must be free to hear what
/// comes next.
std::chrono::milliseconds patience_with_ranks(const cluster_config& config) {
  return std::chrono::milliseconds(2 * config.lost_after_ms);
}

rank_settings rank_settings_of(const node_site& site) {
  rank_settings settings;
  settings.place = site.meeting;
  settings.patience = patience_with_ranks(site.config);
  settings.by_nccl = site.config.collective == "nccl";
  return settings;
}

/// Ends the process when its device is lost: nothing else in it could use the device either.
std::function<void(const std::string& why)> end_without_device(const node_site& site) {
  return [name = site.node.name](const std::string& why) {
    say(fmt::format("{}: {}: this process ends, a new one can use the device", name, why));
    std::_Exit(1);  // destructors would wait for the device
  };
}

/// If the tokenizer cannot be opened here, only answers that need it end.
token_tree_source tokens_of_model(const node_site& site) {
  return token_tree_from([path = site.config.model.path] { return load_tokenizer(path); },
                         site.model->config.vocab_size);
}

}  // namespace

worker_handles start_worker(caf::actor_system& system, const node_site& site, wire& links,
                            const workers_head_actor& head) {
  worker_handles made;
  made.fetcher = spawn_adapter_fetcher(system, {.head = head,
                                                .model = site.model,
                                                .store = site.config.state_dir / "adapters",
                                                .can_fetch = !site.node.is_head(),
                                                .node = site.node.name,
                                                .say = say});
  made.worker = spawn_worker(system, {.links = &links,
                                      .head = head,
                                      .fetcher = made.fetcher,
                                      .meter = made.meter,
                                      .model = site.model,
                                      .threads = site.threads,
                                      .device = site.node.device,
                                      .ranks = rank_settings_of(site),
                                      .alarm = made.alarm,
                                      .tokens = tokens_of_model(site),
                                      .on_device_lost = end_without_device(site),
                                      .node = site.node.name,
                                      .say = say,
                                      .largest_steps = step_sizes_of(site)});
  tell(made.fetcher, begin_fetching{made.worker});
  return made;
}

member_node::member_node(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end) {
  try {
    start(system, links, site, std::move(on_end));
  } catch (...) {
    stop_members();  // worker and fetcher hold each other, so that their threads would never end
    throw;
  }
}

void member_node::start(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end) {
  if (site.node.is_worker()) add_worker(system, links, site);
  if (site.node.is_trainer()) add_trainer(system, links, site);
  node_agent_parts parts{.links = &links,
                         .head_link = head_link_,
                         .members = members_,
                         .meter = meter_,
                         .hello = hello_of(site, {}),
                         .head = site.config.head_endpoint(),
                         .heartbeat = std::chrono::milliseconds(site.config.heartbeat_ms),
                         .patience = std::chrono::milliseconds(site.config.lost_after_ms),
                         .on_end = std::move(on_end),
                         .say = say,
                         .warn = warn};
  if (site.node.is_worker()) parts.free_memory = [node = site.node] { return memory_of(node); };
  agent_ = spawn_node_agent(system, std::move(parts));
  deliver_from<join_answer>(links, head_link_, agent_);
  deliver_from<heartbeat_answer>(links, head_link_, agent_);
  deliver_from<end_node>(links, head_link_, agent_);
  links.on_lost([agent = agent_, news = said_once(say)](link_id link, const link_end& end) {
    if (!end.is_other_version) news(end.why);  // else the node ends, and says this then
    if (link != no_link) tell(agent, link_lost{link, end});
  });
  links.start();
  tell(agent_, begin_membership{reachable_endpoint(links.endpoint(), site.node.host)});
}

void member_node::add_worker(caf::actor_system& system, wire& links, const node_site& site) {
  const worker_handles made =
      start_worker(system, site, links, spawn_remote_head(system, {.links = &links, .link = head_link_}));
  members_.emplace_back(made.worker);
  meter_ = made.meter;
  links.on<start_stage>([to = made.worker, alarm = made.alarm, slot = head_link_](incoming<start_stage> in) {
    if (in.link != slot->get()) return;
    alarm->ring();
    tell(to, std::move(in.message));
  });
  deliver_from<run_step>(links, head_link_, made.worker);
  deliver_from<load_adapter>(links, head_link_, made.worker);
  deliver_from<drop_adapter>(links, head_link_, made.worker);
  deliver_from<prepare_adapter>(links, head_link_, made.worker);
  deliver_from<adapter_piece>(links, head_link_, made.fetcher);
  links.deliver<activations>(made.worker);  // from the stage before: its life says whether it counts
}

void member_node::add_trainer(caf::actor_system& system, wire& links, const node_site& site) {
  const cluster_config& config = site.config;
  training_site own{config.model.path, load_options_of(config), config.state_dir / "training", site.threads};
  own.load.warn = warn;
  own.device = site.node.device;
  own.on_device_lost = end_without_device(site);
  own.idle_priority = config.training.idle_priority;
  own.checkpoint_after = std::chrono::seconds(config.training.checkpoint_seconds);
  own.meeting = site.meeting;
  own.ranks_patience = patience_with_ranks(config);
  const trainer_actor trainer = spawn_trainer(
      system,
      {.head = spawn_remote_trainers_head(system, {.links = &links, .link = head_link_}), .site = std::move(own)});
  members_.emplace_back(trainer);
  deliver_from<train_job>(links, head_link_, trainer);
  deliver_from<stop_training>(links, head_link_, trainer);
  deliver_from<set_training_share>(links, head_link_, trainer);
  deliver_from<want_training_piece>(links, head_link_, trainer);
  deliver_from<training_piece>(links, head_link_, trainer);
  deliver_from<keep_jobs>(links, head_link_, trainer);
}

void member_node::stop_members() const {
  for (const member_actor& member : members_) tell(member, stop_now{});
}

void member_node::stop() {
  tell(agent_, stop_now{});
  (void)await_ends(farewell_time, agent_);
}

}  // namespace troupe
