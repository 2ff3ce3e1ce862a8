#include "cli/compose_worker.hpp"

#include "actors/adapter_fetcher.hpp"

namespace troupe {
namespace {

rank_settings rank_settings_of(const node_site& site) {
  rank_settings settings;
  settings.place = site.meeting;
  settings.backend = site.config.collective;
  // The head has given a rank up that hangs for so long: those that wait for it are to hear of their next life.
  settings.patience = std::chrono::milliseconds(2 * site.config.lost_after_ms);
  return settings;
}

}  // namespace

worker_parts start_worker(caf::actor_system& system, const node_site& site, wire& links, const head_actor& head) {
  worker_parts parts;
  const auto worker = std::make_shared<worker_actor>();
  parts.fetcher = spawn_adapter_fetcher(system, {site.model, site.config.state_dir / "adapters"}, head, worker);
  const worker_options options{site.model, site.kv, site.threads, rank_settings_of(site), parts.alarm};
  parts.worker = spawn_worker(system, options, &links, head, parts.fetcher, parts.meter);
  *worker = parts.worker;
  return parts;
}

/// What others say in the head's name is not heard.
template <message M, class Handle>
void worker_node::deliver_from_head(wire& links, const Handle& to) {
  links.on<M>([to, slot = head_link_](incoming<M> in) {
    if (in.link == slot->get()) tell(to, std::move(in.what));
  });
}

worker_node::worker_node(caf::actor_system& system, wire& links, const node_site& site, end_handler on_end)
    : head_(spawn_remote_head(system, links, head_link_)), parts_(start_worker(system, site, links, head_)) {
  node_agent_options options;
  options.hello = hello_of(site, {});
  options.head = site.config.head_endpoint();
  options.heartbeat = std::chrono::milliseconds(site.config.heartbeat_ms);
  options.on_end = std::move(on_end);
  options.say = say;
  agent_ = spawn_node_agent(system, options, links, head_link_, parts_.worker, parts_.meter);
  deliver_from_head<join_answer>(links, agent_);
  deliver_from_head<heartbeat_answer>(links, agent_);
  deliver_from_head<end_node>(links, agent_);
  links.on<start_stage>([to = parts_.worker, alarm = parts_.alarm, slot = head_link_](incoming<start_stage> in) {
    if (in.link != slot->get()) return;
    alarm->ring();
    tell(to, std::move(in.what));
  });
  deliver_from_head<run_step>(links, parts_.worker);
  deliver_from_head<load_adapter>(links, parts_.worker);
  deliver_from_head<drop_adapter>(links, parts_.worker);
  deliver_from_head<adapter_piece>(links, parts_.fetcher);
  links.deliver<activations>(parts_.worker);  // from the stage before: its life says whether it counts
  links.on_lost([agent = agent_](link_id link, const std::string&) { tell(agent, link_lost{{}, link}); });
  links.start();
  tell(agent_, begin_membership{{}, links.endpoint()});
}

void worker_node::stop() {
  tell(agent_, stop_now{});
}

}  // namespace troupe
