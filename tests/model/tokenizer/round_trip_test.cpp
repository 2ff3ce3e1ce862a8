#include "model/tokenizer/sentencepiece_model.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace test;

std::vector<std::filesystem::path> text_files() {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(shared("text"))) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared("text")))
    if (const auto name = entry.path().filename(); entry.is_regular_file() && name != "LICENSE" && name != "SOURCE.txt")
      files.push_back(entry.path());
  EXPECT_FALSE(files.empty());
  return files;
}

class round_trip : public ::testing::TestWithParam<const char*> {};

TEST_P(round_trip, gives_back_every_text_file) {
  const auto file = shared(GetParam());
  TROUPE_NEEDS(file);
  TROUPE_NEEDS(shared("text"));
  const auto tokens = from_json(file);
  for (const auto& path : text_files()) {
    const auto text = read_file(path);
    // Some of the texts have "<|endoftext|>" in them, and models that prefix a space do so behind such a token too.
    const auto ids = tokens->encode(text, {.add_special = true, .parse_special = false});
    EXPECT_TRUE(tokens->decode(ids) == text) << path;
  }
}

INSTANTIATE_TEST_SUITE_P(all, round_trip,
                         ::testing::Values("tokenizers/gpt2/tokenizer.json", "tokenizers/phi3/tokenizer.json",
                                           "models/stories260k/tokenizer.json"),
                         [](const auto& info) {
                           const auto folder = std::filesystem::path(info.param).parent_path();
                           return folder.filename().string();
                         });

TEST(tokenizer_model, gives_the_ids_of_tokenizer_json) {
  const auto json = shared("models/stories260k/tokenizer.json");
  const auto model = shared("models/stories260k/tokenizer.model");
  TROUPE_NEEDS(json);
  TROUPE_NEEDS(model);
  const auto a = from_json(json);
  const auto b = detail::parse_tokenizer_model(read_file(model), "", model.string());
  ASSERT_EQ(a->size(), b->size());
  EXPECT_EQ(a->bos(), b->bos());
  EXPECT_EQ(a->eos(), b->eos());
  EXPECT_TRUE(b->strips_leading_space());
  for (token_id id = 0; id < a->size(); ++id) EXPECT_EQ(a->bytes_of(id), b->bytes_of(id)) << id;
  for (const auto& path : text_files()) {
    const auto text = read_file(path);
    const auto ids = b->encode(text);
    EXPECT_TRUE(a->encode(text) == ids) << path;
    EXPECT_TRUE(b->decode(ids) == text) << path;
  }
  for (const auto* text : {"", " ", "  a", "a  ", "\xC3\xA9\xE6\xB0\xB4\n", "<s>hi</s> there", "\xE2\x96\x81x"})
    EXPECT_EQ(a->encode(text), b->encode(text)) << text;
}

std::string random_bytes(std::mt19937& random, std::size_t length) {
  std::string text(length, '\0');
  for (auto& byte : text) byte = static_cast<char>(random() % 256);
  return text;
}

/// Letters, spaces and characters of many lengths, cut at random: so that broken bytes touch whole words.
std::string ragged_text(std::mt19937& random, std::size_t length) {
  static const std::string source = "the r\xC3\xA9sum\xC3\xA9's  \n12 \xE6\xB0\xB4\xF0\x9F\x98\x80 \t'LL \xC2\xA0!?";
  std::string text;
  while (text.size() < length) {
    const auto at = random() % source.size();
    text += source.substr(at, 1 + random() % 6);
  }
  return text;
}

void expect_bytes_survive(const tokenizer& tokens) {
  std::mt19937 random(7);
  for (int i = 0; i < 10000; ++i) {
    const auto text = i % 2 ? random_bytes(random, random() % 40) : ragged_text(random, random() % 40);
    ASSERT_TRUE(tokens.decode(tokens.encode(text, plain), false) == text) << "round " << i;
  }
}

TEST(round_trip, gives_back_any_bytes_through_gpt2) {
  const auto file = shared("tokenizers/gpt2/tokenizer.json");
  TROUPE_NEEDS(file);
  expect_bytes_survive(*from_json(file));
}

TEST(round_trip, gives_back_any_bytes_through_a_split_pattern) {
  expect_bytes_survive(*from_json(fixture("llama3_like.json")));
}

TEST(round_trip, gives_back_any_bytes_through_byte_fallback) {
  const auto file = shared("models/stories260k/tokenizer.json");
  TROUPE_NEEDS(file);
  expect_bytes_survive(*from_json(file));
}

TEST(long_words, take_no_quadratic_time) {
  const auto bytes = from_json(fixture("llama3_like.json"));
  const auto pieces = from_json(fixture("mistral_like.json"));
  for (const auto& text : {std::string(1 << 20, 'a'), "a" + std::string(1 << 20, ' '), std::string(1 << 20, '\n')}) {
    EXPECT_TRUE(bytes->decode(bytes->encode(text, plain)) == text);
    EXPECT_TRUE(pieces->decode(pieces->encode(text, plain)) == text);
  }
}

}  // namespace
}  // namespace troupe
