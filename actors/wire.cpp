#include "actors/wire.hpp"

namespace troupe {

void wire::start() {
  bus_ =
      std::make_unique<bus>(options_, bus::events{[this](link_id link, frame from) { receive(link, std::move(from)); },
                                                  [this](link_id link, const std::string& why) {
                                                    if (lost_) lost_(link, why);
                                                  }});
}

void wire::stop() {
  bus_.reset();
}

void wire::receive(link_id link, frame&& from) {
  const auto& handler = from.kind < kinds ? handlers_[from.kind] : handlers_[0];
  if (!handler || !handler(link, std::move(from))) bus_->close(link);
}

void wire::give_up(link_id link) {
  bus_->close(link);
  if (lost_) lost_(link, "reads too slowly");
}

namespace {

template <any_message... Messages>
struct list {};

/// Forwards what it is told, but for what means nothing beyond this process.
template <class Handle, class Forwarded, class Ignored>
struct remote_state;

template <class Handle, message... Forwarded, any_message... Ignored>
struct remote_state<Handle, list<Forwarded...>, list<Ignored...>> {
  using handle = Handle;
  static constexpr const char* name = "remote";

  remote_state(typename handle::pointer own, wire* through, std::shared_ptr<const link_slot> to)
      : self(own), links(through), link(std::move(to)) {}

  typename handle::behavior_type make_behavior() {
    return {[this](Forwarded& what) { links->send(link->get(), std::move(what)); }..., [](const Ignored&) {}...,
            [this](stop_now) { self->quit(); }};
  }

  typename handle::pointer self;
  wire* links;
  std::shared_ptr<const link_slot> link;
};

using remote_worker = remote_state<worker_actor, list<start_stage, run_step, activations, load_adapter, drop_adapter>,
                                   list<adapter_ready, forget_life, link_lost>>;
using remote_head =
    remote_state<head_actor, list<stage_started, stage_failed, step_done, adapter_loaded, want_piece>, list<>>;

}  // namespace

worker_actor spawn_remote_worker(caf::actor_system& system, wire& links, link_id link) {
  return spawn_state<remote_worker>(system, &links,
                                    std::shared_ptr<const link_slot>(std::make_shared<link_slot>(link)));
}

head_actor spawn_remote_head(caf::actor_system& system, wire& links, const std::shared_ptr<const link_slot>& link) {
  return spawn_state<remote_head>(system, &links, link);
}

}  // namespace troupe
