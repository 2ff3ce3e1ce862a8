// What tells two models apart: each weight, and each number that says how to compute with them.
#include "model/arch/fingerprint.hpp"
#include "base/to_size.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/arch/packed_file.hpp"
#include "model/arch/quantize.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class fingerprints : public testing::Test {
 protected:
  std::uint64_t of(const fs::path& model, std::optional<scheme> quant = {}) {
    return fingerprint_of(*load_model(model, {quant, {}, no_cache_ / "cache", {}}, pool_));
  }

  test::temp_folder folder_;
  fs::path no_cache_ = folder_.write("a file", "where a folder should be");  // packed into memory, each time anew
  thread_pool pool_{2};
};

/// 16 MB of weights in f32.
fs::path write_large_model(const fs::path& folder) {
  fs::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2,
    "num_attention_heads": 4, "intermediate_size": 1024, "vocab_size": 4096, "max_position_embeddings": 64})";
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> data;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, std::int64_t size) {
    tensors.push_back({name, dtype::f32, std::move(shape)});
    auto& values = data.emplace_back(to_size(size));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 7919 % 1000) / 1000 - 0.5f;
  };
  visit_weights(read_hf_config(folder),
                {[&](const std::string& name, std::int64_t outs, std::int64_t ins) {
                   add(name, {outs, ins}, outs * ins);
                 },
                 [&](const std::string& name, std::int64_t, std::int64_t size) { add(name, {size}, size); }});
  write_safetensors(folder / "model.safetensors", tensors, data, {});
  return folder;
}

/// A tensor's place in its file.
struct tensor_place {
  std::string name;
  std::int64_t at, size;
};

std::vector<tensor_place> places_in(const fs::path& file) {
  const tensor_set set = open_safetensors(file);
  std::vector<tensor_place> all;
  for (const auto& [name, tensor] : set.tensors)
    if (name != packed_digests_key)
      all.push_back(
          {name, tensor.data.data() - set.files[0].bytes().data(), static_cast<std::int64_t>(tensor.data.size())});
  return all;
}

/// Turns bits of a file; done twice it is as before.
void flip(const fs::path& path, std::int64_t at, std::int64_t count, char bits) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  std::string bytes(to_size(count), '\0');
  file.seekg(at);
  file.read(bytes.data(), count);
  for (char& each : bytes) each = static_cast<char>(each ^ bits);
  file.seekp(at);
  file.write(bytes.data(), count);
}

TEST_F(fingerprints, differ_where_one_weight_of_any_tensor_does) {
  const fs::path model = write_large_model(folder_.path() / "model"), weights = model / "model.safetensors";
  EXPECT_GT(fs::file_size(weights), 8u << 20);
  const auto places = places_in(weights);
  const std::uint64_t before = of(model);
  EXPECT_EQ(of(model), before);
  for (const tensor_place& place : places) {
    const std::int64_t at = place.at + place.size / 3 / 4 * 4 + 1;  // no place that is looked at in particular
    flip(weights, at, 1, 0x10);
    EXPECT_NE(of(model), before) << place.name;
    flip(weights, at, 1, 0x10);
  }
}

TEST_F(fingerprints, differ_where_a_whole_tensor_of_a_packed_file_was_replaced) {
  const fs::path model = write_large_model(folder_.path() / "model"), packed = folder_.path() / "packed";
  quantize_model(model, packed, {scheme::bf16, {}, {}, {}}, false, pool_);
  EXPECT_EQ(of(packed), of(model, scheme::bf16));
  const fs::path weights = packed / "model.safetensors";
  EXPECT_GT(fs::file_size(weights), 8u << 20);
  const std::uint64_t before = of(packed);
  for (const tensor_place& place : places_in(weights)) {
    flip(weights, place.at, place.size, 1);
    EXPECT_NE(of(packed), before) << place.name;
    flip(weights, place.at, place.size, 1);
  }
  EXPECT_EQ(of(packed), before);
}

TEST_F(fingerprints, differ_where_a_number_of_the_configuration_does) {
  const fs::path model = folder_.path() / "model", file = model / "config.json";
  fs::copy(golden / "mistral", model);
  const auto usual = nlohmann::ordered_json::parse(std::ifstream(file));
  const std::uint64_t before = of(model);
  const auto with = [&](const char* key, const nlohmann::ordered_json& value) {
    auto other = usual;
    other[key] = value;
    std::ofstream(file) << other.dump();
    return of(model);
  };
  EXPECT_NE(with("rope_theta", 123456.0), before);
  EXPECT_NE(with("rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}), before);
  const nlohmann::ordered_json yarn = {{"rope_type", "yarn"}, {"factor", 2.0}};
  const std::uint64_t stretched = with("rope_scaling", yarn);
  for (const char* key : {"beta_fast", "beta_slow", "attention_factor"}) {
    auto other = yarn;
    other[key] = 1.5;
    EXPECT_NE(with("rope_scaling", other), stretched) << key;
  }
  EXPECT_NE(with("rms_norm_eps", 0.003), before);
  EXPECT_NE(with("sliding_window", 7), before);
  EXPECT_EQ(with("eos_token_id", 3), before) << "the head alone decides what ends";
}

}  // namespace
}  // namespace troupe
