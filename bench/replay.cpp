#include "bench/replay.hpp"

#include <optional>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "bench/timing.hpp"

namespace troupe::bench {
namespace {

/// The time since the start. It jumps over idle time, since nobody wants to wait for that.
class load_clock {
 public:
  double time() const { return now() - start_ + skipped_; }
  void skip_to(double time) { skipped_ += std::max(0.0, time - this->time()); }
  instant moment() const { return {std::chrono::duration_cast<duration>(std::chrono::duration<double>(time()))}; }

 private:
  double start_ = now();
  double skipped_ = 0;
};

sequence_id submit(engine& serving, engine_request request) {
  const auto accepted = serving.submit(std::move(request));
  if (!accepted) refuse("the load: a request was refused: {}", name_of(accepted.error().reason));
  return accepted->first;
}

/// A step whose tokens, which come at the same moment, are noted. On some virtual machines a look at the clock takes a
/// microsecond: one for each token would be a part of what is measured.
template <class OnEnd>
bool metered_step(engine& serving, load_meter& meter, const load_clock& clock, const OnEnd& on_end) {
  std::optional<double> time;
  const auto on_token = [&](const engine_token& token) {
    if (!time) time = clock.time();
    meter.token(token.sequence, *time);
  };
  const bool any = serving.step(clock.moment(), on_token, on_end);
  if (any) meter.after_step(serving.scheduler());
  return any;
}

class continuous_replay {
 public:
  continuous_replay(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                    std::size_t clients, const replay_hooks& hooks)
      : serving_(serving), meter_(place.work, place.limits), load_(load), clients_(clients), hooks_(hooks) {}

  load_figures run() {
    while (next_ < load_.size() || active_ > 0) {
      take_in();
      if (hooks_.before_step) hooks_.before_step(serving_);
      if (!step()) wait();
    }
    return meter_.finish(clock_.time(), serving_.scheduler());
  }

 private:
  bool has_come(const timed_request& request) const {
    return clients_ > 0 ? active_ < clients_ : request.at <= clock_.time();
  }
  void take_in() {
    for (; next_ < load_.size() && has_come(load_[next_]); ++next_, ++active_) {
      const timed_request& request = load_[next_];
      const double came = clients_ > 0 ? clock_.time() : request.at;
      const sequence_id id = submit(serving_, greedy_request(request.prompt, request.answer, request.adapter));
      meter_.begin(id, came, static_cast<std::int64_t>(request.prompt.size()), request.answer);
    }
  }
  bool step() {
    return metered_step(serving_, meter_, clock_, [&](const ended_sequence&) { --active_; });
  }
  void wait() {
    if (hooks_.idle && hooks_.idle()) return;
    if (active_ > 0) refuse("the load: {} requests wait and nothing can be done for them", active_);
    if (next_ < load_.size()) clock_.skip_to(load_[next_].at);
  }

  engine& serving_;
  load_meter meter_;
  const std::vector<timed_request>& load_;
  std::size_t clients_;
  const replay_hooks& hooks_;
  load_clock clock_;
  std::size_t next_ = 0, active_ = 0;
};

std::vector<token_id> padded(const std::vector<token_id>& prompt, std::int64_t padding, std::int64_t vocab,
                             std::uint64_t number) {
  // Each request has padding of its own: equal padding would come from the prefix cache and cost nothing.
  auto tokens = random_tokens(padding, vocab, ~number);
  tokens.insert(tokens.end(), prompt.begin(), prompt.end());
  return tokens;
}

}  // namespace

engine_request greedy_request(std::vector<token_id> prompt, std::int64_t answer, adapter_version adapter) {
  engine_request request;
  request.sequence.prompt = std::move(prompt);
  request.sequence.max_tokens = request.sampling.max_tokens = answer;
  request.sequence.adapter = adapter;
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  return request;
}

engine_options engine_options_for(const load_place& place, std::int64_t context, int sequences,
                                  std::optional<std::int64_t> kv_tokens) {
  const std::int64_t room = kv_tokens.value_or((context + 2 * block_tokens) * sequences);
  engine_options chosen;
  chosen.device = place.device;
  chosen.kv = place.kv;
  chosen.scheduler.context = context;
  chosen.scheduler.blocks = static_cast<std::int32_t>(room / block_tokens);
  chosen.scheduler.max_sequences = sequences;
  chosen.scheduler.max_batch_tokens = 512;
  chosen.scheduler.max_waiting = 1 << 20;
  return chosen;
}

load_figures replay(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                    std::size_t clients, const replay_hooks& hooks) {
  return continuous_replay(serving, place, load, clients, hooks).run();
}

load_figures replay_static(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                           std::size_t size) {
  load_meter meter(place.work, place.limits);
  load_clock clock;
  for (std::size_t first = 0; first < load.size(); first += size) {
    const auto batch = std::span(load).subspan(first, std::min(size, load.size() - first));
    clock.skip_to(batch.back().at);
    const std::int64_t longest = longest_prompt(batch), answer = longest_answer(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const timed_request& request = batch[i];
      const auto prompt = static_cast<std::int64_t>(request.prompt.size());
      auto tokens = padded(request.prompt, longest - prompt, place.model->config.vocab_size, first + i);
      const sequence_id id = submit(serving, greedy_request(std::move(tokens), answer, request.adapter));
      meter.begin(id, request.at, prompt, request.answer, longest - prompt);
    }
    while (metered_step(serving, meter, clock, nullptr)) {
    }
  }
  return meter.finish(clock.time(), serving.scheduler());
}

}  // namespace troupe::bench
