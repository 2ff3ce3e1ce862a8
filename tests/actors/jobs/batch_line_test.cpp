#include "actors/jobs/batch_line.hpp"

#include <string>

#include <gtest/gtest.h>

#include "tests/base/refusal.hpp"

namespace troupe::test {
namespace {

std::string refused_line(const std::string& text) {
  return refusal([&] { (void)read_batch_line(text, "", 0); });
}

TEST(batch_line, says_which_key_is_meant) {
  EXPECT_EQ(refused_line(R"({"promt":"x"})"), R"(unknown key "promt": did you mean "prompt"?)");
  EXPECT_EQ(refused_line(R"({"prompt":"x","guided_jsn":{}})"),
            R"(unknown key "guided_jsn": did you mean "guided_json"?)");
  EXPECT_EQ(refusal([] { (void)read_batch_terms(R"({"wieght":2})"); }),
            R"(options: unknown key "wieght": did you mean "weight"?)");
}

TEST(batch_line, says_all_keys_where_none_is_near) {
  const std::string said = refused_line(R"({"prompt":"x","nonsense":1})");
  EXPECT_EQ(said.rfind(R"(unknown key "nonsense": adapter, max_tokens, )", 0), 0u) << said;
  EXPECT_NE(said.find(", grammar, prompt, messages, tokens, custom_id are known"), said.npos) << said;
}

TEST(batch_line, refuses_a_custom_id_that_would_make_every_output_long) {
  const auto line = [](std::size_t length) {
    return R"({"prompt":"x","custom_id":")" + std::string(length, 'i') + "\"}";
  };
  EXPECT_EQ(refused_line(line(512)), "");
  EXPECT_EQ(refused_line(line(513)), "custom_id has 513 bytes: use at most 512");
  EXPECT_EQ(custom_id_of(line(513)), "") << "its error does not repeat it either";
}

TEST(batch_line, has_the_seed_that_was_drawn_for_it_where_it_asks_for_one) {
  const auto seed = [](const char* line, const char* options) {
    return read_batch_line(line, options, 42).asked.order.sampling.seed;
  };
  const char *says_nothing = R"({"prompt":"x"})", *drawn = R"({"prompt":"x","seed":-1})";
  EXPECT_EQ(seed(says_nothing, ""), 0u);
  EXPECT_EQ(seed(drawn, ""), 42u);
  EXPECT_EQ(seed(drawn, R"({"seed":7})"), 42u);
  EXPECT_EQ(seed(says_nothing, R"({"seed":7})"), 7u);
  EXPECT_EQ(seed(says_nothing, R"({"seed":-1})"), 42u);
  EXPECT_EQ(seed(R"({"prompt":"x","seed":3})", R"({"seed":-1})"), 3u);
}

TEST(batch_line, takes_openais_newer_name_for_the_most_tokens) {
  const auto most = [](const char* line, const char* options) {
    return read_batch_line(line, options, 0).asked.order.sampling.max_tokens;
  };
  EXPECT_EQ(most(R"({"prompt":"x","max_completion_tokens":5})", ""), 5);
  EXPECT_EQ(most(R"({"prompt":"x","max_completion_tokens":5})", R"({"max_tokens":7})"), 5);
  EXPECT_EQ(most(R"({"prompt":"x","max_tokens":7})", R"({"max_completion_tokens":5})"), 7);
}

TEST(batch_line, says_what_a_model_is_called) {
  const std::string said = R"("model" is called "adapter" here: name one, or leave it out for the model itself)";
  EXPECT_EQ(refused_line(R"({"prompt":"x","model":"law"})"), said);
}

}  // namespace
}  // namespace troupe::test
