#include "bench/lessons/lesson_load.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/random/random_adapter.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {
namespace {

/// The longest request, as static batches make it: the longest prompt with the longest answer.
std::int64_t context_for(const std::vector<request_lengths>& requests) {
  std::int64_t prompt = 0, answer = 0;
  for (const request_lengths& each : requests) {
    prompt = std::max(prompt, each.prompt);
    answer = std::max(answer, each.answer);
  }
  return prompt + answer + 1;
}

engine_options options_for(const load_place& place, const std::vector<request_lengths>& requests, int sequences) {
  const std::int64_t context = context_for(requests), most = place.model->config.context;
  if (context > most)
    refuse("the lesson takes {} positions, the model has {}: use a model with a longer context", context, most);
  return engine_options_for(place, context, sequences);
}

}  // namespace

lesson_load::lesson_load(const lesson_place& place, const std::shared_ptr<const loaded_model>& model,
                         std::vector<request_lengths> requests, int sequences, int adapters)
    : requests_(std::move(requests)),
      adapters_(adapters),
      // Lessons compare ways with each other, not with the machine: any limits will do.
      place_{.model = model,
             .with = place.with,
             .work = work_of(*model, default_kv(*model)),
             .limits = {1, 1},
             .kv = default_kv(*model)},
      engine_(model, options_for(place_, requests_, sequences), place.with) {
  for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(adapters); ++i)
    engine_.add_adapter(adapter_version(i), random_adapter(*model, lesson_adapter_rank, i));
}

std::vector<timed_request> lesson_load::next() {
  std::vector<timed_request> load;
  for (const request_lengths& each : requests_)
    load.push_back({0, random_tokens(each.prompt, place_.model->config.vocab_size, ++seed_), each.answer,
                    adapter_in_turn(load.size(), adapters_)});
  return load;
}

std::vector<request_lengths> equal_requests(int count, request_lengths each) {
  return std::vector<request_lengths>(to_size(count), each);
}

std::string shape_of(const loaded_model& model, const compute& with) {
  return fmt::format("{}, {} layers, {} wide, {} threads", model.config.family, model.config.layers,
                     model.config.hidden, with.pool.threads());
}

std::string setting_of(const loaded_model& model, const compute& with) {
  return fmt::format("{}, {} weights", shape_of(model, with), model.quantization);
}

}  // namespace troupe::bench
