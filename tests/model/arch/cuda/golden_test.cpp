// The reference's tiny models on a GPU: what the processor gives, nearly, and the same greedy tokens.
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

struct wanted {
  const char* model;
  scheme quant;
  kv_kind kv;
};

class golden_on_gpu : public testing::TestWithParam<wanted> {
 protected:
  void SetUp() override { skip_without_gpu(); }

  lora_adapter adapter() const {
    return {read_adapter(golden / GetParam().model / "adapter", model_->config), model_->config.layers};
  }
  run_options on(device_id device, const lora_adapter* adapter) const {
    return {.adapter = adapter, .kv = GetParam().kv, .device = device};
  }
  double difference(const lora_adapter* adapter) const {
    return relative_error(logits_of(model_, prompt_, on(first_gpu, adapter)),
                          logits_of(model_, prompt_, on({}, adapter)));
  }
  void expect_the_processors_answer(const lora_adapter* adapter) const {
    // A device's exponentials have other last bits, and one of them may make an input round to another int8.
    EXPECT_LT(difference(adapter), is_integer(GetParam().quant) ? 1e-2 : 1e-3);
    EXPECT_EQ(greedy_tokens(model_, prompt_, 8, on(first_gpu, adapter)),
              greedy_tokens(model_, prompt_, 8, on({}, adapter)));
  }

  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam().model, GetParam().quant);
  std::vector<std::int32_t> prompt_ =
      values<std::int32_t>(open_safetensors(golden / GetParam().model / "expected.safetensors"), "prompt");
};

TEST_P(golden_on_gpu, gives_the_processors_logits_and_greedy_tokens) {
  expect_the_processors_answer(nullptr);
}

TEST_P(golden_on_gpu, gives_them_with_an_adapter) {
  const lora_adapter own = adapter();
  expect_the_processors_answer(&own);
}

INSTANTIATE_TEST_SUITE_P(
    architectures, golden_on_gpu,
    testing::Values(wanted{"gpt2", scheme::f32, kv_kind::f32}, wanted{"llama", scheme::f32, kv_kind::f32},
                    wanted{"llama-tied-llama3", scheme::f32, kv_kind::f32},
                    wanted{"llama-linear", scheme::f32, kv_kind::f32}, wanted{"mistral", scheme::f32, kv_kind::f32},
                    wanted{"qwen2", scheme::f32, kv_kind::f32}, wanted{"qwen3", scheme::f32, kv_kind::f32},
                    wanted{"qwen3-yarn", scheme::f32, kv_kind::f32}, wanted{"phi3", scheme::f32, kv_kind::f32},
                    wanted{"smollm3", scheme::f32, kv_kind::f32}, wanted{"gemma3", scheme::f32, kv_kind::f32},
                    wanted{"granite", scheme::f32, kv_kind::f32}, wanted{"gemma2", scheme::f32, kv_kind::f32},
                    wanted{"gemma2", scheme::u8, kv_kind::f32}, wanted{"olmo2", scheme::f32, kv_kind::f32},
                    wanted{"olmo3", scheme::f32, kv_kind::f32}, wanted{"olmo2", scheme::u8, kv_kind::f32},
                    wanted{"qwen3-moe", scheme::f32, kv_kind::f32}, wanted{"mixtral", scheme::f32, kv_kind::f32},
                    wanted{"olmoe", scheme::f32, kv_kind::f32}, wanted{"granite-moe", scheme::f32, kv_kind::f32},
                    wanted{"granite-hybrid", scheme::f32, kv_kind::f32}, wanted{"llama", scheme::u8, kv_kind::f32},
                    wanted{"glm", scheme::f32, kv_kind::f32}, wanted{"glm4", scheme::f32, kv_kind::f32},
                    wanted{"glm4", scheme::u8, kv_kind::f32}, wanted{"ernie", scheme::f32, kv_kind::f32},
                    wanted{"seed-oss", scheme::f32, kv_kind::f32}, wanted{"exaone4", scheme::f32, kv_kind::f32},
                    wanted{"exaone4", scheme::u8, kv_kind::f32}, wanted{"qwen3-vl-moe", scheme::f32, kv_kind::f32},
                    wanted{"phi3", scheme::u8, kv_kind::f32}, wanted{"gemma3", scheme::u8, kv_kind::f32},
                    wanted{"gpt2", scheme::u8g64, kv_kind::f32}, wanted{"qwen3", scheme::q8, kv_kind::f32},
                    wanted{"mistral", scheme::q4, kv_kind::f32}, wanted{"llama", scheme::u4g32, kv_kind::f32},
                    wanted{"qwen3-moe", scheme::u8, kv_kind::f32}, wanted{"mixtral", scheme::u8g64, kv_kind::f32},
                    wanted{"mixtral", scheme::q8, kv_kind::f32}, wanted{"mixtral", scheme::q4, kv_kind::f32},
                    wanted{"mixtral", scheme::mxfp4, kv_kind::f32}, wanted{"qwen3-moe", scheme::u4g32, kv_kind::f32}),
    name_of<wanted>);

/// Where a GPU rounds to 16 bits what the processor does not (inputs of bf16 weights, shares of attention), that moves
/// logits by less than storing the model so has moved them.
class rounded_on_gpu : public golden_on_gpu {};

TEST_P(rounded_on_gpu, stays_as_close_as_the_processor_is_to_the_exact_model) {
  const auto exact = logits_of(load_for_test(golden / GetParam().model, scheme::f32), prompt_, {});
  EXPECT_LT(difference(nullptr), relative_error(logits_of(model_, prompt_, on({}, nullptr)), exact));
}

INSTANTIATE_TEST_SUITE_P(
    schemes, rounded_on_gpu,
    testing::Values(wanted{"llama", scheme::bf16, kv_kind::f16}, wanted{"llama", scheme::u8, kv_kind::f16},
                    wanted{"gpt2", scheme::u8g64, kv_kind::i8}, wanted{"qwen3", scheme::q8, kv_kind::f16},
                    wanted{"llama", scheme::q4, kv_kind::f16}, wanted{"qwen2", scheme::u8, kv_kind::i8},
                    wanted{"gemma3", scheme::u8, kv_kind::f16}, wanted{"granite", scheme::u8, kv_kind::f16},
                    wanted{"gemma2", scheme::u8, kv_kind::f16}, wanted{"olmo3", scheme::u8, kv_kind::f16},
                    wanted{"phi3", scheme::q8, kv_kind::f16}, wanted{"qwen3", scheme::u4g32, kv_kind::f16},
                    wanted{"mixtral", scheme::bf16, kv_kind::f16}, wanted{"qwen3-moe", scheme::u8, kv_kind::f16}),
    name_of<wanted>);

}  // namespace
}  // namespace troupe
