#include "model/ops/cuda/copy_engine.hpp"

#if defined(__CUDACC__)
namespace troupe::cuda {
namespace {

auto* encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr auto name = "cuTensorMapEncodeTiled";
#if CUDART_VERSION >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  check(error, "asking the driver for the copy engine");
  check(function ? cudaSuccess : cudaErrorNotSupported, "asking the driver for the copy engine");
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

boxes_map map_boxes(const void* memory, const box& sizes, std::int64_t row_stride, std::int64_t block_stride,
                    const box& copied, box_order order) {
  static const auto encode = encoder();
  const auto size = [](auto n) { return static_cast<cuuint64_t>(n); };
  const auto count = [](int n) { return static_cast<cuuint32_t>(n); };
  const cuuint64_t of_memory[] = {size(sizes.bytes), size(sizes.rows), size(sizes.blocks)};
  const cuuint64_t strides[] = {size(row_stride), size(block_stride)};
  const cuuint32_t of_box[] = {count(copied.bytes), count(copied.rows), count(copied.blocks)};
  constexpr cuuint32_t steps[] = {1, 1, 1};
  boxes_map made;
  const CUresult result = encode(&made.map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<void*>(memory), of_memory,
                                 strides, of_box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                 order == box_order::plain ? CU_TENSOR_MAP_SWIZZLE_NONE : CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  check(result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue, "describing memory to the copy engine");
  return made;
}

}  // namespace troupe::cuda
#endif
