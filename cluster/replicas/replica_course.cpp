#include "cluster/replicas/replica_course.hpp"

#include <algorithm>
#include <iterator>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr duration first_retry = std::chrono::milliseconds(200), longest_retry = std::chrono::seconds(10);
constexpr duration long_enough = 6 * longest_retry;

duration retry_after(int failures) {
  return std::min<duration>(first_retry * (1 << std::min(failures - 1, 6)), longest_retry);
}

}  // namespace

void replica_course::enter(phase next, instant now) {
  phase_ = next;
  since_ = now;
}

void replica_course::start(std::set<seat> seats, instant now) {
  missing_ = std::move(seats);
  enter(phase::starting, now);
}

bool replica_course::note_ready(seat whose, instant now) {
  missing_.erase(whose);
  if (phase_ != phase::starting || !missing_.empty()) return false;
  problem_.clear();
  enter(phase::running, now);
  return true;
}

bool replica_course::stop(instant now) {
  const bool was_running = phase_ == phase::running;
  enter(phase::vacant, now);
  return was_running;
}

void replica_course::note_failure(std::string why) {
  ++failures_;
  problem_ = std::move(why);
  phase_ = phase::waiting;
}

replica_course::due replica_course::look(instant now, duration longest_start) {
  const duration age = now - since_;
  if (phase_ == phase::waiting && age > retry_after(failures_)) return due::next_life;
  if (phase_ == phase::starting && age > longest_start) return due::failure;
  if (phase_ == phase::running && age > long_enough) failures_ = 0;
  return due::nothing;
}

seat replica_course::missing_seat() const {
  const std::size_t turn = to_size(failures_ / 2) % missing_.size();
  return *std::next(missing_.begin(), static_cast<std::ptrdiff_t>(turn));
}

std::string_view name_of(replica_course::phase phase) {
  constexpr std::string_view names[] = {"vacant", "starting", "running", "waiting"};
  return names[to_size(phase)];
}

}  // namespace troupe
