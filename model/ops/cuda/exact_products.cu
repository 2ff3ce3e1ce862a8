// Rows times packed weights in f32: for weights in f32, and for models that are being checked.
#include "model/ops/cuda/float_tiles.hpp"
#include "model/ops/cuda/weight_pieces.hpp"

namespace troupe::cuda {
namespace {

/// Weights as the right factor. Turned, the depth runs over outputs.
template <scheme Kind, bool Turned>
struct weight_source {
  const weight_job& job;
  std::int64_t count;

  __device__ void fill(float_tiles::side& to, std::int64_t side, std::int64_t depth, std::int64_t) const {
    constexpr int outs = Turned ? tile_depth : tile_side, ins = Turned ? tile_side : tile_depth;
    using place = piece_place<Kind, ins>;
    for (int p = threadIdx.x; p < place::count(outs); p += tile_threads) {
      const place at(p);
      weight_piece<Kind> piece;
      piece.load(job, (Turned ? depth : side) + at.out, (Turned ? side : depth) + at.in);
      for (int which = 0; which < 2; ++which)
        for (int i = 0; i < weight_piece<Kind>::inputs; ++i) {
          const int out = at.out + which, in = at.in + i;
          to[Turned ? out : in][Turned ? in : out] = piece.value(which, i);
        }
    }
  }
};

template <scheme Kind, bool Turned>
__global__ void __launch_bounds__(tile_threads) multiply_exact_tiles(weight_job job) {
  __shared__ float_tiles tiles;
  const std::int64_t row = std::int64_t{blockIdx.x} * tile_side, column = std::int64_t{blockIdx.y} * tile_side;
  const float_source rows{job.x.data, job.x.stride, job.rows, false};
  thread_sums sums = {};
  multiply_tile(tiles, rows, weight_source<Kind, Turned>{job, job.columns}, row, column, 0, job.depth, sums);
  put_tile(sums, row, column, job.rows, job.columns,
           [&](std::int64_t r, std::int64_t c, float sum) { job.put(r, c, sum); });
}

}  // namespace

void multiply_exact(const stream& on, const weight_product& args) {
  const weight_job job(args);
  const dim3 grid(grid_for(job.rows, tile_side), grid_for(job.columns, tile_side));
  with_scheme(args.w.kind, [&]<scheme Kind> {
    launch("multiply_exact", args.turned ? multiply_exact_tiles<Kind, true> : multiply_exact_tiles<Kind, false>, grid,
           tile_threads, on, job);
  });
}

}  // namespace troupe::cuda
