#include "model/arch/expert_routes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/to_size.hpp"
#include "model/ops/matmul.hpp"

namespace troupe {

expert_routes::expert_routes(const model_config& config, const kernel_table& kernels)
    : kernels_(kernels),
      config_(config.experts),
      scores_(to_size(padded_outs(config.experts.count))),
      weights_(scores_.size()),
      visitors_(to_size(config_.count)),
      next_(visitors_.size()) {}

void expert_routes::choose(const_float_rows scores, int rows, const float* biases, const float* factors) {
  visits_.resize(to_size(rows) * taken());
  for (int row = 0; row < rows; ++row)
    choose_for(scores.row(row), biases, factors, std::span(visits_).subspan(to_size(row) * taken(), taken()));
  place_visits(rows);
}

void expert_routes::choose(const compute& with, const router& by, const_float_rows x, int rows, float_rows scores) {
  const matmul_args product{.w = by.w,
                            .rows = rows,
                            .q = {},
                            .x = x.data,
                            .x_stride = x.stride,
                            .y = scores.data,
                            .y_stride = scores.stride,
                            .bias = by.bias};
  matmul(with, {&product, 1});
  choose(scores, rows, by.choice_bias, by.factors);
}

/// Those of the groups that are taken come first in order_; returns their end.
template <class Worth>
std::vector<std::int64_t>::iterator expert_routes::keep_best_groups(const Worth& worth) {
  if (config_.groups_taken == config_.groups) return order_.end();
  const std::int64_t size = config_.count / config_.groups;
  groups_by_worth_.clear();
  for (std::int64_t group = 0; group < config_.groups; ++group) {
    worths_.clear();
    for (std::int64_t i = group * size; i < (group + 1) * size; ++i) worths_.push_back(worth(i));
    const auto best = worths_.begin() + config_.group_best;
    std::partial_sort(worths_.begin(), best, worths_.end(), std::greater());
    groups_by_worth_.emplace_back(-std::accumulate(worths_.begin(), best, 0.0f), group);
  }
  std::sort(groups_by_worth_.begin(), groups_by_worth_.end());
  const auto is_taken = [&](std::int64_t expert) {
    return std::any_of(groups_by_worth_.begin(), groups_by_worth_.begin() + config_.groups_taken,
                       [&](const auto& each) { return each.second == expert / size; });
  };
  return std::partition(order_.begin(), order_.end(), is_taken);
}

void expert_routes::choose_for(const float* scores, const float* biases, const float* factors, std::span<visit> into) {
  order_.resize(to_size(config_.count));
  std::iota(order_.begin(), order_.end(), 0);
  const float all = weigh(scores);
  const auto weight = [&](std::int64_t expert) { return weights_[to_size(expert)]; };
  const auto worth = [&](std::int64_t expert) {
    return biases ? weight(expert) / all + biases[expert] : scores[expert];
  };
  const auto end_of_taken = order_.begin() + static_cast<std::ptrdiff_t>(taken());
  std::partial_sort(order_.begin(), end_of_taken, keep_best_groups(worth),
                    [&](std::int64_t a, std::int64_t b) { return worth(a) != worth(b) ? worth(a) > worth(b) : a < b; });
  std::sort(order_.begin(), end_of_taken);
  float total = all;
  if (config_.whole_shares)
    total = std::accumulate(order_.begin(), end_of_taken, 0.0f,
                            [&](float sum, std::int64_t expert) { return sum + weight(expert); });
  for (std::size_t i = 0; i < taken(); ++i) {
    const float factor = factors ? factors[order_[i]] : config_.share_factor;
    into[i] = {.expert = order_[i], .share = weight(order_[i]) / total * factor};
  }
}

/// e^(score - most) of every expert, and their sum; or their sigmoids, which are shares already.
float expert_routes::weigh(const float* scores) {
  if (config_.sigmoid_shares) {
    std::copy_n(scores, config_.count, scores_.data());
    sigmoids(kernels_, scores_.data(), static_cast<std::int64_t>(scores_.size()), weights_.data());
    return 1;
  }
  const float most = *std::max_element(scores, scores + config_.count);
  constexpr float nothing = -1000;
  std::fill_n(scores_.data(), scores_.size(), most + nothing);
  std::copy_n(scores, config_.count, scores_.data());
  return kernels_.exponentials(scores_.data(), static_cast<std::int64_t>(scores_.size()), most, weights_.data());
}

void expert_routes::place_visits(int rows) {
  std::fill(visitors_.begin(), visitors_.end(), 0);
  for (const visit& each : visits_) ++visitors_[to_size(each.expert)];
  tile_ = tile_for(kernels_, *std::max_element(visitors_.begin(), visitors_.end()));
  groups_.clear();
  int places = 0;
  for (std::int64_t expert = 0; expert < config_.count; ++expert) {
    const int count = visitors_[to_size(expert)];
    next_[to_size(expert)] = places;
    if (count > 0) groups_.push_back({expert, places, count});
    places += static_cast<int>(rounded_up(count, tile_.rows));
  }
  row_at_.assign(to_size(places), -1);
  for (int row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < taken(); ++i) {
      visit& each = visits_[to_size(row) * taken() + i];
      each.place = next_[to_size(each.expert)]++;
      row_at_[to_size(each.place)] = row;
    }
}

void expert_routes::add_visits(int row, const_float_rows made, std::int64_t width, float* to) const {
  for (const visit& each : visits_of(row)) {
    const float* from = made.row(each.place);
    for (std::int64_t i = 0; i < width; ++i) to[i] += each.share * from[i];
  }
}

void sigmoids(const kernel_table& kernels, const float* x, std::int64_t padded, float* out) {
  std::transform(x, x + padded, out, [](float value) { return -std::abs(value); });
  kernels.exponentials(out, padded, 0, out);
  for (std::int64_t i = 0; i < padded; ++i) out[i] = (x[i] < 0 ? out[i] : 1) / (1 + out[i]);
}

void weigh_shared(const compute& with, const matrix_view& gate, const_float_rows x, std::int64_t rows,
                  float_rows shares) {
  const matmul_args args{.w = gate,
                         .rows = static_cast<int>(rows),
                         .q = {},
                         .x = x.data,
                         .x_stride = x.stride,
                         .y = shares.data,
                         .y_stride = shares.stride};
  matmul(with, {&args, 1});
  with.pool.run_each(rows, 64, [&](int row) {
    alignas(64) std::array<float, outs_per_block> share;
    sigmoids(with.kernels, shares.row(row), outs_per_block, share.data());
    shares.row(row)[0] = share[0];
  });
}

std::int64_t expert_routes::most_places(const model_config& config, std::int64_t rows) {
  const std::int64_t visits = std::min<std::int64_t>(rows, rows_together) * config.experts.taken;
  return visits + std::min(visits, config.experts.count) * (tall_tile.rows - 1);
}

}  // namespace troupe
