// Models that are broken or made to do harm: every command refuses them in one line that names the file and the cause.
#include <algorithm>
#include <functional>

#include "tests/cli/model/gguf_model.hpp"
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

/// A copy of a small model, to be spoilt.
class spoilt_model {
 public:
  explicit spoilt_model(const fs::path& folder) : folder_(folder) { fs::copy(golden / "mistral", folder_); }

  const fs::path& folder() const { return folder_; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  void cut(const std::string& name, std::uintmax_t size) const { fs::resize_file(folder_ / name, size); }

  void edit_config(const std::function<void(json&)>& change) const {
    json config = json::parse(read_file(folder_ / "config.json"));
    change(config);
    write("config.json", config.dump());
  }
  /// Of model.safetensors; the data stays.
  void edit_header(const std::function<void(json&)>& change) const {
    const std::string whole = read_file(folder_ / "model.safetensors");
    std::uint64_t size = 0;
    std::memcpy(&size, whole.data(), sizeof size);
    json header = json::parse(whole.substr(8, size));
    change(header);
    const std::string text = header.dump();
    write("model.safetensors", raw<std::uint64_t>(text.size()) + text + whole.substr(8 + size));
  }

 private:
  fs::path folder_;
};

const std::string gate = "model.layers.0.mlp.gate_proj.weight", head = "lm_head.weight";

struct bad_model {
  std::string name;
  std::function<void(const spoilt_model&)> spoil;
  std::string file, cause;
};

class bad_models : public program, public testing::WithParamInterface<bad_model> {
 protected:
  void refuses(const words& arguments, const std::string& file, const std::string& cause) const {
    const ran got = run(arguments);
    expect_one_line(got, 2, file);
    EXPECT_NE(got.error.find(cause), std::string::npos) << got.error << "should say " << cause;
    EXPECT_LT(got.error.size(), 600u) << got.error;
  }
  void all_refuse(const std::string& model, const std::string& file, const std::string& cause) const {
    refuses({"generate", model, "--tokens", "1"}, file, cause);
    refuses({"inspect", model}, file, cause);
    refuses({"quantize", model, "--scheme", "u8", "--out", path("out").string()}, file, cause);
    EXPECT_FALSE(fs::exists(path("out")));
  }
};

TEST_P(bad_models, are_refused_by_file_and_cause) {
  const spoilt_model model(path("model"));
  GetParam().spoil(model);
  all_refuse(model.folder().string(), GetParam().file, GetParam().cause);
}

const auto by_name = [](const auto& info) { return info.param.name; };

INSTANTIATE_TEST_SUITE_P(
    weights, bad_models,
    testing::Values(
        bad_model{"truncated", [](auto& m) { m.cut("model.safetensors", 30000); }, "model.safetensors", "cut off"},
        bad_model{"truncated_in_the_head", [](auto& m) { m.cut("model.safetensors", 1000); }, "model.safetensors",
                  "cut off"},
        bad_model{"empty", [](auto& m) { m.cut("model.safetensors", 0); }, "model.safetensors", "is empty"},
        bad_model{"hostile_head_length", [](auto& m) { m.write("model.safetensors", std::string(8, '\xff') + "{}"); },
                  "model.safetensors", "at most"},
        bad_model{"broken_head", [](auto& m) { m.write("model.safetensors", raw<std::uint64_t>(9) + "{\"a\":[[[}"); },
                  "model.safetensors", "no valid JSON"},
        bad_model{"overlapping",
                  [](auto& m) { m.edit_header([](json& h) {
                                  h[gate]["data_offsets"] = {15400, 17960};
                                }); },
                  "model.safetensors", "overlaps"},
        bad_model{"past_the_end",
                  [](auto& m) {
                    m.edit_header([](json& h) {
                      h["model.norm.weight"]["data_offsets"] = {1ull << 40, (1ull << 40) + 64};
                    });
                  },
                  "model.safetensors", "model.norm.weight"},
        bad_model{"oversized",
                  [](auto& m) { m.edit_header([](json& h) {
                                  h[gate]["shape"] = {1ull << 40, 1ull << 40};
                                }); },
                  "model.safetensors", gate},
        bad_model{"wrong_shape", [](auto& m) { m.edit_header([](json& h) {
                                                 h[gate]["shape"] = {32, 40};
                                               }); },
                  "model.safetensors", gate},
        bad_model{"wrong_rank", [](auto& m) { m.edit_header([](json& h) { h[gate]["shape"] = {1280}; }); },
                  "model.safetensors", gate},
        bad_model{"missing_tensor",
                  [](auto& m) {
                    m.edit_header([](json& h) {
                      h["other.weight"] = h[gate];
                      h.erase(gate);
                    });
                  },
                  "model", gate},
        bad_model{"unread_type", [](auto& m) { m.edit_header([](json& h) { h[head]["dtype"] = "I16"; }); }, "model",
                  "\"lm_head.weight\" has the type I16"},
        bad_model{"unknown_type", [](auto& m) { m.edit_header([](json& h) { h[head]["dtype"] = "F17"; }); },
                  "model.safetensors", "F17"},
        bad_model{"missing_file", [](auto& m) { fs::remove(m.folder() / "model.safetensors"); }, "model",
                  "model.safetensors"},
        bad_model{"missing_shard",
                  [](auto& m) {
                    fs::remove(m.folder() / "model.safetensors");
                    m.write("model.safetensors.index.json", R"({"weight_map":{"lm_head.weight":"m-1.safetensors"}})");
                  },
                  "m-1.safetensors", "cannot be opened"},
        bad_model{"broken_index",
                  [](auto& m) {
                    fs::remove(m.folder() / "model.safetensors");
                    m.write("model.safetensors.index.json", "{\"weight_map\":");
                  },
                  "model.safetensors.index.json", "no valid JSON"}),
    by_name);

INSTANTIATE_TEST_SUITE_P(
    configurations, bad_models,
    testing::Values(
        bad_model{"missing", [](auto& m) { fs::remove(m.folder() / "config.json"); }, "config.json", ""},
        bad_model{"broken", [](auto& m) { m.write("config.json", "{\"model_type\": \"mistral\","); }, "config.json",
                  "no valid JSON"},
        bad_model{"deep", [](auto& m) { m.write("config.json", "{\"a\":" + std::string(100000, '[')); }, "config.json",
                  ""},
        bad_model{"unknown_architecture",
                  [](auto& m) {
                    m.edit_config([](json& c) {
                      c["model_type"] = "mamba";
                      c["architectures"] = {"MambaForCausalLM"};
                    });
                  },
                  "config.json", "mamba"},
        bad_model{"unknown_activation", [](auto& m) { m.edit_config([](json& c) { c["hidden_act"] = "relu6"; }); },
                  "config.json", "relu6"},
        bad_model{"no_layers", [](auto& m) { m.edit_config([](json& c) { c["num_hidden_layers"] = 0; }); },
                  "config.json", "num_hidden_layers"},
        bad_model{"negative", [](auto& m) { m.edit_config([](json& c) { c["vocab_size"] = -5; }); }, "config.json",
                  "vocab_size"},
        bad_model{"hostile_size", [](auto& m) { m.edit_config([](json& c) { c["intermediate_size"] = 1ull << 62; }); },
                  "config.json", "intermediate_size"},
        bad_model{"hostile_layers",
                  [](auto& m) { m.edit_config([](json& c) { c["num_hidden_layers"] = 2000000000; }); }, "config.json",
                  "layers"},
        bad_model{"a_text_for_a_number", [](auto& m) { m.edit_config([](json& c) { c["hidden_size"] = "32"; }); },
                  "config.json", "hidden_size"},
        bad_model{"uneven_heads", [](auto& m) { m.edit_config([](json& c) { c["num_key_value_heads"] = 3; }); },
                  "config.json", "key-value heads"}),
    by_name);

struct bad_gguf_model {
  std::string name;
  std::function<std::string()> build;
  std::string cause;
};

class bad_gguf_models : public bad_models {
 protected:
  void refuse_file(const std::string& bytes, const std::string& cause) const {
    all_refuse(folder().write("spoilt.gguf", bytes).string(), "spoilt.gguf", cause);
  }
};

TEST_F(bad_gguf_models, are_refused_by_file_and_cause) {
  const std::string whole = gguf_model().build();
  refuse_file(whole.substr(0, whole.size() / 2), "cut off");
  refuse_file(whole.substr(0, 200), "spoilt.gguf");
  refuse_file("GGUF" + raw<std::uint32_t>(3) + std::string(16, '\xff'), "number of tensors");
  refuse_file("not a model", "GGUF");
  std::string other = whole;
  other.replace(other.find("general.architecture") + 32, 5, "mamba");
  refuse_file(other, "mamba");
  gguf_model with_unknown_type;
  with_unknown_type.builder().tensor_at("extra.weight", {256}, 77, 0);
  refuse_file(with_unknown_type.build(), "77");
}

using odd_weights = program;

TEST_F(odd_weights, are_not_measured) {
  const fs::path model = readable_model();
  const std::string whole = read_file(model / "model-00002-of-00002.safetensors");
  const auto text = folder().write("text", "HELLO").string();
  const auto expect_with = [&](char byte, int code, const std::string& cause) {
    std::string weights = whole;
    std::fill(weights.end() - 64, weights.end(), byte);
    folder().write("readable/model-00002-of-00002.safetensors", weights);
    expect_one_line(run({"eval", model.string(), "--text", text}), code, cause);
  };
  expect_with('\xff', 2, "model.norm.weight");    // no numbers
  expect_with('\x7f', 1, "predicts no numbers");  // as large as floats can be
}

class bad_tokenizers : public bad_models {
 protected:
  void refuse_tokenizer(const std::string& model, const std::string& file, const std::string& cause) const {
    refuses({"generate", model, "--prompt", "Hi"}, file, cause);
    refuses({"inspect", model}, file, cause);
    refuses({"eval", model, "--text", folder().write("text", "Hello there").string()}, file, cause);
  }
};

TEST_F(bad_tokenizers, are_refused_by_file_and_cause) {
  const fs::path model = readable_model();
  const auto with = [&](const std::string& text, const std::string& cause) {
    folder().write("readable/tokenizer.json", text);
    refuse_tokenizer(model.string(), "tokenizer.json", cause);
  };
  const std::string whole = read_file(model / "tokenizer.json");
  const auto changed = [&](const std::function<void(json&)>& change) {
    json all = json::parse(whole);
    change(all);
    return all.dump();
  };
  with(whole.substr(0, whole.size() / 2), "no valid JSON");
  with("", "tokenizer.json");
  with(std::string(100000, '['), "tokenizer.json");
  with(changed([](json& t) { t["model"]["type"] = "WordPiece"; }), "WordPiece");
  with(changed([](json& t) { t["model"]["vocab"]["a"] = 1ull << 60; }), "the id of \"a\"");
  with(changed([](json& t) { t["model"]["merges"] = {"a nothing"}; }), "nothing");
  with(changed([](json& t) { t["normalizer"] = {{"type", "Enchantment"}}; }), "Enchantment");
}

TEST_F(bad_tokenizers, of_unknown_token_types_in_gguf_are_refused) {
  std::string whole = gguf_model().build();
  const std::string key = "tokenizer.ggml.token_type";
  const std::size_t first = whole.find(key) + key.size() + 4 + 4 + 8;  // the list's type, its elements' and their count
  whole.replace(first, 4, raw<std::int32_t>(77));
  const std::string model = folder().write("spoilt.gguf", whole).string();
  refuse_tokenizer(model, "spoilt.gguf", "77");
}

}  // namespace
}  // namespace troupe::test
