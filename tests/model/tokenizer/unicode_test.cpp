#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/nfc.hpp"
#include "model/tokenizer/regex.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe::detail {
namespace {

std::string utf8(std::u32string_view text) {
  std::string out;
  for (const auto c : text) append_utf8(out, c);
  return out;
}

TEST(nfc, composes_letters_and_marks) {
  EXPECT_EQ(to_nfc(utf8(U"e\u0301")), utf8(U"\u00e9"));
  EXPECT_EQ(to_nfc(utf8(U"s\u0307\u0323")), utf8(U"\u1e69"));
  EXPECT_EQ(to_nfc(utf8(U"\u1e9b\u0323")), utf8(U"\u1e9b\u0323"));
  EXPECT_EQ(to_nfc(utf8(U"o\u0308\u0304")), utf8(U"\u022b"));
}

TEST(nfc, orders_marks_that_do_not_compose) {
  EXPECT_EQ(to_nfc(utf8(U"x\u0301\u0323")), utf8(U"x\u0323\u0301"));
  EXPECT_EQ(to_nfc(utf8(U"a\u0315\u0300\u05ae\u0062")), utf8(U"\u00e0\u05ae\u0315\u0062"));
}

TEST(nfc, replaces_what_has_another_canonical_form) {
  EXPECT_EQ(to_nfc(utf8(U"\u212b\u2126\uf900")), utf8(U"\u00c5\u03a9\u8c48"));
  EXPECT_EQ(to_nfc(utf8(U"\u0958")), utf8(U"\u0915\u093c"));
  EXPECT_EQ(to_nfc(utf8(U"\u0344")), utf8(U"\u0308\u0301"));
  EXPECT_EQ(to_nfc(utf8(U"\U0001d15f")), utf8(U"\U0001d158\U0001d165"));
}

TEST(nfc, composes_hangul) {
  EXPECT_EQ(to_nfc(utf8(U"\u1100\u1161")), utf8(U"\uac00"));
  EXPECT_EQ(to_nfc(utf8(U"\u1100\u1161\u11a8")), utf8(U"\uac01"));
  EXPECT_EQ(to_nfc(utf8(U"\uac00\u11a8")), utf8(U"\uac01"));
  EXPECT_EQ(to_nfc(utf8(U"\uac01\u11a8")), utf8(U"\uac01\u11a8"));
  EXPECT_EQ(to_nfc(utf8(U"\u1100\u11a8")), utf8(U"\u1100\u11a8"));
}

TEST(nfc, does_not_compose_across_broken_bytes) {
  EXPECT_EQ(to_nfc("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(to_nfc("e\xCC\x81\xFFo\xCC\x81"), "\xC3\xA9\xFF\xC3\xB3");
}

TEST(nfc, leaves_normal_text_alone) {
  for (const auto& text : {utf8(U"plain"), utf8(U"\u00e9\u6c34\u044f\uac00\U0001f600"), std::string("\xFF\x80")}) {
    EXPECT_FALSE(may_need_nfc(text));
    EXPECT_EQ(to_nfc(text), text);
  }
}

TEST(nfc, is_stable) {
  std::mt19937 random(3);
  const std::u32string source = U"aeo\u0301\u0323\u0327\u0344\u0958\u093c\u1100\u1161\u11a8\uac00\u1e69\ufb1d\u05b4";
  for (int i = 0; i < 2000; ++i) {
    std::u32string text;
    for (auto n = random() % 8; n > 0; --n) text += source[random() % source.size()];
    const auto once = to_nfc(utf8(text));
    ASSERT_EQ(to_nfc(once), once);
  }
}

TEST(nfc, sorts_a_million_marks) {
  std::u32string text = U"a";
  for (int i = 0; i < 500000; ++i) text += i % 2 ? U'\u0315' : U'\u0323';
  EXPECT_EQ(to_nfc(utf8(text)).size(), utf8(U"\u1ea1").size() + 2 * (text.size() - 2));
}

TEST(byte_alphabet, spells_every_byte_and_reads_it_back) {
  std::string all(256, '\0');
  for (int i = 0; i < 256; ++i) all[to_size(i)] = static_cast<char>(i);
  EXPECT_EQ(bytes_of_spelling(test::spell(all)), all);
  EXPECT_EQ(test::spell(" the\n"), "\u0120the\u010a");
  EXPECT_EQ(bytes_of_spelling("a b"), std::nullopt);
}

TEST(byte_alphabet, knows_the_names_of_fallback_bytes) {
  EXPECT_EQ(fallback_byte("<0x0A>"), 10);
  EXPECT_EQ(fallback_byte("<0xFF>"), 255);
  for (const auto* name : {"<0xff>", "<0x0A", "<0x0A>>", "<0xG0>", ""}) EXPECT_EQ(fallback_byte(name), std::nullopt);
}

TEST(characters, know_words) {
  for (const char32_t c : {U'a', U'_', U'9', U'\u0301', U'\u6c34', U'\u24b6'}) EXPECT_TRUE(is_word_character(c));
  for (const char32_t c : {U' ', U'-', U'\u00b2', U'\U0001f600'}) EXPECT_FALSE(is_word_character(c));
}

}  // namespace
}  // namespace troupe::detail
