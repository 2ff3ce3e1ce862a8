#include "base/utf8.hpp"
#include "tests/model/tokenizer/listed_tokens.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe {
namespace {

using namespace test;

/// Every token is one byte, two tokens more: 256 is special, 257 writes " x".
class byte_tokenizer final : public listed_tokens {
 public:
  explicit byte_tokenizer(bool strips) : strips_(strips) {
    add_bytes();
    texts_.insert(texts_.end(), {"<s>", " x"});
  }
  bool strips_leading_space() const override { return strips_; }
  bool is_special(token_id id) const override { return id == 256; }

 private:
  bool strips_;
};

token_id id_of(char byte) {
  return static_cast<unsigned char>(byte);
}

TEST(stream_decoder, holds_bytes_back_until_they_are_a_character) {
  const byte_tokenizer tokens(false);
  stream_decoder decoder(tokens);
  EXPECT_EQ(decoder.push(id_of('\xF0')), "");
  EXPECT_EQ(decoder.push(id_of('\x9F')), "");
  EXPECT_EQ(decoder.push(id_of('\x98')), "");
  EXPECT_EQ(decoder.push(id_of('\x80')), "\U0001f600");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(stream_decoder, replaces_broken_bytes) {
  const byte_tokenizer tokens(false);
  stream_decoder decoder(tokens);
  EXPECT_EQ(decoder.push(id_of('\xE6')), "");
  EXPECT_EQ(decoder.push(id_of('a')), "\uFFFDa");
  EXPECT_EQ(decoder.push(id_of('\xFF')), "\uFFFD");
  EXPECT_EQ(decoder.push(id_of('\xC3')), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(stream_decoder, takes_one_leading_space_away) {
  const byte_tokenizer tokens(true);
  stream_decoder decoder(tokens);
  EXPECT_EQ(decoder.push(256), "");
  EXPECT_EQ(decoder.push(257), "x");
  EXPECT_EQ(decoder.push(257), " x");
}

TEST(stream_decoder, keeps_the_space_behind_a_special_token_that_shows) {
  const byte_tokenizer tokens(true);
  stream_decoder decoder(tokens, false);
  EXPECT_EQ(decoder.push(256), "<s>");
  EXPECT_EQ(decoder.push(257), " x");
}

TEST(stream_decoder, ignores_ids_that_are_no_tokens) {
  const byte_tokenizer tokens(true);
  stream_decoder decoder(tokens);
  EXPECT_EQ(decoder.push(-1), "");
  EXPECT_EQ(decoder.push(1 << 30), "");
  EXPECT_EQ(decoder.push(257), "x");
}

TEST(stream_decoder, writes_what_decode_writes_in_whole_characters) {
  for (const auto* name : {"llama3_like.json", "mistral_like.json"}) {
    const auto tokens = from_json(fixture(name));
    const std::string text = " Se\u00f1or \U0001f469\u200d\U0001f680 \u6c34\u8eca  e\u0301 <|start|> the end\n";
    const auto ids = tokens->encode(text);
    stream_decoder decoder(*tokens);
    std::string all;
    for (const auto id : ids) {
      const auto part = decoder.push(id);
      EXPECT_EQ(valid_stretch(part, 0), part);
      all += part;
    }
    EXPECT_EQ(all + decoder.finish(), tokens->decode(ids)) << name;
  }
}

}  // namespace
}  // namespace troupe
