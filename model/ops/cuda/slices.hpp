// For kernel sources alone: slices of the inputs that different blocks of threads have summed.
#pragma once
#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {

template <class Sum>
struct alignas(8) sum_pair {
  Sum a, b;
};

/// Where slices meet that different blocks of threads have summed: [slice][row][column], with 128 columns a tile.
template <scheme Kind>
struct slice_store {
  sum_of<Kind>* data;  ///< null: a block of threads goes through all slices
  int rows, columns;

  __device__ sum_of<Kind>& at(int slice, int row, int column) const {
    return data[(static_cast<std::int64_t>(slice) * rows + row) * columns + column];
  }
  /// A lane's sums of 16 outputs, the first of which is a column, and of eight rows.
  __device__ void put(int slice, const sum_of<Kind> (&sums)[4], int first_column, int first_row, int lane) const {
    for_pairs(sums, first_column, first_row, rows, lane, [&](int column, int row, sum_of<Kind> a, sum_of<Kind> b) {
      *reinterpret_cast<sum_pair<sum_of<Kind>>*>(&at(slice, row, column)) = {a, b};
    });
  }
};

/// A thread for an output.
template <scheme Kind>
__global__ void __launch_bounds__(tile_outs) join_slices(product_jobs jobs, coded_inputs in, slice_store<Kind> slices) {
  await_last_kernel();
  const product_job& job = jobs.of_block(blockIdx.x);
  const int row = blockIdx.y, out = (blockIdx.x - job.first_block) * tile_outs + threadIdx.x;
  if (out >= job.blocks * static_cast<int>(outs_per_block)) return;
  sum_of<Kind> total = 0;
  for (int slice = 0; slice < jobs.slices(); ++slice)
    total += slices.at(slice, row, blockIdx.x * tile_outs + threadIdx.x);
  write_output(job, out, row, product_of<Kind>(job, in, total, out, row));
}

}  // namespace troupe::cuda
