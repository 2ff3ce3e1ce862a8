#include "cli/compose/member_node.hpp"

#include "actors/training/trainer.hpp"
#include "cli/compose/compose_site_settings.hpp"
#include "cli/compose/compose_worker.hpp"
#include "cli/compose/link_news.hpp"
#include "cli/compose/node_log.hpp"
#include "cluster/config/config_address.hpp"

namespace troupe {

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
