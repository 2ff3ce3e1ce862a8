// Actors of another process, to be told like actors of this one: what they are told goes over a link.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "actors/interfaces.hpp"
#include "actors/wire.hpp"

namespace troupe {

/// A link that can be replaced by a new one: one thread sets it, others read it.
class link_slot {
 public:
  explicit link_slot(link_id link = no_link) : value_(link.value) {}
  void set(link_id link) { value_.store(link.value, std::memory_order_relaxed); }
  link_id get() const { return link_id(value_.load(std::memory_order_relaxed)); }

 private:
  std::atomic<std::uint64_t> value_;
};

/// Every M that came over this link goes to the actor; those of others are ignored.
template <message M, class Handle>
void deliver_from(wire& links, std::shared_ptr<const link_slot> link, Handle to) {
  links.on<M>([link = std::move(link), to = std::move(to)](incoming<M> in) {
    if (in.link == link->get()) tell(to, std::move(in.message));
  });
}

struct remote_parts {
  wire* links = nullptr;
  std::shared_ptr<const link_slot> link;
};

worker_actor spawn_remote_worker(caf::actor_system& system, remote_parts parts);
trainer_actor spawn_remote_trainer(caf::actor_system& system, remote_parts parts);
workers_head_actor spawn_remote_head(caf::actor_system& system, remote_parts parts);
trainers_head_actor spawn_remote_trainers_head(caf::actor_system& system, remote_parts parts);

}  // namespace troupe
