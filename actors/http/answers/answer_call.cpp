#include "actors/http/answers/answer_call.hpp"

#include <atomic>

#include "actors/http/api_error.hpp"
#include "actors/http/status/answer_meter.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

api_error error_of(const request_refused& refused, const std::string& adapter, bool is_usable) {
  if (refused.is_unknown_adapter) return unknown_model(adapter);
  if (refused.cause == refusal_cause::bad_input)
    return is_usable ? api_error(400, refused.error, refused.field)
                     : api_error(404, refused.error, "model", "model_not_found");
  const bool is_full = refused.cause == refusal_cause::full;
  api_error error(is_full ? 429 : 503, refused.error, {}, is_full ? "rate_limit_exceeded" : "service_unavailable");
  return error.retry_after(std::max<duration>(refused.retry_after, std::chrono::milliseconds(250)));
}

/// Whether writing the whole response takes more than some milliseconds. `echoed`: tokens of prompts that it may
/// repeat.
bool is_long(const std::vector<answer_choice>& choices, std::int64_t echoed, std::int32_t n) {
  constexpr std::size_t most_figures = 4096, most_echoed = 1 << 16;
  std::size_t figures = 0;
  const auto add = [&](const std::vector<sampled_token>& places, std::size_t times) {
    for (const sampled_token& each : places) figures += (1 + each.alternatives.size()) * times;
  };
  for (const answer_choice& each : choices) {
    figures += 1 + each.tokens.size() + each.hidden.size();
    add(each.details, 1);
    add(each.scored, to_size(n));
    if (figures > most_figures) return true;
  }
  return to_size(echoed) > most_echoed;
}

/// A proxy shall pass each piece on as it comes: nginx collects 4 KB, some twenty tokens, unless the answer says no.
http_response stream_head() {
  return {.content_type = "text/event-stream; charset=utf-8",
          .headers = {{"cache-control", "no-cache"}, {"x-accel-buffering", "no"}}};
}

/// Only the gateway's thread uses the members until the call is over, except `ids_` and `over_`.
class answer_call : public std::enable_shared_from_this<answer_call> {
 public:
  answer_call(const api_call& call, asked_answer asked)
      : context_(call.context),
        order_(std::move(asked.order)),
        format_(std::move(asked.format)),
        exchange_(call.exchange),
        meter_(*context_, order_, call.came),
        sheet_(order_) {}

  void start();
  void on_part(std::size_t prompt, answer_part part);
  void on_refused(const request_refused& refused);

 private:
  void check_form() const;
  void begin();
  void stream_part(std::size_t index, const answer_part& part);
  void charge(std::size_t prompt, const answer_part& part);
  void finish();
  void finish_whole();
  void end_all();
  void end_requests() const;

  std::shared_ptr<api_context> context_;
  answer_order order_;
  std::unique_ptr<answer_format> format_;
  std::shared_ptr<http_exchange> exchange_;
  answer_meter meter_;
  std::vector<request_id> ids_;
  std::vector<std::int64_t> uncharged_;  ///< tokens of each prompt; 0 once they are charged
  std::atomic<bool> over_{false};
  answer_sheet sheet_;
  bool streaming_ = false;
};

class prompt_listener final : public answer_listener {
 public:
  prompt_listener(std::shared_ptr<answer_call> call, std::size_t prompt) : call_(std::move(call)), prompt_(prompt) {}
  void on_part(answer_part part) override { call_->on_part(prompt_, std::move(part)); }
  void on_refused(const request_refused& refused) override { call_->on_refused(refused); }

 private:
  std::shared_ptr<answer_call> call_;
  std::size_t prompt_;
};

/// A form may take longer to check than the server's threads have.
void answer_call::start() {
  if (!order_.sampling.constraint) return begin();
  const auto check = [self = shared_from_this()] {
    self->check_form();
    self->begin();
  };
  guarded_later(*context_->work, order_.owner, exchange_, check, order_.sampling.constraint.bytes());
}

void answer_call::begin() {
  auto requests = requests_of(order_, *format_, *context_->served.prompts, *context_->numbers);
  order_.prompts.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    ids_.push_back(requests[i].id);
    uncharged_.push_back(static_cast<std::int64_t>(requests[i].engine.sequence.prompt.size()));
    requests[i].listener = std::make_shared<prompt_listener>(shared_from_this(), i);
  }
  meter_.hand_over();
  for (begin_request& each : requests) tell(context_->gateway, std::move(each));
  if (over_) end_requests();  // one was refused before the last of them had begun
  exchange_->on_gone([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->end_all();
  });
}

void answer_call::check_form() const {
  try {
    context_->served.prompts->check_constraint(order_.sampling.constraint);
  } catch (const input_error& error) {
    refuse_field(order_.form_field, error.what(), "unsupported_value");
  }
}

void answer_call::on_part(std::size_t prompt, answer_part part) {
  if (over_) return;
  charge(prompt, part);
  const std::size_t index = sheet_.index_of(prompt, part);
  meter_.count(index, part);
  sheet_.count(prompt, part);
  if (order_.stream)
    stream_part(index, part);
  else
    sheet_.keep(prompt, std::move(part));
  if (sheet_.is_complete()) finish();
}

void answer_call::stream_part(std::size_t index, const answer_part& part) {
  std::string frames;
  if (!streaming_) {
    streaming_ = true;
    exchange_->begin_stream(stream_head());
    for (std::size_t i = 0; i < sheet_.choices().size(); ++i) format_->begin(frames, i, part.adapter);
  }
  format_->part(frames, index, part);
  if (frames.empty()) frames = format_->silent_frame();
  if (!exchange_->send(frames)) end_all();
}

/// A prompt is charged when its answer begins, so refused requests cost nothing.
void answer_call::charge(std::size_t prompt, const answer_part& part) {
  if (order_.owner.empty()) return;
  const auto answered = static_cast<std::int64_t>(part.token_count());
  context_->limits.use_tokens(order_.owner, std::exchange(uncharged_[prompt], 0) + answered);
}

void answer_call::finish() {
  if (over_.exchange(true)) return;
  if (!order_.stream) return finish_whole();
  std::string frames;
  if (order_.include_usage) format_->usage(frames, sheet_.usage());
  frames += format_->last_frame();
  exchange_->send(frames);
  exchange_->end_stream();
}

/// Writes long responses on another thread: all other answers wait for this one.
void answer_call::finish_whole() {
  const auto write = [self = shared_from_this()] {
    const answer_sheet& sheet = self->sheet_;
    self->exchange_->reply({.body = self->format_->whole(sheet.choices(), sheet.usage())});
  };
  if (is_long(sheet_.choices(), sheet_.usage().prompt_tokens * order_.n, order_.n))
    guarded_later(*context_->work, order_.owner, exchange_, write);
  else
    guarded(exchange_, write);
}

void answer_call::on_refused(const request_refused& refused) {
  if (over_) return;
  end_all();
  const bool is_usable = context_->served.adapters->resolve(order_.adapter).has_value();
  const api_error error = error_of(refused, order_.adapter, is_usable);
  if (!streaming_) return exchange_->reply(error_response(error));
  exchange_->note(error.what());
  std::string frames;
  format_->error(frames, error_json(error), error_fields(error));
  exchange_->send(frames);
  exchange_->end_stream();
}

/// May be called on any thread.
void answer_call::end_all() {
  if (!over_.exchange(true)) end_requests();
}

void answer_call::end_requests() const {
  for (const request_id id : ids_) tell(context_->gateway, end_request{id});
}

}  // namespace

void start_answer(const api_call& call, asked_answer asked) {
  asked.order.owner = call.key.name;
  asked.order.weight = static_cast<std::uint64_t>(call.key.weight);
  std::make_shared<answer_call>(call, std::move(asked))->start();
}

}  // namespace troupe
