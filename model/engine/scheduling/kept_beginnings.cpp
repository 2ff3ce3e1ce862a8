#include "model/engine/scheduling/kept_beginnings.hpp"

#include <algorithm>
#include <cassert>

#include "base/to_size.hpp"

namespace troupe::detail {

kept_beginnings::kept_beginnings(std::int32_t first, std::int32_t places, std::int32_t blocks)
    : first_(first), places_(to_size(places)), place_of_(to_size(blocks), nowhere) {}

std::optional<std::int32_t> kept_beginnings::take() {
  const auto rank = [](const kept_place& place) { return place.use == use_of_place::free ? 0 : place.last_use; };
  kept_place* best = nullptr;
  for (kept_place& place : places_)
    if (place.use != use_of_place::taken && (best == nullptr || rank(place) < rank(*best))) best = &place;
  if (best == nullptr) return std::nullopt;
  if (best->use == use_of_place::held) forget(best->block);
  best->use = use_of_place::taken;
  return first_ + static_cast<std::int32_t>(best - places_.data());
}

void kept_beginnings::give(std::int32_t place, block_id block) {
  assert(at(place).use == use_of_place::taken);
  if (has(block)) {
    put_back(place);
    use(block);
    return;
  }
  at(place) = {use_of_place::held, block, ++uses_};
  place_of_[to_size(block.value)] = place;
}

void kept_beginnings::put_back(std::int32_t place) {
  assert(at(place).use == use_of_place::taken);
  at(place) = {};
}

std::int32_t kept_beginnings::use(block_id block) {
  const std::int32_t place = place_of_[to_size(block.value)];
  assert(place != nowhere);
  at(place).last_use = ++uses_;
  return place;
}

void kept_beginnings::forget(block_id block) {
  std::int32_t& place = place_of_[to_size(block.value)];
  if (place == nowhere) return;
  at(place) = {};
  place = nowhere;
}

void kept_beginnings::clear() {
  std::fill(places_.begin(), places_.end(), kept_place{});
  std::fill(place_of_.begin(), place_of_.end(), nowhere);
}

std::int32_t kept_beginnings::pending() const {
  const auto is_taken = [](const kept_place& place) { return place.use == use_of_place::taken; };
  return static_cast<std::int32_t>(std::count_if(places_.begin(), places_.end(), is_taken));
}

bool kept_beginnings::is_consistent() const {
  std::size_t held = 0;
  for (std::size_t block = 0; block < place_of_.size(); ++block) {
    if (place_of_[block] == nowhere) continue;
    const kept_place& place = places_[to_size(place_of_[block] - first_)];
    if (place.use != use_of_place::held || to_size(place.block.value) != block) return false;
    ++held;
  }
  const auto is_held = [](const kept_place& place) { return place.use == use_of_place::held; };
  return held == to_size(std::count_if(places_.begin(), places_.end(), is_held));
}

}  // namespace troupe::detail
