// What loops and cyclers have to say.
#include "model/chat/methods.hpp"
#include "model/chat/operators.hpp"

namespace troupe::detail::jinja {
namespace {

value number(std::size_t n) {
  return make_integer(static_cast<integer>(n));
}

template <class Call>
value function(std::string name, std::size_t depth, Call call) {
  return {std::make_shared<const callable>(callable{std::move(name), std::move(call), depth})};
}

value loop_item(const loop_state& loop, std::size_t index) {
  const std::vector<value>& items = loop.items->items;
  return index < items.size() ? items[index] : make_undefined("there is no such item in this loop");
}

value cycle(const loop_ptr& loop) {
  return function("cycle", 0, [index = loop->index](runtime&, arguments&& given) {
    if (given.positional.empty()) fail("loop.cycle needs something to cycle through");
    return given.positional[index % given.positional.size()];
  });
}

// Whether the arguments are others than when it was asked last.
value changed(const loop_ptr& loop) {
  return function("changed", depth_of({loop}), [loop](runtime& run, arguments&& given) {
    if (!given.named.empty()) fail("changed has no argument named '{}'", given.named.front().first);
    const value seen = make_sequence(sequence_kind::tuple, std::move(given.positional));
    if (loop->last_seen && equal(run.cost, {loop->last_seen}, seen)) return make_bool(false);
    run.cost.built(seen);
    if (!loop->last_seen) run.watched.push_back(loop);
    loop->last_seen = *seen.as<sequence_ptr>();
    return make_bool(true);
  });
}

value next_of(const cycler_ptr& cycler) {
  return function("next", depth_of({cycler}), [cycler](runtime&, arguments&& given) {
    const parameters nothing("next", std::move(given), {});
    const std::vector<value>& items = cycler->items->items;
    return items[std::exchange(cycler->index, (cycler->index + 1) % items.size())];
  });
}

value reset_of(const cycler_ptr& cycler) {
  return function("reset", depth_of({cycler}), [cycler](runtime&, arguments&& given) {
    const parameters nothing("reset", std::move(given), {});
    cycler->index = 0;
    return value{none{}};
  });
}

}  // namespace

std::optional<value> loop_attribute(const loop_ptr& loop, std::string_view name) {
  const std::size_t index = loop->index;
  const std::size_t length = loop->items->items.size();
  if (name == "index") return number(index + 1);
  if (name == "index0") return number(index);
  if (name == "revindex") return number(length - index);
  if (name == "revindex0") return number(length - index - 1);
  if (name == "length") return number(length);
  if (name == "first") return make_bool(index == 0);
  if (name == "last") return make_bool(index + 1 == length);
  if (name == "previtem") return loop_item(*loop, index - 1);
  if (name == "nextitem") return loop_item(*loop, index + 1);
  if (name == "depth") return number(loop->depth);
  if (name == "depth0") return number(loop->depth - 1);
  if (name == "cycle") return cycle(loop);
  if (name == "changed") return changed(loop);
  return std::nullopt;
}

std::optional<value> cycler_attribute(const cycler_ptr& cycler, std::string_view name) {
  if (name == "current") return cycler->items->items[cycler->index];
  if (name == "next") return next_of(cycler);
  if (name == "reset") return reset_of(cycler);
  return std::nullopt;
}

}  // namespace troupe::detail::jinja
