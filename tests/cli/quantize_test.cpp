#include <array>

#include "tests/cli/program.hpp"
#include "tests/model/formats/gguf_builder.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

class quantize : public program {
 protected:
  json tokens_of(const fs::path& model, const words& more = {}) const {
    words all{"generate",     model.string(),
              "--tokens",     comma_separated(expected_tokens("llama", "prompt")),
              "--max-tokens", "40"};
    all.insert(all.end(), more.begin(), more.end());
    return run_json(all)["tokens"];
  }
  std::vector<std::string> names_in(const fs::path& folder) const {
    std::vector<std::string> names;
    for (const auto& each : fs::directory_iterator(folder)) names.push_back(each.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
};

TEST_F(quantize, writes_a_folder_that_gives_the_same_tokens) {
  const auto model = readable_model();
  for (const std::string scheme : {"f32", "bf16", "u8", "u8g64", "q8", "q4"}) {
    const auto out = path("as-" + scheme);
    const result done = run({"quantize", model.string(), "--scheme", scheme, "--out", out.string()});
    ASSERT_EQ(done.code, 0) << done.error;
    EXPECT_EQ(names_in(out), (words{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}));
    EXPECT_EQ(tokens_of(out), tokens_of(model, {"--quant", scheme})) << scheme;
    EXPECT_EQ(run_json({"inspect", out.string()})["quantization"], scheme);
  }
}

TEST_F(quantize, keeps_the_layers_that_are_named) {
  const auto model = (golden / "llama").string();
  const result done =
      run({"quantize", model, "--scheme", "q4", "--out", path("out").string(), "--keep", "lm_head", "layers.0."});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(tokens_of(path("out")), tokens_of(model, {"--quant", "q4", "--keep", "lm_head", "--keep", "layers.0."}));
  const json types = run_json({"inspect", path("out").string()})["tensors"]["types"];
  EXPECT_EQ(types["q4"]["tensors"], 8);   // the other layer's and the embeddings
  EXPECT_EQ(types["f32"]["tensors"], 8);  // a layer's seven and the head
  EXPECT_EQ(types["F32"]["tensors"], 5);  // the norms
}

TEST_F(quantize, will_not_write_over_other_files_unless_forced) {
  const auto model = readable_model();
  const auto out = path("out");
  fs::create_directory(out);
  folder().write("out/notes.txt", "mine");
  folder().write("out/chat_template.jinja", "of another model");
  const words order{"quantize", model.string(), "--scheme", "u8", "--out", out.string()};
  const result refused = run(order);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(names_in(out), (words{"chat_template.jinja", "notes.txt"}));
  words forced = order;
  forced.push_back("--force");
  EXPECT_EQ(run(forced).code, 0);
  EXPECT_EQ(names_in(out),
            (words{"config.json", "model.safetensors", "notes.txt", "tokenizer.json", "tokenizer_config.json"}));
  EXPECT_EQ(run({"quantize", model.string(), "--scheme", "u8", "--out", model.string(), "--force"}).code, 2);
}

TEST_F(quantize, leaves_nothing_behind_when_it_fails) {
  const result got = run(
      {"quantize", readable_model().string(), "--scheme", "u8", "--out", path("out/").string(), "--keep", "nothing"});
  EXPECT_EQ(got.code, 2);
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(quantize, refuses_what_is_quantized_already) {
  const auto once = path("once").string();
  ASSERT_EQ(run({"quantize", (golden / "llama").string(), "--scheme", "u8", "--out", once}).code, 0);
  EXPECT_EQ(run({"quantize", once, "--scheme", "q4", "--out", path("twice").string()}).error,
            "troupe: " + once + ": is already quantized: quantize the original model\n");
  EXPECT_EQ(run({"generate", once, "--tokens", "1", "--quant", "q4"}).code, 2);
  EXPECT_FALSE(fs::exists(path("twice")));
}

/// The golden llama as a GGUF file with a byte-level vocabulary of one letter a token.
class gguf_model {
 public:
  gguf_model() : source_(open_safetensors(golden / "llama")) {
    metadata();
    tensor("model.embed_tokens", "token_embd");
    tensor("model.norm", "output_norm");
    tensor("lm_head", "output");
    for (int layer = 0; layer < 2; ++layer)
      for (const auto& [ours, theirs, heads] : parts)
        tensor("model.layers." + std::to_string(layer) + "." + ours, "blk." + std::to_string(layer) + "." + theirs,
               heads);
  }
  std::string build() const { return to_.build(); }

 private:
  struct part {
    const char *ours, *theirs;
    std::size_t heads;  ///< > 0: GGUF has the pairs of a rotated head side by side
  };
  static constexpr std::array<part, 9> parts{{{"input_layernorm", "attn_norm", 0},
                                              {"self_attn.q_proj", "attn_q", 4},
                                              {"self_attn.k_proj", "attn_k", 2},
                                              {"self_attn.v_proj", "attn_v", 0},
                                              {"self_attn.o_proj", "attn_output", 0},
                                              {"post_attention_layernorm", "ffn_norm", 0},
                                              {"mlp.gate_proj", "ffn_gate", 0},
                                              {"mlp.up_proj", "ffn_up", 0},
                                              {"mlp.down_proj", "ffn_down", 0}}};

  void metadata() {
    to_.string("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .u32("llama.context_length", 256)
        .u32("llama.embedding_length", 32)
        .u32("llama.feed_forward_length", 44)
        .u32("llama.attention.head_count", 4)
        .u32("llama.attention.head_count_kv", 2)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5f)
        .f32("llama.rope.freq_base", 10000.0f)
        .string("tokenizer.ggml.model", "gpt2")
        .string("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.merges", {})
        .u32("tokenizer.ggml.bos_token_id", 94)
        .u32("tokenizer.ggml.eos_token_id", 95)
        .string("tokenizer.chat_template", "{{ messages[0].content }}!");
    std::vector<std::string> tokens;
    std::string types = raw<std::uint32_t>(5) + raw<std::uint64_t>(96);
    for (int id = 0; id < 94; ++id) tokens.push_back(std::string(1, static_cast<char>('!' + id)));
    tokens.insert(tokens.end(), {"<s>", "</s>"});
    for (int id = 0; id < 96; ++id) types += raw<std::int32_t>(id < 94 ? 1 : 3);
    to_.strings("tokenizer.ggml.tokens", tokens).key("tokenizer.ggml.token_type", 9, types);
  }

  void tensor(const std::string& ours, const std::string& theirs, std::size_t heads = 0) {
    const tensor_view& from = *source_.find(ours + ".weight");
    std::string data(reinterpret_cast<const char*>(from.data.data()), from.data.size());
    const auto rows = static_cast<std::size_t>(from.shape.front());
    const std::size_t row_bytes = data.size() / rows, dim = heads ? rows / heads : 0;
    for (std::size_t head = 0; head < heads; ++head)
      for (std::size_t i = 0; i < dim; ++i) {
        const std::size_t half_split = head * dim + (i % 2) * (dim / 2) + i / 2;
        std::memcpy(data.data() + (head * dim + i) * row_bytes, from.data.data() + half_split * row_bytes, row_bytes);
      }
    to_.tensor(theirs + ".weight", {from.shape.rbegin(), from.shape.rend()}, 0, data);
  }

  tensor_set source_;
  gguf_builder to_;
};

TEST_F(quantize, runs_and_quantizes_a_gguf_file) {
  const auto model = folder().write("tiny.gguf", gguf_model().build());
  auto expected = expected_tokens("llama", "greedy");
  expected.resize(40);
  EXPECT_EQ(tokens_of(model), expected);
  const result done = run({"quantize", model.string(), "--scheme", "q8", "--out", path("out").string()});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(names_in(path("out")), (words{"metadata.gguf", "model.safetensors"}));
  EXPECT_EQ(tokens_of(path("out")), tokens_of(model, {"--quant", "q8"}));
  for (const auto& each : {model, path("out")}) {
    const json chat = run_json({"generate", each.string(), "--prompt", "Hi", "--chat", "--max-tokens", "1"});
    EXPECT_EQ(chat["prompt_tokens"], (std::vector<int>{'H' - '!', 'i' - '!', 0}));
    EXPECT_EQ(run_json({"inspect", each.string()})["tokenizer"]["kind"], "GGUF");
  }
}

}  // namespace
}  // namespace troupe::test
