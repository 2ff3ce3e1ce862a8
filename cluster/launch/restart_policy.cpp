#include "cluster/launch/restart_policy.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// A node that lives shorter has died a quick death.
constexpr duration shortest_good_life = std::chrono::seconds(10);

}  // namespace

restart_policy::decision restart_policy::ended(ending how, instant now) {
  if (how == ending::done) return {verdict::leave};
  if (!respawn_) return {verdict::give_up};
  if (has_worked_ && (how == ending::unreachable || lost_connections_ > 0))
    return {verdict::restart, now + next_wait(++lost_connections_, options_.longest_host_wait)};
  if (how == ending::bad_input && !has_worked_) return {verdict::give_up};
  const bool is_quick = now - started_ < shortest_good_life;
  quick_deaths_ = is_quick ? quick_deaths_ + 1 : 0;
  failures_ = is_quick ? failures_ + 1 : 0;
  if (failures_ >= options_.most_failures && !has_worked_) return {verdict::give_up};
  return {verdict::restart, now + next_wait(quick_deaths_, options_.longest_wait)};
}

/// Doubles with every failure in a row.
duration restart_policy::next_wait(int failures, duration longest) const {
  duration wait = options_.first_wait;
  for (int i = 1; i < failures && wait < longest; ++i) wait *= 2;
  return std::min(wait, longest);
}

}  // namespace troupe
