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
  double tolerance = 1e-3;
};

class golden_on_gpu : public testing::TestWithParam<wanted> {
 protected:
  void SetUp() override { skip_without_gpu(); }

  void compare(const lora_adapter* adapter) {
    const auto prompt = values<std::int32_t>(expected_, "prompt");
    const run_options here{.adapter = adapter, .kv = GetParam().kv};
    run_options there = here;
    there.device = first_gpu;
    EXPECT_LT(relative_error(logits_of(model_, prompt, there), logits_of(model_, prompt, here)), GetParam().tolerance);
    EXPECT_EQ(greedy_tokens(model_, prompt, 16, there), greedy_tokens(model_, prompt, 16, here));
  }

  const tensor_set expected_ = open_safetensors(golden / GetParam().model / "expected.safetensors");
  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam().model, GetParam().quant);
};

TEST_P(golden_on_gpu, gives_the_processors_logits_and_greedy_tokens) {
  compare(nullptr);
}

TEST_P(golden_on_gpu, gives_them_with_an_adapter) {
  const lora_adapter adapter(read_adapter(golden / GetParam().model / "adapter", model_->config),
                             model_->config.layers);
  compare(&adapter);
}

INSTANTIATE_TEST_SUITE_P(
    architectures, golden_on_gpu,
    testing::Values(wanted{"gpt2", scheme::f32, kv_kind::f32}, wanted{"llama", scheme::f32, kv_kind::f32},
                    wanted{"llama-tied-llama3", scheme::f32, kv_kind::f32},
                    wanted{"llama-linear", scheme::f32, kv_kind::f32}, wanted{"mistral", scheme::f32, kv_kind::f32},
                    wanted{"qwen2", scheme::f32, kv_kind::f32}, wanted{"qwen3", scheme::f32, kv_kind::f32},
                    wanted{"llama", scheme::bf16, kv_kind::f16}, wanted{"llama", scheme::u8, kv_kind::f16},
                    wanted{"gpt2", scheme::u8g64, kv_kind::i8}, wanted{"qwen3", scheme::q8, kv_kind::f16},
                    wanted{"llama", scheme::q4, kv_kind::f16}, wanted{"mistral", scheme::u8, kv_kind::f16},
                    wanted{"qwen2", scheme::u8, kv_kind::i8}),
    [](const auto& info) {
      std::string name = info.param.model;
      std::replace(name.begin(), name.end(), '-', '_');
      return name + "_" + std::string(name_of(info.param.quant));
    });

}  // namespace
}  // namespace troupe
