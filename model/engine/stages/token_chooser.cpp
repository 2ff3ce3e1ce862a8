#include "model/engine/stages/token_chooser.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/engine/sampling/prompt_lookup.hpp"

namespace troupe {

struct token_chooser::answer {
  sampling_params sampling;
  std::vector<token_id> end_tokens;
  sampling_history history;
  std::vector<token_id> text;  // prompt and answer so far: where guesses are looked up
  std::int64_t prompt_tokens = 0;
  std::optional<answer_form> form;
  bool impossible = false;  // its constraint cannot be kept

  std::span<const token_id> written() const { return std::span(text).subspan(static_cast<std::size_t>(prompt_tokens)); }
  bool ends_with(token_id token) const {
    const auto in = [&](const std::vector<token_id>& list) {
      return std::find(list.begin(), list.end(), token) != list.end();
    };
    return in(sampling.stop_tokens) || (!sampling.ignore_eos && in(end_tokens));
  }
  bool is_full() const { return static_cast<std::int64_t>(text.size()) - prompt_tokens >= sampling.max_tokens; }
};

token_chooser::token_chooser(const kernel_table& kernels, std::int64_t vocab_size, int lookup_tokens,
                             token_tree_source tokens)
    : vocab_size_(static_cast<std::size_t>(vocab_size)),
      lookup_tokens_(static_cast<std::size_t>(lookup_tokens)),
      sampler_(kernels),
      tokens_(std::move(tokens)) {}

token_chooser::~token_chooser() = default;

void token_chooser::open(const answer_opening& opening) {
  auto opened = std::make_unique<answer>();
  const auto text = std::span(opening.text);
  const auto prompt = static_cast<std::size_t>(opening.prompt_tokens);
  opened->sampling = opening.sampling;
  opened->end_tokens = opening.end_tokens;
  opened->history = sampling_history(opening.sampling, text.first(prompt), text.subspan(prompt));
  opened->text = opening.text;
  opened->prompt_tokens = opening.prompt_tokens;
  if (opening.sampling.constraint) give_form(*opened, opening);
  answers_[opening.sequence] = std::move(opened);
}

/// Constraints were checked where they came in. One that this node cannot keep all the same, because its tokenizer is
/// gone, ends its own answer and disturbs no other.
void token_chooser::give_form(answer& to, const answer_opening& opening) {
  try {
    if (!constraints_) constraints_ = std::make_unique<constraint_store>(tokens_ ? tokens_() : nullptr);
    to.form.emplace(constraints_->get(opening.sampling.constraint), opening.sampling, opening.end_tokens, to.written());
  } catch (const input_error&) {
    to.impossible = true;
  }
}

void token_chooser::close(sequence_id answer) {
  answers_.erase(answer);
}

void token_chooser::close_all() {
  answers_.clear();
}

void token_chooser::choose(const step_plan& plan, const float* logits, std::int64_t stride, step_outcome& outcome) {
  outcome.clear();
  outcome.step = plan.id;
  for (const planned_row& row : plan.rows) {
    for (const sequence_id id : plan.answers_of(row)) {
      const auto found = answers_.find(id);
      if (!row.complete || found == answers_.end()) continue;
      chosen_answer& chosen = outcome.answers.emplace_back();
      chosen.sequence = id;
      chosen.first_token = static_cast<std::int32_t>(outcome.tokens.size());
      chosen.first_proposal = static_cast<std::int32_t>(outcome.proposals.size());
      if (row.logit_rows > 0) choose_for(plan, row, *found->second, {logits, stride}, outcome);
    }
    logits += row.logit_rows * stride;
  }
}

/// Samples after each fed token for as long as the guesses hold: what is returned is what steps of one token would
/// give.
void token_chooser::choose_for(const step_plan& plan, const planned_row& row, answer& to, row_logits logits,
                               step_outcome& outcome) {
  const auto fed = plan.tokens_of(row);
  chosen_answer& chosen = outcome.answers.back();
  for (int i = 0; i < row.logit_rows; ++i) {
    const std::span<const float> of_row(logits.first + i * logits.stride, vocab_size_);
    const auto allowed = to.form ? to.form->allowed(to.written()) : std::span<const std::uint64_t>();
    chosen.finished = to.impossible || (to.form && allowed.empty());
    if (chosen.finished) break;
    sampled_token next = sampler_.sample(of_row, to.sampling, to.history, to.text.size(), allowed);
    const token_id token = next.token;
    chosen.finished = to.ends_with(token);
    if (chosen.finished) break;
    outcome.tokens.push_back(token);
    ++chosen.tokens;
    to.text.push_back(token);
    to.history.add(token);
    keep_details(std::move(next), outcome);
    chosen.finished = to.form && to.form->add(to.written());
    if (chosen.finished) break;
    const auto following = static_cast<std::size_t>(row.tokens - row.logit_rows + i + 1);
    if (to.is_full() || following >= fed.size() || fed[following] != token) break;
  }
  if (chosen.finished || to.is_full()) return;
  guess(to, outcome);
  chosen.proposals = static_cast<std::int32_t>(outcome.proposals.size()) - chosen.first_proposal;
}

void token_chooser::guess(const answer& of, step_outcome& outcome) const {
  if (lookup_tokens_ > 0) look_up(of.text, lookup_tokens_, outcome.proposals);
}

/// Logprobs of one answer make the list as long as the tokens are; without any it stays empty.
void token_chooser::keep_details(sampled_token chosen, step_outcome& outcome) const {
  if (!chosen.logprob && outcome.details.empty()) return;
  outcome.details.resize(outcome.tokens.size() - 1);
  outcome.details.push_back(std::move(chosen));
}

}  // namespace troupe
