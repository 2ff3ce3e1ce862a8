#include "tests/base/temp_folder.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace test;

TEST(load_tokenizer_from, a_folder_with_tokenizer_json_and_its_configuration) {
  const temp_folder folder;
  folder.write("tokenizer.json", tiny_json(R"({"a":0,"b":1,"ab":2,"</s>":3})", R"(["a b"])"));
  folder.write("tokenizer.model", "not looked at");
  folder.write("tokenizer_config.json", R"({"add_eos_token":true,"eos_token":"</s>"})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("ab"), (std::vector<token_id>{2, 3}));
}

TEST(load_tokenizer_from, a_folder_with_special_tokens_in_a_file_of_their_own) {
  const temp_folder folder;
  folder.write("tokenizer.json", tiny_json(R"({"a":0,"b":1,"ab":2,"<s>":3,"</s>":4})", R"(["a b"])"));
  folder.write("special_tokens_map.json", R"({"bos_token":{"content":"<s>"},"additional_special_tokens":["ab"]})");
  EXPECT_EQ(load_tokenizer(folder.path())->bos(), 3);
  folder.write("tokenizer_config.json", R"({"bos_token":"a","eos_token":"</s>","additional_special_tokens":["b"]})");
  const auto both = load_tokenizer(folder.path());
  EXPECT_EQ(both->bos(), 3);
  EXPECT_EQ(both->eos(), 4);
  EXPECT_TRUE(both->is_special(1) && both->is_special(2));
  folder.write("tokenizer_config.json", R"({"bos_token":"a","added_tokens_decoder":{}})");
  EXPECT_EQ(load_tokenizer(folder.path())->bos(), 0) << "of a folder that lists its added tokens";
  folder.write("tokenizer_config.json", "{}");
  folder.write("special_tokens_map.json", "[]");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("special_tokens_map.json: should be"),
            std::string::npos);
}

TEST(load_tokenizer_from, a_folder_with_added_tokens_in_a_file_of_their_own) {
  const temp_folder folder;
  folder.write("tokenizer.json", tiny_json(R"({"a":0,"b":1,"ab":2})", R"(["a b"])"));
  folder.write("added_tokens.json", R"({"<x>":4,"<y>":3})");
  folder.write("tokenizer_config.json", R"({"eos_token":"<y>"})");
  const auto tokens = load_tokenizer(folder.path());
  EXPECT_EQ(tokens->encode("ab<x>a<y>"), (std::vector<token_id>{2, 4, 0, 3}));
  EXPECT_EQ(tokens->eos(), 3);
  EXPECT_TRUE(tokens->is_special(3));
  EXPECT_FALSE(tokens->is_special(4));
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder":{"3":{"content":"<z>"}}})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("<z>"), std::vector<token_id>{3}) << "the newer list alone counts";
  folder.write("tokenizer_config.json", "{}");
  folder.write("added_tokens.json", R"({"<x>":"4"})");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("added_tokens.json: \"<x>\" should have a token id"),
            std::string::npos);
}

TEST(load_tokenizer_from, nothing_that_is_no_whole_tokenizer_says_what_to_do) {
  const temp_folder folder;
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("put tokenizer.json or tokenizer.model there"),
            std::string::npos);
  folder.write("vocab.json", "{}");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("vocab.json is not read: let transformers write"),
            std::string::npos);
  for (const char* kind : {"none", "no_vocab", "gpt2"}) {
    gguf_builder file;
    file.string("tokenizer.ggml.model", kind).strings("tokenizer.ggml.tokens", {"a"});
    EXPECT_EQ(tokenizer_kind(folder.write("m.gguf", file.build())), std::string(kind) == "gpt2" ? "GGUF" : "");
  }
}

TEST(load_tokenizer_from, a_folder_with_tokenizer_model) {
  const temp_folder folder;
  const auto model = shared("models/stories260k/tokenizer.model");
  TROUPE_NEEDS(model);
  folder.write("tokenizer.model", read_file(model));
  const auto tokens = load_tokenizer(folder.path());
  EXPECT_EQ(tokens->encode("a").front(), 1);
  EXPECT_EQ(tokens->encode("<s>a", plain).front(), 1);
  EXPECT_EQ(tokens->decode(tokens->encode("once  upon")), "once  upon");
  folder.write("tokenizer_config.json", R"({"add_bos_token":false,"added_tokens_decoder":{"512":{"content":"<x>"}}})");
  const auto more = load_tokenizer(folder.path());
  EXPECT_NE(more->encode("a").front(), 1);
  EXPECT_EQ(more->encode("a<x>").back(), 512);
  EXPECT_EQ(more->size(), 513);
  folder.write("tokenizer_config.json", "{}");
  folder.write("added_tokens.json", R"({"<x>":512})");
  EXPECT_EQ(load_tokenizer(folder.path())->encode("a<x>").back(), 512);
}

TEST(load_tokenizer_from, a_tokenizer_model_that_puts_spaces_otherwise_is_refused) {
  const temp_folder folder;
  const auto model = shared("models/stories260k/tokenizer.model");
  TROUPE_NEEDS(model);
  folder.write("tokenizer.model", read_file(model));
  for (const char* flag : {"legacy", "add_prefix_space"}) {
    folder.write("tokenizer_config.json", fmt::format(R"({{"{}":false}})", flag));
    EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("needs a tokenizer.json"), std::string::npos);
  }
}

TEST(load_tokenizer_from, a_folder_with_a_broken_file_is_refused_by_its_name) {
  const temp_folder folder;
  folder.write("tokenizer.model", "\x0A\xFF\xFF\xFF\xFF\xFFnonsense");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("tokenizer.model"), std::string::npos);
  folder.write("tokenizer.json", "{");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("tokenizer.json"), std::string::npos);
  folder.write("tokenizer.json", "");
  EXPECT_NE(refusal([&] { load_tokenizer(folder.path()); }).find("is empty"), std::string::npos);
}

}  // namespace
}  // namespace troupe
