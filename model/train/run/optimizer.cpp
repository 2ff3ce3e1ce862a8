#include "model/train/run/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/ops/elementary.hpp"
#include "model/train/kernels/train_kernels.hpp"

namespace troupe {
namespace {

constexpr std::int64_t piece = 1 << 14;
constexpr std::array<std::string_view, 3> names{"constant", "linear", "cosine"};

}  // namespace

schedule_kind schedule_from_name(std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) refuse("unknown schedule '{}': use constant, linear or cosine", name);
  return static_cast<schedule_kind>(found - names.begin());
}

std::string_view name_of(schedule_kind kind) {
  return names[to_size(kind)];
}

double rate_schedule::at(std::int64_t step) const {
  if (step < warmup) return rate * static_cast<double>(step) / static_cast<double>(warmup);
  if (kind == schedule_kind::constant) return rate;
  const double all = static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  const double done = std::min(1.0, static_cast<double>(step - warmup) / all);
  const double left =
      kind == schedule_kind::linear ? 1 - done : 0.5 * (1 + sine_cosine_of(std::numbers::pi * done).cosine);
  return rate * left;
}

adam_optimizer::adam_optimizer(const parameter_set& parameters, adam_options options)
    : parameters_(parameters),
      options_(options),
      first_(parameters.values().size()),
      second_(parameters.values().size()) {}

double adam_optimizer::norm(const compute& with) const {
  const auto& kernels = train_kernels_like(with.kernels);
  const auto gradients = parameters_.gradients();
  const auto size = static_cast<std::int64_t>(gradients.size());
  std::vector<double> sums(to_size(ceil_div(size, piece)));
  with.pool.run_pieces(size, piece, [&](std::int64_t first, std::int64_t count, int) {
    sums[to_size(first / piece)] = kernels.sum_of_squares(gradients.data() + first, count);
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

double adam_optimizer::step(const compute& with, double rate) {
  const auto& kernels = train_kernels_like(with.kernels);
  const double length = norm(with);
  ++steps_;
  adam_args args{};
  args.beta1 = static_cast<float>(options_.beta1);
  args.beta2 = static_cast<float>(options_.beta2);
  args.epsilon = static_cast<float>(options_.epsilon);
  args.rate = static_cast<float>(rate / (1 - whole_power(options_.beta1, steps_)));
  args.root_correction = static_cast<float>(std::sqrt(1 - whole_power(options_.beta2, steps_)));
  args.gradient_factor =
      options_.clip > 0 && length > options_.clip ? static_cast<float>(options_.clip / (length + 1e-6)) : 1.0f;
  const auto& all = parameters_.list();
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(), [&](const parameter& p) { return p.decays != begin->decays; });
    const std::size_t from = begin->offset, to = end == all.end() ? parameters_.values().size() : end->offset;
    args.keep = begin->decays ? static_cast<float>(1 - rate * options_.weight_decay) : 1.0f;
    with.pool.run_pieces(static_cast<std::int64_t>(to - from), piece, [&](std::int64_t first, std::int64_t count, int) {
      const std::size_t at = from + to_size(first);
      kernels.adam(args, count, parameters_.gradients().data() + at, parameters_.values().data() + at,
                   first_.data() + at, second_.data() + at);
    });
    begin = end;
  }
  return length;
}

}  // namespace troupe
