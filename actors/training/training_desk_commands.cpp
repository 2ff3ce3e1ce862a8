// Commands about fine-tunes: sending data and creating jobs. Commands about accepted jobs go to the jobs actor.
#include "actors/command_answers.hpp"
#include "actors/command_fields_impl.hpp"
#include "actors/training/training_desk.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/lora/adapter.hpp"

namespace troupe {
namespace {

std::string accepted_text(const training_intake::summary& found) {
  std::string text = fmt::format("accepted: {} examples, {} tokens to learn", found.examples, found.learned_tokens);
  if (const auto cut = found.losses.shortened; cut > 0)
    text += fmt::format(", {} longer than a row and cut or left out", cut);
  if (const auto unwritten = found.losses.unwritten; unwritten > 0)
    text += fmt::format(", {} with messages that the chat template does not write", unwritten);
  return text;
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
  const std::string job = text_of(from, "id");
  const auto offset = from.integer("offset").value_or(0);
  if (offset < 0) refuse("train.data: \"offset\" is {}", offset);
  if (find(job)) refuse("job {}: was accepted already", job);
  if (creating_.contains(job)) refuse("job {}: what was sent is being read", job);
  const auto there =
      intake_.add_piece(job, text_of(from, "file"), static_cast<std::uint64_t>(offset), from.text("text").value_or(""));
  return dump({{"received", there}});
}

/// If it is asked for twice, the job is made once, and both callers get the same answer. Where the journal fails they
/// get that at once. What was sent stays then: the job may have been accepted before.
void training_desk_state::create(const command_call& call) {
  order asked;
  if (const auto refusal = refusal_of([&] { asked = read_order(call.command.arguments); }))
    return call.answer(*refusal);
  auto& askers = creating_[asked.job];
  askers.push_back(call.answer);
  if (askers.size() > 1) return;
  intake_.hold(asked.job);
  ask_journal([job = asked.job](journal& book) { return book.find(job); },
              [this, asked](const std::optional<job_info>& known) {
                if (!known) return create_unknown(asked);
                answer_create(asked.job, {dump({{"id", asked.job}, {"state", name_of(known->state)}})});
              },
              [this, job = asked.job](const std::string& why) {
                answer_create(job, {{}, why, command_fault::failed});
              });
}

training_desk_state::order training_desk_state::read_order(const std::string& arguments) {
  const command_fields from(arguments, "the fine-tune");
  order asked;
  asked.job = text_of(from, "id");
  const json* options = from.find("options");
  if (!options || !options->is_object()) refuse("the fine-tune: \"options\" is missing");
  check_training_id(asked.job);
  asked.options = options->dump();
  asked.tenant = from.text("tenant").value_or("");
  asked.data = from.text("data_file");
  asked.validation = from.text("validation_file");
  asked.data_sha256 = from.text("data_sha256").value_or("");
  asked.validation_sha256 = from.text("validation_sha256").value_or("");
  return asked;
}

void training_desk_state::create_unknown(const order& asked) {
  if (const auto refusal = refusal_of([&] { accept(asked); })) refuse_job(asked.job, *refusal);
}

void training_desk_state::refuse_job(const std::string& job, const command_answer& why) {
  intake_.remove(job);
  answer_create(job, why);
}

void training_desk_state::answer_create(const std::string& job, const command_answer& answer) {
  const auto askers = creating_.extract(job);
  intake_.let_go(job);
  for (const auto& tell_one : askers.mapped()) tell_one(answer);
}

void training_desk_state::check_size(const training_spec& spec) const {
  const std::uint64_t bytes =
      check_lora(spec.lora, parts_.intake.prompts->config(), precision_beside(parts_.quantization));
  if (bytes > parts_.adapter_memory)
    refuse("the adapter would have {} bytes, more than adapters.memory ({}): take a lower rank or fewer targets", bytes,
           parts_.adapter_memory);
}

/// Reads all data before the job is accepted. Since that may take minutes, another thread does it.
void training_desk_state::accept(const order& asked) {
  training_spec spec = read_training_spec(asked.options, "the fine-tune");
  check_size(spec);
  spec.base = parts_.model.value;
  reading_.run([this, asked, spec, own = handle(self_)] {
    training_intake::summary found;
    const auto refusal = refusal_of([&] {
      if (asked.data) intake_.take_file(asked.job, "data", *asked.data);
      if (asked.validation) intake_.take_file(asked.job, "validation", *asked.validation);
      found = intake_.accept(asked.job, spec, asked.data_sha256, asked.validation_sha256);
    });
    tell(own, carry_on{[this, asked, spec, found, refusal] {
           if (refusal) return refuse_job(asked.job, *refusal);
           make_job(asked.job, asked.tenant, spec, found);
         }});
  });
}

void training_desk_state::make_job(const std::string& job, const std::string& tenant, training_spec spec,
                                   const training_intake::summary& found) {
  spec.reading = found.reading;
  ask_journal(
      [wanted =
           job_spec{.id = job, .kind = "fine-tune", .tenant = tenant, .options = to_json(spec), .name = spec.adapter},
       message = message_text("info", accepted_text(found))](journal& book) -> result<job_info, journal_error> {
        const auto made = book.create_job(wanted);
        if (!made) return made.error();
        (void)book.append_event(wanted.id, "message", message);
        return book.seal(wanted.id);
      },
      [this, job, spec, found](const result<job_info, journal_error>& sealed) {
        const auto refusal = refusal_of([&] { (void)value_of(sealed); });
        refusal ? refuse_job(job, *refusal) : take_in(*sealed, spec, found);
      },
      [this, job](const std::string& why) {
        refuse_job(job, {{}, why, command_fault::failed});
      });
}

void training_desk_state::take_in(const job_info& made, const training_spec& spec,
                                  const training_intake::summary& found) {
  record& job = jobs_[made.spec.id];
  job.spec = spec;
  job.spec_text = made.spec.options;
  job.files = found.files;
  queue_.add(made.spec.id, false, static_cast<int>(spec.trainers));
  const std::string text = dump({{"id", made.spec.id},
                                 {"state", name_of(made.state)},
                                 {"examples", found.examples},
                                 {"learned_tokens", found.learned_tokens},
                                 {"shortened", found.losses.shortened},
                                 {"unwritten", found.losses.unwritten},
                                 {"trainers", queue_.trainers()}});
  answer_create(made.spec.id, {text});
  assign();
}

}  // namespace troupe
