// A small trained model against what its reference says.
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class stories : public program {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(model_ / "model.safetensors") || !std::filesystem::exists(text_))
      GTEST_SKIP() << "stories260k and its text are not here: " << model_;
  }

  std::filesystem::path model_ = shared_data / "models" / "stories260k";
  std::filesystem::path text_ = shared_data / "text" / "tinystories_sample" / "tinystories_sample.txt";
};

TEST_F(stories, tells_the_reference_story) {
  const ran got = run({"generate", model_.string(), "--prompt", "", "--max-tokens", "200"});
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_EQ(got.out, read_file(model_ / "expected_greedy.txt") + "\n");
}

TEST_F(stories, predicts_a_text_as_well_as_the_reference) {
  const json got = run_json({"eval", model_.string(), "--text", text_.string()});
  EXPECT_EQ(got["tokens"], 1804);
  EXPECT_NEAR(got["nll"].get<double>(), 1.2664, 0.002);
  EXPECT_NEAR(got["perplexity"].get<double>(), std::exp(got["nll"].get<double>()), 1e-9);
  EXPECT_EQ(got.size(), 3u);
}

/// The quantized story takes a turn of its own after 312 letters.
TEST_F(stories, tells_another_end_in_u8) {
  const ran got = run({"generate", model_.string(), "--prompt", "", "--max-tokens", "200", "--quant", "u8"});
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_EQ(got.out, read_file(fixtures / "stories260k_u8_greedy.txt"));
  EXPECT_EQ(got.out.substr(0, 312), read_file(model_ / "expected_greedy.txt").substr(0, 312));
}

TEST_F(stories, predicts_nearly_as_well_quantized) {
  const auto perplexity = [&](const char* scheme) {
    return run_json({"eval", model_.string(), "--text", text_.string(), "--quant", scheme})["perplexity"].get<double>();
  };
  const double whole = perplexity("f32");
  const std::pair<const char*, double> most[]{{"bf16", 1.01}, {"u8", 1.01},    {"u8g64", 1.01}, {"q8", 1.01},
                                              {"q4", 1.06},   {"u4g32", 1.05}, {"mxfp4", 1.15}};
  for (const auto& [scheme, factor] : most) EXPECT_LT(perplexity(scheme), whole * factor) << scheme;
}

TEST_F(stories, reports_what_quantization_costs) {
  const json got = run_json(
      {"quantize", model_.string(), "--scheme", "u8", "--out", path("small").string(), "--text", text_.string()});
  EXPECT_LT(got["bytes_after"].get<double>(), 0.4 * got["bytes_before"].get<double>());
  EXPECT_NEAR(got["change_percent"].get<double>(), 0, 1);
  EXPECT_EQ(run({"generate", path("small").string(), "--prompt", "Once"}).code, 0);
}

}  // namespace
}  // namespace troupe::test
