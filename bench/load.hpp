#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/trace.hpp"
#include "model/engine/scheduling/ids.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::bench {

/// A request of a load: its tokens, and when it comes.
struct timed_request {
  double at = 0;  ///< seconds
  std::vector<token_id> prompt;
  std::int64_t answer = 0;
  adapter_version adapter = no_adapter;
};

struct load_shape {
  std::int64_t context = 512;  ///< what prompt and answer together may have
  std::int64_t vocab = 32000;
  double rate = 0;         ///< the trace's time runs so many times as fast; 0: all come at once
  bool shared = true;      ///< false: no two requests have a block in common, whatever the trace says
  std::uint64_t seed = 0;  ///< of the tokens: loads of different seeds have nothing in common
};

/// By how much a trace's lengths are scaled: 99 of 100 requests fit into the context, and none grows. Where the trace
/// names blocks, one of them becomes a whole number of the engine's blocks.
double scale_for(const std::vector<trace_request>& trace, std::int64_t context);

/// Requests as long as the trace's, scaled; what still is too long loses the end of its prompt. Equal names of blocks
/// give equal tokens.
std::vector<timed_request> load_of(const std::vector<trace_request>& trace, const load_shape& shape);

/// `count` tokens that no other `seed` has in this order.
std::vector<token_id> random_tokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed);

/// Which of so many adapters, numbered from 1 on, the load's request of this number has in turn; none of none.
adapter_version adapter_in_turn(std::size_t request, int adapters);

/// Tokens of prompts in full blocks that an earlier request has begun with too: what a prefix cache without limit would
/// save if requests came one after the other.
std::int64_t repeated_tokens(const std::vector<timed_request>& load);
std::int64_t prompt_tokens(const std::vector<timed_request>& load);

/// The most tokens that a prompt of the load has, and an answer.
std::int64_t longest_prompt(std::span<const timed_request> load);
std::int64_t longest_answer(std::span<const timed_request> load);

}  // namespace troupe::bench
