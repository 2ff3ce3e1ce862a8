// Lines and their outputs. Commands: jobs_commands.cpp.
#include "actors/jobs.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "actors/commands.hpp"
#include "base/error.hpp"

namespace troupe {
namespace {

constexpr std::size_t lines_read_at_once = 256;
constexpr std::size_t largest_output = 4 << 20;  // fits into a frame, escaped once more
constexpr std::size_t most_unrecorded = 1 << 14;

/// Puts the parts of one line's answer together.
class line_listener final : public answer_listener {
 public:
  line_listener(request_id request, jobs_actor jobs) : request_(request), jobs_(std::move(jobs)) {}

  void on_part(answer_part part) override {
    whole_.text += part.text;
    whole_.tokens.insert(whole_.tokens.end(), part.tokens.begin(), part.tokens.end());
    std::move(part.details.begin(), part.details.end(), std::back_inserter(whole_.details));
    if (!part.end) return;
    whole_.end = std::move(part.end);
    tell(jobs_, line_answered{{}, request_, std::move(whole_)});
  }
  void on_refused(const request_refused& refused) override {
    request_refused why = refused;
    why.request = request_;
    tell(jobs_, line_refused{{}, std::move(why)});
  }

 private:
  request_id request_;
  jobs_actor jobs_;
  answer_part whole_;
};

}  // namespace

jobs_state::jobs_state(handle::pointer self, jobs_options options, std::shared_ptr<journal> book,
                       std::shared_ptr<const prompting> prompts, std::shared_ptr<request_numbers> numbers,
                       std::shared_ptr<status_board> board)
    : self_(self),
      options_(options),
      journal_(std::move(book)),
      prompts_(std::move(prompts)),
      numbers_(std::move(numbers)),
      board_(std::move(board)) {
  post();
}

jobs_state::handle::behavior_type jobs_state::make_behavior() {
  return {
      [this](command_call& call) {
        call.answer(answer_of([&] { return carry_out(call.what); }));
        pump();
      },
      [this](const save_catalogue& what) { save(what); },
      [this](const use_journal& what) { use(what); },
      [this](const begin_jobs& begun) {
        gateway_ = begun.gateway;
        training_ = begun.training;
        begin_training theirs;
        for (const job_info& job : journal_->unfinished()) {
          activate(job);
          if (job.spec.kind != "batch") theirs.unfinished.push_back(*journal_->find(job.spec.id));
        }
        tell(training_, std::move(theirs));
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
      [this](wake) {
        record();
        use_again();
        pump();
      },
      [this](stop_now) {
        record();
        gateway_ = nullptr;
        training_ = nullptr;
        self_->quit();
      },
  };
}

// --- from the journal to the gateway
// ------------------------------------------------------------------------------------

void jobs_state::activate(const job_info& job) {
  if (job.spec.kind != "batch" || find_active(job.spec.id)) return;
  active_.push_back({job.spec.id, job.spec.options, 0, {}, false, 0});
}

jobs_state::active_job* jobs_state::find_active(const std::string& id) {
  const auto found = std::find_if(active_.begin(), active_.end(), [&](const active_job& job) { return job.id == id; });
  return found == active_.end() ? nullptr : &*found;
}

void jobs_state::pump() {
  if (!gateway_) return;
  try {
    while (in_flight_.size() < options_.in_flight && outputs_.size() < most_unrecorded) {
      auto one = next_line();
      if (!one) return;
      begin(std::move(*one));
      if (outputs_.size() >= options_.record_at_once) record();
    }
  } catch (const journal_failure& failure) {
    note_failure(failure);
  }
}

/// Lines that found no room go first; while there is none, others would only be refused as well.
std::optional<jobs_state::line> jobs_state::next_line() {
  if (clock_.now() < paused_until_) return {};
  if (!again_.empty()) {
    line one = std::move(again_.front());
    again_.pop_front();
    return one;
  }
  for (active_job& job : active_)
    if (auto one = read_next(job)) return one;
  return {};
}

std::optional<jobs_state::line> jobs_state::read_next(active_job& job) {
  if (job.read.empty() && !job.is_all_read) {
    if (job.next == 0) (void)journal_->start(job.id);
    const auto lines = journal_->unfinished_lines(job.id, job.next, lines_read_at_once);
    job.is_all_read = lines.empty();
    if (!lines.empty()) job.next = lines.back().index + 1;
    job.read.assign(lines.begin(), lines.end());
  }
  if (job.read.empty()) return {};
  line one{job.id, job.read.front().index, std::move(job.read.front().text), {}, 0};
  job.read.pop_front();
  ++job.open;
  return one;
}

void jobs_state::begin(line one) {
  const active_job* job = find_active(one.job);
  if (!job) return;
  try {
    batch_line parsed = read_batch_line(one.text, job->options);
    one.custom_id = parsed.custom_id;
    begin_request request;
    request.id = numbers_->next();
    request.what = prompts_->prepare(parsed.prompt, parsed.sampling, 1, request_priority::batch);
    request.adapter = parsed.adapter;
    request.listener = std::make_shared<line_listener>(request.id, handle(self_));
    in_flight_.emplace(request.id, std::move(one));
    tell(gateway_, std::move(request));
  } catch (const input_error& error) {
    one.custom_id = custom_id_of(one.text);
    put_out(one, error_line(one.index, one.custom_id, error.what()), false);
  }
}

void jobs_state::take_answer(const line_answered& answered) {
  const auto found = in_flight_.extract(answered.request);
  if (!found) return;
  const line& of = found.mapped();
  put_out(of, answer_line(of.index, of.custom_id, answered.whole), true);
}

void jobs_state::take_refusal(const request_refused& why) {
  auto found = in_flight_.extract(why.request);
  if (!found) return;
  line& of = found.mapped();
  if (!why.bad_input && why.retry_after > duration{}) return try_again(std::move(of), why.retry_after);
  if (!why.bad_input && ++of.refusals < options_.most_tries)
    return try_again(std::move(of), options_.shortest_retry * (1 << of.refusals));
  put_out(of, error_line(of.index, of.custom_id, why.error), false);
}

void jobs_state::try_again(line one, duration after) {
  after = std::max(after, options_.shortest_retry);
  again_.push_back(std::move(one));
  paused_until_ = std::max(paused_until_, clock_.now() + after);
  wake_in(after + std::chrono::milliseconds(1));
}

void jobs_state::put_out(const line& of, std::string text, bool ok) {
  if (text.size() > largest_output) {
    text = error_line(of.index, of.custom_id,
                      fmt::format("the output has {} bytes: at most {}", text.size(), largest_output));
    ok = false;
  }
  outputs_.push_back({of.job, of.index, std::move(text), ok});
  record_soon();
}

void jobs_state::drop_lines_of(const std::string& id) {
  std::vector<request_id> gone;
  for (const auto& [request, each] : in_flight_)
    if (each.job == id) gone.push_back(request);
  for (const request_id request : gone) {
    in_flight_.erase(request);
    tell(gateway_, end_request{{}, request});
  }
  std::erase_if(again_, [&](const line& each) { return each.job == id; });
  std::erase_if(active_, [&](const active_job& job) { return job.id == id; });
}

// --- from the gateway to the journal
// ------------------------------------------------------------------------------------

void jobs_state::record_soon() {
  if (outputs_.size() >= options_.record_at_once) return record();
  if (!std::exchange(record_due_, true)) wake_in(options_.record_after);
}

void jobs_state::record() {
  record_due_ = false;
  if (outputs_.empty()) return;
  std::vector<line_record> records;
  records.reserve(outputs_.size());
  for (const output& each : outputs_) records.push_back({each.job, each.index, each.text, each.ok});
  try {
    (void)journal_->record_all(records);
  } catch (const journal_failure& failure) {
    record_due_ = true;
    return note_failure(failure);
  }
  board_->remove("journal");
  for (const output& each : outputs_)
    if (active_job* job = find_active(each.job)) --job->open;
  outputs_.clear();
  end_complete_jobs() ? post() : post_soon();
}

bool jobs_state::end_complete_jobs() {
  return std::erase_if(active_, [&](const active_job& job) {
           if (!job.is_all_read && !job.read.empty()) return false;
           if (job.open > 0) return false;
           const auto info = journal_->find(job.id);
           return !info || is_finished(info->state);
         }) > 0;
}

/// What could not be written or read is tried again.
void jobs_state::note_failure(const journal_failure& failure) {
  board_->post("journal", nlohmann::json(failure.what()).dump());
  wake_in(options_.journal_retry);
}

void jobs_state::wake_in(duration after) {
  tell_after(self_, after, handle(self_), wake{});
}

jobs_actor spawn_jobs(caf::actor_system& system, const jobs_options& options, const std::shared_ptr<journal>& book,
                      const std::shared_ptr<const prompting>& prompts, const std::shared_ptr<request_numbers>& numbers,
                      const std::shared_ptr<status_board>& board) {
  return spawn_state<jobs_state, actor_thread::own>(system, options, book, prompts, numbers, board);
}

}  // namespace troupe
