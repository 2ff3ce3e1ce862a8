// Takes lines from the journal to the gateway, and takes back their answers.
#include "actors/jobs/jobs.hpp"

#include "actors/command_answers.hpp"
#include "base/error.hpp"
#include "base/fnv_hash.hpp"

namespace troupe {
namespace {

constexpr std::size_t lines_read_at_once = 256;
constexpr std::size_t largest_output = 4 << 20;  // fits into a frame even after JSON has escaped it again

/// For a line whose seed is drawn: the same one whenever the line is begun, also by the next head.
std::uint64_t seed_for(const batch_queue::line& line) {
  fnv_hash seed;
  seed.add(line.job);
  seed.add(line.index);
  return seed.value();
}

/// What the listeners of a line's requests share.
struct line_in_progress {
  request_id first;
  jobs_actor jobs;
  std::shared_ptr<answer_sheet> sheet;
  bool is_over = false;
};

/// Listens to one of a line's requests, that of one prompt.
class line_listener final : public answer_listener {
 public:
  line_listener(std::shared_ptr<line_in_progress> line, std::size_t prompt) : line_(std::move(line)), prompt_(prompt) {}

  void on_part(answer_part part) override {
    if (line_->is_over) return;
    line_->sheet->count(prompt_, part);
    line_->sheet->keep(prompt_, std::move(part));
    line_->is_over = line_->sheet->is_complete();
    if (line_->is_over) tell(line_->jobs, line_answered{line_->first, std::move(line_->sheet)});
  }
  void on_refused(const request_refused& refused) override {
    if (std::exchange(line_->is_over, true)) return;
    request_refused why = refused;
    why.request = line_->first;
    tell(line_->jobs, line_refused{std::move(why)});
  }

 private:
  std::shared_ptr<line_in_progress> line_;
  std::size_t prompt_;
};

}  // namespace

jobs_state::jobs_state(handle::pointer self, jobs_parts parts)
    : self_(self),
      parts_(std::move(parts)),
      queue_(parts_.queue, [this](const std::string& job, std::uint64_t from) { return read_lines(job, from); }),
      outputs_(parts_.unrecorded) {
  post();
}

jobs_state::handle::behavior_type jobs_state::make_behavior() {
  return {
      [this](command_call& call) {
        call.answer(answer_of([&] { return carry_out(call.command); }));
        pump();
      },
      [this](const save_catalogue& order) { save(order); },
      [this](const use_journal& order) { use(order); },
      [this](const begin_jobs& begun) {
        go_on(begun);
        sweep();
        pump();
      },
      [this](const line_answered& answered) {
        take_answer(answered);
        pump();
      },
      [this](const line_refused& refused) {
        take_refusal(refused.why);
        pump();
      },
      [this](wake) { try_all_again(); },
      [this](stop_now) {
        record();
        gateway_ = nullptr;
        training_ = nullptr;
        self_->quit();
      },
  };
}

void jobs_state::go_on(const begin_jobs& begun) {
  gateway_ = begun.gateway;
  training_ = begun.training;
  is_to_take_up_ = true;
  take_up();
}

/// Takes up the jobs that an earlier life left unfinished. If the journal cannot be read, it starts from the beginning
/// later.
void jobs_state::take_up() try {
  if (!is_to_take_up_) return;
  begin_training theirs;
  for (const job_info& listed : parts_.book->unfinished()) {
    const job_info job = *parts_.book->find(listed.spec.id);  // with its options
    if (!job.spec.is_batch()) {
      theirs.unfinished.push_back(job);
      theirs.marks[job.spec.id] = mark_of(*parts_.book, job.spec.id);
    }
    try {
      activate(job);
    } catch (const std::exception& error) {  // an earlier build may have accepted options that this one refuses
      (void)parts_.book->finish(job.spec.id, job_state::failed, error.what());
    }
  }
  is_to_take_up_ = false;
  post_soon();
  tell(training_, std::move(theirs));
} catch (const journal_failure& failure) {
  note_failure(failure);
}

void jobs_state::activate(const job_info& job) {
  if (!job.spec.is_batch()) return;
  batch_terms terms = read_batch_terms(job.spec.options);
  queue_.add({job.spec.id, job.spec.tenant, job.spec.options, std::move(terms.endpoint), terms.weight});
}

std::vector<job_line> jobs_state::read_lines(const std::string& job, std::uint64_t from) {
  if (from == 0) (void)parts_.book->start(job);
  return parts_.book->unfinished_lines(job, from, lines_read_at_once);
}

/// Some lines at a time: one may take long to read, and others wait for the journal as well.
void jobs_state::pump() {
  if (!gateway_) return;
  constexpr int at_once = 4;
  try {
    for (int begun = 0; has_room(); ++begun) {
      if (begun == at_once) {
        if (!std::exchange(pump_due_, true)) wake_in(duration{});
        return;
      }
      auto next = queue_.next(clock_.now());
      if (!next) return;
      begin({std::move(*next)});
    }
  } catch (const journal_failure& failure) {
    note_failure(failure);
  }
}

bool jobs_state::has_room() const {
  const std::size_t replicas = std::max<std::size_t>(parts_.board->ready_replicas(), 1);
  if (in_flight_.size() >= replicas * parts_.in_flight || outputs_.is_full()) return false;
  std::size_t answers = 0;
  for (const auto& [request, line] : in_flight_) answers += line.answers;
  return answers < replicas * parts_.answers_in_flight;
}

void jobs_state::begin(line next) {
  const batch_queue::job* job = queue_.find(next.job);
  if (!job) return;
  if (!has_room_on_disk(*job))
    return keep_output(next,
                       error_line(next.index, custom_id_of(next.text),
                                  "what is kept of the key's jobs takes as much of the disk as it may: have some that "
                                  "are over forgotten (troupe jobs forget)",
                                  "insufficient_quota"),
                       false);
  batch_line parsed;
  std::vector<begin_request> requests;
  try {
    parsed = read(next, *job);
    requests = requests_of(parsed.asked.order, *parsed.asked.format, *parts_.prompts, *parts_.numbers);
  } catch (const std::exception& error) {  // any exception: one that ended this actor would do so in every life
    next.custom_id = custom_id_of(next.text);
    return keep_output(next, error_line(next.index, next.custom_id, error.what()), false);
  }
  next.custom_id = std::move(parsed.custom_id);
  next.format = std::move(parsed.asked.format);
  send(std::move(next), parsed.asked.order, std::move(requests));
}

/// Where that cannot be read, outputs cannot be written either: they wait.
bool jobs_state::has_room_on_disk(const batch_queue::job& job) const try {
  return parts_.book->has_room(job.tenant);
} catch (const journal_failure&) {
  return true;
}

batch_line jobs_state::read(const batch_queue::line& from, const batch_queue::job& job) const {
  const std::string& endpoint = job.endpoint;
  if (!endpoint.empty() && !parts_.read_for_endpoint) refuse("lines of {} are not read here", endpoint.substr(0, 64));
  batch_line parsed = endpoint.empty() ? read_batch_line(from.text, job.options, seed_for(from))
                                       : parts_.read_for_endpoint(from.text, endpoint, seed_for(from));
  answer_order& order = parsed.asked.order;
  if (endpoint.empty()) order.skip_special = !parts_.prompts->shows_special(order.prompts.front());
  order.priority = request_priority::batch;
  order.owner = job.tenant;
  order.weight = job.weight;
  return parsed;
}

void jobs_state::send(line begun, const answer_order& order, std::vector<begin_request> requests) {
  const auto progress = std::make_shared<line_in_progress>();
  progress->first = requests.front().id;
  progress->jobs = handle(self_);
  progress->sheet = std::make_shared<answer_sheet>(order);
  begun.answers = progress->sheet->choices().size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    begun.requests.push_back(requests[i].id);
    requests[i].listener = std::make_shared<line_listener>(progress, i);
  }
  in_flight_.emplace(progress->first, std::move(begun));
  for (begin_request& each : requests) tell(gateway_, std::move(each));
}

void jobs_state::take_answer(const line_answered& answered) {
  const auto found = in_flight_.extract(answered.request);
  if (!found) return;
  const line& done = found.mapped();
  std::string text;
  bool ok = true;
  try {
    const std::string whole = done.format->whole(answered.sheet->choices(), answered.sheet->usage());
    text = answer_line(done.index, done.custom_id, whole);
  } catch (const std::exception& error) {
    text = error_line(done.index, done.custom_id, error.what());
    ok = false;
  }
  keep_output(done, std::move(text), ok);
}

/// Also names requests that have ended already; the gateway ignores those.
void jobs_state::end_requests(const line& ended) {
  for (const request_id request : ended.requests) tell(gateway_, end_request{request});
}

void jobs_state::take_refusal(const request_refused& why) {
  auto found = in_flight_.extract(why.request);
  if (!found) return;
  line& refused = found.mapped();
  if (refused.requests.size() > 1) end_requests(refused);
  const bool may_pass = why.cause != refusal_cause::bad_input;
  if (const auto wait = may_pass ? queue_.wait_after(refused, why.retry_after) : std::nullopt) {
    take_back(std::move(refused), why, clock_.now() + *wait);
    return wake_in(*wait + std::chrono::milliseconds(1));
  }
  const char* code = why.is_unknown_adapter ? "model_not_found" : "";
  keep_output(refused, error_line(refused.index, refused.custom_id, why.error, code), false);
}

/// Where a refusal does not say when to come back, there is room, but something else is wrong.
void jobs_state::take_back(line refused, const request_refused& why, instant until) {
  if (why.retry_after > duration{}) return queue_.put_back(std::move(refused), until);
  const std::string name = fmt::format("{}, line {}", refused.job, refused.index);
  if (queue_.put_aside(std::move(refused), until)) parts_.say(fmt::format("{}: is tried again: {}", name, why.error));
}

void jobs_state::keep_output(const line& from, std::string text, bool ok) {
  if (text.size() > largest_output) {
    text = error_line(from.index, from.custom_id,
                      fmt::format("the output has {} bytes, and a line's may have {}: ask for fewer tokens, answers or "
                                  "log-probabilities",
                                  text.size(), largest_output));
    ok = false;
  }
  outputs_.add({from.job, from.index, std::move(text), ok});
  record_soon();
}

void jobs_state::drop_lines_of(const std::string& id) {
  std::erase_if(in_flight_, [&](const auto& item) {
    const bool is_its = item.second.job == id;
    if (is_its) end_requests(item.second);
    return is_its;
  });
  queue_.remove(id);
}

jobs_actor spawn_jobs(caf::actor_system& system, jobs_parts parts) {
  return spawn_state<jobs_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
