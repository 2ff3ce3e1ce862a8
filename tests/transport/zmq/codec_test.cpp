#include "transport/zmq/codec.hpp"

#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace troupe {
namespace {

enum class colour : std::uint8_t { red, green, blue };
constexpr colour last_enumerator(colour) {
  return colour::blue;
}
enum class open_enum : std::int16_t { one = 1 };

using block = strong_id<struct block_tag, std::int32_t>;

struct point {
  float x = 0;
  std::string label = "not empty by default";
  friend bool operator==(const point&, const point&) = default;
  auto fields() { return std::tie(x, label); }
};

struct everything {
  bool yes = false;
  std::int64_t number = 0;
  double real = 0;
  colour shade = colour::red;
  open_enum any{};
  block id;
  std::string text;
  std::vector<float> floats;
  std::vector<block> blocks;
  std::vector<point> points;
  std::vector<std::vector<std::string>> texts;
  std::vector<colour> shades;
  std::optional<point> maybe;
  std::optional<bool> perhaps;
  std::pair<std::uint16_t, std::string> both;
  std::array<std::uint64_t, 2> two{};
  friend bool operator==(const everything&, const everything&) = default;
  auto fields() {
    return std::tie(yes, number, real, shade, any, id, text, floats, blocks, points, texts, shades, maybe, perhaps,
                    both, two);
  }
};

struct nothing {
  auto fields() { return std::tie(); }
};

struct nothings {
  std::vector<nothing> many;
  auto fields() { return std::tie(many); }
};

template <class T>
struct just {
  T value{};
  auto fields() { return std::tie(value); }
};

class maker {
 public:
  explicit maker(unsigned seed) : random_(seed) {}
  std::size_t below(std::size_t limit) { return random_() % limit; }
  std::string text() { return std::string(below(20), static_cast<char>('a' + below(26))); }
  point some_point() { return {static_cast<float>(below(1000)) / 8, text()}; }
  template <class Make>
  auto several(Make make) {
    std::vector<decltype(make())> all(below(5));
    for (auto& one : all) one = make();
    return all;
  }
  everything make() {
    everything made;
    made.yes = below(2) == 1;
    made.number = static_cast<std::int64_t>(random_()) - (1ll << 31);
    made.real = static_cast<double>(random_()) / 3;
    made.shade = static_cast<colour>(below(3));
    made.any = static_cast<open_enum>(below(1000));
    made.id = block(static_cast<std::int32_t>(random_()));
    made.text = text();
    made.floats = several([&] { return static_cast<float>(below(99)); });
    made.blocks = several([&] { return block(static_cast<std::int32_t>(below(99))); });
    made.points = several([&] { return some_point(); });
    made.texts = several([&] { return several([&] { return text(); }); });
    made.shades = several([&] { return static_cast<colour>(below(3)); });
    if (below(2) == 1) made.maybe = some_point();
    if (below(2) == 1) made.perhaps = below(2) == 1;
    made.both = {static_cast<std::uint16_t>(below(65536)), text()};
    made.two = {random_(), random_()};
    return made;
  }

 private:
  std::mt19937 random_;
};

std::vector<std::byte> bytes_of_count(std::uint64_t count) {
  return encode(just<std::uint64_t>{count});
}

TEST(codec, whatever_is_encoded_comes_back) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const everything made = maker(seed).make();
    const auto back = decode<everything>(encode(made));
    ASSERT_TRUE(back) << seed;
    EXPECT_EQ(*back, made) << seed;
  }
}

TEST(codec, every_truncation_is_refused) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const auto bytes = encode(maker(seed).make());
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_FALSE(decode<everything>(std::span(bytes).first(length))) << seed << " at " << length;
  }
}

TEST(codec, what_follows_the_end_is_refused) {
  auto bytes = encode(maker(1).make());
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode<everything>(bytes).error(), codec_error::trailing_bytes);
}

TEST(codec, changed_bytes_give_an_error_or_a_message_that_encodes_to_them) {
  std::mt19937 random(5);
  for (unsigned seed = 0; seed < 2000; ++seed) {
    auto bytes = encode(maker(seed).make());
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    const auto back = decode<everything>(bytes);
    EXPECT_TRUE(!back || encode(*back) == bytes) << seed;
  }
}

TEST(codec, no_count_is_believed) {
  for (const std::uint64_t count : {~0ull, 1ull << 63, 1ull << 61, 1ull << 32, 9ull, 1ull}) {
    const auto bytes = bytes_of_count(count);
    EXPECT_EQ(decode<just<std::string>>(bytes).error(), codec_error::wrong_length);
    EXPECT_EQ(decode<just<std::vector<double>>>(bytes).error(), codec_error::wrong_length);
    EXPECT_EQ(decode<just<std::vector<std::string>>>(bytes).error(), codec_error::wrong_length);
    EXPECT_EQ(decode<just<std::vector<point>>>(bytes).error(), codec_error::wrong_length);
    EXPECT_EQ(decode<nothings>(bytes).error(), codec_error::wrong_length);
  }
}

TEST(codec, vectors_reserve_no_more_than_could_be_there) {
  // 1,000 bytes for strings: at most 125 counts.
  auto bytes = bytes_of_count(126);
  bytes.resize(1008);
  EXPECT_EQ(decode<just<std::vector<std::string>>>(bytes).error(), codec_error::wrong_length);
  bytes[0] = std::byte{125};
  const auto strings = decode<just<std::vector<std::string>>>(bytes);
  ASSERT_TRUE(strings);
  EXPECT_EQ(strings->value.capacity(), 125u);
}

TEST(codec, bools_are_0_or_1_and_enums_end_at_their_last) {
  const auto two = encode(just<std::uint8_t>{2}), three = encode(just<std::uint8_t>{3});
  EXPECT_EQ(decode<just<bool>>(two).error(), codec_error::wrong_value);
  EXPECT_TRUE(decode<just<colour>>(two));
  EXPECT_EQ(decode<just<colour>>(three).error(), codec_error::wrong_value);
  EXPECT_TRUE(decode<just<open_enum>>(encode(just<std::int16_t>{-5})));
}

TEST(codec, vectors_of_numbers_are_written_as_they_lie) {
  const just<std::vector<std::uint32_t>> numbers{{1, 2, std::numeric_limits<std::uint32_t>::max()}};
  const auto bytes = encode(numbers);
  ASSERT_EQ(bytes.size(), 8 + 3 * 4u);
  EXPECT_EQ(bytes[0], std::byte{3});
  EXPECT_EQ(bytes[8], std::byte{1});
  EXPECT_EQ(bytes[19], std::byte{0xff});
}

}  // namespace
}  // namespace troupe
