// Dropout by a counter: a thread draws for eight neighbours of a row.
#include "base/philox.hpp"
#include "model/ops/cuda/kernel.hpp"
#include "model/ops/cuda/train_ops.hpp"

namespace troupe::cuda {
namespace {

constexpr int drop_threads = 256, drawn_at_once = 8;

/// The mask as the kernel wants it.
struct drop_job {
  dropout_args args;
  std::uint32_t limit;
  float factor;
};

__global__ void drop_rows(drop_job job) {
  const dropout_args& a = job.args;
  const std::int64_t eight = std::int64_t{blockIdx.y} * drop_threads + threadIdx.x;
  if (eight * drawn_at_once >= a.n) return;
  const auto bits = philox({static_cast<std::uint32_t>(eight), blockIdx.x, a.mask.pass, a.mask.stream + 1},
                           {static_cast<std::uint32_t>(a.mask.seed), static_cast<std::uint32_t>(a.mask.seed >> 32)});
  const float* x = a.x.row(blockIdx.x);
  float* out = a.out.row(blockIdx.x);
  for (int j = 0; j < drawn_at_once; ++j) {
    const std::int64_t i = eight * drawn_at_once + j;
    if (i >= a.n) return;
    const std::uint32_t drawn = bits[static_cast<std::size_t>(j / 2)] >> (j % 2 * 16) & 0xffff;
    const float kept = drawn < job.limit ? 0.0f : x[i] * job.factor;
    out[i] = a.how == into::add ? out[i] + kept : kept;
  }
}

}  // namespace

void drop(const stream& on, const dropout_args& args) {
  const drop_job job{args, static_cast<std::uint32_t>(args.mask.probability * 65536.0f),
                     1.0f / (1.0f - args.mask.probability)};
  launch("drop", drop_rows, dim3(static_cast<unsigned>(args.rows), grid_for(args.n, drop_threads * drawn_at_once)),
         drop_threads, on, job);
}

}  // namespace troupe::cuda
