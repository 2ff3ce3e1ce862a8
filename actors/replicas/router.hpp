// The router: which replica a request goes to, and where the requests of a lost replica go on.
#pragma once
#include <array>
#include <deque>
#include <unordered_map>
#include <vector>

#include "actors/interfaces.hpp"
#include "cluster/replicas/replica_course.hpp"

namespace troupe {

struct router_parts {
  std::size_t most_parked = 4096;                ///< of each priority, so that batches take no room from others
  duration patience = std::chrono::seconds(10);  ///< of a new request while no replica is ready but some exist
  duration longest_pause = longest_stage_start;  ///< of one that was accepted
};

/// routing_policy decides; this class carries it out. A request that finds no replica ready waits here for a while
/// before it is refused. One that was accepted already waits longer, also for an adapter that no replica can load.
class router_state {
 public:
  using handle = router_actor;
  static constexpr const char* name = "router";

  router_state(handle::pointer self, router_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct parked {
    routed_request request;
    instant until;
  };
  struct request_routes {
    std::unordered_map<replica_id, std::int32_t> answers;  ///< how many of them each replica computes
    std::vector<cancel_request> cancelled;                 ///< it or some answers: a lost replica may be returning them
  };
  void route_new(routed_request& request);
  bool has_parked(request_priority least) const;
  bool route(routed_request& request);
  void park(routed_request& request);
  void refuse_request(const routed_request& request);
  void route_parked();
  void move_waiting(replica_id from);
  void refuse_overdue();
  void refuse_without_adapter(const routed_request& request, const std::string& fault);
  void wake_soon();
  void cancel(const cancel_request& cancelled);
  void note_ended(const requests_ended& ended);
  void take_back(requests_returned& returned);
  void hold_or_refuse(routed_request& request, const std::string& fault);
  bool is_cancelled(const routed_request& request) const;
  bool forget_answers(request_id request, replica_id replica, std::int32_t count);

  handle::pointer self_;
  router_parts parts_;
  actor_clock clock_{self_};
  routing_policy policy_;
  std::unordered_map<replica_id, scheduler_actor> replicas_;
  std::unordered_map<request_id, request_routes> routes_;
  std::array<std::deque<parked>, priorities> parked_;  ///< by priority: batches find no room where others still do
  std::vector<parked> without_adapter_;                ///< they have begun, and hold nobody up who has another adapter
  bool wake_due_ = false;
};

router_actor spawn_router(caf::actor_system& system, router_parts parts);

}  // namespace troupe
