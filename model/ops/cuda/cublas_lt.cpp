// Where there is cuBLASLt's header, that library; on a device of plain C++, what tests/cuda_host has in its place.
#include "model/ops/cuda/integer_library.hpp"

#ifdef TROUPE_HAS_CUBLASLT

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <compare>
#include <map>
#include <optional>
#include <stdexcept>

namespace troupe::cuda {
namespace {

void* open_cublas_lt() {
  const std::string name = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);  // the header's: others have other types
  if (void* opened = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return opened;
  throw std::runtime_error(fmt::format("{} cannot be loaded: it comes with the CUDA toolkit", name));
}

template <class Function>
Function* find_function(void* library, const char* name) {
  if (auto* found = reinterpret_cast<Function*>(::dlsym(library, name))) return found;
  throw std::runtime_error(fmt::format("the cuBLASLt library has no {}", name));
}

/// The few functions that are called. Those that the header makes of them would have to be linked.
struct cublas_lt_functions {
  void* library = open_cublas_lt();
// NOLINTNEXTLINE(bugprone-macro-parentheses): a member's name can have none
#define TROUPE_FUNCTION(name) decltype(::name)* name = find_function<decltype(::name)>(library, #name)
  TROUPE_FUNCTION(cublasLtCreate);
  TROUPE_FUNCTION(cublasLtDestroy);
  TROUPE_FUNCTION(cublasLtGetVersion);
  TROUPE_FUNCTION(cublasLtGetStatusString);
  TROUPE_FUNCTION(cublasLtMatrixLayoutInit_internal);
  TROUPE_FUNCTION(cublasLtMatmulDescInit_internal);
  TROUPE_FUNCTION(cublasLtMatmulDescSetAttribute);
  TROUPE_FUNCTION(cublasLtMatmulPreferenceInit_internal);
  TROUPE_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  TROUPE_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  TROUPE_FUNCTION(cublasLtMatmul);
#undef TROUPE_FUNCTION
};

constexpr std::size_t workspace_bytes = std::size_t{32} << 20;  // what its manual advises for Hopper

/// What decides which algorithm multiplies.
struct product_shape {
  std::int64_t outs, ins, rows;
  auto operator<=>(const product_shape&) const = default;
};

/// cuBLASLt's matrices lie column by column. So our rows of weights and inputs are its columns: its product is
/// weights^T inputs, the one order that its int8 kernels know, and a column of that is a row of our sums.
class cublas_lt final : public integer_library {
 public:
  cublas_lt() {
    require(lt_.cublasLtMatmulDescInit_internal(&product_, sizeof product_, CUBLAS_COMPUTE_32I, CUDA_R_32I));
    const cublasOperation_t turned = CUBLAS_OP_T;
    require(lt_.cublasLtMatmulDescSetAttribute(&product_, CUBLASLT_MATMUL_DESC_TRANSA, &turned, sizeof turned));
    require(lt_.cublasLtMatmulPreferenceInit_internal(&wishes_, sizeof wishes_));
    const std::uint64_t room = workspace_.size();
    require(lt_.cublasLtMatmulPreferenceSetAttribute(&wishes_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room,
                                                     sizeof room));
    require(lt_.cublasLtCreate(&handle_));  // last: nobody would give it back
  }
  ~cublas_lt() override { lt_.cublasLtDestroy(handle_); }

  std::string name() const override {
    const std::size_t version = lt_.cublasLtGetVersion();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version / 100 % 100);
  }

  bool multiply(const stream& on, const integer_product& p) override {
    auto weights = layout(CUDA_R_8I, p.ins, p.outs), inputs = layout(CUDA_R_8I, p.ins, p.rows),
         sums = layout(CUDA_R_32I, p.outs, p.rows);
    auto [known, is_new] = algorithms_.try_emplace({p.outs, p.ins, p.rows});
    auto& algorithm = known->second;
    if (is_new) algorithm = best_algorithm(weights, inputs, sums);
    if (!algorithm) return false;
    const std::int32_t one = 1, zero = 0;
    const cublasStatus_t status =
        lt_.cublasLtMatmul(handle_, &product_, &one, p.weights, &weights, p.inputs, &inputs, &zero, p.sums, &sums,
                           p.sums, &sums, &*algorithm, workspace_.data(), workspace_.size(), on.get());
    if (status != CUBLAS_STATUS_SUCCESS) algorithm.reset();  // not asked again for this shape
    return status == CUBLAS_STATUS_SUCCESS;
  }

 private:
  void require(cublasStatus_t status) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error(fmt::format("cuBLASLt: {}", lt_.cublasLtGetStatusString(status)));
  }

  cublasLtMatrixLayoutOpaque_t layout(cudaDataType type, std::int64_t height, std::int64_t columns) const {
    cublasLtMatrixLayoutOpaque_t made;
    require(lt_.cublasLtMatrixLayoutInit_internal(&made, sizeof made, type, static_cast<std::uint64_t>(height),
                                                  static_cast<std::uint64_t>(columns), height));
    return made;
  }

  std::optional<cublasLtMatmulAlgo_t> best_algorithm(cublasLtMatrixLayoutOpaque_t& weights,
                                                     cublasLtMatrixLayoutOpaque_t& inputs,
                                                     cublasLtMatrixLayoutOpaque_t& sums) {
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t status = lt_.cublasLtMatmulAlgoGetHeuristic(handle_, &product_, &weights, &inputs, &sums,
                                                                     &sums, &wishes_, 1, &best, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0 || best.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
    return best.algo;
  }

  cublas_lt_functions lt_;
  device_buffer<std::byte> workspace_{workspace_bytes};
  cublasLtMatmulDescOpaque_t product_;
  cublasLtMatmulPreferenceOpaque_t wishes_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<product_shape, std::optional<cublasLtMatmulAlgo_t>> algorithms_;  ///< empty: the library has none
};

}  // namespace

std::unique_ptr<integer_library> open_integer_library() {
  return std::make_unique<cublas_lt>();
}

}  // namespace troupe::cuda

#elif __has_include(<cuda_host/integer_library.hpp>)
#include <cuda_host/integer_library.hpp>

std::unique_ptr<troupe::cuda::integer_library> troupe::cuda::open_integer_library() {
  return std::make_unique<cuda_host::plain_loops>();
}

#else

#include <stdexcept>

namespace troupe::cuda {

std::unique_ptr<integer_library> open_integer_library() {
  throw std::runtime_error("this build was made without cublasLt.h");
}

}  // namespace troupe::cuda

#endif
