#include "cli/compose_worker.hpp"

#include "actors/adapter_fetcher.hpp"
#include "cluster/config_address.hpp"

namespace troupe {

worker_parts start_worker(caf::actor_system& system, const node_site& site, wire& links, const head_actor& head) {
  worker_parts parts;
  const auto worker = std::make_shared<worker_actor>();
  parts.fetcher = spawn_adapter_fetcher(system, {site.model, site.config.state_dir / "adapters"}, head, worker);
  parts.worker = spawn_worker(system, {site.model, site.kv, site.threads}, &links, head, parts.fetcher, parts.meter);
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
  deliver_from_head<start_stage>(links, parts_.worker);
  deliver_from_head<run_step>(links, parts_.worker);
  deliver_from_head<load_adapter>(links, parts_.worker);
  deliver_from_head<drop_adapter>(links, parts_.worker);
  deliver_from_head<adapter_piece>(links, parts_.fetcher);
  links.deliver<activations>(parts_.worker);  // from the stage before: its life says whether it counts
  links.on_lost([agent = agent_](link_id link, const std::string&) { tell(agent, link_lost{{}, link}); });
  links.start();
  tell(agent_, begin_membership{{}, reachable_endpoint(links.endpoint(), site.node.host)});
}

void worker_node::stop() {
  tell(agent_, stop_now{});
}

}  // namespace troupe
