// Compiled once per ISA. Gradients of linear attention and of state spaces: what model/ops/delta_kernels.cpp computes,
// backward.
#include "model/ops/vec.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

/// Sixteen columns at a row. What the key was said to mean, and what it should have meant more.
struct columns_of_row {
  const float* state;
  float* gradient;  ///< of the state behind the row; then of that before
  f32x16 answer;    ///< the gradient of what the query was answered
  f32x16 said = zero(), of_change = zero();
};

/// Adds what the answer means to the gradient of the state, and asks both for the key.
INLINED inline void ask_both(const delta_back_args& a, columns_of_row& c) {
  f32x16 said[2] = {zero(), zero()}, of_change[2] = {zero(), zero()};
  for (std::int64_t i = 0; i < a.key_dim; i += 2)
    repeat<2>([&](int odd) INLINED {
      const f32x16 key = all(a.k[i + odd]);
      float* at = c.gradient + (i + odd) * lanes;
      const f32x16 g = fma(all(a.q[i + odd]), c.answer, load(at));
      store(at, g);
      said[odd] = fma(key, load(c.state + (i + odd) * lanes), said[odd]);
      of_change[odd] = fma(key, g, of_change[odd]);
    });
  c.said = said[0] + said[1];
  c.of_change = of_change[0] + of_change[1];
}

/// out += the sum of each sixteen of `sums` [n][16]. `turned`: room for as many.
void add_sums(const float* sums, std::int64_t n, float* turned, float* out) {
  transpose(sums, lanes, n, lanes, turned, n);
  for (std::int64_t i = 0; i < n; i += lanes) {
    f32x16 total = load(turned + i);
    for (int lane = 1; lane < lanes; ++lane) total = total + load(turned + lane * n + i);
    store(out + i, load(out + i) + total);
  }
}

/// Where queries and keys have their sums, while columns are gone through.
struct key_sums {
  float *queries, *keys, *turned;

  explicit key_sums(const delta_back_args& a)
      : queries(a.scratch), keys(a.scratch + a.key_dim * lanes), turned(a.scratch + 2 * a.key_dim * lanes) {
    for (std::int64_t i = 0; i < 2 * a.key_dim * lanes; i += lanes) store(queries + i, zero());
  }
  void add_to(const delta_back_args& a) const {
    add_sums(queries, a.key_dim, turned, a.q_gradient);
    add_sums(keys, a.key_dim, turned, a.k_gradient);
  }
};

}  // namespace

/// With the change c = beta (v - decay said) and its gradient C: v gets beta C, and what the key was said to mean
/// -decay beta C; both reach the key and the state, too.
void delta_rule_back(const delta_back_args& a) {
  const key_sums sums(a);
  const f32x16 decay = all(a.decay), beta = all(a.beta);
  f32x16 of_decay[2] = {zero(), zero()}, of_beta = zero();
  for (std::int64_t first = 0; first < a.value_dim; first += lanes) {
    columns_of_row c{a.state + first * a.key_dim, a.state_gradient + first * a.key_dim, load(a.out_gradient + first)};
    ask_both(a, c);
    const f32x16 more = load(a.v + first) - decay * c.said, change = more * beta, of_value = c.of_change * beta;
    const f32x16 of_said = zero() - of_value * decay;
    store(a.v_gradient + first, of_value);
    of_beta = fma(c.of_change, more, of_beta);
    of_decay[0] = of_decay[0] - of_value * c.said;
    for (std::int64_t i = 0; i < a.key_dim; i += 2)
      repeat<2>([&](int odd) INLINED {
        const std::int64_t at = (i + odd) * lanes;
        const f32x16 key = all(a.k[i + odd]), before = load(c.state + at), g = load(c.gradient + at);
        store(sums.queries + at, fma(fma(key, change, before * decay), c.answer, load(sums.queries + at)));
        store(sums.keys + at, fma(g, change, fma(before, of_said, load(sums.keys + at))));
        of_decay[odd] = fma(before, g, of_decay[odd]);
        store(c.gradient + at, fma(key, of_said, g * decay));
      });
  }
  sums.add_to(a);
  *a.decay_gradient = sum_of(of_decay[0] + of_decay[1]);
  *a.beta_gradient = sum_of(of_beta);
}

void state_space_back(const delta_back_args& a) {
  const key_sums sums(a);
  const f32x16 decay = all(a.decay), beta = all(a.beta), skip = all(a.skip);
  f32x16 of_decay[2] = {zero(), zero()}, of_beta = zero();
  for (std::int64_t first = 0; first < a.value_dim; first += lanes) {
    const float* const state = a.state + first * a.key_dim;
    float* const gradient = a.state_gradient + first * a.key_dim;
    const f32x16 answer = load(a.out_gradient + first), value = load(a.v + first), change = value * beta;
    f32x16 of_change[2] = {zero(), zero()};
    for (std::int64_t i = 0; i < a.key_dim; i += 2)
      repeat<2>([&](int odd) INLINED {
        const std::int64_t at = (i + odd) * lanes;
        const f32x16 key = all(a.k[i + odd]), before = load(state + at);
        const f32x16 g = fma(all(a.q[i + odd]), answer, load(gradient + at));
        store(sums.queries + at, fma(fma(key, change, before * decay), answer, load(sums.queries + at)));
        store(sums.keys + at, fma(g, change, load(sums.keys + at)));
        of_decay[odd] = fma(before, g, of_decay[odd]);
        of_change[odd] = fma(key, g, of_change[odd]);
        store(gradient + at, g * decay);
      });
    const f32x16 all_of_change = of_change[0] + of_change[1];
    store(a.v_gradient + first, fma(skip, answer, all_of_change * beta));
    of_beta = fma(all_of_change, value, of_beta);
  }
  sums.add_to(a);
  *a.decay_gradient = sum_of(of_decay[0] + of_decay[1]);
  *a.beta_gradient = sum_of(of_beta);
}

void unit_norm_back(const float* x, std::int64_t n, float eps, float factor, float* gradient) {
  f32x16 squares = zero(), products = zero();
  for (std::int64_t i = 0; i < n; i += lanes) {
    squares = fma(load(x + i), load(x + i), squares);
    products = fma(load(x + i), load(gradient + i), products);
  }
  const f32x16 square = all(sum_of(squares) + eps), by = all(factor) / root(square);
  const f32x16 share = all(sum_of(products)) / square;
  for (std::int64_t i = 0; i < n; i += lanes) store(gradient + i, (load(gradient + i) - load(x + i) * share) * by);
}

void delta_shares_back(const delta_shares_back_args& args, std::int64_t n, float* a, float* b) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 slope = load(args.rates + i) * sigmoid(load(args.a + i) + load(args.dt_bias + i));
    const f32x16 beta = load(args.betas + i);
    store(a + i, zero() - load(a + i) * (load(args.decays + i) * slope));
    store(b + i, load(b + i) * (beta * (all(1.0f) - beta)));
  }
}

void state_space_shares_back(const delta_shares_back_args& args, std::int64_t n, float* a, const float* b) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 of_step = load(b + i) - load(a + i) * (load(args.decays + i) * load(args.rates + i));
    store(a + i, of_step * sigmoid(load(args.a + i) + load(args.dt_bias + i)));
  }
}

void open_gate_back(const float* gate, const float* opened, std::int64_t n, float* gradient, float* gate_gradient) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 s = sigmoid(load(gate + i)), g = load(gradient + i);
    store(gate_gradient + i, valid((g * load(opened + i)) * (all(1.0f) - s), i, n));
    store(gradient + i, g * s);
  }
}

}  // namespace troupe::TROUPE_ISA
