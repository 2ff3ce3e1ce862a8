#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/remote_actors.hpp"
#include "actors/replicas/scheduler.hpp"
#include "actors/replicas/supervisor.hpp"
#include "actors/workers/worker_reporter.hpp"
#include "base/last_said.hpp"
#include "cluster/placement/worker_offers.hpp"
#include "cluster/replicas/seat_failures.hpp"

namespace troupe {

/// Carries out what membership, placement and each replica_course decide. A replica has lives. Each begins with
/// start_stage to all its workers, with empty storage, under a number that no earlier life had. A message of another
/// life is dropped wherever it arrives: that keeps lost workers from doing harm.
class supervisor_state {
 public:
  using handle = supervisor_actor;
  static constexpr const char* name = "supervisor";

  supervisor_state(handle::pointer self, supervisor_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct worker_record {
    incarnation_id incarnation;
    link_id link = no_link;
    worker_actor worker;
    std::string endpoint, meeting;
  };
  /// What a rank says that misses another one in a step.
  struct missed_rank {
    std::string why;
    seat_failure where;
    instant said_at;
  };
  struct replica_record {
    scheduler_actor scheduler;
    replica_life life;
    replica_course course;
    seat_failures failures;
    std::optional<missed_rank> missed;  ///< until it is known whether the process of that one has ended
  };

  // supervisor.cpp: who is a member
  void begin(const begin_cluster& begun);
  void take_join(const incoming<join_cluster>& in);
  void refuse_join(const incoming<join_cluster>& in, join_answer answer);
  void admit(const node_hello& hello, link_id link);
  bool its_process_is_gone(const node_hello& hello) const;
  void take_heartbeat(const incoming<heartbeat>& in);
  void note_free_memory(const std::string& name, const node_report& report);
  void take_leave(incarnation_id node);
  void note_link_lost(link_id link);
  void lose(const std::string& name, const std::string& why, life_end how = life_end::loss);
  void lose_silent(const std::string& name);
  link_id link_of(const std::string& name) const;
  void look_at_clock();
  duration tick_interval() const;
  std::string drain(const client_command& command);
  [[noreturn]] void refuse_no_worker(const std::string& name) const;
  void admit_trainer(const node_hello& hello, link_id link);
  void lose_trainer(const std::string& name, life_end how);
  worker_offer offer_of(const node_hello& hello) const;
  remote_parts remote(link_id link) const { return {parts_.links, std::make_shared<link_slot>(link)}; }

  // supervisor_replicas.cpp: who holds what
  void place_all(instant now);
  void end_vacancy(instant now);
  void clear_placement_problem();
  bool is_assembled(instant now) const;
  bool is_late(instant now) const;
  std::vector<std::string> awaited_workers() const;
  void say_who_is_awaited();
  void take_in(const std::string& name);
  void give_up_worker(const std::string& name, life_end how);
  void carry_out(const placement_change& change);
  void add_replica();
  void start_replica(std::size_t index);
  void tell_stage(std::size_t index, seat whose);
  void stop_replica(std::size_t index, life_end how);
  void fail_replica(std::size_t index, const std::string& why, const seat_failure& where);
  void end_life(const replica_life& life, const std::string& why, const seat_failure& where);
  void look_for_missed_rank(std::size_t index);
  bool has_ended(std::size_t index, seat whose) const;
  void reject_life(const life_rejected& rejected);
  void take_started(const stage_started& started);
  void announce(std::size_t index);
  void retry_replicas(instant now);
  bool gives_seat_to_spare(std::size_t index);
  bool replaces_worker(std::size_t index, seat whose);
  const std::string* worker_in(std::size_t index, seat whose) const;
  bool other_runs(std::size_t index) const;

  // supervisor_status.cpp
  void post_status() const;
  std::string nodes_text() const;
  std::string replicas_text() const;

  handle::pointer self_;
  supervisor_parts parts_;
  training_desk_actor training_;  ///< these two are set by begin_cluster
  std::optional<local_worker> local_;
  std::optional<worker_reporter> local_reporter_;  ///< of the same worker
  actor_clock clock_{self_};
  instant started_;        ///< when the cluster began
  instant last_join_;      ///< when a worker last joined
  instant last_complete_;  ///< when a replica had all its workers, or all were placed anew for want of one

  membership members_;
  std::map<std::string, worker_record> workers_;
  worker_offers offers_;  ///< of the same workers
  std::map<std::string, link_id> trainers_;
  std::map<link_id, incarnation_id> nodes_by_link_;
  std::optional<placement> placement_;
  std::vector<replica_record> replicas_;
  std::uint64_t lives_ = 0;
  std::string placement_problem_;  ///< why the workers cannot be placed, as last said; empty: nothing is wrong
  bool said_who_is_awaited_ = false;
  last_said refused_;  ///< nodes that asked to join, and why they may not
};

}  // namespace troupe
