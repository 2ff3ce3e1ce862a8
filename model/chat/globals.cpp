#include <array>
#include <chrono>
#include <ctime>
#include <utility>

#include "model/chat/filters.hpp"
#include "model/chat/operators.hpp"
#include "model/chat/printing.hpp"

namespace troupe::detail::jinja {
namespace {

constexpr integer longest_range = 100'000;  // the reference's sandbox has the same limit

value range(runtime& run, arguments&& given) {
  const parameters p("range", std::move(given), {"start", "stop", "step"}, 1);
  const integer start = p.find(1) ? p.number(0, 0) : 0;
  const integer stop = p.find(1) ? p.number(1, 0) : p.number(0, 0);
  const integer step = p.number(2, 1);
  if (step == 0) fail("range: the step cannot be zero");
  std::vector<value> numbers;
  bool overflow = false;
  for (integer i = start; !overflow && (step > 0 ? i < stop : i > stop);
       overflow = __builtin_add_overflow(i, step, &i)) {
    if (static_cast<integer>(numbers.size()) >= longest_range) fail("range: more than {} numbers", longest_range);
    numbers.push_back(make_integer(i));
  }
  run.cost.step(numbers.size());
  return make_sequence(sequence_kind::list, std::move(numbers));
}

void merge(budget& cost, std::vector<std::pair<value, value>>& entries, const value& from) {
  if (const mapping* dict = mapping_of(from)) {
    for (const auto& [key, item] : dict->entries) set_entry(cost, entries, key, item);
    return;
  }
  const sequence_ptr items = iterate(cost, from);
  for (const value& pair : items->items) {
    const sequence_ptr parts = iterate(cost, pair);
    if (parts->items.size() != 2) fail("dict: an entry needs a key and a value");
    set_entry(cost, entries, parts->items[0], parts->items[1]);
  }
}

std::vector<std::pair<value, value>> merged(budget& cost, std::string_view name, arguments&& given) {
  if (given.positional.size() > 1) fail("{} takes at most one argument without a name", name);
  std::vector<std::pair<value, value>> entries;
  for (const value& from : given.positional) merge(cost, entries, from);
  for (auto& [key, item] : given.named) set_entry(cost, entries, make_text(key), std::move(item));
  return entries;
}

value dict(runtime& run, arguments&& given) {
  return make_mapping(merged(run.cost, "dict", std::move(given)));
}

value make_name_space(runtime& run, arguments&& given) {
  auto space = std::make_shared<name_space>();
  for (auto& [key, item] : merged(run.cost, "namespace", std::move(given))) {
    if (text_of(key)) space->attributes.emplace_back(*text_of(key), std::move(item));
  }
  run.cost.take(sizeof(name_space) + text_value_bytes * (space->attributes.size() + 1));
  run.spaces.push_back(space);
  return {std::move(space)};
}

value raise(runtime& run, arguments&& given) {
  const parameters p("raise_exception", std::move(given), {"message"}, 1);
  fail("{}", printed(run.cost, p.at(0)));
}

std::tm time_of(const runtime& run) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(run.now);
  std::tm parts{};
  if (run.in_utc)
    gmtime_r(&seconds, &parts);
  else
    localtime_r(&seconds, &parts);
  return parts;
}

value format_now(runtime& run, arguments&& given) {
  const parameters p("strftime_now", std::move(given), {"format"}, 1);
  const std::string format = p.text(0, "");
  if (format.empty()) return make_text("");
  const std::tm now = time_of(run);
  std::array<char, 1024> buffer;
  const std::size_t used = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  if (used == 0) fail("strftime_now: the format '{}' gives no text, or too much", format);
  return make_text({buffer.data(), used});
}

value make_cycler(runtime& run, arguments&& given) {
  if (!given.named.empty()) fail("cycler has no argument named '{}'", given.named.front().first);
  if (given.positional.empty()) fail("cycler needs something to cycle through");
  run.cost.take(sizeof(cycler_state) + given.positional.size() * sizeof(value));
  const value items = make_sequence(sequence_kind::tuple, std::move(given.positional));
  return {std::make_shared<cycler_state>(cycler_state{*items.as<sequence_ptr>()})};
}

// A function that gives nothing the first time, and the separator from then on.
value make_joiner(runtime& run, arguments&& given) {
  const parameters p("joiner", std::move(given), {"sep"});
  run.cost.take(text_value_bytes);
  // In a list, so that joiners of joiners cannot be nested without end.
  const value kept = make_sequence(sequence_kind::tuple, {p.find(0) ? p.at(0) : make_text(", ")});
  const auto call = [kept, used = std::make_shared<bool>(false)](runtime&, arguments&& none_given) {
    const parameters nothing("joiner", std::move(none_given), {});
    return std::exchange(*used, true) ? sequence_of(kept)->items.front() : make_text("");
  };
  return {std::make_shared<const callable>(callable{"joiner", call, depth_of(kept)})};
}

using global = value (*)(runtime&, arguments&&);

constexpr std::pair<std::string_view, global> globals[] = {{"range", range},
                                                           {"dict", dict},
                                                           {"namespace", make_name_space},
                                                           {"cycler", make_cycler},
                                                           {"joiner", make_joiner},
                                                           {"raise_exception", raise},
                                                           {"strftime_now", format_now}};

}  // namespace

value global_function(std::string_view name) {
  const global function = find_function(globals, name);
  if (!function) return make_undefined(fmt::format("'{}' is undefined", name));
  return {std::make_shared<const callable>(callable{std::string(name), function, 0})};
}

}  // namespace troupe::detail::jinja
