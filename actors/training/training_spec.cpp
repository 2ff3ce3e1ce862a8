#include "actors/training/training_spec.hpp"

#include <optional>
#include <type_traits>

#include "actors/json_dump_impl.hpp"
#include "base/field_error.hpp"
#include "base/fnv_hash.hpp"
#include "base/number_in.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

constexpr std::int64_t most = std::int64_t{1} << 40;

template <class T>
std::optional<T> to_number(const json& value) {
  if constexpr (std::is_integral_v<T>) return detail::to_integer(value);
  return value.is_number() ? std::optional(value.get<T>()) : std::nullopt;
}

/// Takes values by name. spec_writer has the same form, so that one list of names serves reading and writing.
class spec_reader {
 public:
  spec_reader(const json& from, const std::string& where) : fields_(from, where) {
    for (const auto& [key, value] : from.items()) left_.push_back(key);
  }

  void operator()(const char* key, std::string& into) { take(key, fields_.text(key), into); }
  void operator()(const char* key, bool& into) { take(key, fields_.boolean(key), into); }
  void operator()(const char* key, std::vector<std::string>& into) { take(key, fields_.texts(key), into); }
  void operator()(const char* key, std::int64_t& into, std::int64_t least, std::int64_t largest = most) {
    take(key, fields_.integer(key), into);
    check(key, into, least, largest);
  }
  void operator()(const char* key, double& into, double least, double largest) {
    take(key, fields_.number(key), into);
    check(key, into, least, largest);
  }
  /// Any of 64 bits: more than fields_ takes for an integer.
  void operator()(const char* key, std::uint64_t& into) {
    forget(key);
    const json* found = fields_.find(key);
    if (!found) return;
    const auto number = detail::to_integer(*found);
    if (found->is_number_unsigned())
      into = found->get<std::uint64_t>();
    else if (number && *number >= 0)
      into = static_cast<std::uint64_t>(*number);
    else
      refuse("{}: \"{}\" should be a whole number from 0 to 18446744073709551615", fields_.where(), key);
  }
  template <class T>
  void patterns(const char* key, std::vector<std::pair<std::string, T>>& into) {
    forget(key);
    const json* found = fields_.find(key);
    if (!found) return;
    if (!found->is_object()) refuse("{}: \"{}\" should be an object of patterns and numbers", fields_.where(), key);
    into.clear();
    for (const auto& [pattern, value] : found->items()) {
      const auto number = to_number<T>(value);
      if (!number)
        refuse("{}: \"{}\": the value of {} is no {}number", fields_.where(), key, pattern,
               std::is_integral_v<T> ? "whole " : "");
      into.emplace_back(pattern, *number);
    }
  }
  void refuse_unknown() const {
    if (!left_.empty()) refuse("{}: unknown key \"{}\"", fields_.where(), left_.front().substr(0, 64));
  }

 private:
  void forget(const char* key) { std::erase(left_, key); }
  template <class Found, class T>
  void take(const char* key, Found found, T& into) {
    forget(key);
    if (found) into = std::move(*found);
  }
  template <class T>
  void check(const char* key, T value, T least, T largest) const {
    if (!(value >= least && value <= largest))
      refuse_field(key, fmt::format("{} is {}: use {} to {}", key, value, least, largest));
  }

  detail::json_fields<json> fields_;
  std::vector<std::string> left_;
};

class spec_writer {
 public:
  explicit spec_writer(json& to) : to_(to) {}
  template <class T, class... Range>
  void operator()(const char* key, const T& value, Range...) {
    to_[key] = value;
  }
  template <class T>
  void patterns(const char* key, const std::vector<std::pair<std::string, T>>& from) {
    auto& made = to_[key] = json::object();
    for (const auto& [pattern, value] : from) made[pattern] = value;
  }

 private:
  json& to_;
};

template <class Spec, class Visit>
void visit_settings(Spec& spec, Visit& visit) {
  auto& lora = spec.lora;
  auto& run = spec.run;
  using may = training_ranges;
  visit("rank", lora.factors.rank, 1, most_adapter_rank);
  visit("alpha", lora.factors.alpha, lora_options::least_alpha, lora_options::most_alpha);
  visit("rslora", lora.factors.rank_stabilized);
  visit("dropout", run.dropout, 0.0, may::most_dropout);
  visit("targets", lora.targets);
  visit.patterns("rank_of", lora.factors.rank_pattern);
  visit.patterns("alpha_of", lora.factors.alpha_pattern);
  visit("length", run.row_length, may::least_row_length, may::most_row_length);
  visit("batch", run.batch_rows, 1, 1 << 16);
  visit("accumulate", run.accumulation, 1, may::most_accumulation);
  visit("epochs", run.epochs, 1, may::most_epochs);
  visit("steps", run.most_steps, 0);
  visit("lr", run.rate, 0.0, may::most_rate);
  visit("warmup", run.warmup, 0);
  visit("decay", run.adam.weight_decay, 0.0, may::most_decay);
  visit("clip", run.adam.clip, 0.0, may::most_clip);
  visit("seed", run.seed);
  visit("held_out", run.validation_share, 0.0, may::most_held_out);
  visit("validate_every", spec.validate_every, 0);
  visit("checkpoint_every", spec.checkpoint_every, 0);
  visit("best", spec.publish_best);
  visit("trainers", spec.trainers, 1, may::most_trainers);
}

std::uint64_t from_hex(const std::string& digits, const std::string& where) {
  const auto value = number_in<std::uint64_t>(digits, 16);
  if (!value) refuse("{}: '{}' is no fingerprint", where, digits.substr(0, 32));
  return *value;
}

void check_spec(const training_spec& spec, const std::string& where) {
  if (!is_adapter_name(spec.adapter))
    refuse_field("adapter", fmt::format("adapter name '{}': {}", spec.adapter.substr(0, 64), adapter_name_rule));
  if (spec.data_name.empty()) refuse("{}: \"data\" is missing", where);
  if (spec.publish_best && !spec.has_validation() && spec.run.validation_share == 0)
    refuse(
        "{}: nothing is held out, so none can be called the best: hold out a share, name validation data, or leave "
        "out \"best\"",
        where);
  if (spec.trainers > spec.run.accumulation)
    refuse("{}: {} trainers share the passes of a step, and it has {}: accumulate {}", where, spec.trainers,
           spec.run.accumulation, spec.trainers);
}

}  // namespace

std::string training_spec::stored_name(const char* what, const std::string& name) {
  for (const char* ending : {".jsonl", ".json"})
    if (name.ends_with(ending)) return std::string(what) + ending;
  return std::string(what) + ".txt";
}

training_spec read_training_spec(const std::string& text, const std::string& where) {
  const json from = detail::parse_json_as<json>(text, where);
  training_spec spec;
  spec_reader read(from, where);
  read("adapter", spec.adapter);
  read("data", spec.data_name);
  read("validation", spec.validation_name);
  read("owner", spec.owner);
  visit_settings(spec, read);
  std::string schedule = "cosine", precision = "fine";
  read("schedule", schedule);
  read("precision", precision);
  bool low_memory = false;
  read("low_memory", low_memory);
  std::string base = "0", reading = "0";
  read("base", base);
  read("reading", reading);
  read.refuse_unknown();
  spec.run.schedule = schedule_from_name(schedule);
  spec.run.precision = precision_from_name(precision);
  spec.run.keep_activations = !low_memory;
  spec.base = from_hex(base, where + ": \"base\"");
  spec.reading = from_hex(reading, where + ": \"reading\"");
  check_spec(spec, where);
  return spec;
}

std::uint64_t reading_of(std::uint64_t data, std::uint64_t validation) {
  fnv_hash print;
  print.add(data);
  print.add(validation);
  return print.value();
}

std::string to_json(const training_spec& spec) {
  json made{{"adapter", spec.adapter}, {"data", spec.data_name}, {"validation", spec.validation_name}};
  if (!spec.owner.empty()) made["owner"] = spec.owner;
  spec_writer write(made);
  visit_settings(spec, write);
  made["schedule"] = name_of(spec.run.schedule);
  made["precision"] = name_of(spec.run.precision);
  made["low_memory"] = !spec.run.keep_activations;
  made["base"] = fmt::format("{:016x}", spec.base);
  made["reading"] = fmt::format("{:016x}", spec.reading);
  return dump(made);
}

}  // namespace troupe
