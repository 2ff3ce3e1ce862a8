#include "model/arch/gpu.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

std::string_view lack_of(const char* name, std::vector<std::string> keep = {}) {
  thread_pool pool(2);
  return gpus_lack(*load_model(golden / name, {scheme::u8, std::move(keep), test_cache(), {}}, pool));
}

TEST(gpus, lack_what_processors_alone_compute) {
  EXPECT_EQ(lack_of("llama"), "");
  EXPECT_EQ(lack_of("mixtral"), "");
  EXPECT_EQ(lack_of("gpt-oss"), "attention sinks and gpt-oss's experts are computed by processors alone so far");
  EXPECT_EQ(lack_of("glm4-moe"),
            "experts with an mlp beside them, or chosen by sigmoids, are computed by processors alone so far");
  EXPECT_EQ(lack_of("qwen3.5"),
            "layers that keep states, and gates of attention, are computed by processors alone so far");
  EXPECT_EQ(lack_of("ministral3"), "queries that grow with the position are computed by processors alone so far");
}

TEST(gpus, want_the_experts_of_a_layer_in_one_scheme) {
  EXPECT_EQ(lack_of("mixtral", {"down_proj"}), "");
  EXPECT_EQ(lack_of("mixtral", {"experts.0."}),
            "GPUs want the experts of a layer in one scheme, so keep all of them or none");
}

}  // namespace
}  // namespace troupe
