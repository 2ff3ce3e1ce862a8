// Fine-tuning jobs in the published form. What a client said beside the job's own options (files, suffix, metadata) is
// kept with the files, as batches do.
#include <algorithm>
#include <charconv>

#include "actors/http/json_body_impl.hpp"
#include "actors/http/routes.hpp"
#include "cluster/adapter_catalogue.hpp"

namespace troupe {
namespace {

constexpr double usual_rate = 1e-4;
constexpr std::int64_t usual_epochs = 3, usual_batch = 4, most_trainers = 64;
constexpr std::size_t most_listed = 100;

json parsed(const std::string& text) {
  return json::parse(text, nullptr, false);
}

// --- create
// ------------------------------------------------------------------------------------------------------------

struct hyperparameters {
  std::optional<std::int64_t> epochs, batch;
  std::optional<double> multiplier;
};

bool is_auto(const request_fields& from, const char* key) {
  const json* value = from.find(key);
  return !value || *value == "auto";
}

hyperparameters read_hyperparameters(const json* object) {
  hyperparameters made;
  if (!object) return made;
  const request_fields from(*object);
  if (!is_auto(from, "n_epochs")) made.epochs = from.integer("n_epochs", 1, 1'000'000);
  if (!is_auto(from, "batch_size")) made.batch = from.integer("batch_size", 1, 4096);
  if (!is_auto(from, "learning_rate_multiplier")) made.multiplier = from.number("learning_rate_multiplier");
  if (made.multiplier && !(*made.multiplier > 0 && *made.multiplier <= 10'000))
    refuse_field("learning_rate_multiplier", "learning_rate_multiplier should be more than 0 and at most 10000");
  return made;
}

/// Of the method, or where older clients say them.
hyperparameters hyperparameters_of(const request_fields& body) {
  const json* method = body.object("method");
  if (!method) return read_hyperparameters(body.object("hyperparameters"));
  const request_fields from(*method);
  if (from.text("type").value_or("supervised") != "supervised")
    refuse_field("method", "method.type should be supervised: nothing else is offered", "unsupported_value");
  const json* supervised = from.object("supervised");
  return read_hyperparameters(supervised ? request_fields(*supervised).object("hyperparameters") : nullptr);
}

std::string file_name(const file_store& files, const std::string& id, const char* field) {
  const auto file = files.find(id);
  if (!file) throw api_error(404, fmt::format("there is no file {}", id.substr(0, 80)), field);
  if (file->purpose != "fine-tune") refuse_field(field, fmt::format("{} was not uploaded for fine-tune", id));
  return file->filename.empty() ? "data.jsonl" : file->filename.substr(file->filename.rfind('/') + 1);
}

std::string adapter_of(const request_fields& body, const std::string& id) {
  const std::string suffix = body.text("suffix").value_or("");
  if (suffix.empty()) return "ft-" + id.substr(id.size() - 8);
  if (!is_adapter_name(suffix))
    refuse_field("suffix",
                 "suffix should be 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit");
  return suffix;
}

/// A step's rows in as many passes as there are trainers to share them.
std::int64_t trainers_of(const request_fields& body, std::int64_t batch) {
  const std::int64_t trainers = body.integer("trainers", 1, most_trainers).value_or(1);
  if (batch % trainers != 0)
    refuse_field("trainers", fmt::format("{} trainers cannot share a batch_size of {} evenly", trainers, batch));
  return trainers;
}

json options_of(const request_fields& body, const file_store& files, const std::string& id) {
  const hyperparameters chosen = hyperparameters_of(body);
  const std::int64_t batch = chosen.batch.value_or(usual_batch), trainers = trainers_of(body, batch);
  json made{{"adapter", adapter_of(body, id)},
            {"data", file_name(files, body.required_text("training_file"), "training_file")},
            {"epochs", chosen.epochs.value_or(usual_epochs)},
            {"batch", batch / trainers},
            {"accumulate", trainers},
            {"trainers", trainers},
            {"lr", usual_rate * chosen.multiplier.value_or(1)},
            {"seed", body.integer("seed", 0, INT32_MAX).value_or(0)}};
  if (const auto file = body.text("validation_file"))
    made["validation"] = file_name(files, *file, "validation_file");
  else
    made["held_out"] = 0;
  return made;
}

void check_model(const api_context& context, const std::string& model) {
  if (model == context.parts.model || model == "base") return;
  throw api_error(404, fmt::format("the model {} cannot be trained: {} can", model.substr(0, 128), context.parts.model),
                  "model", "model_not_found");
}

// --- as clients see it
// -------------------------------------------------------------------------------------------------

std::string status_of(const std::string& state) {
  return state == "receiving" ? "validating_files" : state;
}

json job_json(const api_context& context, const file_store& files, const json& job) {
  const std::string id = job.value("id", ""), state = job.value("state", "");
  const auto text = files.batch(id);
  json about = text ? parsed(*text) : json();
  if (!about.is_object()) about = json::object();
  const json options = job.contains("options") && job["options"].is_object() ? job["options"] : json::object();
  const json given{{"n_epochs", options.value("epochs", std::int64_t{1})},
                   {"batch_size", options.value("batch", usual_batch) * options.value("accumulate", std::int64_t{1})},
                   {"learning_rate_multiplier", options.value("lr", usual_rate) / usual_rate}};
  const auto or_null = [](const json& object, const char* key) {
    return object.contains(key) ? object[key] : json(nullptr);
  };
  json error = nullptr;
  if (state == "failed") error = {{"code", "training_failed"}, {"message", job.value("error", "")}, {"param", nullptr}};
  const auto finished = job.value("finished", std::int64_t{0});
  return {{"object", "fine_tuning.job"},
          {"id", id},
          {"model", context.parts.model},
          {"created_at", job.value("created", std::int64_t{0})},
          {"finished_at", finished ? json(finished) : json(nullptr)},
          {"fine_tuned_model", or_null(job, "result")},
          {"organization_id", ""},
          {"result_files", json::array()},
          {"status", status_of(state)},
          {"validation_file", or_null(about, "validation_file")},
          {"training_file", about.value("training_file", "")},
          {"hyperparameters", given},
          {"method", {{"type", "supervised"}, {"supervised", {{"hyperparameters", given}}}}},
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
  const bool is_metrics = event.value("kind", "") == "metrics";
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
  } else if (event.value("kind", "") == "checkpoint") {
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

/// Newest first, behind `after`, as many as were asked for.
json page_of(std::vector<json> all, const http_request& request) {
  const std::string after = request.query_value("after"), wanted = request.query_value("limit");
  std::size_t limit = 20;
  std::from_chars(wanted.data(), wanted.data() + wanted.size(), limit);
  limit = std::clamp<std::size_t>(limit, 1, most_listed);
  if (!after.empty()) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const json& each) { return each.at("id") == after; });
    all.erase(all.begin(), found == all.end() ? all.end() : found + 1);
  }
  const bool more = all.size() > limit;
  if (more) all.resize(limit);
  json made{{"object", "list"}, {"data", all}, {"has_more", more}};
  if (!all.empty()) made["first_id"] = all.front().at("id"), made["last_id"] = all.back().at("id");
  return made;
}

// --- routes
// ------------------------------------------------------------------------------------------------------------

using context_ptr = std::shared_ptr<api_context>;
using files_ptr = std::shared_ptr<file_store>;

void run_job(const context_ptr& context, const char* command, const std::string& id,
             const std::shared_ptr<http_exchange>& exchange, std::function<void(const std::string&)> then) {
  run_command(context->parts.jobs, client_command{command, dump({{"id", id}})}, exchange, std::move(then));
}

/// What `command` does with it, and then the job.
void reply_job(const context_ptr& context, const files_ptr& files, const std::string& id,
               const std::shared_ptr<http_exchange>& exchange) {
  run_job(context, "job.get", id, exchange, [context, files, exchange, id](const std::string& result) {
    const json job = parsed(result);
    if (job.value("kind", "") != "fine-tune") throw api_error(404, "there is no fine-tuning job " + id, "id");
    reply_json(exchange, job_json(*context, *files, job));
  });
}

void create_job(const context_ptr& context, const files_ptr& files, const http_request& request, const api_key& key,
                const std::shared_ptr<http_exchange>& exchange) {
  const json body = parse_body(request.body);
  const request_fields from(body);
  check_model(*context, from.required_text("model"));
  if (const json* wanted = from.list("integrations"); wanted && !wanted->empty())
    refuse_field("integrations", "integrations are not offered", "unsupported_value");
  const std::string id = "ftjob-" + random_hex(24);
  json about{{"training_file", from.required_text("training_file")}};
  json order{{"id", id}, {"tenant", key.name}, {"options", options_of(from, *files, id)}};
  order["data_file"] = about["training_file"];
  if (const auto file = from.text("validation_file")) order["validation_file"] = about["validation_file"] = *file;
  if (const json* metadata = from.object("metadata")) about["metadata"] = *metadata;
  files->keep_batch(id, dump(about));
  run_command(context->parts.training, client_command{"train.create", dump(order)}, exchange,
              [context, files, exchange, id](const std::string&) { reply_job(context, files, id, exchange); });
}

void events(const context_ptr& context, const http_request& request, const char* kind,
            const std::shared_ptr<http_exchange>& exchange) {
  const std::string id = request.places[0];
  run_command(context->parts.jobs,
              client_command{"job.events", dump({{"id", id}, {"limit", 10'000}, {"newest", true}})}, exchange,
              [exchange, request, id, kind = std::string(kind)](const std::string& result) {
                const json page = parsed(result);
                const std::string adapter = page.at("job").value("adapter", page.at("job").value("result", id));
                std::vector<json> all;
                for (const json& each : page.at("events"))
                  if (kind.empty())
                    all.push_back(event_json(id, each));
                  else if (each.value("kind", "") == kind)
                    all.push_back(checkpoint_json(id, adapter, each));
                std::reverse(all.begin(), all.end());
                reply_json(exchange, page_of(std::move(all), request));
              });
}

void list_jobs(const context_ptr& context, const files_ptr& files, const http_request& request,
               const std::shared_ptr<http_exchange>& exchange) {
  run_command(context->parts.jobs,
              client_command{"job.list", dump({{"limit", 1000}, {"kind", "fine-tune"}, {"options", true}})}, exchange,
              [context, files, request, exchange](const std::string& result) {
                std::vector<json> all;
                for (const json& each : parsed(result)) all.push_back(job_json(*context, *files, each));
                reply_json(exchange, page_of(std::move(all), request));
              });
}

}  // namespace

void add_fine_tuning_routes(api_routes& to, const std::shared_ptr<file_store>& files) {
  const auto context = to.context();
  const std::string jobs = "/v1/fine_tuning/jobs";
  to.add("POST", jobs, [context, files](const auto& request, const auto& key, const auto& exchange) {
    create_job(context, files, request, key, exchange);
  });
  to.add("GET", jobs, [context, files](const auto& request, const auto&, const auto& exchange) {
    list_jobs(context, files, request, exchange);
  });
  to.add("GET", jobs + "/{id}", [context, files](const auto& request, const auto&, const auto& exchange) {
    reply_job(context, files, request.places[0], exchange);
  });
  for (const char* what : {"cancel", "pause", "resume"})
    to.add(
        "POST", jobs + "/{id}/" + what,
        [context, files, command = std::string("job.") + what](const auto& request, const auto&, const auto& exchange) {
          const std::string id = request.places[0];
          run_job(context, command.c_str(), id, exchange,
                  [context, files, id, exchange](const std::string&) { reply_job(context, files, id, exchange); });
        });
  to.add("GET", jobs + "/{id}/events",
         [context](const auto& request, const auto&, const auto& exchange) { events(context, request, "", exchange); });
  to.add("GET", jobs + "/{id}/checkpoints", [context](const auto& request, const auto&, const auto& exchange) {
    events(context, request, "checkpoint", exchange);
  });
}

}  // namespace troupe
