#include "actors/http/jobs/fine_tuning_request.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "actors/http/api_error.hpp"
#include "actors/http/files/owned_files.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/metadata_impl.hpp"
#include "actors/training/training_spec.hpp"
#include "base/entropy.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/lora/adapter_config.hpp"
#include "model/train/run/optimizer.hpp"

namespace troupe {
namespace {

using field_names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 3> known_hyperparameters{"n_epochs", "batch_size", "learning_rate_multiplier"};
/// Of what add_own_fields and options_of read.
constexpr std::array<std::string_view, 8> own_fields{"rank",     "alpha",  "targets", "dropout",
                                                     "schedule", "length", "seed",    "trainers"};
/// What other programs call such things: PEFT, transformers and TRL, axolotl.
constexpr std::array<std::string_view, 22> names_elsewhere{"learning_rate",
                                                           "lr_scheduler_type",
                                                           "weight_decay",
                                                           "max_grad_norm",
                                                           "warmup_steps",
                                                           "warmup_ratio",
                                                           "num_epochs",
                                                           "num_train_epochs",
                                                           "max_steps",
                                                           "max_seq_length",
                                                           "max_length",
                                                           "per_device_train_batch_size",
                                                           "gradient_accumulation_steps",
                                                           "train_on_inputs",
                                                           "r",
                                                           "lora_rank",
                                                           "lora_alpha",
                                                           "lora_dropout",
                                                           "use_rslora",
                                                           "rank_pattern",
                                                           "alpha_pattern",
                                                           "target_modules"};
constexpr std::int64_t usual_epochs = 3;

struct hyperparameters {
  std::optional<std::int64_t> epochs, batch;
  std::optional<double> multiplier;
};

bool is_auto(const request_fields& from, const char* key) {
  const json* value = from.find(key);
  return !value || *value == "auto";
}

bool is_among(field_names list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

std::string places_of_own_fields() {
  return fmt::format("suffix, validation_file, {} stand beside model and training_file", fmt::join(own_fields, ", "));
}

/// One that changed nothing would look as if it had been used.
void refuse_unknown(const json& object, const char* path, field_names known, const std::string& remedy) {
  for (const auto& [key, value] : object.items())
    if (!value.is_null() && !is_among(known, key))
      refuse_field(
          key,
          fmt::format("{}.{} is unknown: there are {}; {}", path, key.substr(0, 64), fmt::join(known, ", "), remedy),
          "unknown_parameter");
}

hyperparameters read_hyperparameters(const json* object) {
  hyperparameters chosen;
  if (!object) return chosen;
  refuse_unknown(*object, "hyperparameters", known_hyperparameters, places_of_own_fields());
  const request_fields from(*object);
  if (!is_auto(from, "n_epochs")) chosen.epochs = from.integer("n_epochs", 1, training_ranges::most_epochs);
  if (!is_auto(from, "batch_size")) chosen.batch = from.integer("batch_size", 1, 4096);
  if (!is_auto(from, "learning_rate_multiplier")) chosen.multiplier = from.number("learning_rate_multiplier");
  if (chosen.multiplier && !(*chosen.multiplier > 0 && *chosen.multiplier <= 10'000))
    refuse_field("learning_rate_multiplier", "learning_rate_multiplier should be more than 0 and at most 10000");
  return chosen;
}

/// Those of the options of a job (training_spec) that have another name or place here, or none.
std::vector<std::string> foreign_options() {
  std::vector<std::string> foreign;
  const json options = json::parse(to_json(training_spec()));
  for (const auto& [name, value] : options.items())
    if (!is_among(own_fields, name)) foreign.push_back(name);
  return foreign;
}

void refuse_misplaced_hyperparameters(const request_fields& body) {
  for (const std::string_view key : known_hyperparameters)
    if (body.has(key))
      refuse_field(std::string(key),
                   fmt::format("{0} would be ignored here: it is method.supervised.hyperparameters.{0}", key),
                   "unknown_parameter");
  static const std::vector<std::string> foreign = foreign_options();
  const auto refuse_if_there = [&](std::string_view key) {
    if (body.has(key))
      refuse_field(std::string(key),
                   fmt::format("{} would be ignored: {} stand in method.supervised.hyperparameters; {}", key,
                               fmt::join(known_hyperparameters, ", "), places_of_own_fields()),
                   "unknown_parameter");
  };
  std::ranges::for_each(foreign, refuse_if_there);
  std::ranges::for_each(names_elsewhere, refuse_if_there);
}

/// Those of the method; nullptr without any.
const json* hyperparameters_in(const json& method) {
  constexpr const char* place = "hyperparameters stand in method.supervised.hyperparameters";
  constexpr std::array<std::string_view, 2> of_method{"type", "supervised"};
  constexpr std::array<std::string_view, 1> of_supervised{"hyperparameters"};
  const request_fields from(method);
  if (from.text("type").value_or("supervised") != "supervised")
    refuse_field("method", "method.type should be supervised: nothing else is offered", "unsupported_value");
  refuse_unknown(method, "method", of_method, place);
  const json* supervised = from.object("supervised");
  if (!supervised) return nullptr;
  refuse_unknown(*supervised, "method.supervised", of_supervised, place);
  return request_fields(*supervised).object("hyperparameters");
}

/// Those of the method, or those of the body itself, where older clients put them.
hyperparameters hyperparameters_of(const request_fields& body) {
  refuse_misplaced_hyperparameters(body);
  const json* beside = body.object("hyperparameters");
  const json* method = body.object("method");
  const json* inside = method ? hyperparameters_in(*method) : nullptr;
  if (inside && beside)
    refuse_field("hyperparameters", "hyperparameters stand in the method and beside it: give them once",
                 "unsupported_value");
  return read_hyperparameters(inside ? inside : beside);
}

std::string file_name(const api_call& call, const std::string& id, const char* field) {
  const stored_file file = owned_file(call, id, field);
  if (file.purpose != "fine-tune") refuse_field(field, fmt::format("{} was not uploaded for fine-tune", id));
  return file.filename.empty() ? "data.jsonl" : file.filename.substr(file.filename.rfind('/') + 1);
}

std::string name_of_adapter(const api_call& call, const request_fields& body, const std::string& id) {
  const std::string suffix = body.text("suffix").value_or("");
  if (suffix.empty()) return "ft" + id.substr(id.find('-'));  // the whole id: names are kept for ever
  if (!is_adapter_name(suffix))
    refuse_field("suffix",
                 "suffix should be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit");
  if (call.context->served.is_base(suffix))
    refuse_field("suffix", "suffix is the base's name: the adapter needs another");
  return suffix;
}

/// A step's rows must make as many equal passes as there are trainers.
std::int64_t trainers_of(const request_fields& body, std::int64_t batch) {
  const std::int64_t trainers = body.integer("trainers", 1, training_ranges::most_trainers).value_or(1);
  if (batch % trainers != 0)
    refuse_field("trainers", fmt::format("{} trainers cannot share a batch_size of {} evenly", trainers, batch));
  return trainers;
}

double number_in_range(const request_fields& body, const char* key, double least, double largest) {
  const double value = *body.number(key);
  if (value < least || value > largest)
    refuse_field(key, fmt::format("{} is {}: use {} to {}", key, value, least, largest));
  return value;
}

json read_targets(const request_fields& body) {
  const json& targets = *body.list("targets");
  for (const json& each : targets)
    if (!each.is_string()) request_fields::refuse_type("targets", "a list of names of layers");
  return targets;
}

std::string read_schedule(const request_fields& body) {
  const std::string name = *body.text("schedule");
  try {
    (void)schedule_from_name(name);
  } catch (const input_error& error) {
    refuse_field("schedule", error.what());
  }
  return name;
}

/// What OpenAI's API has no words for: named as in the options of a job.
void add_own_fields(json& options, const request_fields& body) {
  using may = training_ranges;
  if (const auto length = body.integer("length", may::least_row_length, may::most_row_length))
    options["length"] = *length;
  if (const auto rank = body.integer("rank", 1, most_adapter_rank)) options["rank"] = *rank;
  if (body.has("alpha"))
    options["alpha"] = number_in_range(body, "alpha", lora_options::least_alpha, lora_options::most_alpha);
  if (body.has("dropout")) options["dropout"] = number_in_range(body, "dropout", 0, may::most_dropout);
  if (body.has("targets")) options["targets"] = read_targets(body);
  if (body.has("schedule")) options["schedule"] = read_schedule(body);
}

json options_of(const api_call& call, const request_fields& body, const std::string& id) {
  const hyperparameters chosen = hyperparameters_of(body);
  const std::int64_t batch = chosen.batch.value_or(usual_batch_size), trainers = trainers_of(body, batch);
  json options{{"adapter", name_of_adapter(call, body, id)},
               {"data", file_name(call, body.required_text("training_file"), "training_file")},
               {"epochs", chosen.epochs.value_or(usual_epochs)},
               {"batch", batch / trainers},
               {"accumulate", trainers},
               {"trainers", trainers},
               {"lr", usual_learning_rate * chosen.multiplier.value_or(1)},
               {"seed", body.integer("seed", 0, INT32_MAX).value_or(0)}};
  if (!call.key.is_admin) options["owner"] = call.key.name;
  add_own_fields(options, body);
  if (const auto file = body.text("validation_file"))
    options["validation"] = file_name(call, *file, "validation_file");
  else
    options["held_out"] = 0;
  return options;
}

void check_model(const api_context& context, const std::string& model) {
  if (context.served.is_base(model)) return;
  throw api_error(404,
                  fmt::format("the model {} cannot be trained: {} can", model.substr(0, 128), context.served.model),
                  "model", "model_not_found");
}

}  // namespace

asked_fine_tune read_fine_tune(const api_call& call) {
  const json object = parse_body(call.request->body);
  const request_fields from(object);
  check_model(*call.context, from.required_text("model"));
  if (const json* wanted = from.list("integrations"); wanted && !wanted->empty())
    refuse_field("integrations", "integrations are not offered", "unsupported_value");
  const std::string id = "ftjob-" + random_hex(24);
  json record{{"model", call.context->served.model}, {"training_file", from.required_text("training_file")}};
  json order{{"id", id}, {"tenant", call.key.name}, {"options", options_of(call, from, id)}};
  order["data_file"] = record["training_file"];
  if (const auto file = from.text("validation_file")) order["validation_file"] = record["validation_file"] = *file;
  keep_metadata(record, from);
  return {id, dump(order), dump(record)};
}

}  // namespace troupe
