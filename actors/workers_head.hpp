// The head, as workers see it: to whom it gives what they say, over links and from the worker in its own process.
#pragma once
#include <memory>
#include <utility>

#include "actors/interfaces.hpp"
#include "actors/replicas/replica_directory.hpp"
#include "actors/wire.hpp"

namespace troupe {

/// Those on the head who hear what workers say.
struct heard_by {
  supervisor_actor supervisor;
  adapter_store_actor store;
  std::shared_ptr<const replica_directory> directory;

  void take(stage_started said) const { tell(supervisor, std::move(said)); }
  void take(stage_failed said) const { tell(supervisor, std::move(said)); }
  void take(step_ending said) const { directory->tell_scheduler(std::move(said)); }
  void take(step_done said) const { directory->tell_scheduler(std::move(said)); }
  void take(adapter_loaded said) const { directory->tell_scheduler(std::move(said)); }
  void take(adapter_prepared said) const { tell(store, std::move(said)); }
};

/// Every M of a member; those of others are ignored.
template <message M, class Deliver>
void on_member(wire& links, std::shared_ptr<const replica_directory> directory, Deliver deliver) {
  links.on<M>([directory = std::move(directory), deliver = std::move(deliver)](incoming<M> in) {
    if (directory->is_member(in.link)) deliver(std::move(in.message));
  });
}

/// Workers of other processes, which are heard once they are members. want_piece is for the store, from whichever link.
void hear_workers(wire& links, const heard_by& by);
/// For the worker in the head's own process: passes messages on without a link.
workers_head_actor spawn_local_head(caf::actor_system& system, heard_by by);

}  // namespace troupe
