#include "actors/http/jobs/fine_tuning_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/http/jobs/fine_tuning_request.hpp"
#include "actors/json_dump_impl.hpp"
#include "cluster/journal/job.hpp"

namespace troupe {
namespace {

std::string status_of(const std::string& state) {
  return state == "receiving" ? "validating_files" : state;
}

/// Of an event's figures; of a step or of a validation.
json measured(const json& data) {
  if (data.contains("validation_loss"))
    return {{"step", data["step"]},
            {"valid_loss", data["validation_loss"]},
            {"valid_mean_token_accuracy", data["validation_accuracy"]}};
  return {{"step", data.value("step", 0)},
          {"train_loss", data.value("loss", 0.0)},
          {"train_mean_token_accuracy", data.value("accuracy", 0.0)}};
}

std::string message_of(const std::string& kind, const json& data) {
  const auto step = data.value("step", std::int64_t{0});
  if (kind == checkpoint_event) return fmt::format("Step {}: checkpoint", step);
  if (kind != metrics_event) return data.value("text", "");
  if (!data.contains("validation_loss"))
    return fmt::format("Step {}: training loss={:.4f}", step, data.value("loss", 0.0));
  return fmt::format("Step {}: validation loss={:.4f}", step, data["validation_loss"].get<double>());
}

/// A validation counts only if it is of the same step.
bool belongs_to(std::int64_t step, const json& event) {
  if (event.value("kind", "") != metrics_event) return false;
  const json& data = event.at("data");
  const auto event_step = data.value("step", std::int64_t{0});
  return data.contains("validation_loss") ? event_step == step : event_step <= step;
}

}  // namespace

json fine_tune_json(const std::string& model, const json& job, const json& record) {
  const std::string id = job.value("id", ""), state = job.value("state", "");
  const json options = job.contains("options") && job["options"].is_object() ? job["options"] : json::object();
  const json hyperparameters{
      {"n_epochs", options.value("steps", std::int64_t{0}) > 0 ? json("auto") : options.value("epochs", json(1))},
      {"batch_size", options.value("batch", usual_batch_size) * options.value("accumulate", std::int64_t{1})},
      {"learning_rate_multiplier", options.value("lr", usual_learning_rate) / usual_learning_rate}};
  const auto or_null = [](const json& object, const char* key) {
    return object.contains(key) ? object[key] : json(nullptr);
  };
  json error = nullptr;
  if (state == "failed") error = {{"code", "training_failed"}, {"message", job.value("error", "")}, {"param", nullptr}};
  const auto finished = job.value("finished", std::int64_t{0});
  return {{"object", "fine_tuning.job"},
          {"id", id},
          {"model", model},
          {"created_at", job.value("created", std::int64_t{0})},
          {"finished_at", finished ? json(finished) : json(nullptr)},
          {"fine_tuned_model", or_null(job, "result")},
          {"organization_id", ""},
          {"result_files", json::array()},
          {"status", status_of(state)},
          {"validation_file", or_null(record, "validation_file")},
          {"training_file", record.value("training_file", "")},
          {"hyperparameters", hyperparameters},
          {"method", {{"type", "supervised"}, {"supervised", {{"hyperparameters", hyperparameters}}}}},
          {"seed", options.value("seed", std::uint64_t{0})},
          {"suffix", options.value("adapter", "")},
          {"trained_tokens", finished ? or_null(job, "tokens") : json(nullptr)},  // as OpenAI has it
          {"error", error},
          {"estimated_finish", nullptr},
          {"integrations", json::array()},
          {"metadata", or_null(record, "metadata")}};
}

json event_json(const std::string& job, const json& event) {
  const json& data = event.at("data");
  const std::string kind = event.value("kind", "");
  const bool is_metrics = kind == metrics_event;
  return {{"object", "fine_tuning.job.event"},
          {"id", fmt::format("ftevent-{}-{}", job, event.value("number", 0))},
          {"created_at", event.value("at", std::int64_t{0})},
          {"level", data.is_object() ? data.value("level", "info") : "info"},
          {"message", data.is_object() ? message_of(kind, data) : ""},
          {"type", is_metrics ? "metrics" : "message"},
          {"data", is_metrics ? measured(data) : json::object()}};
}

json checkpoint_json(const std::string& job, const std::string& adapter, const json& events, std::size_t place) {
  const json& event = events.at(place);
  const auto step = event.at("data").value("step", std::int64_t{0});
  json metrics{{"step", step}};
  for (std::size_t i = place; i-- > 0 && !metrics.contains("train_loss");) {
    if (!belongs_to(step, events[i])) continue;
    metrics.update(measured(events[i].at("data")));
    metrics["step"] = step;
  }
  return {{"object", "fine_tuning.job.checkpoint"},
          {"id", fmt::format("ftckpt-{}-{}", job, step)},
          {"created_at", event.value("at", std::int64_t{0})},
          {"fine_tuned_model_checkpoint", fmt::format("{}:ckpt-step-{}", adapter, step)},
          {"step_number", step},
          {"metrics", metrics},
          {"fine_tuning_job_id", job}};
}

}  // namespace troupe
