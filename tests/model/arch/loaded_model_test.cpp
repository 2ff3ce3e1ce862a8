// Packing, the cache of packed files, and packed files that cannot be trusted.
#include "model/arch/loaded_model.hpp"
#include "base/to_size.hpp"

#include <cmath>

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "base/field_error.hpp"
#include "base/file_descriptor.hpp"
#include "base/half.hpp"
#include "model/arch/packed_file.hpp"
#include "model/arch/quantize.hpp"
#include "model/arch/stored_scheme.hpp"
#include "model/ops/pack.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/formats/tensors/known_codes.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using test::codes_in;
using test::known_codes;
using test::raw;
using test::read_file;
using test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class packed_models : public testing::Test {
 protected:
  packed_models() { fs::copy(golden / "mistral", model_); }

  std::shared_ptr<const loaded_model> load(std::optional<scheme> quant, std::vector<std::string> keep = {}) {
    return load_model(model_, {quant, std::move(keep), cache_, {}}, pool_);
  }
  std::vector<fs::path> cached() const {
    if (!fs::exists(cache_)) return {};
    return {fs::directory_iterator(cache_), {}};
  }
  fs::path quantized(scheme kind = scheme::u8) {
    const fs::path to = folder_.path() / "quantized";
    quantize_model(model_, to, {kind, {}, {}, {}}, false, pool_);
    return to;
  }
  std::string packing(const model_files& source) {
    const fs::path packed = folder_.path() / "packed";
    const file_descriptor to(::open(packed.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    return refusal([&] { write_packed(source, {}, pool_, {to.number(), packed.string(), ""}); });
  }
  std::string loading(const fs::path& path) {
    return refusal([&] { load_model(path, {{}, {}, cache_, {}}, pool_); });
  }

  test::temp_folder folder_;
  fs::path model_ = folder_.path() / "model", cache_ = folder_.path() / "cache";
  thread_pool pool_{2};
  const std::vector<std::int32_t> tokens_{1, 5, 9, 2};
};

TEST(stored_scheme, of_blocks_without_a_scheme_of_their_own_is_u8g64) {
  const auto stored = [](dtype type, std::optional<scheme> quant, std::vector<std::string> keep = {}) {
    weight_source source;
    source.tensor.type = type;
    return stored_scheme({quant, std::move(keep), {}, {}}, "model.layers.0.mlp.up_proj.weight", source);
  };
  for (const auto type : {dtype::q5_0, dtype::q2_k, dtype::q5_k, dtype::q6_k, dtype::iq4_xs}) {
    EXPECT_EQ(stored(type, {}), scheme::u8g64);
    EXPECT_EQ(stored(type, scheme::q4), scheme::q4);
    EXPECT_EQ(stored(type, scheme::u8), scheme::u8);
    EXPECT_EQ(stored(type, scheme::u8g64, {"up_proj"}), scheme::f32);
  }
  EXPECT_EQ(stored(dtype::q8_0, {}), scheme::q8);
  EXPECT_EQ(stored(dtype::q8_0, scheme::q8, {"up_proj"}), scheme::q8);
  EXPECT_EQ(stored(dtype::q4_0, {}), scheme::q4);
  EXPECT_EQ(stored(dtype::mxfp4, {}), scheme::mxfp4);
  for (const auto type : {dtype::q4_1, dtype::q4_k}) {
    EXPECT_EQ(stored(type, {}), scheme::u4g32);
    EXPECT_EQ(stored(type, scheme::q4), scheme::q4);
  }
}

TEST(stored_scheme, of_codes_that_are_read_by_columns_is_u8g64) {
  weight_source source;
  const auto known = known_codes::drawn(4, 16, 128, 2, true).as_packed_rows(false);
  source.codes = codes_in(known, 16, 128, {.format = code_format::compressed});
  source.rows.transposed = true;
  EXPECT_FALSE(keeps_bits(source, scheme::q4));
  EXPECT_EQ(stored_scheme({}, "model.layers.0.self_attn.heads.0.query_up.weight", source), scheme::u8g64);
}

TEST(stored_scheme, of_codes_is_the_one_that_has_them_as_they_are) {
  const auto stored = [](const std::optional<weight_codes>& codes) {
    weight_source source;
    source.codes = codes;
    return stored_scheme({}, "model.layers.0.mlp.up_proj.weight", source);
  };
  const auto gptq = [&](int bits, int ins, int groups) {
    return stored(codes_in(known_codes::drawn(bits, 16, ins, groups, false).as_gptq(true), 16, ins,
                           {.format = code_format::gptq}));
  };
  const auto symmetric = known_codes::drawn(4, 16, 128, 2, true).as_packed_rows(false);
  const auto bytes = known_codes::drawn(8, 16, 128, 1, true).as_bytes(false);
  EXPECT_EQ(stored(codes_in(symmetric, 16, 128, {.format = code_format::compressed})), scheme::q4);
  EXPECT_EQ(stored(codes_in(bytes, 16, 128, {.format = code_format::compressed})), scheme::u8);
  EXPECT_EQ(gptq(4, 128, 2), scheme::u4g32);
  EXPECT_EQ(gptq(4, 128, 1), scheme::u4g32);
  EXPECT_EQ(gptq(8, 128, 2), scheme::u8g64);
  // groups smaller than the scheme's are quantized anew
  EXPECT_EQ(gptq(4, 128, 8), scheme::u8g64);
}

TEST(stored_scheme, of_embeddings_and_head_beside_codes_is_q8_unless_they_are_kept) {
  weight_source source;
  source.tensor.type = dtype::bf16;
  source.beside_codes = true;
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
    EXPECT_EQ(stored_scheme(load_options{}, name, source), scheme::q8);
    EXPECT_EQ(stored_scheme({scheme::q4, {name}, {}, {}}, name, source), scheme::bf16);
  }
  EXPECT_EQ(stored_scheme(load_options{}, "model.layers.0.mlp.up_proj.weight", source), scheme::bf16);
}

/// Of codes of 4 bits the zero points are rounded to f16; all else is as the file has it.
TEST_F(packed_models, have_the_codes_of_their_source) {
  for (const int bits : {4, 8}) {
    for (const bool is_symmetric : {true, false}) {
      model_files source = open_model(golden / "llama");
      weight_source& weight = source.weights.at("model.layers.0.self_attn.o_proj.weight");
      const auto known =
          known_codes::drawn(bits, static_cast<int>(weight.outs), static_cast<int>(weight.ins), 1, is_symmetric);
      const auto file = is_symmetric ? known.as_packed_rows(false) : known.as_gptq(true);
      weight.codes = codes_in(file, weight.outs, weight.ins,
                              {.format = is_symmetric ? code_format::compressed : code_format::gptq});
      const fs::path packed = folder_.path() / "packed";
      const file_descriptor to(::open(packed.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
      write_packed(source, {}, pool_, {to.number(), packed.string(), ""});
      const loaded_model model = read_packed(mapped_file(packed), source.config);
      const matrix_view& output = model.layers[0].o.w;
      std::vector<float> row(to_size(weight.ins));
      for (std::int64_t out = 0; out < weight.outs; ++out) {
        unpack_row(output, out, row.data());
        const float rounding =
            has_nibbles(output.kind) && !is_symmetric ? known.scale(static_cast<int>(out), 0) / 256 : 0;
        for (std::size_t i = 0; i < row.size(); ++i)
          ASSERT_NEAR(row[i], known.weight(static_cast<int>(out), static_cast<int>(i)), rounding);
      }
    }
  }
}

/// Codes and exponents as gpt-oss has them for its experts, here for every other row of a matrix.
TEST_F(packed_models, have_the_floats_of_mxfp4_of_their_source) {
  model_files source = open_model(golden / "llama");
  weight_source& weight = source.weights.at("model.layers.0.self_attn.o_proj.weight");
  const std::int64_t rows = 2 * weight.outs, groups = weight.ins / 32;
  std::string blocks, scales;
  for (std::int64_t i = 0; i < rows * groups * 16; ++i) blocks += static_cast<char>(i * 37 % 256);
  for (std::int64_t i = 0; i < rows * groups; ++i) scales += static_cast<char>(60 + i % 130);
  test::known_tensors file;
  file.add("o_blocks", dtype::u8, {1, rows, groups, 16}, blocks);
  file.add("o_scales", dtype::u8, {1, rows, groups}, scales);
  weight.codes = find_mxfp4(file.set, "o", {1, rows, 0, 1, 2}, weight.outs, weight.ins);
  const fs::path packed = folder_.path() / "packed";
  const file_descriptor to(::open(packed.c_str(), O_RDWR | O_CREAT, 0600));
  write_packed(source, {}, pool_, {to.number(), packed.string(), ""});
  const loaded_model model = read_packed(mapped_file(packed), source.config);
  const matrix_view& output = model.layers[0].o.w;
  ASSERT_EQ(output.kind, scheme::mxfp4);
  std::vector<float> expected(to_size(weight.ins)), row(expected.size());
  for (std::int64_t out = 0; out < weight.outs; ++out) {
    weight.codes->read_row(out, expected.data());
    unpack_row(output, out, row.data());
    EXPECT_EQ(row, expected) << out;
  }
}

TEST_F(packed_models, have_experts_in_mxfp4_with_the_same_values) {
  const model_files source = open_model(golden / "gpt-oss-mxfp4");
  const fs::path packed = folder_.path() / "packed";
  const file_descriptor to(::open(packed.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
  write_packed(source, {}, pool_, {to.number(), packed.string(), ""});
  const loaded_model model = read_packed(mapped_file(packed), source.config);
  for (std::size_t expert = 0; expert < model.layers[1].experts.size(); ++expert) {
    const auto expect = [&](const char* name, const matrix_view& w) {
      const weight_source& from =
          source.weights.at(fmt::format("model.layers.1.mlp.experts.{}.{}.weight", expert, name));
      ASSERT_TRUE(from.codes);
      EXPECT_TRUE(keeps_bits(from, w.kind));
      std::vector<float> row(to_size(w.ins)), expected(row.size());
      for (std::int64_t out = 0; out < w.outs; ++out) {
        unpack_row(w, out, row.data());
        from.read_rows(out, 1, expected.data());
        ASSERT_EQ(row, expected) << name;
      }
    };
    expect("gate_proj", model.layers[1].experts[expert].gate);
    expect("up_proj", model.layers[1].experts[expert].up);
    expect("down_proj", model.layers[1].experts[expert].down);
  }
}

/// The queries' weights as GGUF has them: blocks of Q4_1, the two values of a rotated pair side by side.
TEST_F(packed_models, have_the_blocks_of_their_source_row_by_row) {
  model_files source = open_model(golden / "llama");
  weight_source& weight = source.weights.at("model.layers.0.self_attn.q_proj.weight");
  std::vector<std::uint16_t> blocks(to_size(weight.outs * weight.ins / 32 * 10));
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = i % 10 < 2 ? f32_to_f16(0.01f * static_cast<float>(i)) : static_cast<std::uint16_t>(i * 7919);
  weight.tensor = {dtype::q4_1, {weight.outs, weight.ins}, std::as_bytes(std::span(blocks))};
  weight.rows.order = turned_neighbours{source.config.head_dim, source.config.head_dim};
  const fs::path packed = folder_.path() / "packed";
  const file_descriptor file(::open(packed.c_str(), O_RDWR | O_CREAT, 0600));
  write_packed(source, {}, pool_, {file.number(), packed.string(), ""});
  const loaded_model model = read_packed(mapped_file(packed), source.config);
  const matrix_view& queries = model.layers[0].q.w;
  ASSERT_EQ(queries.kind, scheme::u4g32);
  std::vector<float> expected(to_size(weight.ins)), row(expected.size());
  for (std::int64_t out = 0; out < weight.outs; ++out) {
    weight.read_rows(out, 1, expected.data());
    unpack_row(queries, out, row.data());
    for (std::size_t i = 0; i < row.size(); ++i)
      ASSERT_NEAR(row[i], expected[i], std::fabs(expected[i]) / 200) << "row " << out << ", input " << i;
  }
}

/// The same rows where another program quantized them.
TEST_F(packed_models, have_the_codes_of_their_source_row_by_row) {
  model_files source = open_model(golden / "llama");
  weight_source& weight = source.weights.at("model.layers.0.self_attn.q_proj.weight");
  std::vector<std::int8_t> codes(to_size(weight.outs * weight.ins));
  std::vector<float> scales(to_size(weight.outs));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::int8_t>(i * 7919 % 251 - 125);
  for (std::size_t i = 0; i < scales.size(); ++i) scales[i] = 0.5f * static_cast<float>(i + 1);
  weight.tensor = {dtype::i8, {weight.outs, weight.ins}, std::as_bytes(std::span(codes))};
  weight.codes = {.layout = code_layout::bytes,
                  .bits = 8,
                  .outs = weight.outs,
                  .ins = weight.ins,
                  .group = weight.ins,
                  .codes = weight.tensor,
                  .scales = {dtype::f32, {weight.outs, 1}, std::as_bytes(std::span(scales))}};
  weight.rows.order = turned_neighbours{.dim = 8, .turned = 4};
  const fs::path packed = folder_.path() / "packed";
  const file_descriptor file(::open(packed.c_str(), O_RDWR | O_CREAT, 0600));
  write_packed(source, {}, pool_, {file.number(), packed.string(), ""});
  const loaded_model model = read_packed(mapped_file(packed), source.config);
  ASSERT_EQ(model.layers[0].q.w.kind, scheme::u8);
  const auto width = to_size(weight.ins);
  std::vector<float> expected(width), row(width), read(width);
  const std::int64_t file_rows[] = {0, 2, 1, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 13, 14, 15};
  for (std::int64_t out = 0; out < 16; ++out) {
    weight.codes->read_row(file_rows[out], expected.data());
    unpack_row(model.layers[0].q.w, out, row.data());
    weight.read_rows(out, 1, read.data());
    EXPECT_EQ(read, expected) << out;
    EXPECT_EQ(row, expected) << out;
  }
}

TEST_F(packed_models, say_where_there_is_no_room_for_them) {
  const test::full_disk full(1000);
  EXPECT_THAT([&] { load(scheme::u8); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr(
                  cache_.string() + ": no room for 1 MiB of packed weights: free some space, or set TROUPE_CACHE")));
}

TEST_F(packed_models, are_packed_once) {
  const auto first = logits_of(load(scheme::u8), tokens_);
  ASSERT_EQ(cached().size(), 1u);
  const auto written = fs::last_write_time(cached()[0]);
  EXPECT_EQ(logits_of(load(scheme::u8), tokens_), first);
  EXPECT_EQ(cached().size(), 1u);
  EXPECT_EQ(fs::last_write_time(cached()[0]), written);
}

TEST_F(packed_models, are_packed_once_however_their_path_is_spelled) {
  load(scheme::u8);
  const fs::path folder = model_.parent_path();
  for (const fs::path& spelled : {model_ / "", folder / "." / "model", model_ / ".." / "model" / ".",
                                  fs::relative(model_), "." / fs::relative(model_) / ""}) {
    load_model(spelled, {scheme::u8, {}, cache_, {}}, pool_);
    ASSERT_EQ(cached().size(), 1u) << spelled;
  }
  EXPECT_THAT(cached()[0].filename().string(), ::testing::StartsWith("model-u8-"));
}

TEST_F(packed_models, are_packed_again_when_the_source_or_the_wish_changes) {
  load(scheme::u8);
  load(scheme::u8, {"lm_head"});
  load(scheme::q4);
  load(std::nullopt);
  EXPECT_EQ(cached().size(), 4u);
  const fs::path weights = model_ / "model.safetensors";
  fs::last_write_time(weights, fs::last_write_time(weights) + std::chrono::seconds(1));
  load(scheme::u8);
  EXPECT_EQ(cached().size(), 5u);
  const auto written = fs::last_write_time(weights);
  std::string other = read_file(weights);
  std::rotate(other.end() - 4096, other.end() - 2048, other.end());
  folder_.write("model/model.safetensors", other);
  fs::last_write_time(weights, written);
  load(scheme::u8);
  EXPECT_EQ(cached().size(), 6u) << "other weights of the same size and time";
}

/// The weights are plain numbers here, but of codes each of these would make others.
TEST_F(packed_models, are_packed_again_when_the_configuration_reads_codes_otherwise) {
  std::size_t packed = 0;
  const std::string plain = read_file(model_ / "config.json");
  for (const char* codes : {R"("quant_method": "gptq")", R"("quant_method": "gptq", "sym": true)",
                            R"("quant_method": "gptq", "checkpoint_format": "gptq_v2")", R"("quant_method": "fp8")",
                            R"("quant_method": "fp8", "weight_block_size": [64, 128])",
                            R"("quant_method": "fp8", "weight_block_size": [128, 64])"}) {
    folder_.write("model/config.json", fmt::format("{{\"quantization_config\": {{{}}}, {}", codes, plain.substr(1)));
    load(std::nullopt);
    EXPECT_EQ(cached().size(), ++packed) << codes;
  }
}

/// The shapes are the same with each of these, but the rows of queries and keys are in another order.
TEST_F(packed_models, are_packed_again_when_the_configuration_has_other_heads) {
  std::size_t packed = 0;
  fs::remove_all(model_);
  fs::copy(golden / "glm", model_);
  auto config = nlohmann::json::parse(read_file(model_ / "config.json"));
  const auto load_with = [&](const nlohmann::json& changed) {
    config.update(changed);
    folder_.write("model/config.json", config.dump());
    load(std::nullopt);
    EXPECT_EQ(cached().size(), ++packed) << changed;
  };
  load_with({{"partial_rotary_factor", 0.5}});
  load_with({{"partial_rotary_factor", 1.0}});
  load_with({{"num_attention_heads", 8}, {"num_key_value_heads", 4}, {"head_dim", 8}});
}

TEST_F(packed_models, of_weights_that_are_no_numbers_are_refused_by_name) {
  const std::string name = "model.layers.1.mlp.up_proj.weight", whole = read_file(model_ / "model.safetensors");
  std::size_t at = 0;
  {
    const tensor_set set = open_safetensors(model_);
    at = to_size(set.find(name)->data.data() - set.files.front().bytes().data());
    ASSERT_EQ(set.find(name)->type, dtype::f16);
  }
  for (const float value : {NAN, INFINITY, -INFINITY}) {
    folder_.write("model/model.safetensors", std::string(whole).replace(at + 40, 2, raw(f32_to_f16(value))));
    for (const scheme kind :
         {scheme::u8, scheme::q8, scheme::q4, scheme::u4g32, scheme::u8g64, scheme::f32, scheme::bf16})
      EXPECT_THAT(refusal([&] { load(kind); }), HasSubstr("model.safetensors: tensor \"" + name + "\" holds "));
  }
}

TEST_F(packed_models, of_vectors_that_are_no_numbers_are_refused_by_name) {
  const std::string name = "model.layers.1.input_layernorm.weight", whole = read_file(model_ / "model.safetensors");
  std::size_t at = 0;
  {
    const tensor_set set = open_safetensors(model_);
    at = to_size(set.find(name)->data.data() - set.files.front().bytes().data());
    ASSERT_EQ(set.find(name)->type, dtype::f16);
  }
  folder_.write("model/model.safetensors", std::string(whole).replace(at + 2, 2, raw(f32_to_f16(INFINITY))));
  EXPECT_THAT(refusal([&] { load(std::nullopt); }), HasSubstr("tensor \"" + name + "\" holds inf"));
}

/// Blocks of GGUF's, of which the last has other factors: those that no weight can have.
TEST_F(packed_models, of_blocks_with_factors_that_are_no_numbers_are_refused_by_name) {
  struct wrong_factors {
    dtype type;
    std::string factors;
  };
  const std::string one = raw(f32_to_f16(1.0f)), most = raw(f32_to_f16(65504.0f)), none = raw(f32_to_f16(NAN)),
                    infinite = raw(f32_to_f16(INFINITY));
  for (const auto& [type, factors] : {wrong_factors{dtype::q8_0, none}, wrong_factors{dtype::q8_0, infinite},
                                      wrong_factors{dtype::q4_0, infinite}, wrong_factors{dtype::q4_1, one + none},
                                      wrong_factors{dtype::q4_1, one + most}, wrong_factors{dtype::mxfp4, "\xff"}}) {
    model_files source = open_model(golden / "llama");
    weight_source& weight = source.weights.at("model.layers.0.self_attn.o_proj.weight");
    const auto block = block_of(type);
    std::string bytes(to_size(weight.outs * weight.ins / block.elements * block.bytes), '\1');
    bytes.replace(bytes.size() - to_size(block.bytes), factors.size(), factors);
    weight.tensor = {type, {weight.outs, weight.ins}, std::as_bytes(std::span(bytes))};
    EXPECT_THAT(packing(source), HasSubstr("tensor \"" + weight.origin + "\" holds ")) << name_of(type);
  }
}

TEST_F(packed_models, of_codes_with_scales_that_are_no_numbers_are_refused_by_name) {
  for (const int bits : {4, 8}) {
    model_files source = open_model(golden / "llama");
    weight_source& weight = source.weights.at("model.layers.0.self_attn.o_proj.weight");
    auto known = known_codes::drawn(bits, static_cast<int>(weight.outs), static_cast<int>(weight.ins), 1, false);
    known.scales.back() = INFINITY;
    const auto file = known.as_gptq(true);
    weight.codes = codes_in(file, weight.outs, weight.ins, {.format = code_format::gptq});
    EXPECT_THAT(packing(source), HasSubstr("tensor \"" + weight.origin + "\" holds inf")) << bits;
  }
}

TEST_F(packed_models, are_packed_again_when_the_cached_file_is_broken) {
  const auto expected = logits_of(load(scheme::q8), tokens_);
  const fs::path file = cached()[0];
  const auto size = fs::file_size(file);
  for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{100}, size / 2}) {
    fs::resize_file(file, left);
    EXPECT_EQ(logits_of(load(scheme::q8), tokens_), expected) << left;
    EXPECT_EQ(fs::file_size(file), size);
  }
}

TEST_F(packed_models, need_no_cache) {
  const auto expected = logits_of(load(scheme::u8), tokens_);
  cache_ = folder_.write("a file", "where a folder should be") / "cache";
  load_options options{scheme::u8, {}, cache_, {}};
  std::string warned;
  options.warn = [&](const std::string& line) { warned += line; };
  EXPECT_EQ(logits_of(load_model(model_, options, pool_), tokens_), expected);
  EXPECT_EQ(warned, cache_.string() +
                        ": cannot be written: Not a directory: each process packs the model into memory of its own: "
                        "set TROUPE_CACHE to a folder that can be written");
}

TEST_F(packed_models, leave_nothing_in_the_cache_when_packing_fails) {
  load_options options{scheme::u8, {}, cache_, [](auto, auto) { throw std::runtime_error("enough"); }};
  EXPECT_THROW(load_model(model_, options, pool_), std::runtime_error);
  EXPECT_TRUE(cached().empty());
}

TEST_F(packed_models, are_packed_beside_what_a_killed_process_left) {
  load(scheme::u8);
  const std::string whole = cached()[0].string();
  fs::remove(whole);
  const std::string own = fmt::format("{}.{}.partial", whole, ::getpid()), held = whole + ".2.partial";
  for (const auto& file : {own, held}) std::ofstream(file) << "half";
  const int another = ::open(held.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(another, LOCK_EX), 0);
  load(scheme::u8);
  EXPECT_TRUE(fs::exists(whole)) << "not into memory";
  EXPECT_FALSE(fs::exists(own)) << "nobody writes it";
  EXPECT_TRUE(fs::exists(held)) << "another process does";
  ::close(another);
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(packed_models, refuse_to_keep_what_is_not_there) {
  load(scheme::u8);
  EXPECT_THAT(refusal([&] { load(scheme::u8, {"mlp.side_proj"}); }),
              AllOf(HasSubstr("keep = \"mlp.side_proj\""), HasSubstr("lm_head, model.embed_tokens, "),
                    HasSubstr("layers.0.mlp.up_proj"), Not(HasSubstr("norm")), Not(HasSubstr("layers.1."))));
}

TEST_F(packed_models, refuse_to_keep_what_is_quantized_already) {
  const fs::path once = quantized();
  try {
    load_model(once, {scheme::u8, {"lm_head"}, cache_, {}}, pool_);
    FAIL() << "was loaded";
  } catch (const field_error& error) {
    EXPECT_EQ(error.field(), "keep");
    EXPECT_THAT(error.what(), HasSubstr(once.string() + ": is already quantized as u8: keep has no effect"));
  }
  load_model(once, {scheme::u8, {}, cache_, {}}, pool_);
}

TEST_F(packed_models, that_are_mixtures_name_one_expert_as_an_example) {
  EXPECT_THAT(refusal([&] {
                load_model(golden / "mixtral", {scheme::u8, {"side"}, cache_, {}}, pool_);
              }),
              AllOf(HasSubstr("experts.0.up_proj"), Not(HasSubstr("experts.1."))));
}

/// A tied model whose file has a head too: its own, or a copy of the embeddings.
class tied_models_with_a_head : public packed_models {
 protected:
  tied_models_with_a_head() {
    const std::string untied = "\"tie_word_embeddings\": false", tied = "\"tie_word_embeddings\": true";
    std::string config = read_file(model_ / "config.json");
    config.replace(config.find(untied), untied.size(), tied);
    std::ofstream(model_ / "config.json") << config;
  }

  void copy_embeddings_to_head() {
    rewrite([](const std::string& name) {
      return std::pair(name, name == "lm_head.weight" ? "model.embed_tokens.weight" : name);
    });
  }
  void lengthen_names() {
    rewrite([](const std::string& name) { return std::pair("language_model." + name, name); });
  }

 private:
  /// `what`: a tensor's new name, and the one whose data it gets.
  template <class What>
  void rewrite(const What& what) {
    const auto set = open_safetensors(model_);
    std::vector<tensor_description> tensors;
    std::vector<std::span<const std::byte>> data;
    for (const auto& [name, tensor] : set.tensors) {
      const auto [new_name, from] = what(name);
      tensors.push_back({new_name, tensor.type, tensor.shape});
      data.push_back(set.find(from)->data);
    }
    write_safetensors(model_ / "model.safetensors", tensors, data, {});
  }
};

TEST_F(tied_models_with_a_head, are_refused_where_it_differs_from_the_embeddings) {
  EXPECT_THAT(refusal([&] { load(scheme::f32); }),
              AllOf(HasSubstr("lm_head.weight differs"), HasSubstr("tie_word_embeddings")));
  lengthen_names();
  EXPECT_THAT(refusal([&] { load(scheme::f32); }), HasSubstr(": language_model.lm_head.weight differs"));
  EXPECT_TRUE(cached().empty());
}

TEST_F(tied_models_with_a_head, run_where_it_is_a_copy) {
  copy_embeddings_to_head();
  EXPECT_EQ(load(scheme::f32)->head.outs, 100);
}

TEST(keep, of_the_head_means_the_embeddings_where_they_are_the_head) {
  const test::temp_folder cache;
  thread_pool pool(1);
  const auto model = load_model(golden / "llama-tied-llama3", {scheme::u8, {"lm_head"}, cache.path(), {}}, pool);
  EXPECT_FALSE(is_integer(model->embeddings.kind));
  EXPECT_FALSE(is_integer(model->head.kind));
  EXPECT_EQ(model->layers.front().q.w.kind, scheme::u8);
}

TEST_F(packed_models, take_the_size_that_is_foretold) {
  for (const scheme kind : all_schemes) {
    const auto model = load(kind);
    std::size_t bytes = 0;
    for (const auto& layer : model->layers)
      for (const linear_kind part : every_linear) {
        const matrix_view& w = layer[part].w;
        bytes += packed_bytes(w.kind, w.outs, w.ins).total();
      }
    for (const auto* matrix : {&model->embeddings, &model->head})
      bytes += packed_bytes(matrix->kind, matrix->outs, matrix->ins).total();
    const auto vectors = (2 * model->layers.size() + 1) * to_size(padded_row(32)) * sizeof(float);
    EXPECT_EQ(to_size(packed_size(model->config, kind)), bytes + vectors) << name_of(kind);
  }
}

TEST_F(packed_models, of_four_bits_have_eight_where_it_counts) {
  for (const scheme kind : {scheme::q4, scheme::u4g32, scheme::mxfp4}) {
    const auto model = load(kind);
    const auto& layer = model->layers[0];
    for (const auto* matrix : {&model->embeddings, &model->head, &layer.k.w, &layer.v.w})
      EXPECT_EQ(matrix->kind, scheme::q8);
    for (const auto* matrix : {&layer.q.w, &layer.o.w, &layer.gate.w, &layer.up.w, &layer.down.w})
      EXPECT_EQ(matrix->kind, kind);
  }
}

TEST_F(packed_models, are_refused_when_cut_off_anywhere) {
  const fs::path file = quantized() / "model.safetensors";
  const auto size = fs::file_size(file);
  for (std::uintmax_t left = size - 1; left > 64; left = left * 3 / 4) {
    fs::resize_file(file, left);
    EXPECT_THAT(loading(file.parent_path()), HasSubstr("model.safetensors")) << left;
  }
}

TEST_F(packed_models, are_refused_when_the_head_lies) {
  const fs::path file = quantized() / "model.safetensors";
  const std::string whole = read_file(file);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    const auto at = changed.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) changed.replace(at, from.size(), to);
    std::ofstream(file, std::ios::binary) << changed;
    return loading(file.parent_path());
  };
  EXPECT_THAT(with(R"("troupe.layout":"1")", R"("troupe.layout":"9")"), HasSubstr("another version"));
  EXPECT_THAT(with("u8 40x32", "u8 32x40"), AllOf(HasSubstr("mlp.gate_proj"), HasSubstr("u8 40x32")));
  EXPECT_THAT(with("u8 40x32", "u9 40x32"), AllOf(HasSubstr("mlp.gate_proj"), HasSubstr("u9")));
  EXPECT_THAT(with("u8 40x32", "q8 40x32"), HasSubstr("wrong size"));
  EXPECT_THAT(with("\"lm_head.weight\":{", "\"lm_tail.weight\":{"), HasSubstr("lm_head.weight is missing"));
}

TEST_F(packed_models, are_refused_when_the_configuration_is_another) {
  const fs::path folder = quantized();
  fs::copy_file(golden / "qwen3" / "config.json", folder / "config.json", fs::copy_options::overwrite_existing);
  EXPECT_THAT(loading(folder), HasSubstr("the configuration asks for"));
}

}  // namespace
}  // namespace troupe
