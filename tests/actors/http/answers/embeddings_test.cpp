#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class embeddings : public api_test {
 protected:
  static void give_hidden(const begin_request& to, std::vector<float> hidden) {
    answer_part part;
    part.hidden = std::move(hidden);
    part.end = answer_end{"length", static_cast<std::int64_t>(to.engine.sequence.prompt.size()), {}};
    to.listener->on_part(std::move(part));
  }
};

TEST_F(embeddings, are_the_hidden_states_at_unit_length) {
  auto answer = post("/v1/embeddings", {{"input", {"Hi", "you"}}, {"model", "letters"}});
  auto first = gateway_.take<begin_request>();
  EXPECT_EQ(first.engine.sampling.pooling, hidden_pooling::last);
  give_hidden(first, {3, 4});
  give_hidden(gateway_.take<begin_request>(), {0, -2});
  const json got = answer.get().parsed();
  EXPECT_EQ(got["object"], "list");
  EXPECT_EQ(got["data"][0], json({{"object", "embedding"}, {"index", 0}, {"embedding", {0.6, 0.8}}}));
  EXPECT_EQ(got["data"][1]["embedding"], json({-0.0, -1.0}));
  EXPECT_EQ(got["usage"], json({{"prompt_tokens", 5}, {"total_tokens", 5}}));
  EXPECT_EQ(got["model"], "letters");
}

TEST_F(embeddings, are_made_of_a_text_as_long_as_the_context) {
  const std::string whole(64, 'A');
  auto answer = post("/v1/embeddings", {{"input", whole}});
  give_hidden(gateway_.take<begin_request>(), {3, 4});
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_EQ(error_of("/v1/embeddings", {{"input", whole + "A"}}, 400)["code"], "context_length_exceeded");
}

TEST_F(embeddings, come_as_base64_and_as_they_are) {
  auto answer = post("/v1/embeddings",
                     {{"input", {1, 2, 3}}, {"pooling", "mean"}, {"normalize", false}, {"encoding_format", "base64"}});
  const auto begun = gateway_.take<begin_request>();
  EXPECT_EQ(begun.engine.sequence.prompt, (std::vector<token_id>{1, 2, 3}));
  EXPECT_EQ(begun.engine.sampling.pooling, hidden_pooling::mean);
  give_hidden(begun, {1.0f, -2.5f});
  EXPECT_EQ(answer.get().parsed()["data"][0]["embedding"], "AACAPwAAIMA=");
}

TEST_F(embeddings, are_written_as_other_fields_say_where_these_change_nothing) {
  for (const json& more : {json{{"encoding_format", "base64"}, {"embed_dtype", "float32"}, {"endianness", "little"}},
                           json{{"encoding_format", "base64"}, {"endianness", "native"}},
                           json{{"embed_dtype", "float16"}, {"endianness", "big"}}}) {
    json body{{"input", "A"}};
    body.update(more);
    auto answer = post("/v1/embeddings", body);
    give_hidden(gateway_.take<begin_request>(), {3, 4});
    EXPECT_EQ(answer.get().status, 200) << more;
  }
}

TEST_F(embeddings, refuse_with_the_fields_name) {
  const std::vector<std::pair<json, std::string>> wrong{
      {json::object(), "input"},
      {{{"input", json::array()}}, "input"},
      {{{"input", 3}}, "input"},
      {{{"input", "A"}, {"dimensions", 3}}, "dimensions"},
      {{{"input", "A"}, {"encoding_format", "hex"}}, "encoding_format"},
      {{{"input", "A"}, {"encoding_format", "base64"}, {"embed_dtype", "float16"}}, "embed_dtype"},
      {{{"input", "A"}, {"encoding_format", "base64"}, {"endianness", "big"}}, "endianness"},
      {{{"input", "A"}, {"pooling", "max"}}, "pooling"},
      {{{"input", "A"}, {"return_token_ids", true}}, "return_token_ids"},
      {{{"input", "A"}, {"guided_regex", "a"}}, "guided_regex"}};
  for (const auto& [body, param] : wrong) EXPECT_EQ(error_of("/v1/embeddings", body, 400)["param"], param) << body;
}

}  // namespace
}  // namespace troupe::test
