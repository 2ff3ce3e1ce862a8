#include <unistd.h>

#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace testing_support;
namespace fs = std::filesystem;

class load_tokenizer_from : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(::testing::TempDir()) / fmt::format("troupe_{}_{}", info->name(), ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }

  fs::path folder_;
};

TEST_F(load_tokenizer_from, a_folder_with_tokenizer_json_and_its_configuration) {
  write("tokenizer.json", tiny_json(R"({"a":0,"b":1,"ab":2})", R"(["a b"])"));
  write("tokenizer.model", "not looked at");
  write("tokenizer_config.json", R"({"add_eos_token":true,"eos_token":"b"})");
  EXPECT_EQ(load_tokenizer(folder_)->encode("ab"), (std::vector<token_id>{2, 1}));
}

TEST_F(load_tokenizer_from, a_folder_with_tokenizer_model) {
  const auto model = shared("models/stories260k/tokenizer.model");
  TROUPE_NEEDS(model);
  write("tokenizer.model", read(model));
  const auto tokens = load_tokenizer(folder_);
  EXPECT_EQ(tokens->encode("a").front(), 1);
  EXPECT_EQ(tokens->encode("<s>a", plain).front(), 1);
  EXPECT_EQ(tokens->decode(tokens->encode("once  upon")), "once  upon");
  write("tokenizer_config.json", R"({"add_bos_token":false,"added_tokens_decoder":{"512":{"content":"<x>"}}})");
  const auto more = load_tokenizer(folder_);
  EXPECT_NE(more->encode("a").front(), 1);
  EXPECT_EQ(more->encode("a<x>").back(), 512);
  EXPECT_EQ(more->size(), 513);
}

TEST_F(load_tokenizer_from, a_tokenizer_model_that_puts_spaces_otherwise_is_refused) {
  const auto model = shared("models/stories260k/tokenizer.model");
  TROUPE_NEEDS(model);
  write("tokenizer.model", read(model));
  for (const char* flag : {"legacy", "add_prefix_space"}) {
    write("tokenizer_config.json", fmt::format(R"({{"{}":false}})", flag));
    EXPECT_NE(refusal([&] { load_tokenizer(folder_); }).find("needs a tokenizer.json"), std::string::npos);
  }
}

TEST_F(load_tokenizer_from, a_folder_with_a_broken_file_is_refused_by_its_name) {
  write("tokenizer.model", "\x0A\xFF\xFF\xFF\xFF\xFFnonsense");
  EXPECT_NE(refusal([&] { load_tokenizer(folder_); }).find("tokenizer.model"), std::string::npos);
  write("tokenizer.json", "{");
  EXPECT_NE(refusal([&] { load_tokenizer(folder_); }).find("tokenizer.json"), std::string::npos);
  write("tokenizer.json", "");
  EXPECT_NE(refusal([&] { load_tokenizer(folder_); }).find("is empty"), std::string::npos);
}

TEST_F(load_tokenizer_from, a_folder_without_a_tokenizer_is_refused_with_a_remedy) {
  EXPECT_NE(refusal([&] { load_tokenizer(folder_); }).find("put tokenizer.json"), std::string::npos);
}

}  // namespace
}  // namespace troupe
