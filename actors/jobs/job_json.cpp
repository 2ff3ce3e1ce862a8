#include "actors/jobs/job_json.hpp"

#include <algorithm>

#include "actors/json_dump_impl.hpp"

namespace troupe {
namespace {

json figures_json(const fine_tune_figures& figures) {
  const training_progress& progress = figures.progress;
  json made{{"adapter", figures.adapter},
            {"step", progress.step},
            {"steps", progress.steps},
            {"tokens", progress.tokens},
            {"tokens_per_second", progress.tokens_per_second},
            {"checkpoint", progress.checkpoint}};
  if (progress.best_step >= 0) {
    made["best_step"] = progress.best_step;
    made["best_validation_loss"] = progress.best_loss;
  }
  if (!figures.trainers.empty()) {
    made["trainer"] = figures.trainers;
    made["share"] = figures.share;
  }
  if (figures.last_step) {
    made["loss"] = figures.last_step->loss;
    made["accuracy"] = figures.last_step->accuracy;
  }
  if (figures.last_validation) made["validation_loss"] = figures.last_validation->loss;
  if (figures.is_publishing) made["publishing"] = true;
  return made;
}

/// The figures of a fine-tune's last points.
json last_points(const journal& book, const job_info& job) {
  constexpr std::uint64_t looked_at = 4;  // the very last event may hold only a validation loss
  json made = json::object();
  const auto last = book.last_event(job.spec.id, metrics_event);
  if (!last) return made;
  for (const job_event& each : book.events(job.spec.id, last->number - std::min(last->number, looked_at), looked_at)) {
    const json point = json::parse(each.text, nullptr, false);
    if (each.kind != metrics_event || !point.is_object()) continue;
    for (const char* key : {"step", "steps", "tokens", "loss", "validation_loss", "best_step", "best_validation_loss"})
      if (point.contains(key)) made[key] = point[key];
  }
  return made;
}

/// Its data; an empty object where there is none.
json last_data(const journal& book, const std::string& job, const char* kind) {
  const auto event = book.last_event(job, kind);
  json data = event ? json::parse(event->text, nullptr, false) : json::object();
  return data.is_object() ? data : json::object();
}

}  // namespace

fine_tune_mark mark_of(const journal& book, const std::string& job) {
  constexpr std::int64_t none = -1;
  const json figures = last_data(book, job, metrics_event), checkpoint = last_data(book, job, checkpoint_event);
  return {.step = figures.value("step", none),
          .is_validation = figures.contains("validation_loss"),
          .checkpoint = checkpoint.value("step", none),
          .trainer = figures.value("trainer", "")};
}

json job_json(const job_info& job) {
  json made{{"id", job.spec.id},         {"kind", job.spec.kind},    {"state", name_of(job.state)},
            {"lines", job.spec.lines},   {"received", job.received}, {"ok", job.line_ok},
            {"failed", job.line_failed}, {"created", job.created},   {"finished", job.finished},
            {"number", job.number}};
  if (!job.spec.name.empty()) made["name"] = job.spec.name;
  if (!job.error.empty()) made["error"] = job.error;
  if (!job.result.empty()) made["result"] = job.result;
  return made;
}

json job_json(const job_info& job, const fine_tunes_by_job& fine_tunes, const journal& book) {
  json made = job_json(job);
  const auto found = fine_tunes.find(job.spec.id);
  if (found != fine_tunes.end() && !is_finished(job.state)) made.update(figures_json(found->second));
  const bool is_told = made.contains("loss");
  if (!job.spec.is_batch() && !is_told) made.update(last_points(book, job));
  return made;
}

json job_event_json(const job_event& event) {
  json data = json::parse(event.text, nullptr, false);
  if (data.is_discarded()) data = event.text;
  return {{"number", event.number}, {"at", event.at}, {"kind", event.kind}, {"data", std::move(data)}};
}

std::string message_text(const char* level, const std::string& text) {
  return dump({{"level", level}, {"text", text}});
}

}  // namespace troupe
