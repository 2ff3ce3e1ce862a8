// Compiled once per ISA. Linear attention and state spaces: heads that keep a matrix of what they have read.
//
// A state's columns lie sixteen by sixteen, and each sixteen are computed by themselves: over all rows they stay in the
// nearest cache. Sums over a column have two parts, the even keys and the odd ones, whatever is computed beside them.
#include "model/ops/kernels_isa.hpp"
#include "model/ops/vec.hpp"

namespace troupe::TROUPE_ISA {
namespace {

/// Sixteens of columns that are computed together, so that sums need not wait for each other.
constexpr int columns_together = vectors_in_registers >= 32 ? 2 : 1;

/// What some columns are at a row: sums are still to be put together.
template <int Columns>
struct column_sums {
  f32x16 part[Columns][2];

  INLINED void clear() {
    repeat<Columns>([&](int c) INLINED { part[c][0] = part[c][1] = zero(); });
  }
  INLINED f32x16 total(int c) const { return part[c][0] + part[c][1]; }
};

/// One row of some columns.
template <int Columns>
struct delta_row {
  const float* k;
  const float* q;
  const float* next_k;
  f32x16 decay;
  f32x16 change[Columns];  ///< what the key is to say more
};

template <int Columns>
INLINED inline void ask(const float* state, std::int64_t key_dim, const float* k, column_sums<Columns>& said) {
  said.clear();
  for (std::int64_t i = 0; i < key_dim; i += 2)
    repeat<2>([&](int odd) INLINED {
      const f32x16 key = all(k[i + odd]);
      repeat<Columns>([&](int c) INLINED {
        said.part[c][odd] = fma(key, load(state + (c * key_dim + i + odd) * lanes), said.part[c][odd]);
      });
    });
}

/// Changes the state by a row, asks it for the row's query and, if there is a next row, for that one's key.
template <bool HasNext, int Columns>
INLINED inline void change(float* state, std::int64_t key_dim, const delta_row<Columns>& row,
                           column_sums<Columns>& answered, column_sums<Columns>& said) {
  answered.clear();
  said.clear();
  for (std::int64_t i = 0; i < key_dim; i += 2)
    repeat<2>([&](int odd) INLINED {
      const f32x16 key = all(row.k[i + odd]), query = all(row.q[i + odd]);
      const f32x16 next = HasNext ? all(row.next_k[i + odd]) : zero();
      repeat<Columns>([&](int c) INLINED {
        float* at = state + (c * key_dim + i + odd) * lanes;
        const f32x16 s = fma(key, row.change[c], load(at) * row.decay);
        store(at, s);
        answered.part[c][odd] = fma(query, s, answered.part[c][odd]);
        if constexpr (HasNext) said.part[c][odd] = fma(next, s, said.part[c][odd]);
      });
    });
}

/// From the column `first` on.
template <int Columns>
void run_columns(const delta_args& a, std::int64_t first) {
  float* const state = a.state + first * a.key_dim;
  column_sums<Columns> said, answered;
  ask(state, a.key_dim, a.k, said);
  for (int r = 0; r < a.rows; ++r) {
    const float* k = a.k + r * a.row_stride;
    const f32x16 decay = all(a.decays[r * a.share_stride]), beta = all(a.betas[r * a.share_stride]);
    delta_row<Columns> row{k, a.q + r * a.row_stride, k + a.row_stride, decay, {}};
    const float* v = a.v + r * a.row_stride + first;
    repeat<Columns>([&](int c) INLINED { row.change[c] = (load(v + c * lanes) - decay * said.total(c)) * beta; });
    if (r + 1 < a.rows)
      change<true>(state, a.key_dim, row, answered, said);
    else
      change<false>(state, a.key_dim, row, answered, said);
    float* out = a.out + r * a.out_stride + first;
    repeat<Columns>([&](int c) INLINED { store(out + c * lanes, answered.total(c)); });
  }
}

/// The same of a state space.
template <int Columns>
void add_columns(const delta_args& a, std::int64_t first) {
  float* const state = a.state + first * a.key_dim;
  const f32x16 skip = all(a.skip);
  column_sums<Columns> answered, unasked;
  for (int r = 0; r < a.rows; ++r) {
    const float* k = a.k + r * a.row_stride;
    const f32x16 decay = all(a.decays[r * a.share_stride]), step = all(a.betas[r * a.share_stride]);
    delta_row<Columns> row{k, a.q + r * a.row_stride, nullptr, decay, {}};
    const float* v = a.v + r * a.row_stride + first;
    repeat<Columns>([&](int c) INLINED { row.change[c] = load(v + c * lanes) * step; });
    change<false>(state, a.key_dim, row, answered, unasked);
    float* out = a.out + r * a.out_stride + first;
    repeat<Columns>([&](int c) INLINED { store(out + c * lanes, fma(skip, load(v + c * lanes), answered.total(c))); });
  }
}

}  // namespace

void delta_rule(const delta_args& a) {
  if (a.rows == 0) return;
  constexpr std::int64_t step = columns_together * lanes;
  std::int64_t first = 0;
  for (; first + step <= a.value_dim; first += step) run_columns<columns_together>(a, first);
  for (; first < a.value_dim; first += lanes) run_columns<1>(a, first);
}

void state_space(const delta_args& a) {
  constexpr std::int64_t step = columns_together * lanes;
  std::int64_t first = 0;
  for (; first + step <= a.value_dim; first += step) add_columns<columns_together>(a, first);
  for (; first < a.value_dim; first += lanes) add_columns<1>(a, first);
}

void delta_shares(float* a, float* b, const float* dt_bias, const float* rates, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    store(a + i, exponential(zero() - load(rates + i) * softplus(load(a + i) + load(dt_bias + i))));
    store(b + i, sigmoid(load(b + i)));
  }
}

void state_space_shares(float* a, float* b, const float* dt_bias, const float* rates, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += lanes) {
    const f32x16 step = softplus(load(a + i) + load(dt_bias + i));
    store(b + i, step);
    store(a + i, exponential(zero() - load(rates + i) * step));
  }
}

void unit_norm(float* x, std::int64_t n, float eps, float factor) {
  f32x16 squares = zero();
  for (std::int64_t i = 0; i < n; i += lanes) squares = fma(load(x + i), load(x + i), squares);
  const f32x16 by = all(factor) / root(all(sum_of(squares) + eps));
  for (std::int64_t i = 0; i < n; i += lanes) store(x + i, load(x + i) * by);
}

void open_gate(const float* gate, std::int64_t n, float* x) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(x + i, load(x + i) * sigmoid(load(gate + i)));
  if (i == n) return;
  float some[2][lanes] = {};
  for (std::int64_t j = i; j < n; ++j) some[0][j - i] = gate[j], some[1][j - i] = x[j];
  store(some[1], load(some[1]) * sigmoid(load(some[0])));
  for (std::int64_t j = i; j < n; ++j) x[j] = some[1][j - i];
}

}  // namespace troupe::TROUPE_ISA
