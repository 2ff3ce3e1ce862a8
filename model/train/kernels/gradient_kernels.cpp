// Compiled once per ISA. Gradients of what happens to one row.
#include "model/ops/vec.hpp"
#include "model/train/kernels/train_kernels_isa.hpp"

namespace troupe::TROUPE_ISA {
namespace {

INLINED inline void accumulate(float* to, f32x16 more) {
  store(to, load(to) + more);
}

}  // namespace

void rms_norm_back(const float* x, const float* w, const float* dy, std::int64_t n, float eps, float* dx, float* dw) {
  f32x16 squares = zero(), products = zero();
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 v = load(x + i);
    squares = fma(v, v, squares);
    products = fma(load(dy + i) * load(w + i), v, products);
  }
  const f32x16 factor = all(1.0f) / root(all(sum_of(squares) / static_cast<float>(n) + eps));
  const f32x16 share = (factor * factor) * all(sum_of(products) / static_cast<float>(n));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 v = load(x + i), d = load(dy + i);
    if (dw) accumulate(dw + i, d * (v * factor));
    accumulate(dx + i, (d * load(w + i) - v * share) * factor);
  }
}

void layer_norm_back(const float* x, const float* w, const float* dy, std::int64_t n, float eps, float* dx, float* dw,
                     float* db) {
  f32x16 total = zero();
  for (std::int64_t i = 0; i < n; i += lanes) total = total + load(x + i);
  const f32x16 mean = all(sum_of(total) / static_cast<float>(n));
  f32x16 squares = zero(), sums = zero(), products = zero();
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 d = valid(load(x + i) - mean, i, n), g = load(dy + i) * load(w + i);
    squares = fma(d, d, squares);
    products = fma(g, d, products);
    sums = sums + g;
  }
  const f32x16 factor = all(1.0f) / root(all(sum_of(squares) / static_cast<float>(n) + eps));
  const f32x16 middle = all(sum_of(sums) / static_cast<float>(n));
  const f32x16 share = (factor * factor) * all(sum_of(products) / static_cast<float>(n));
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 d = load(x + i) - mean, g = load(dy + i);
    if (dw) accumulate(dw + i, valid(g * (d * factor), i, n));
    if (db) accumulate(db + i, g);
    accumulate(dx + i, valid((g * load(w + i) - middle - d * share) * factor, i, n));
  }
}

void swiglu_back(const float* dy, std::int64_t n, float* gate, float* up) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 g = load(gate + i), u = load(up + i), d = load(dy + i), s = sigmoid(g);
    const f32x16 silu = g * s;
    store(up + i, d * silu);
    store(gate + i, (d * u) * fma(silu, all(1.0f) - s, s));
  }
}

/// Beyond the limit nothing changes with what is held to it.
void clamped_swiglu_back(const float* dy, std::int64_t n, float limit, float slope, float* gate, float* up) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 raw_gate = load(gate + i), raw_up = load(up + i), d = load(dy + i);
    const f32x16 g = at_most(raw_gate, limit), u = max(at_most(raw_up, limit), all(-limit)) + all(1.0f);
    const f32x16 s = sigmoid(g * all(slope)), value = g * s;
    const f32x16 slopes = fma(value * all(slope), all(1.0f) - s, s);
    store(up + i, where_not_above(absolute(raw_up), limit, d * value));
    store(gate + i, where_not_above(raw_gate, limit, (d * u) * slopes));
  }
}

namespace {

struct gelu {
  f32x16 value, slope;
};

/// y = x s(u) with u = a (x + b x^3): y' = s + x s (1 - s) a (1 + 3 b x^2)
INLINED inline gelu gelu_at(f32x16 x) {
  const f32x16 a = all(1.5957691216057308f), b = all(0.044715f), square = x * x;
  const f32x16 s = sigmoid(fma(square * x, b, x) * a), value = x * s;
  const f32x16 inner = fma(square, all(3 * 0.044715f), all(1.0f)) * a;
  return {value, fma(value * (all(1.0f) - s), inner, s)};
}

}  // namespace

void geglu_back(const float* dy, std::int64_t n, float* gate, float* up) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 u = load(up + i), d = load(dy + i);
    const auto [value, slope] = gelu_at(load(gate + i));
    store(up + i, d * value);
    store(gate + i, (d * u) * slope);
  }
}

void gelu_back(const float* dy, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; i += lanes) store(x + i, load(dy + i) * gelu_at(load(x + i)).slope);
}

void squared_relu_back(const float* dy, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 v = max(load(x + i), zero());
    store(x + i, load(dy + i) * (v + v));
  }
}

void softmax(float* s, std::int64_t from, std::int64_t first, std::int64_t last, std::int64_t to, float factor,
             float sink) {
  const auto scores = [&](std::int64_t i) INLINED {
    const f32x16 v = load(s + i) * all(factor);
    if (i >= first && i + lanes <= last) return v;
    const auto low = static_cast<int>(first > i ? first - i : 0), high = static_cast<int>(last > i ? last - i : 0);
    return low >= 16 ? all(minus_infinity) : keep(v, low, high, minus_infinity);
  };
  f32x16 most = all(sink);
  for (std::int64_t i = from; i < to; i += lanes) most = max(most, scores(i));
  const f32x16 top = all(max_of(most));
  f32x16 total = zero();
  for (std::int64_t i = from; i < to; i += lanes) {
    const f32x16 e = exponential(scores(i) - top);
    store(s + i, e);
    total = total + e;
  }
  f32x16 sum = all(sum_of(total));
  if (sink > minus_infinity) sum = sum + exponential(all(sink) - top);
  const f32x16 share = all(1.0f) / sum;
  for (std::int64_t i = from; i < to; i += lanes) store(s + i, load(s + i) * share);
}

void softmax_back(const float* p, float* dp, std::int64_t from, std::int64_t to, float factor) {
  f32x16 total = zero();
  for (std::int64_t i = from; i < to; i += lanes) total = fma(load(p + i), load(dp + i), total);
  const f32x16 mean = all(sum_of(total));
  for (std::int64_t i = from; i < to; i += lanes) store(dp + i, (load(p + i) * (load(dp + i) - mean)) * all(factor));
}

train_kernel_table::cross_entropy_result cross_entropy(float* x, std::int64_t n, std::int64_t target, float factor) {
  const auto logits = [&](std::int64_t i) INLINED {
    const f32x16 v = load(x + i);
    return i + lanes <= n ? v : keep(v, 0, static_cast<int>(n - i), minus_infinity);
  };
  f32x16 most = all(minus_infinity);
  for (std::int64_t i = 0; i < n; i += lanes) most = max(most, logits(i));
  train_kernel_table::cross_entropy_result result;
  result.most = max_of(most);
  result.target = x[target];
  result.leads = result.target >= result.most;
  for (std::int64_t i = 0; result.leads && i < target; ++i) result.leads = x[i] < result.most;  // of equals the first
  f32x16 total = zero();
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 e = exponential(logits(i) - all(result.most));
    store(x + i, e);
    total = total + e;
  }
  result.sum = sum_of(total);
  const f32x16 share = all(factor / result.sum);
  for (std::int64_t i = 0; i < n; i += lanes) store(x + i, load(x + i) * share);
  x[target] -= factor;
  return result;
}

void adam(const adam_args& a, std::int64_t n, const float* gradient, float* value, float* first, float* second) {
  const f32x16 b1 = all(a.beta1), b2 = all(a.beta2), r1 = all(1.0f - a.beta1), r2 = all(1.0f - a.beta2);
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 g = load(gradient + i) * all(a.gradient_factor);
    const f32x16 m = fma(b1, load(first + i), r1 * g);
    const f32x16 v = fma(b2, load(second + i), r2 * (g * g));
    store(first + i, m);
    store(second + i, v);
    const f32x16 divisor = root(v) / all(a.root_correction) + all(a.epsilon);
    store(value + i, load(value + i) * all(a.keep) - all(a.rate) * (m / divisor));
  }
}

double sum_of_squares(const float* x, std::int64_t n) {
  return dot_product(x, x, n);
}

double dot_product(const float* x, const float* y, std::int64_t n) {
  double sums[8] = {};
  for (std::int64_t i = 0; i + 8 <= n; i += 8)
    for (int lane = 0; lane < 8; ++lane)
      sums[lane] += static_cast<double>(x[i + lane]) * static_cast<double>(y[i + lane]);
  for (std::int64_t i = n / 8 * 8; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

void cap_with_slopes(float* x, std::int64_t n, float factor, float cap, float* slopes) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 value = capped(load(x + i) * all(factor), cap), share = value * all(1.0f / cap);
    store(x + i, value);
    store(slopes + i, (all(1.0f) - share * share) * all(factor));
  }
}

void scale(const float* x, const float* by, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; i += lanes) store(out + i, load(x + i) * load(by + i));
}

}  // namespace troupe::TROUPE_ISA
