#include "model/arch/single_sequence.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr int logit_rows = 32;  // at a time, when all are wanted: a vocabulary is wide

single_sequence::options completed(single_sequence::options options, const loaded_model& model) {
  if (options.positions == 0) options.positions = model.config.context;
  if (options.context == 0) options.context = model.config.context;
  return options;
}

}  // namespace

single_sequence::single_sequence(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with)
    : options_(completed(chosen, *model)),
      blocks_(to_size(blocks_for(options_.positions))),
      decoder_(make_decoder(std::move(model),
                            {.max_rows = chosen.chunk,
                             .max_sequences = 1,
                             .kv = chosen.kv,
                             .blocks = static_cast<std::int64_t>(blocks_.size()),
                             .rope_context = options_.context,
                             .device = chosen.device},
                            with)),
      hidden_(to_size(chosen.chunk * decoder_->hidden_stride())) {
  std::iota(blocks_.begin(), blocks_.end(), 0);
  if (options_.adapter) decoder_->add_adapter(*options_.adapter);
}

std::span<const float> single_sequence::feed(std::span<const std::int32_t> tokens) {
  assert(!tokens.empty());
  int rows = 0;
  for (std::size_t at = 0; at < tokens.size(); at += to_size(rows)) {
    rows = static_cast<int>(std::min(tokens.size() - at, to_size(options_.chunk)));
    pass_over(tokens.subspan(at, to_size(rows)));
  }
  return logits_of(rows - 1, 1).first(to_size(decoder_->model().config.vocab_size));
}

void single_sequence::feed(std::span<const std::int32_t> tokens, const row_visitor& visit) {
  const auto vocab = to_size(decoder_->model().config.vocab_size);
  const auto stride = to_size(decoder_->logit_stride());
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t rows = std::min(tokens.size() - at, to_size(options_.chunk));
    pass_over(tokens.subspan(at, rows));
    for (std::size_t first = 0; first < rows; first += logit_rows) {
      const std::size_t count = std::min(rows - first, to_size(logit_rows));
      const auto out = logits_of(static_cast<int>(first), static_cast<int>(count));
      for (std::size_t i = 0; i < count; ++i) visit(at + first + i, out.subspan(i * stride, vocab));
    }
    at += rows;
  }
}

void single_sequence::pass_over(std::span<const std::int32_t> tokens) {
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (count > room()) refuse("{} tokens do not fit: {} of the context are left", count, room());
  const pass_sequence sequence{
      .rows = static_cast<int>(count), .position = position_, .blocks = blocks_.data(), .adapter = options_.adapter};
  const pass batch{std::span(&sequence, 1), static_cast<int>(count)};
  decoder_->embed(batch, tokens, hidden_.data());
  decoder_->run(batch, hidden_.data());
  position_ += count;
}

std::span<const float> single_sequence::logits_of(int first_row, int count) {
  std::vector<int> rows(to_size(count));
  std::iota(rows.begin(), rows.end(), first_row);
  return {decoder_->logits(hidden_.data(), {rows}), to_size(count * decoder_->logit_stride())};
}

}  // namespace troupe
