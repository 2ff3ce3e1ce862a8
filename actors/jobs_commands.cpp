// What people ask of jobs, and what the adapter store has written down.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "actors/jobs.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using fields = detail::json_fields<json>;

constexpr std::size_t shown_jobs = 100, most_listed = 10'000;
constexpr std::size_t page_bytes = 5 << 20, page_lines = 10'000;

template <class T>
T value_of(const result<T, journal_error>& from) {
  if (!from) throw input_error(from.error().text);
  return *from;
}

json to_json(const job_info& job) {
  json made{{"id", job.spec.id},         {"kind", job.spec.kind},    {"state", name_of(job.state)},
            {"lines", job.spec.lines},   {"received", job.received}, {"ok", job.line_ok},
            {"failed", job.line_failed}, {"created", job.created},   {"finished", job.finished}};
  if (!job.error.empty()) made["error"] = job.error;
  return made;
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string text_of(const fields& arguments, std::string_view key) {
  const auto text = arguments.text(key);
  if (!text || text->empty()) refuse("{}: \"{}\" is missing", arguments.where(), key);
  return *text;
}

std::uint64_t count_of(const fields& arguments, std::string_view key, std::optional<std::int64_t> otherwise = {}) {
  const auto number = arguments.has(key) ? arguments.integer(key) : otherwise;
  if (!number) refuse("{}: \"{}\" is missing", arguments.where(), key);
  if (*number < 0) refuse("{}: \"{}\" is {}: use 0 or more", arguments.where(), key, *number);
  return static_cast<std::uint64_t>(*number);
}

job_info known_job(const journal& book, const std::string& id) {
  auto job = book.find(id);
  if (!job) refuse("job {}: there is none: see `troupe jobs`", id.substr(0, 64));
  return *job;
}

}  // namespace

std::string jobs_state::carry_out(const client_command& command) {
  const json parsed = detail::parse_json_as<json>(command.arguments, command.name);
  const fields arguments(parsed, command.name);
  if (command.name == "job.list") return list(std::min<std::size_t>(count_of(arguments, "limit", 1000), most_listed));
  if (command.name == "job.create") return create(command.arguments);
  if (command.name == "job.lines") return add_lines(command.arguments);
  if (command.name == "job.outputs") return outputs(command.arguments);
  const std::string id = text_of(arguments, "id");
  if (command.name == "job.get") return dump(to_json(known_job(*journal_, id)));
  if (command.name == "job.seal") return seal(id);
  if (command.name == "job.cancel") return cancel(id);
  refuse("{}: is no command: job.create, lines, seal, outputs, cancel, list and get are", command.name);
}

std::string jobs_state::create(const std::string& arguments) {
  const json parsed = detail::parse_json_as<json>(arguments, "job.create");
  const fields from(parsed, "job.create");
  const json* options = from.find("options");
  if (options && !options->is_object()) refuse("job.create: \"options\" is no JSON object");
  job_spec spec{text_of(from, "id"), "batch", from.text("tenant").value_or(""), options ? options->dump() : "{}",
                count_of(from, "lines")};
  check_batch_options(spec.options);
  return dump(to_json(value_of(journal_->create_job(spec))));
}

std::string jobs_state::add_lines(const std::string& arguments) {
  const json parsed = detail::parse_json_as<json>(arguments, "job.lines");
  const fields from(parsed, "job.lines");
  const auto lines = from.texts("lines");
  if (!lines) refuse("job.lines: \"lines\" is missing");
  return dump({{"received", value_of(journal_->add_lines(text_of(from, "id"), count_of(from, "first"), *lines))}});
}

std::string jobs_state::seal(const std::string& id) {
  const job_info job = value_of(journal_->seal(id));
  if (!is_finished(job.state)) activate(job);
  post();
  return dump(to_json(job));
}

std::string jobs_state::cancel(const std::string& id) {
  record();
  drop_lines_of(id);
  std::erase_if(outputs_, [&](const output& each) { return each.job == id; });
  const job_info job = value_of(journal_->cancel(id));
  post();
  return dump(to_json(job));
}

/// Outputs in order, as texts, so that whoever writes them into a file writes what was recorded.
std::string jobs_state::outputs(const std::string& arguments) {
  const json parsed = detail::parse_json_as<json>(arguments, "job.outputs");
  const fields from(parsed, "job.outputs");
  const job_info job = known_job(*journal_, text_of(from, "id"));
  const auto limit = std::min<std::size_t>(count_of(from, "limit", page_lines), page_lines);
  auto list = json::array();
  std::size_t bytes = 0;
  for (line_output& each : journal_->outputs(job.spec.id, count_of(from, "from", 0), limit)) {
    bytes += each.text.size();
    if (bytes > page_bytes && !list.empty()) break;
    list.push_back({{"index", each.index}, {"ok", each.ok}, {"text", std::move(each.text)}});
  }
  return dump({{"job", to_json(job)}, {"outputs", std::move(list)}});
}

std::string jobs_state::list(std::size_t limit) const {
  auto list = json::array();
  for (const job_info& job : journal_->list(limit)) list.push_back(to_json(job));
  return dump(list);
}

void jobs_state::post() {
  posted_ = clock_.now();
  board_->post("jobs", list(shown_jobs));
}

void jobs_state::save(const save_catalogue& what) {
  std::string error;
  try {
    journal_->save(what.changes);
  } catch (const journal_failure& failure) {
    error = failure.what();
  }
  tell(what.asker, catalogue_saved{{}, what.ticket, std::move(error)});
}

}  // namespace troupe
