#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "bench/load.hpp"
#include "bench/load_meter.hpp"
#include "model/engine/engine.hpp"

namespace troupe::bench {

/// What a load is run on.
struct load_place {
  std::shared_ptr<const loaded_model> model;
  const compute& with;
  const model_work& work;
  const machine_limits& limits;
  kv_kind kv;
  device_id device = {};
};

/// Memory for keys and values of so many tokens, and as many sequences at a time as wanted.
engine_options engine_options_for(const load_place& place, std::int64_t context, int sequences, std::int64_t kv_tokens);

/// Called between steps, by those who bring adapters.
struct replay_hooks {
  std::function<void(engine&)> before_step = {};
  /// There is nothing to do: waits for something. False where nothing will come.
  std::function<bool()> idle = {};
};

/// Runs a load the way the engine serves: everyone joins when it comes and leaves when it is done. With `clients` a
/// request comes when there are fewer than so many, else at its own time. While nobody is there, time is skipped.
load_figures replay(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                    std::size_t clients = 0, const replay_hooks& hooks = {});

/// Runs the same load in batches of `size`: waits until so many are there, pads their prompts to the longest, and takes
/// nobody in before the longest answer has ended. What a caller has no use for is computed all the same.
load_figures replay_static(engine& serving, const load_place& place, const std::vector<timed_request>& load,
                           std::size_t size);

}  // namespace troupe::bench
