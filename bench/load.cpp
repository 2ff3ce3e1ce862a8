#include "bench/load.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/blocks.hpp"
#include "base/to_size.hpp"
#include "bench/percentiles.hpp"

namespace troupe::bench {
namespace {

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

token_id token_of(std::uint64_t name, std::uint64_t place, std::int64_t vocab) {
  return static_cast<token_id>(mixed(mixed(name + 1) + place) % static_cast<std::uint64_t>(vocab));
}

std::int64_t scaled(std::int64_t length, double scale) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(length) * scale));
}

std::vector<token_id> prompt_of(const trace_request& request, std::int64_t length, std::int64_t block,
                                const load_shape& shape, std::uint64_t number) {
  if (request.blocks.empty() || !shape.shared) return random_tokens(length, shape.vocab, shape.seed + number);
  std::vector<token_id> tokens;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto place = std::min(to_size(i / block), request.blocks.size() - 1);
    const std::uint64_t name = request.blocks[place] + mixed(shape.seed);
    tokens.push_back(token_of(name, static_cast<std::uint64_t>(i % block), shape.vocab));
  }
  return tokens;
}

}  // namespace

double scale_for(const std::vector<trace_request>& trace, std::int64_t context) {
  std::vector<double> lengths;
  for (const trace_request& request : trace) lengths.push_back(static_cast<double>(request.prompt + request.answer));
  const double scale = std::min(1.0, static_cast<double>(context) / percentile(std::move(lengths), 0.99));
  const bool named =
      std::any_of(trace.begin(), trace.end(), [](const auto& request) { return !request.blocks.empty(); });
  if (!named) return scale;
  const double blocks = std::max(1.0, std::floor(scale * trace_block / block_tokens));
  return blocks * block_tokens / trace_block;
}

std::vector<timed_request> load_of(const std::vector<trace_request>& trace, const load_shape& shape) {
  const double scale = scale_for(trace, shape.context);
  const std::int64_t block = scaled(trace_block, scale);
  std::vector<timed_request> load;
  for (const trace_request& request : trace) {
    const std::int64_t answer = std::min(scaled(request.answer, scale), shape.context / 2);
    const std::int64_t prompt = std::min(scaled(request.prompt, scale), shape.context - answer);
    load.push_back({shape.rate > 0 ? request.at / shape.rate : 0, prompt_of(request, prompt, block, shape, load.size()),
                    answer, no_adapter});
  }
  return load;
}

std::vector<token_id> random_tokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed) {
  std::vector<token_id> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(token_of(~seed, static_cast<std::uint64_t>(i), vocab));
  return tokens;
}

adapter_version adapter_in_turn(std::size_t request, int adapters) {
  if (adapters == 0) return no_adapter;
  return adapter_version(static_cast<std::uint32_t>(request % to_size(adapters) + 1));
}

std::int64_t repeated_tokens(const std::vector<timed_request>& load) {
  constexpr auto block = to_size(block_tokens);
  std::unordered_set<std::uint64_t> seen;
  std::size_t repeated = 0;
  for (const timed_request& request : load) {
    std::uint64_t past = request.adapter.value;
    bool known = true;
    for (std::size_t i = 0; i + block <= request.prompt.size(); i += block) {
      for (std::size_t j = 0; j < block; ++j)
        past = mixed(past + static_cast<std::uint64_t>(request.prompt[i + j]) + 1);
      known = !seen.insert(past).second && known;
      // The last token of a prompt is always computed: an answer comes from it.
      if (known && i + block < request.prompt.size()) repeated += block;
    }
  }
  return static_cast<std::int64_t>(repeated);
}

std::int64_t prompt_tokens(const std::vector<timed_request>& load) {
  std::int64_t total = 0;
  for (const timed_request& request : load) total += static_cast<std::int64_t>(request.prompt.size());
  return total;
}

std::int64_t longest_prompt(std::span<const timed_request> load) {
  std::size_t longest = 0;
  for (const timed_request& request : load) longest = std::max(longest, request.prompt.size());
  return static_cast<std::int64_t>(longest);
}

std::int64_t longest_answer(std::span<const timed_request> load) {
  std::int64_t longest = 0;
  for (const timed_request& request : load) longest = std::max(longest, request.answer);
  return longest;
}

}  // namespace troupe::bench
