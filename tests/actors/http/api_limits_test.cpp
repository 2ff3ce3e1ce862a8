#include "actors/http/jobs/batch_lines.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class api_limits : public api_test {
 protected:
  api_limits() { start("{{ messages[0]['content'] }}"); }

  /// Answers all of a request's `prompts`.
  void give_all(std::size_t prompts) {
    while (prompts-- > 0) {
      const auto begun = gateway_.take<begin_request>();
      for (std::int32_t i = 0; i < begun.engine.sequence.answers; ++i) give(begun, "c", "stop", i);
    }
  }
};

struct limit_of_a_field {
  const char* path;
  const char* field;
  std::size_t most;
  json (*value)(std::size_t count);
  bool are_prompts = false;
};

json copies(std::size_t count, const json& each) {
  return std::vector<json>(count, each);
}

/// docs/API.md has them.
TEST_F(api_limits, of_fields_are_as_documented) {
  const auto texts = [](std::size_t count) { return copies(count, "A"); };
  const auto messages = [](std::size_t count) { return copies(count, {{"role", "user"}, {"content", "A"}}); };
  const std::vector<limit_of_a_field> limits{
      {"/v1/completions", "n", 128, [](std::size_t count) { return json(count); }},
      {"/v1/completions", "prompt", 2048, texts, true},
      {"/v1/embeddings", "input", 2048, texts, true},
      {"/v1/chat/completions", "messages", 10'000, messages}};
  for (const limit_of_a_field& each : limits) {
    SCOPED_TRACE(each.field);
    json body{{"prompt", "A"}};
    body[each.field] = each.value(each.most);
    auto answer = post(each.path, body);
    give_all(each.are_prompts ? each.most : 1);
    EXPECT_EQ(answer.get().status, 200);
    body[each.field] = each.value(each.most + 1);
    EXPECT_EQ(error_of(each.path, body, 400)["param"], each.field);
  }
}

TEST_F(api_limits, of_a_batchs_lines_is_as_documented) {
  constexpr std::size_t most = 100'000;
  std::string file;
  const auto add_line = [&](std::size_t number) {
    file += fmt::format("{{\"custom_id\":\"{}\",\"url\":\"/v1/embeddings\",\"body\":{{\"input\":\"A\"}}}}\n", number);
  };
  for (std::size_t i = 0; i < most; ++i) add_line(i);
  EXPECT_EQ(job_lines_of(file, "/v1/embeddings", served()).size(), most);
  add_line(most);
  EXPECT_THROW(job_lines_of(file, "/v1/embeddings", served()), input_error);
}

}  // namespace
}  // namespace troupe::test
