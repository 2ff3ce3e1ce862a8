// What a replica's scheduler and its stages say to each other: an order for every step, an outcome for every order.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fields.hpp"
#include "base/to_size.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/sampling/sampling_params.hpp"
#include "model/engine/scheduling/step_plan.hpp"

namespace troupe {

/// What sets an answer apart from the others to its prompt.
struct answer_seed {
  sequence_id sequence;
  std::uint32_t index = 0;  ///< added to the prompt's seed

  auto fields() { return std::tie(sequence, index); }
};

/// What the last stage must know to choose the tokens of a prompt's answers.
struct answer_opening {
  std::vector<answer_seed> answers;
  sampling_params sampling;
  std::vector<token_id> end_tokens;
  std::vector<token_id> text;      ///< prompt, and the answer so far where one is resumed
  std::int64_t prompt_tokens = 0;  ///< of the text

  auto fields() { return std::tie(answers, sampling, end_tokens, text, prompt_tokens); }
};

/// One step for every stage of a replica. Orders are carried out as they come.
struct step_order {
  step_plan plan;
  std::vector<answer_opening> opened;  ///< answers that the plan asks for the first time
  std::vector<sequence_id> closed;     ///< answers that are over

  auto fields() { return std::tie(plan, opened, closed); }
};

/// Of what answers bring along so much is sent at once. What one answer brings may be more.
inline constexpr std::size_t opened_bytes_at_once = std::size_t{4} << 20;

/// If the openings have more than about so many bytes together: takes out the first ones that have fewer, but at least
/// one.
std::vector<answer_opening> take_excess(std::vector<answer_opening>& from, std::size_t bytes = opened_bytes_at_once);

/// Whether [first, first + count) lies in a list of so many. Another process may have said it.
constexpr bool lies_in(std::int64_t first, std::int64_t count, std::size_t size) {
  return first >= 0 && count >= 0 && first <= static_cast<std::int64_t>(size) - count;
}

/// What a stage is made for.
struct order_limits {
  std::int64_t max_rows = 0, max_sequences = 0, blocks = 0, states = 1, context = 0, vocab_size = 0;
};
/// An order may come from another process: throws input_error where carrying it out would reach beyond the stage.
/// That block tables and states fit is seen when it begins.
void check(const step_order& order, const order_limits& limits);

/// What became of one answer in a step. Ranges are in the outcome's lists.
struct chosen_answer {
  sequence_id sequence;
  std::int32_t first_token = 0, tokens = 0;
  std::int32_t first_proposal = 0, proposals = 0;  ///< guesses at what follows
  std::int32_t first_hidden = 0, hidden = 0;       ///< the pooled hidden state, where one was asked for
  std::int32_t first_scored = 0, scored = 0;       ///< the prompt's tokens, where their probabilities were asked for
  bool finished = false;                           ///< the answer ends; an end token is not among the tokens
  bool cut = false;                                ///< it ends before its form is complete
  std::optional<sampled_token> ending = {};        ///< that token, unless a limit or the form's end ends it

  auto fields() {
    return std::tie(sequence, first_token, tokens, first_proposal, proposals, first_hidden, hidden, first_scored,
                    scored, finished, cut, ending);
  }
};

/// What a step chose, said by the last stage.
struct step_outcome {
  step_id step;
  std::vector<chosen_answer> answers;
  std::vector<token_id> tokens, proposals;
  std::vector<sampled_token> details;  ///< parallel to tokens where some answer wants logprobs, else empty
  std::vector<float> hidden;
  std::vector<sampled_token> scored;

  void clear() {
    hidden.clear();
    scored.clear();
    answers.clear();
    tokens.clear();
    proposals.clear();
    details.clear();
  }
  /// nullptr where nothing became of it.
  chosen_answer* find(sequence_id sequence) {
    const auto found =
        std::find_if(answers.begin(), answers.end(), [&](const chosen_answer& a) { return a.sequence == sequence; });
    return found == answers.end() ? nullptr : &*found;
  }
  // Empty where what another process said reaches beyond the list.
  std::span<const token_id> tokens_of(const chosen_answer& a) const { return part_of(tokens, a.first_token, a.tokens); }
  std::span<const token_id> proposals_of(const chosen_answer& a) const {
    return part_of(proposals, a.first_proposal, a.proposals);
  }
  std::span<const float> hidden_of(const chosen_answer& a) const { return part_of(hidden, a.first_hidden, a.hidden); }
  std::span<const sampled_token> scored_of(const chosen_answer& a) const {
    return part_of(scored, a.first_scored, a.scored);
  }

  auto fields() { return std::tie(step, answers, tokens, proposals, details, hidden, scored); }

 private:
  template <class T>
  static std::span<const T> part_of(const std::vector<T>& list, std::int32_t first, std::int32_t count) {
    if (!lies_in(first, count, list.size())) return {};
    return std::span(list).subspan(to_size(first), to_size(count));
  }
};

}  // namespace troupe
