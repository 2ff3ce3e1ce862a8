#include "bench/ops.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "base/aligned_buffer.hpp"
#include "base/device_id.hpp"
#include "base/to_size.hpp"
#include "bench/limits.hpp"
#include "bench/noise.hpp"
#include "bench/timing.hpp"
#include "model/arch/gpu.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/ops/isa.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/pack.hpp"

namespace troupe::bench {
namespace {

aligned_buffer<float> floats(std::int64_t count) {
  aligned_buffer<float> values(to_size(count));
  noise from(7, 1.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from.next();
  return values;
}

/// One packed matrix of [outs, ins], and what multiplies it.
class product_bench {
 public:
  static constexpr std::int64_t outs = 4096, ins = 2048;
  static constexpr int most_rows = 512;

  product_bench(const compute& with, scheme kind)
      : with_(with),
        kind_(kind),
        memory_(packed_bytes(kind, outs, ins).total()),
        x_(floats(most_rows * ins)),
        y_(to_size(most_rows * outs)),
        quantized_(with.kernels, most_rows, ins) {
    matrix_packer packer(kind, outs, ins, memory_.data());
    with.pool.run(outs / outs_per_block, [&](int block, int) {
      const auto rows = floats(outs_per_block * ins);
      coded_row coded;
      for (std::int64_t i = 0; i < outs_per_block; ++i) {
        const float* row = rows.data() + i * ins;
        if (is_integer(kind)) {
          encode_row(kind, row, ins, coded);
          packer.put(block * outs_per_block + i, coded);
        } else {
          packer.put(block * outs_per_block + i, row);
        }
      }
    });
  }

  matmul_args job(int rows) {
    matmul_args args;
    args.w = view_of(kind_, outs, ins, memory_.data());
    args.rows = rows;
    args.x = x_.data();
    args.x_stride = ins;
    args.y = y_.data();
    args.y_stride = outs;
    if (is_integer(kind_)) {
      quantized_.assign(with_.pool, x_.data(), ins, rows, ins);
      args.q = quantized_.view();
    }
    return args;
  }

  double seconds(int rows) {
    const matmul_args args = job(rows);
    return median_seconds([&] { matmul(with_, std::span(&args, 1)); }, 0.3);
  }
  double reference_seconds() {
    const matmul_args args = job(1);
    return median_seconds([&] { matmul_reference(args); }, 0.1, 1);
  }
  std::span<const std::byte> bytes() const { return {memory_.data(), memory_.size()}; }

 private:
  const compute& with_;
  scheme kind_;
  aligned_buffer<std::byte> memory_;
  aligned_buffer<float> x_, y_;
  quantized_rows quantized_;
};

void run_products(const compute& with, const report& out) {
  out.title(fmt::format("products with a matrix of {} x {}", product_bench::outs, product_bench::ins));
  for (const scheme kind : all_schemes) {
    product_bench bench(with, kind);
    const double read = read_limit(with, bench.bytes()), reference = bench.reference_seconds();
    const double limit = product_limit(with, kind);
    for (const int rows : {1, 8, 32, 512}) {
      const double seconds = bench.seconds(rows);
      const double operations = 2.0 * rows * product_bench::outs * product_bench::ins;
      const double bytes = static_cast<double>(bench.bytes().size());
      const double bound = std::max(bytes / read, operations / limit);
      out.add({fmt::format("{} {} rows", name_of(kind), rows),
               {{"GB/s", bytes / seconds / 1e9},
                {"GOP/s", operations / seconds / 1e9},
                {"of bound", bound / seconds},
                {"x reference", reference * rows / seconds}}});
    }
  }
}

/// A row kernel that moves so many `bytes`, with these kernels and with the plain ones. `read`: how many a second can
/// be read.
template <class Work>
void run_row(const compute& with, const report& out, const char* name, double bytes, double read, Work work) {
  const kernel_table& plain = *kernels_of("generic");
  constexpr int calls = 200;
  const auto seconds = [&](const kernel_table& table) {
    return median_seconds(
               [&] {
                 for (int i = 0; i < calls; ++i) work(table);
               },
               0.1) /
           calls;
  };
  const double own = seconds(with.kernels);
  out.add({name,
           {{"us", own * 1e6},
            {"GB/s", bytes / own / 1e9},
            {"of bound", bytes / own / read},
            {"x generic", seconds(plain) / own}}});
}

void run_rows(const compute& with, const report& out) {
  constexpr std::int64_t n = 4096;
  const auto x = floats(n), w = floats(n), b = floats(n);
  aligned_buffer<float> y(n);
  thread_pool one(1);
  const double read = read_limit({one, with.kernels}, {reinterpret_cast<const std::byte*>(x.data()), n * 4});
  out.title(fmt::format("one row of {}, one thread; the bound is reading what it reads from the nearest cache", n));
  constexpr double row = n * 4.0;
  run_row(with, out, "rms norm", 3 * row, read,
          [&](const auto& t) { t.rms_norm(x.data(), w.data(), n, 1e-5f, y.data()); });
  run_row(with, out, "layer norm", 5 * row, read,
          [&](const auto& t) { t.layer_norm(x.data(), w.data(), b.data(), n, 1e-5f, y.data()); });
  run_row(with, out, "silu(gate) * up", 2 * row, read,
          [&](const auto& t) { t.swiglu(x.data(), w.data(), n, y.data()); });
  run_row(with, out, "gelu(gate) * up", 2 * row, read,
          [&](const auto& t) { t.geglu(x.data(), w.data(), n, y.data()); });
  run_row(with, out, "clamped silu(gate) * up", 2 * row, read,
          [&](const auto& t) { t.clamped_swiglu(x.data(), w.data(), n, 7.0f, 1.702f, y.data()); });
  run_row(with, out, "gelu", row, read, [&](const auto& t) { t.gelu_tanh(x.data(), n, y.data()); });
  run_row(with, out, "exponentials", row, read, [&](const auto& t) { t.exponentials(x.data(), n, 1.0f, y.data()); });
  const std::vector<float> cosines(64, 0.8f), sines(64, 0.6f);  // turned again and again a row keeps its length
  run_row(with, out, "rotary positions", row, read,
          [&](const auto& t) { t.rotate(y.data(), n / 128, 128, 128, cosines.data(), sines.data()); });
  quantized_rows plain(*kernels_of("generic"), 1, n), own(with.kernels, 1, n);
  plain.begin(1, n);
  own.begin(1, n);
  run_row(with, out, "quantize", 2 * row, read,
          [&](const auto& t) { (&t == &with.kernels ? own : plain).put(0, x.data()); });
}

/// Work on one head with these kernels and with the plain ones. `limit`: operations a second of all threads.
template <class Work>
void run_head(const compute& with, const report& out, const std::string& name, double operations, double limit,
              Work work) {
  const double seconds = median_seconds([&] { work(with.kernels); }, 0.2);
  const double plain = median_seconds([&] { work(*kernels_of("generic")); }, 0.1, 1);
  out.add({name,
           {{"us", seconds * 1e6},
            {"GFLOP/s", operations / seconds / 1e9},
            {"of bound", operations / seconds / (limit / with.pool.threads())},
            {"x generic", plain / seconds}}});
}

void run_attention(const compute& with, double limit, kv_kind kind, const report& out) {
  constexpr int dim = 64;
  constexpr std::int64_t positions = 1024;
  const std::int64_t head_bytes = kv_head_bytes(kind, dim);
  out.title(
      fmt::format("attention of one head of {} over {} positions in {}, one thread", dim, positions, name_of(kind)));
  aligned_buffer<std::byte> cache(to_size(positions / 16 * head_bytes));
  std::array<std::int32_t, positions / 16> table;
  std::iota(table.begin(), table.end(), 0);
  const auto x = floats(dim * 64);
  for (std::int64_t p = 0; p < positions; ++p)
    with.kernels.store_kv({kind, cache.data() + p / 16 * head_bytes, static_cast<int>(p % 16), 1, dim,
                           x.data() + p % 32 * dim, x.data() + p % 16 * dim, 0});
  aligned_buffer<float> scratch(attention_scratch(positions, dim)), y(dim * 64);
  for (const int rows : {1, 8, 64}) {
    attention_args args;
    args.kind = kind;
    args.cache = cache.data();
    args.block_bytes = head_bytes;
    args.block_table = table.data();
    args.head_dim = dim;
    args.divisor = std::sqrt(static_cast<float>(dim));
    args.q = x.data();
    args.out = y.data();
    args.row_stride = dim;
    args.rows = rows;
    args.first_position = positions - rows;
    args.scratch = scratch.data();
    run_head(with, out, fmt::format("attention {} rows", rows), 4.0 * dim * rows * positions, limit,
             [&](const auto& t) { t.attend(args); });
  }
}

void run_delta_rule(const compute& with, double limit, const report& out) {
  constexpr std::int64_t dim = 128, stride = 3 * dim;
  constexpr int most = 64;
  out.title(fmt::format("linear attention of one head of {} x {}, one thread", dim, dim));
  const auto x = floats(most * stride);
  const std::vector<float> decays(most, 0.9f), betas(most, 0.01f);  // by which the state stays small
  aligned_buffer<float> state(dim * dim), y(most * dim);
  for (const int rows : {1, 8, most}) {
    const delta_args args{.key_dim = dim,
                          .value_dim = dim,
                          .rows = rows,
                          .q = x.data(),
                          .k = x.data() + dim,
                          .v = x.data() + 2 * dim,
                          .row_stride = stride,
                          .decays = decays.data(),
                          .betas = betas.data(),
                          .share_stride = 1,
                          .out = y.data(),
                          .out_stride = dim,
                          .state = state.data()};
    run_head(with, out, fmt::format("delta rule {} rows", rows), 7.0 * dim * dim * rows, limit,
             [&](const auto& t) { t.delta_rule(args); });
  }
}

// ---- on a GPU ----

struct shared_inputs {
  const char* name;
  std::vector<std::int64_t> outs;
  std::int64_t ins;
};

void run_gpu_product(int gpu, const gpu_limits& limits, const gpu_product& product, const char* name,
                     const report& out) {
  double bytes = 0, operations = 0;
  for (const std::int64_t outs : product.outs) {
    bytes += static_cast<double>(packed_bytes(product.kind, outs, product.ins).total());
    operations += 2.0 * static_cast<double>(outs * product.ins) * product.rows;
  }
  const double seconds = measure_gpu_product(gpu, product);
  const double least =
      std::max(bytes / limits.bytes, operations / (is_integer(product.kind) ? limits.int8 : limits.bf16));
  out.add({fmt::format("{} {} rows {}", name_of(product.kind), product.rows, name),
           {{"us", seconds * 1e6},
            {"GB/s", bytes / seconds / 1e9},
            {"GOP/s", operations / seconds / 1e9},
            {"of bound", least / seconds}}});
}

}  // namespace

void run_gpu_ops(int gpu, const report& out) {
  const shared_inputs layer[] = {{"q k v", {4096, 1024, 1024}, 4096},
                                 {"o", {4096}, 4096},
                                 {"gate up", {14336, 14336}, 4096},
                                 {"down", {4096}, 14336}};
  const gpu_limits limits = run_gpu_limits(gpu, out);
  out.title(fmt::format("products of a layer of Llama 3.1 8B on {}", name_of(device_id{gpu})));
  for (const scheme kind : {scheme::u8, scheme::bf16, scheme::q4})
    for (const int rows : {1, 16, 64, 256, 1024, 4096})
      for (const shared_inputs& some : layer)
        run_gpu_product(gpu, limits, {kind, some.outs, some.ins, rows}, some.name, out);
}

void run_ops(const compute& with, const report& out) {
  out.title(fmt::format("{} threads, {}", with.pool.threads(), with.kernels.isa));
  add_product_limits(with, out);
  run_products(with, out);
  run_rows(with, out);
  const double floats_limit = product_limit(with, scheme::f32);
  for (const kv_kind kind : {kv_kind::f16, kv_kind::i8}) run_attention(with, floats_limit, kind, out);
  run_delta_rule(with, floats_limit, out);
}

}  // namespace troupe::bench
