// Where there is cuBLASLt's header, that library; on a device of plain C++, what tests/cuda_host has in its place.
#include "model/ops/cuda/float_library.hpp"
#include "model/ops/cuda/integer_library.hpp"

#ifdef TROUPE_HAS_CUBLASLT

#include <cublasLt.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <compare>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

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

using algorithm = std::optional<cublasLtMatmulAlgo_t>;  ///< empty: the library has none

/// The library as it is used for one stream.
class cublas_lt {
 public:
  cublas_lt() {
    require(lt_.cublasLtMatmulPreferenceInit_internal(&wishes_, sizeof wishes_));
    const std::uint64_t room = workspace_.size();
    wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, room);
    require(lt_.cublasLtCreate(&handle_));  // last: nobody would give it back
  }
  ~cublas_lt() { lt_.cublasLtDestroy(handle_); }
  cublas_lt(const cublas_lt&) = delete;
  cublas_lt& operator=(const cublas_lt&) = delete;

  std::string name() const {
    const std::size_t version = lt_.cublasLtGetVersion();
    return fmt::format("cuBLASLt {}.{}", version / 10000, version / 100 % 100);
  }

  void require(cublasStatus_t status) const {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error(fmt::format("cuBLASLt: {}", lt_.cublasLtGetStatusString(status)));
  }

  template <class Value>
  void wish(cublasLtMatmulPreferenceAttributes_t which, Value value) {
    require(lt_.cublasLtMatmulPreferenceSetAttribute(&wishes_, which, &value, sizeof value));
  }

  cublasLtMatmulDescOpaque_t product(cublasComputeType_t sums, cudaDataType factors, bool first_turned,
                                     bool second_turned) const {
    cublasLtMatmulDescOpaque_t made;
    require(lt_.cublasLtMatmulDescInit_internal(&made, sizeof made, sums, factors));
    for (const auto& [which, turned] : {std::pair{CUBLASLT_MATMUL_DESC_TRANSA, first_turned},
                                        std::pair{CUBLASLT_MATMUL_DESC_TRANSB, second_turned}}) {
      const cublasOperation_t operation = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
      require(lt_.cublasLtMatmulDescSetAttribute(&made, which, &operation, sizeof operation));
    }
    return made;
  }

  /// Columns of so many numbers, which begin `stride` apart.
  cublasLtMatrixLayoutOpaque_t layout(cudaDataType type, std::int64_t height, std::int64_t columns,
                                      std::int64_t stride) const {
    cublasLtMatrixLayoutOpaque_t made;
    require(lt_.cublasLtMatrixLayoutInit_internal(&made, sizeof made, type, static_cast<std::uint64_t>(height),
                                                  static_cast<std::uint64_t>(columns), stride));
    return made;
  }

  algorithm best_algorithm(cublasLtMatmulDescOpaque_t& product, cublasLtMatrixLayoutOpaque_t& a,
                           cublasLtMatrixLayoutOpaque_t& b, cublasLtMatrixLayoutOpaque_t& sums) {
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t status =
        lt_.cublasLtMatmulAlgoGetHeuristic(handle_, &product, &a, &b, &sums, &sums, &wishes_, 1, &best, &found);
    if (status != CUBLAS_STATUS_SUCCESS || found == 0 || best.state != CUBLAS_STATUS_SUCCESS) return std::nullopt;
    return best.algo;
  }

  struct factor_matrix {
    cublasLtMatrixLayoutOpaque_t& layout;
    const void* data;
  };
  struct sums_matrix {
    cublasLtMatrixLayoutOpaque_t& layout;
    void* data;
    const void* before;
  };
  template <class Number>
  struct scales {
    Number factor, share;
  };
  /// sums = factor * a b + share * before
  template <class Number>
  cublasStatus_t multiply(const stream& on, cublasLtMatmulDescOpaque_t& product, const cublasLtMatmulAlgo_t& how,
                          const factor_matrix& a, const factor_matrix& b, const sums_matrix& sums,
                          const scales<Number>& by) {
    return lt_.cublasLtMatmul(handle_, &product, &by.factor, a.data, &a.layout, b.data, &b.layout, &by.share,
                              sums.before, &sums.layout, sums.data, &sums.layout, &how, workspace_.data(),
                              workspace_.size(), on.get());
  }

 private:
  cublas_lt_functions lt_;
  device_buffer<std::byte> workspace_{workspace_bytes};
  cublasLtMatmulPreferenceOpaque_t wishes_;
  cublasLtHandle_t handle_ = nullptr;
};

/// cuBLASLt's matrices lie column by column. So our rows of weights and inputs are its columns: its product is
/// weights^T inputs, the one order that its int8 kernels know, and a column of that is a row of our sums.
class integers_by_cublas_lt final : public integer_library {
 public:
  std::string name() const override { return lt_.name(); }

  bool multiply(const stream& on, const integer_product& p) override {
    auto weights = lt_.layout(CUDA_R_8I, p.ins, p.outs, p.ins), inputs = lt_.layout(CUDA_R_8I, p.ins, p.rows, p.ins),
         sums = lt_.layout(CUDA_R_32I, p.outs, p.rows, p.outs);
    auto [known, is_new] = algorithms_.try_emplace({p.outs, p.ins, p.rows});
    auto& how = known->second;
    if (is_new) how = lt_.best_algorithm(product_, weights, inputs, sums);
    if (!how) return false;
    const cublasStatus_t status = lt_.multiply(on, product_, *how, {weights, p.weights}, {inputs, p.inputs},
                                               {sums, p.sums, p.sums}, cublas_lt::scales<std::int32_t>{1, 0});
    if (status != CUBLAS_STATUS_SUCCESS) how.reset();  // not asked again for this shape
    return status == CUBLAS_STATUS_SUCCESS;
  }

 private:
  /// What decides which algorithm multiplies.
  struct shape {
    std::int64_t outs, ins, rows;
    auto operator<=>(const shape&) const = default;
  };
  cublas_lt lt_;
  cublasLtMatmulDescOpaque_t product_ = lt_.product(CUBLAS_COMPUTE_32I, CUDA_R_32I, true, false);
  std::map<shape, algorithm> algorithms_;
};

/// Our rows are its columns again: its product is b^T a^T of what it takes for a and b, and a column of that is a row
/// of ours.
class floats_by_cublas_lt final : public float_library {
 public:
  floats_by_cublas_lt() {
    // Slices of the depth may be shared out, but are added up in a step of their own, in order.
    lt_.wish(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    for (const auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      lt_.wish(which, std::uint32_t{16});
  }

  std::string name() const override { return lt_.name(); }

  void multiply(const stream& on, const bf16_product& p) override {
    auto product = lt_.product(CUBLAS_COMPUTE_32F, CUDA_R_32F, p.b.turned, p.a.turned);
    auto b = layout(p.b, p.depth, p.columns), a = layout(p.a, p.rows, p.depth);
    auto sums = lt_.layout(p.rounded ? CUDA_R_16BF : CUDA_R_32F, p.columns, p.rows, p.sums.stride);
    auto [known, is_new] = algorithms_.try_emplace(shape_of(p));
    if (is_new) known->second = lt_.best_algorithm(product, b, a, sums);
    if (!known->second)
      throw std::runtime_error(
          fmt::format("cuBLASLt does not multiply {} x {} by {} x {} in bf16: train with --precision fine", p.rows,
                      p.depth, p.depth, p.columns));
    void* const to = p.rounded ? static_cast<void*>(p.rounded) : p.sums.data;
    const float share = p.how == into::add && !p.rounded ? 1.0f : 0.0f;
    lt_.require(lt_.multiply(on, product, *known->second, {b, p.b.data}, {a, p.a.data},
                             {sums, to, p.before ? p.before : to}, cublas_lt::scales<float>{p.factor, share}));
  }

 private:
  /// What decides which algorithm multiplies.
  struct shape {
    std::int64_t rows, columns, depth, a_stride, b_stride, stride;
    bool a_turned, b_turned, rounded;
    auto operator<=>(const shape&) const = default;
  };
  static shape shape_of(const bf16_product& p) {
    return {p.rows,        p.columns,  p.depth,    p.a.stride,          p.b.stride,
            p.sums.stride, p.a.turned, p.b.turned, p.rounded != nullptr};
  }
  /// Of a factor of so many rows, as it is or turned over.
  cublasLtMatrixLayoutOpaque_t layout(const bf16_factor& factor, std::int64_t rows, std::int64_t columns) const {
    return lt_.layout(CUDA_R_16BF, factor.turned ? rows : columns, factor.turned ? columns : rows, factor.stride);
  }

  cublas_lt lt_;
  std::map<shape, algorithm> algorithms_;
};

}  // namespace

std::unique_ptr<integer_library> open_integer_library() {
  return std::make_unique<integers_by_cublas_lt>();
}

std::unique_ptr<float_library> open_float_library() {
  return std::make_unique<floats_by_cublas_lt>();
}

}  // namespace troupe::cuda

#elif __has_include(<cuda_host/integer_library.hpp>)
#include <cuda_host/float_library.hpp>
#include <cuda_host/integer_library.hpp>

std::unique_ptr<troupe::cuda::integer_library> troupe::cuda::open_integer_library() {
  return std::make_unique<cuda_host::plain_loops>();
}

std::unique_ptr<troupe::cuda::float_library> troupe::cuda::open_float_library() {
  return std::make_unique<cuda_host::plain_float_loops>();
}

#else

#include <stdexcept>

namespace troupe::cuda {

std::unique_ptr<integer_library> open_integer_library() {
  throw std::runtime_error("this build was made without cublasLt.h");
}

std::unique_ptr<float_library> open_float_library() {
  throw std::runtime_error("this build was made without cublasLt.h");
}

}  // namespace troupe::cuda

#endif
