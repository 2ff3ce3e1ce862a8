#include <algorithm>

#include <fcntl.h>
#include <sys/file.h>

#include "base/file_descriptor.hpp"
#include "tests/cli/model/gguf_model.hpp"
#include "tests/cli/program.hpp"

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
  for (const std::string scheme : {"f32", "bf16", "u8", "u8g64", "q8", "q4", "u4g32", "mxfp4"}) {
    const auto out = path("as-" + scheme);
    const ran done = run({"quantize", model.string(), "--scheme", scheme, "--out", out.string()});
    ASSERT_EQ(done.code, 0) << done.error;
    EXPECT_EQ(names_in(out), (words{"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}));
    EXPECT_EQ(tokens_of(out), tokens_of(model, {"--quant", scheme})) << scheme;
    const json found = run_json({"inspect", out.string()});
    EXPECT_EQ(found["quantization"], scheme);
    EXPECT_EQ(found["tensors"]["bytes"], found["memory"][scheme]) << scheme;
  }
}

TEST_F(quantize, leaves_a_mixture_the_mixture_that_inspect_shows) {
  const std::string model = (golden / "mixtral").string(), out = path("out").string();
  ASSERT_EQ(run({"quantize", model, "--scheme", "u8", "--out", out}).code, 0);
  for (const std::string& each : {model, out}) {
    const json found = run_json({"inspect", each});
    EXPECT_TRUE(found["experts"] == 5 && found["experts_taken"] == 3);
    EXPECT_NE(run({"inspect", each}).out.find("ffn 40 of 5 experts (a token takes 3)"), std::string::npos);
  }
}

TEST_F(quantize, leaves_a_model_the_states_that_inspect_shows) {
  const std::string model = (golden / "qwen3.5").string(), out = path("out").string();
  ASSERT_EQ(run({"quantize", model, "--scheme", "u8", "--out", out}).code, 0);
  for (const std::string& each : {model, out}) {
    const json found = run_json({"inspect", each});
    EXPECT_EQ(found["state_bytes_per_sequence"], 2 * 4 * (4 * 16 * 32 + 3 * (2 * 2 * 16 + 4 * 32)));
    EXPECT_EQ(found["kv_bytes_per_token"]["f32"], 2 * 4 * 2 * 16) << "of one layer in three";
    EXPECT_NE(run({"inspect", each}).out.find("states        20.5 KiB per sequence"), std::string::npos);
  }
  EXPECT_EQ(run_json({"inspect", (golden / "llama").string()})["state_bytes_per_sequence"], 0);
}

TEST_F(quantize, carries_templates_in_files_of_their_own) {
  const auto model = readable_model();
  folder().write("readable/chat_template.json", "{}");
  fs::create_directory(model / "additional_chat_templates");
  folder().write("readable/additional_chat_templates/tool_use.jinja", "for tools");
  ASSERT_EQ(run({"quantize", model.string(), "--scheme", "u8", "--out", path("out").string()}).code, 0);
  EXPECT_EQ(read_file(path("out") / "additional_chat_templates" / "tool_use.jinja"), "for tools");
  EXPECT_EQ(read_file(path("out") / "chat_template.json"), "{}");
}

TEST_F(quantize, keeps_the_layers_that_are_named) {
  const auto model = (golden / "llama").string();
  const ran done = run(
      {"quantize", model, "--scheme", "q4", "--out", path("out").string(), "--keep", "lm_head", "--keep", "layers.0."});
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(tokens_of(path("out")), tokens_of(model, {"--quant", "q4", "--keep", "lm_head", "--keep", "layers.0."}));
  const json types = run_json({"inspect", path("out").string()})["tensors"]["types"];
  EXPECT_EQ(types["q4"]["tensors"], 5);   // the other layer's
  EXPECT_EQ(types["q8"]["tensors"], 3);   // its keys and values, and the embeddings: q4 spares them
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
  refused(order, "is not empty");
  EXPECT_EQ(names_in(out), (words{"chat_template.jinja", "notes.txt"}));
  words forced = order;
  forced.push_back("--force");
  EXPECT_EQ(run(forced).code, 0);
  EXPECT_EQ(names_in(out),
            (words{"config.json", "model.safetensors", "notes.txt", "tokenizer.json", "tokenizer_config.json"}));
  EXPECT_EQ(run({"quantize", model.string(), "--scheme", "u8", "--out", model.string(), "--force"}).code, 2);
}

TEST_F(quantize, begins_anew_where_it_was_killed) {
  const words command{"quantize", (golden / "llama").string(), "--scheme", "u8", "--out", path("out").string()};
  fs::create_directories(path("out") / ".partial-1");
  folder().write("out/.partial-1/model.safetensors", "half");
  const ran done = run(command);
  EXPECT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(names_in(path("out")), (words{"config.json", "model.safetensors"}));
}

TEST_F(quantize, leaves_alone_what_another_process_writes) {
  const fs::path theirs = path("out") / ".partial-1";
  fs::create_directories(theirs);
  const file_descriptor held(::open(theirs.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.number(), LOCK_EX), 0);
  refused({"quantize", (golden / "llama").string(), "--scheme", "u8", "--out", path("out").string()}, "is not empty");
  EXPECT_TRUE(fs::exists(theirs));
}

TEST_F(quantize, leaves_nothing_behind_when_it_fails) {
  const ran got = run(
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

TEST_F(quantize, runs_and_quantizes_a_gguf_file) {
  const auto model = folder().write("tiny.gguf", gguf_model().build());
  auto expected = expected_tokens("llama", "greedy");
  expected.resize(40);
  EXPECT_EQ(tokens_of(model), expected);
  const ran done = run({"quantize", model.string(), "--scheme", "q8", "--out", path("out").string()});
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
