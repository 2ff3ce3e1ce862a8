// Commands about jobs.
#include <algorithm>

#include "actors/command_answers.hpp"
#include "actors/command_fields_impl.hpp"
#include "actors/jobs/job_json.hpp"
#include "actors/jobs/jobs.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_listed = 10'000;
constexpr std::size_t page_lines = 10'000;
/// Of what goes to clients, too: quotes take twice the room on the way, which should pass 0.25 MB a second, within 5 s.
constexpr std::size_t page_bytes = 512 << 10;
/// Of what the HTTP server alone asks for, which is in this process.
constexpr std::size_t own_page_bytes = 5 << 20;

/// Jobs of somebody else are unknown to an owner who asks.
std::optional<job_info> find_job(const journal& book, const command_fields& asked, const std::string& id) {
  auto job = book.find(id);
  const auto owner = asked.text("owner");
  if (job && owner && job->spec.tenant != *owner) return {};
  return job;
}

job_info known_job(const journal& book, const command_fields& asked) {
  const std::string id = asked.required_text("id");
  auto job = find_job(book, asked, id);
  if (!job) throw unknown_error(fmt::format("job {}: there is none: see `troupe jobs`", id.substr(0, 64)));
  return *std::move(job);
}

/// The job behind which a list of this kind goes on; empty where it begins. An empty list would look like the end of
/// all jobs. Who knows the job's number says `below` instead, which goes on although the job was removed.
std::string place_in_list(const journal& book, const command_fields& asked, const std::string& kind) {
  std::string after = asked.text("after").value_or("");
  if (after.empty()) return after;
  const auto job = find_job(book, asked, after);
  if (!job || (!kind.empty() && job->spec.kind != kind))
    refuse("after: there is no job {} in this list, or not any more: begin it again", after.substr(0, 64));
  return after;
}

}  // namespace

/// Where the journal fails the command is refused, and all others hear of it, too.
std::string jobs_state::carry_out(const client_command& command) try {
  return result_of(command, command_fields(command.arguments, command.name));
} catch (const journal_failure& failure) {
  note_failure(failure);
  throw;
}

std::string jobs_state::result_of(const client_command& command, const command_fields& arguments) {
  if (command.name == "job.list") {
    const std::string kind = arguments.text("kind").value_or("");
    return list(parts_.book->list({.limit = std::min<std::size_t>(arguments.count("limit", 1000), most_listed),
                                   .kind = kind,
                                   .tenant = arguments.text("owner"),
                                   .after = place_in_list(*parts_.book, arguments, kind),
                                   .below = arguments.count("below", 0)}),
                arguments.boolean("options").value_or(false));
  }
  if (command.name == "job.create") return create(arguments);
  if (command.name == "job.lines") return add_lines(arguments);
  const job_info job = known_job(*parts_.book, arguments);
  const std::string& id = job.spec.id;
  if (command.name == "job.get") {
    json made = job_json(job, parts_.board->fine_tunes(), *parts_.book);
    if (!job.spec.is_batch()) made["options"] = json::parse(job.spec.options, nullptr, false);
    return dump(made);
  }
  if (command.name == "job.outputs") return outputs(job, arguments);
  if (command.name == "job.events") return events(job, arguments);
  if (command.name == "job.pause") return tell_of_change(value_of(parts_.book->pause(id)));
  if (command.name == "job.resume") return tell_of_change(value_of(parts_.book->resume(id)));
  if (command.name == "job.seal") return seal(id);
  if (command.name == "job.cancel") return cancel(job);
  if (command.name == "job.forget") return forget(job);
  refuse("{}: is no command: job.create, lines, seal, outputs, events, pause, resume, cancel, forget, list and get are",
         command.name);
}

std::string jobs_state::create(const command_fields& from) {
  const json* options = from.find("options");
  if (options && !options->is_object()) refuse("job.create: \"options\" is no JSON object");
  const job_spec spec{.id = from.required_text("id"),
                      .kind = batch_kind,
                      .tenant = from.text("tenant").value_or(""),
                      .options = options ? options->dump() : "{}",
                      .lines = from.count("lines"),
                      .name = from.text("name").value_or("")};
  (void)read_batch_terms(spec.options);
  return dump(job_json(value_of(parts_.book->create_job(spec))));
}

std::string jobs_state::add_lines(const command_fields& from) {
  const auto lines = from.texts("lines");
  if (!lines) refuse("job.lines: \"lines\" is missing");
  return dump({{"received", value_of(parts_.book->add_lines(from.required_text("id"), from.count("first"), *lines))}});
}

std::string jobs_state::seal(const std::string& id) {
  const job_info job = value_of(parts_.book->seal(id));
  if (!is_finished(job.state)) activate(job);
  post();
  return dump(job_json(job));
}

std::string jobs_state::cancel(const job_info& asked) {
  const std::string& id = asked.spec.id;
  record();
  job_info job;
  parts_.book->at_once([&] {  // throws if the disk fails; then the job goes on
    job = value_of(parts_.book->cancel(id));
    if (!job.spec.is_batch() && !is_finished(asked.state))
      (void)parts_.book->append_event(id, message_event, message_text("info", "cancelled"));
  });
  drop_lines_of(id);
  outputs_.drop_job(id);
  return tell_of_change(job);
}

std::string jobs_state::forget(const job_info& job) {
  (void)value_of(parts_.book->remove(job.spec.id));
  post();
  return dump(job_json(job));
}

std::string jobs_state::tell_of_change(const job_info& job) {
  if (!job.spec.is_batch()) tell(training_, job_changed{job.spec.id, job.state});
  post();
  return dump(job_json(job));
}

/// Those behind the number `after`, or the newest of those with a number below `before`.
std::string jobs_state::events(const job_info& job, const command_fields& from) const {
  const auto limit = std::min<std::size_t>(from.count("limit", 1000), page_lines);
  const std::string& id = job.spec.id;
  const std::uint64_t before = from.count("before", 0);
  const auto found = before > 0 ? parts_.book->events_before(id, before, limit)
                                : parts_.book->events(id, from.count("after", 0), limit);
  auto list = json::array();
  std::size_t bytes = 0;
  for (const job_event& each : found) {
    bytes += each.text.size() + 64;
    if (bytes > (before > 0 ? own_page_bytes : page_bytes) && !list.empty()) break;
    list.push_back(job_event_json(each));
  }
  if (before > 0) std::reverse(list.begin(), list.end());
  const bool has_older = before > 0 && !list.empty() && !parts_.book->events_before(id, list[0]["number"], 1).empty();
  return dump({{"job", job_json(job, parts_.board->fine_tunes(), *parts_.book)},
               {"events", std::move(list)},
               {"has_older", has_older}});
}

/// Outputs in order, as texts: what is written into a file is exactly what was recorded.
std::string jobs_state::outputs(const job_info& job, const command_fields& from) const {
  const auto limit = std::min<std::size_t>(from.count("limit", page_lines), page_lines);
  auto list = json::array();
  std::size_t bytes = 0;
  for (line_output& each : parts_.book->outputs(job.spec.id, from.count("from", 0), limit, page_bytes)) {
    bytes += each.text.size();
    if (bytes > page_bytes && !list.empty()) break;
    list.push_back({{"index", each.index}, {"ok", each.ok}, {"text", std::move(each.text)}});
  }
  return dump({{"job", job_json(job)}, {"outputs", std::move(list)}});
}

/// With options, which may be long, only the first where all would be too much for one answer.
std::string jobs_state::list(const std::vector<job_info>& jobs, bool with_options) const {
  auto list = json::array();
  const auto fine_tunes = parts_.board->fine_tunes();
  std::size_t bytes = 0;
  for (const job_info& job : jobs) {
    const std::string options = with_options ? parts_.book->find(job.spec.id)->spec.options : "";
    bytes += options.size();
    if (bytes > own_page_bytes && !list.empty()) break;
    list.push_back(job_json(job, fine_tunes, *parts_.book));
    if (with_options) list.back()["options"] = json::parse(options, nullptr, false);
  }
  return dump(list);
}

}  // namespace troupe
