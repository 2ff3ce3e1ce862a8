#include "model/train/data/batch_plan.hpp"

#include <algorithm>
#include <numeric>

#include "base/random.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::size_t open_rows = 64;  // among which an example looks for room

}  // namespace

void shuffle(std::span<std::size_t> order, std::uint64_t seed, std::uint64_t stream) {
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random_below(i, seed ^ 0x9e3779b97f4a7c15ull * (stream + 1), i)]);
}

batch_plan::batch_plan(const training_data& data, std::span<const std::size_t> examples, const options& chosen)
    : data_(data), options_(chosen) {
  std::vector<std::size_t> order(examples.begin(), examples.end());
  shuffle(order, options_.seed, 0);
  std::vector<std::int64_t> room;
  for (const std::size_t example : order) {
    const std::int64_t wanted = data.examples[example].rows();
    std::size_t row = rows_.size() > open_rows ? rows_.size() - open_rows : 0;
    while (row < rows_.size() && room[row] < wanted) ++row;
    if (row == rows_.size()) rows_.emplace_back(), room.push_back(options_.row_length);
    rows_[row].push_back(example);
    room[row] -= wanted;
  }
}

std::int64_t batch_plan::most_tokens() const {
  return std::min(options_.batch_rows, packed_rows()) * options_.row_length;
}

std::int64_t batch_plan::steps_per_epoch() const {
  const std::int64_t rows = options_.batch_rows * options_.accumulation;
  return ceil_div(packed_rows(), rows);
}

std::vector<std::size_t> batch_plan::order_of(std::int64_t epoch) const {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, options_.seed, static_cast<std::uint64_t>(epoch) + 1);
  return order;
}

std::int64_t batch_plan::tokens_before(std::int64_t step) const {
  const std::int64_t epochs = step / steps_per_epoch(), in_epoch = step % steps_per_epoch();
  const std::vector<std::size_t> order = order_of(epochs);
  const std::int64_t begun = in_epoch * options_.accumulation * options_.batch_rows;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < order.size(); ++i)
    for (const std::size_t example : rows_[order[i]])
      tokens += data_.examples[example].rows() * (epochs + (static_cast<std::int64_t>(i) < begun ? 1 : 0));
  return tokens;
}

std::vector<training_rows> batch_plan::step(std::int64_t number) const {
  const std::int64_t epoch = number / steps_per_epoch(), in_epoch = number % steps_per_epoch();
  const std::vector<std::size_t> order = order_of(epoch);
  const auto rows = to_size(options_.batch_rows * options_.accumulation);
  const std::size_t first = to_size(in_epoch) * rows;
  return batches_of(std::span(order).subspan(first, std::min(rows, order.size() - first)));
}

std::vector<training_rows> batch_plan::all() const {
  std::vector<std::size_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  return batches_of(order);
}

std::vector<training_rows> batch_plan::batches_of(std::span<const std::size_t> rows) const {
  std::vector<training_rows> batches;
  const auto at_once = to_size(options_.batch_rows);
  for (; !rows.empty(); rows = rows.subspan(std::min(at_once, rows.size())))
    batches.push_back(batch_of(rows.first(std::min(at_once, rows.size()))));
  return batches;
}

training_rows batch_plan::batch_of(std::span<const std::size_t> rows) const {
  training_rows batch;
  for (const std::size_t row : rows)
    for (const std::size_t index : rows_[row]) {
      const training_example& example = data_.examples[index];
      batch.segments.push_back({batch.rows(), example.rows()});
      for (std::size_t i = 0; i + 1 < example.tokens.size(); ++i) {
        batch.tokens.push_back(example.tokens[i]);
        batch.targets.push_back(example.learned[i + 1] ? example.tokens[i + 1] : -1);
      }
    }
  return batch;
}

}  // namespace troupe
