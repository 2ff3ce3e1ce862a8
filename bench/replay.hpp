#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "bench/load.hpp"
#include "bench/load_meter.hpp"
#include "bench/load_place.hpp"
#include "model/engine/engine.hpp"

namespace troupe::bench {

/// As many sequences at a time as wanted, and memory for keys and values of so many tokens; without a number for all of
/// them at their longest.
engine_options engine_options_for(const load_place& place, std::int64_t context, int sequences,
                                  std::optional<std::int64_t> kv_tokens = {});

/// For an answer of exactly so many tokens, each the likeliest.
engine_request greedy_request(std::vector<token_id> prompt, std::int64_t answer, adapter_version adapter = {});

/// For those who bring adapters.
struct replay_hooks {
  std::function<void(engine&)> before_step = {};
  /// Called when there is nothing to do: waits until something happens. False if nothing will.
  std::function<bool()> idle = {};
};

/// Runs a load the way the engine serves: a request joins when it comes and leaves when it is done. With `clients`, a
/// request comes whenever fewer than that many are under way, otherwise at its own time. Idle time is skipped.
load_figures replay(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                    std::size_t clients = 0, const replay_hooks& hooks = {});

/// Runs the same load in batches of `size`: waits for that many requests, pads their prompts to the longest, and starts
/// the next batch only when the longest answer has ended. Padding and superfluous tokens are computed too.
load_figures replay_static(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                           std::size_t size);

}  // namespace troupe::bench
