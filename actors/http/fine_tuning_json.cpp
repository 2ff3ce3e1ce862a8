#include "actors/http/fine_tuning_json.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/http/fine_tuning_request.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {
namespace {

std::string status_of(const std::string& state) {
  return state == "receiving" ? "validating_files" : state;
}

}  // namespace

json fine_tune_json(const std::string& model, const json& job, const json& about) {
  const std::string id = job.value("id", ""), state = job.value("state", "");
  const json options = job.contains("options") && job["options"].is_object() ? job["options"] : json::object();
  const json hyperparameters{
      {"n_epochs", options.value("epochs", std::int64_t{1})},
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
          {"validation_file", or_null(about, "validation_file")},
          {"training_file", about.value("training_file", "")},
          {"hyperparameters", hyperparameters},
          {"method", {{"type", "supervised"}, {"supervised", {{"hyperparameters", hyperparameters}}}}},
          {"seed", options.value("seed", std::int64_t{0})},
          {"suffix", options.value("adapter", "")},
          {"trained_tokens", nullptr},
          {"error", error},
          {"estimated_finish", nullptr},
          {"integrations", json::array()},
          {"metadata", or_null(about, "metadata")}};
}

json event_json(const std::string& job, const json& event) {
  const json& data = event.at("data");
  const std::string kind = event.value("kind", "");
  const bool is_metrics = kind == "metrics";
  std::string message = data.is_object() ? data.value("text", "") : "";
  json shown = json::object();
  if (is_metrics && data.contains("validation_loss")) {
    message =
        fmt::format("Step {}: validation loss={:.4f}", data.value("step", 0), data["validation_loss"].get<double>());
    shown = {{"step", data["step"]},
             {"valid_loss", data["validation_loss"]},
             {"valid_mean_token_accuracy", data["validation_accuracy"]}};
  } else if (is_metrics) {
    message = fmt::format("Step {}: training loss={:.4f}", data.value("step", 0), data.value("loss", 0.0));
    shown = {{"step", data.value("step", 0)},
             {"train_loss", data.value("loss", 0.0)},
             {"train_mean_token_accuracy", data.value("accuracy", 0.0)}};
  } else if (kind == "checkpoint") {
    message = fmt::format("Step {}: checkpoint", data.value("step", 0));
  }
  return {{"object", "fine_tuning.job.event"},
          {"id", fmt::format("ftevent-{}-{}", job, event.value("number", 0))},
          {"created_at", event.value("at", std::int64_t{0})},
          {"level", data.is_object() ? data.value("level", "info") : "info"},
          {"message", message},
          {"type", is_metrics ? "metrics" : "message"},
          {"data", shown}};
}

json checkpoint_json(const std::string& job, const std::string& adapter, const json& event) {
  const auto step = event.at("data").value("step", std::int64_t{0});
  return {{"object", "fine_tuning.job.checkpoint"},
          {"id", fmt::format("ftckpt-{}-{}", job, step)},
          {"created_at", event.value("at", std::int64_t{0})},
          {"fine_tuned_model_checkpoint", fmt::format("{}:ckpt-step-{}", adapter, step)},
          {"step_number", step},
          {"metrics", {{"step", step}}},
          {"fine_tuning_job_id", job}};
}

}  // namespace troupe
