// Commands about fine-tunes: sending data and creating jobs. Commands about accepted jobs go to the jobs actor.
#include <algorithm>

#include "actors/command_answers.hpp"
#include "actors/command_fields_impl.hpp"
#include "actors/jobs/job_json.hpp"
#include "actors/training/adapter_owner.hpp"
#include "actors/training/training_desk_impl.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/json_input.hpp"
#include "model/lora/adapter.hpp"

namespace troupe {
namespace {

/// How many examples do not count as they stand. `whose`: " of the validation data", or nothing.
std::string losses_text(const data_losses& losses, const char* whose) {
  std::string text;
  if (losses.shortened > 0)
    text += fmt::format(", {}{} longer than a row and cut or left out", losses.shortened, whose);
  if (losses.unwritten > 0)
    text += fmt::format(", {}{} with messages that the chat template does not write", losses.unwritten, whose);
  return text;
}

std::string accepted_text(const training_intake::summary& found) {
  return fmt::format("accepted: {} examples, {} tokens to learn", found.examples, found.learned_tokens) +
         losses_text(found.losses, "") + losses_text(found.validation_losses, " of the validation data");
}

/// How many chats there are tells clients in which way to ask the adapter.
std::string accepted_message(const training_intake::summary& found) {
  return dump({{"level", "info"}, {"text", accepted_text(found)}, {"chats", found.losses.chats}});
}

/// An adapter may be no use for that; empty where nothing is to be warned of.
std::string unended_message(const training_intake::summary& found) {
  const std::string text = unended_text(found.losses, "adapter");
  return text.empty() ? text : message_text("warn", text);
}

}  // namespace

void training_desk_state::run(command_call& call) {
  if (call.command.name == "train.data")
    return call.answer(answer_of([&] { return take_data(call.command.arguments); }));
  if (call.command.name == "train.create") return create(call);
  call.answer({{}, call.command.name + ": is no command: train.data and train.create are", command_fault::bad_input});
}

std::string training_desk_state::take_data(const std::string& arguments) {
  const command_fields from(arguments, "train.data");
  const std::string id = from.required_text("id");
  const auto offset = from.integer("offset").value_or(0);
  if (offset < 0) refuse("train.data: \"offset\" is {}", offset);
  if (find(id)) refuse("job {}: was accepted already", id);
  if (creating_.contains(id)) refuse("job {}: what was sent is being read", id);
  const auto there = intake_.add_piece(id, from.required_text("file"), static_cast<std::uint64_t>(offset),
                                       from.text("text").value_or(""));
  return dump({{"received", there}});
}

/// If it is asked for twice, the job is made once, and both callers get the same answer. Where the journal fails they
/// get that at once. What was sent stays then: the job may have been accepted before.
void training_desk_state::create(const command_call& call) {
  order asked;
  if (const auto refusal = refusal_of([&] {
        asked = read_order(call.command.arguments);
        if (!creating_.contains(asked.job)) check_share(asked.owner);
      }))
    return call.answer(*refusal);
  asked.is_wanted = call.is_wanted;
  making& made = creating_[asked.job];
  made.owner = asked.owner;
  made.askers.push_back(call.answer);
  if (made.askers.size() > 1) return;
  intake_.hold(asked.job);
  using found = std::pair<std::optional<job_info>, std::optional<std::string>>;
  ask_journal([asked, folder = parts_.adapter_folder](
                  journal& book) { return found(book.find(asked.job), owner_of_adapter(book, asked.adapter, folder)); },
              [this, asked](const found& known) {
                if (!known.first) return create_unknown(asked, known.second);
                answer_create(asked.job, {dump({{"id", asked.job}, {"state", name_of(known.first->state)}})});
              },
              [this, id = asked.job](const std::string& why) { answer_create(id, journal_failed(why)); });
}

training_desk_state::order training_desk_state::read_order(const std::string& arguments) {
  const command_fields from(arguments, "the fine-tune");
  order asked;
  asked.job = from.required_text("id");
  const json* options = from.find("options");
  if (!options || !options->is_object()) refuse("the fine-tune: \"options\" is missing");
  check_training_id(asked.job);
  asked.options = options->dump();
  const detail::json_fields<json> described(*options, from.where());
  asked.adapter = described.text("adapter").value_or("");
  asked.owner = described.text("owner").value_or("");
  asked.tenant = from.text("tenant").value_or("");
  asked.data = from.text("data_file");
  asked.validation = from.text("validation_file");
  asked.data_sha256 = from.text("data_sha256").value_or("");
  asked.validation_sha256 = from.text("validation_sha256").value_or("");
  return asked;
}

void training_desk_state::create_unknown(const order& asked, const std::optional<std::string>& owner_of_name) {
  const auto refusal = refusal_of([&] {
    check_name(asked, owner_of_name);
    accept(asked);
  });
  if (refusal) refuse_job(asked.job, *refusal);
}

void training_desk_state::check_share(const std::string& owner) const {
  if (owner.empty()) return;
  const auto being_made = std::ranges::count(creating_, owner, [](const auto& each) { return each.second.owner; });
  const auto open = std::ranges::count(jobs_, owner, [](const auto& each) { return each.second.spec.owner; });
  if (to_size(being_made + open) >= parts_.most_of_key)
    throw full_error(
        fmt::format("this key has {} fine-tunes that are not over, as many as one may have: cancel some, "
                    "or wait for their end",
                    being_made + open));
}

/// Also where a job of somebody else is about to publish the name: one of the two would be trained in vain.
void training_desk_state::check_name(const order& asked, const std::optional<std::string>& owner_of_name) const {
  const auto is_anothers = [&](const auto& each) {
    const training_spec& spec = each.second.spec;
    return spec.adapter == asked.adapter && !may_publish(asked.owner, spec.owner);
  };
  if (!may_publish(asked.owner, owner_of_name) || std::ranges::any_of(jobs_, is_anothers))
    refuse_adapter(asked.adapter);
}

void training_desk_state::refuse_job(const std::string& id, const command_answer& why) {
  intake_.remove(id);
  answer_create(id, why);
}

void training_desk_state::answer_create(const std::string& id, const command_answer& answer) {
  const auto made = creating_.extract(id);
  intake_.let_go(id);
  for (const auto& tell_one : made.mapped().askers) tell_one(answer);
}

void training_desk_state::check_size(const training_spec& spec) const {
  const model_config& config = parts_.intake.prompts->config();
  training_options run = spec.run;
  run.row_length = std::min(run.row_length, config.context);
  (void)checked(std::move(run), config);
  const std::uint64_t bytes = check_lora(spec.lora, config, precision_beside(parts_.quantization));
  if (bytes > parts_.adapter_memory)
    refuse("the adapter would have {} bytes, more than adapters.memory ({}): take a lower rank or fewer targets", bytes,
           parts_.adapter_memory);
}

/// Reads all data before the job is accepted, and fits patterns to layers. Since that may take minutes, another thread
/// does it, where keys take turns. Nothing is made for who has gone before that.
void training_desk_state::accept(const order& asked) {
  training_spec spec = read_training_spec(asked.options, "the fine-tune");
  spec.base = parts_.base.value;
  reading_.run(
      [this, asked, spec, own = handle(self_)] {
        training_intake::summary found;
        const auto refusal = refusal_of([&] {
          if (!asked.is_wanted()) refuse("job {}: nobody waits for it any more", asked.job);
          check_size(spec);
          if (asked.data) intake_.take_file(asked.job, "data", *asked.data);
          if (asked.validation) intake_.take_file(asked.job, "validation", *asked.validation);
          found = intake_.accept(asked.job, spec, asked.data_sha256, asked.validation_sha256);
        });
        tell(own, carry_on{[this, asked, spec, found, refusal] {
               if (refusal) return refuse_job(asked.job, *refusal);
               make_job(asked.job, asked.tenant, spec, found);
             }});
      },
      asked.owner);
}

void training_desk_state::make_job(const std::string& id, const std::string& tenant, training_spec spec,
                                   const training_intake::summary& found) {
  spec.reading = found.reading;
  ask_journal(
      [wanted =
           job_spec{.id = id, .kind = fine_tune_kind, .tenant = tenant, .options = to_json(spec), .name = spec.adapter},
       message = accepted_message(found),
       warning = unended_message(found)](journal& book) -> result<job_info, journal_error> {
        const auto made = book.create_job(wanted);
        if (!made) return made.error();
        (void)book.append_event(wanted.id, message_event, message);
        if (!warning.empty()) (void)book.append_event(wanted.id, message_event, warning);
        return book.seal(wanted.id);
      },
      [this, id, spec, found](const result<job_info, journal_error>& sealed) {
        if (const auto refusal = refusal_of([&] { (void)value_of(sealed); }))
          refuse_job(id, *refusal);
        else
          take_in(*sealed, spec, found);
      },
      [this, id](const std::string& why) { refuse_job(id, journal_failed(why)); });
}

void training_desk_state::take_in(const job_info& made, const training_spec& spec,
                                  const training_intake::summary& found) {
  record& job = jobs_[made.spec.id];
  job.spec = spec;
  job.spec_text = made.spec.options;
  job.files = found.files;
  intake_.note_accepted(made.spec.id);
  queue_.add(made.spec.id, false, static_cast<int>(spec.trainers), made.spec.tenant);
  const std::string text = dump({{"id", made.spec.id},
                                 {"state", name_of(made.state)},
                                 {"examples", found.examples},
                                 {"learned_tokens", found.learned_tokens},
                                 {"shortened", found.losses.shortened},
                                 {"unwritten", found.losses.unwritten},
                                 {"unended", found.losses.unended},
                                 {"trainers", queue_.trainers()}});
  answer_create(made.spec.id, {text});
  assign();
}

}  // namespace troupe
