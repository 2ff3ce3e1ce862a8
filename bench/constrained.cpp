#include "bench/constrained.hpp"

#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/load.hpp"
#include "bench/percentiles.hpp"
#include "bench/timing.hpp"
#include "bench/word_vocabulary.hpp"

namespace troupe::bench {
namespace {

/// A schema with nesting, counting and free text. The list is so long that no answer reaches its end.
constexpr const char* schema = R"({"type":"array","minItems":1000,"items":{"type":"object","properties":{
  "name":{"type":"string"},"kind":{"enum":["red","green","blue"]},"count":{"type":"integer","minimum":0,"maximum":9999},
  "price":{"type":"number"},"note":{"type":"string","maxLength":40},"tags":{"type":"array","items":{"type":"string"},
  "maxItems":4},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/next"}]}},"required":["name","kind","count"]},
  "$defs":{"next":{"type":"object","properties":{"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/next"}]}},
  "required":["next"]}}})";

struct decode_times {
  std::vector<double> steps;  ///< in which every sequence got one token and nothing else was done
  double mean() const {
    return steps.empty() ? 0 : std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
  }
};

class schema_comparison {
 public:
  schema_comparison(const load_place& place, const constrained_bench& asked)
      : place_(place), asked_(asked), tokens_(std::make_shared<const token_tree>(word_vocabulary(vocab()), vocab())) {}

  void run(int sequences, const report& out) {
    decode_times free, under;
    for (int turn = 0; turn < 3; ++turn) {
      add(free, sequences, {}, turn);
      add(under, sequences, {constraint_kind::json_schema, schema}, turn);
    }
    if (free.steps.empty() || under.steps.empty())
      refuse("--decode-tokens {}: no step had {} sequences: ask for more", asked_.answer, sequences);
    out.add({fmt::format("{} sequences", sequences),
             {{"ms a step, free", free.mean() * 1e3},
              {"under a schema", under.mean() * 1e3},
              {"cost", under.mean() / free.mean() - 1},
              {"p50", percentile(under.steps, 0.5) / percentile(free.steps, 0.5) - 1},
              {"p99 ms, free", percentile(free.steps, 0.99) * 1e3},
              {"p99 ms, schema", percentile(under.steps, 0.99) * 1e3}}});
  }

 private:
  std::int64_t vocab() const { return place_.model->config.vocab_size; }

  void add(decode_times& to, int sequences, const output_constraint& form, int turn) {
    const std::int64_t context = asked_.prompt + asked_.answer + 1;
    engine_options chosen = engine_options_for(place_, context, sequences);
    chosen.tokens = [this] { return tokens_; };
    engine serving(place_.model, chosen, place_.with);
    for (int i = 0; i < sequences; ++i) submit(serving, form, turn * sequences + i);
    int tokens = 0;
    bool ended = false, decoding = false;
    while (!ended) {
      tokens = 0;
      const double begin = now();
      if (!serving.step(
              {}, [&](const engine_token&) { ++tokens; }, [&](const ended_sequence&) { ended = true; }))
        break;
      if (decoding && tokens == sequences) to.steps.push_back(now() - begin);
      decoding |= tokens == sequences;
    }
  }

  void submit(engine& serving, const output_constraint& form, int seed) const {
    engine_request request;
    request.sequence.prompt = random_tokens(asked_.prompt, vocab(), static_cast<std::uint64_t>(seed));
    request.sequence.max_tokens = request.sampling.max_tokens = asked_.answer;
    request.sampling.temperature = 1;
    request.sampling.seed = static_cast<std::uint64_t>(seed);
    request.sampling.constraint = form;
    (void)serving.submit(request);
  }

  const load_place& place_;
  const constrained_bench& asked_;
  std::shared_ptr<const token_tree> tokens_;
};

/// Measures how long one unknown mask takes: the walk over all tokens.
void run_masks(std::int64_t vocab, const report& out) {
  const auto tokens = std::make_shared<const token_tree>(word_vocabulary(vocab), vocab);
  const double begin = now();
  token_constraint under({constraint_kind::json_schema, schema}, tokens);
  const double compiled = now() - begin;
  auto state = under.start();
  std::vector<double> walks;
  for (const char byte : std::string_view(R"([{"name":"some text","kind":"red","count":12,"price":1.5,"note":"abc")")) {
    const double before = now();
    (void)under.allowed(state);
    walks.push_back(now() - before);
    state = under.after(state, static_cast<unsigned char>(byte));  // the first tokens are the bytes
  }
  out.add({fmt::format("{} tokens, {} nodes", vocab, tokens->nodes().size()),
           {{"ms to compile", compiled * 1e3},
            {"ms a new mask p50", percentile(walks, 0.5) * 1e3},
            {"a new mask, most", percentile(walks, 1.0) * 1e3}}});
}

}  // namespace

void run_constrained(const load_place& place, const constrained_bench& asked, const report& out) {
  out.title("masks of a JSON schema that are not known yet");
  for (const std::int64_t vocab : {32'000, 128'000}) run_masks(vocab, out);
  out.title(fmt::format("answers under a JSON schema, a vocabulary of {} words; {} tokens of prompt, {} generated",
                        place.model->config.vocab_size, asked.prompt, asked.answer));
  schema_comparison both(place, asked);
  for (const int sequences : {1, 8, 16, 32}) both.run(sequences, out);
}

}  // namespace troupe::bench
