// What people ask for: data, and jobs of it. Whatever concerns a job that is accepted goes to jobs.
#include "actors/command_fields_impl.hpp"
#include "actors/commands.hpp"
#include "actors/training/training_desk.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {

void training_desk_state::run(command_call& call) {
  if (call.what.name == "train.data") return call.answer(answer_of([&] { return take_data(call.what.arguments); }));
  if (call.what.name == "train.create") return create(call);
  call.answer({{}, call.what.name + ": is no command: train.data and train.create are", true});
}

std::string training_desk_state::take_data(const std::string& arguments) {
  const json parsed = detail::parse_json_as<json>(arguments, "train.data");
  const command_fields from(parsed, "train.data");
  const std::string job = text_of(from, "id");
  const auto offset = from.integer("offset").value_or(0);
  if (offset < 0) refuse("train.data: \"offset\" is {}", offset);
  if (find(job)) refuse("job {}: was accepted already", job);
  const auto there =
      intake_.add_piece(job, text_of(from, "file"), static_cast<std::uint64_t>(offset), from.text("text").value_or(""));
  return dump({{"received", there}});
}

/// Asked twice, it is made once, and both hear the same.
void training_desk_state::create(const command_call& call) {
  std::string job, options, arguments = call.what.arguments;
  const auto checked = answer_of([&] {
    const json parsed = detail::parse_json_as<json>(arguments, "train.create");
    const command_fields from(parsed, "train.create");
    job = text_of(from, "id");
    const json* spec = from.find("options");
    if (!spec || !spec->is_object()) refuse("train.create: \"options\" is missing");
    options = spec->dump();
    if (!is_training_id(job)) refuse("a job's id has 1 to 64 letters, digits, '-' or '_'");
    return std::string();
  });
  if (!checked.error.empty()) return call.answer(checked);
  auto& askers = creating_[job];
  askers.push_back(call.answer);
  if (askers.size() > 1) return;
  ask_journal([job](journal& book) { return book.find(job); },
              [this, job, options, arguments](const std::optional<job_info>& known) {
                if (!known) return create_unknown(job, options, arguments);
                answer_create(job, {dump({{"id", job}, {"state", name_of(known->state)}}), {}, false});
              });
}

void training_desk_state::create_unknown(const std::string& job, const std::string& options,
                                         const std::string& arguments) {
  const auto refused = answer_of([&] {
    accept(job, read_training_spec(options, "train.create"), arguments);
    return std::string();
  });
  if (refused.error.empty()) return;
  intake_.remove(job);
  answer_create(job, refused);
}

void training_desk_state::answer_create(const std::string& job, const command_answer& answer) {
  const auto askers = creating_.extract(job);
  for (const auto& tell_one : askers.mapped()) tell_one(answer);
}

/// The data is read whole before anybody hears yes.
void training_desk_state::accept(const std::string& job, training_spec spec, const std::string& arguments) {
  const json parsed = detail::parse_json_as<json>(arguments, "train.create");
  const command_fields from(parsed, "train.create");
  if (const auto file = from.text("data_file")) intake_.take_file(job, "data", *file);
  if (const auto file = from.text("validation_file")) intake_.take_file(job, "validation", *file);
  const auto found =
      intake_.accept(job, spec, from.text("data_sha256").value_or(""), from.text("validation_sha256").value_or(""));
  const std::string text = to_json(spec);
  const job_spec wanted{job, "fine-tune", from.text("tenant").value_or(""), text, 0};
  const std::string message =
      dump({{"level", "info"},
            {"text", fmt::format("accepted: {} examples, {} tokens to learn{}", found.examples, found.learned_tokens,
                                 found.shortened > 0 ? fmt::format(", {} shortened", found.shortened) : "")}});
  ask_journal(
      [wanted, message](journal& book) -> result<job_info, journal_error> {
        const auto made = book.create_job(wanted);
        if (!made) return made.error();
        (void)book.append_event(wanted.id, "message", message);
        return book.seal(wanted.id);
      },
      [this, job, spec = std::move(spec), text, found](const result<job_info, journal_error>& sealed) {
        if (!sealed) {
          intake_.remove(job);
          return answer_create(job, {{}, sealed.error().text, true});
        }
        record& made = jobs_[job];
        made.spec = spec, made.spec_text = text, made.files = found.files;
        queue_.add(job, false, static_cast<int>(spec.trainers));
        const std::string made_of = dump({{"id", job},
                                          {"state", name_of(sealed->state)},
                                          {"examples", found.examples},
                                          {"learned_tokens", found.learned_tokens},
                                          {"shortened", found.shortened},
                                          {"trainers", queue_.trainers()}});
        answer_create(job, {made_of, {}, false});
        assign();
      });
}

}  // namespace troupe
