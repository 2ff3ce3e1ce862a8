// For kernel sources alone: products that share a grid.
#pragma once
#include <algorithm>
#include <array>
#include <span>

#include "model/ops/cuda/products.hpp"

namespace troupe::cuda {

/// A block of threads has so many blocks of 16 outputs at once.
inline product_jobs jobs_of(std::span<const product* const> products, int blocks_at_once) {
  const matrix_view& first = products.front()->w;
  product_jobs jobs{};
  const std::int64_t row_bytes = padded_row(first.ins) * (first.kind == scheme::bf16 ? 2 : 1);
  jobs.stages = static_cast<int>(row_bytes / stage_row_bytes);
  const int slice = rounded_up(ceil_div(jobs.stages, most_slices), 2);
  jobs.slice_stages = std::max(slice, least_slice_stages);
  int block = 0;
  for (const product* p : products) {
    product_job& job = jobs.jobs[jobs.count++];
    job = job_of(*p);
    job.first_block = block;
    block += ceil_div(job.blocks, blocks_at_once);
  }
  return jobs;
}

inline unsigned grid_blocks(std::span<const product* const> products, int blocks_at_once) {
  unsigned blocks = 0;
  for (const product* p : products) blocks += grid_for(p->w.blocks(), blocks_at_once);
  return blocks;
}

/// f(scheme, those products that have it), for each scheme that some product has.
template <class F>
void for_schemes(std::span<const product> products, F f) {
  for (const scheme kind : all_schemes) {
    std::array<const product*, most_products> same{};
    std::size_t count = 0;
    for (const product& p : products)
      if (p.w.kind == kind) same[count++] = &p;
    if (count > 0) f(kind, std::span<const product* const>(same.data(), count));
  }
}

}  // namespace troupe::cuda
