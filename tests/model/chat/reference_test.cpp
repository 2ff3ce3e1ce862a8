#include <gtest/gtest.h>

#include "tests/base/temp_folder.hpp"
#include "tests/model/chat/render.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

// A case holds what the reference rendered ("expected"), or that it refused.
void expect_like_reference(const json& expectation, std::string_view source, const json& variables) {
  const std::string refused = refusal_of(source, variables);
  if (!expectation.contains("expected")) {
    EXPECT_NE(refused, "") << "the reference refuses this";
    return;
  }
  ASSERT_EQ(refused, "");
  EXPECT_EQ(render(source, variables), expectation["expected"].get<std::string>());
}

const json& constructs() {
  static const json loaded = json::parse(test::read_file(template_folder / "constructs.json"));
  return loaded;
}

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  for (const json& section : constructs()["sections"]) names.push_back(section["name"]);
  return names;
}

class chat_constructs : public testing::TestWithParam<std::string> {};

TEST_P(chat_constructs, render_as_the_reference_does) {
  for (const json& section : constructs()["sections"]) {
    if (section["name"] != GetParam()) continue;
    ASSERT_FALSE(section["cases"].empty());
    for (const json& one : section["cases"]) {
      const auto source = one["template"].get<std::string>();
      SCOPED_TRACE(source);
      expect_like_reference(one, source, constructs()["variables"]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(of, chat_constructs, testing::ValuesIn(section_names()),
                         [](const auto& info) { return info.param; });

TEST(chat_templates, in_the_styles_of_current_models_render_as_the_reference_does) {
  const json data = json::parse(test::read_file(template_folder / "renderings.json"));
  ASSERT_FALSE(data["renderings"].empty());
  for (const json& one : data["renderings"]) {
    const auto name = one["template"].get<std::string>();
    const auto conversation = one["conversation"].get<std::string>();
    SCOPED_TRACE(name + " over " + conversation);
    expect_like_reference(one, test::read_file(template_folder / name), data["conversations"][conversation]);
  }
}

TEST(chat_templates, that_models_publish_render_byte_for_byte_as_the_reference_does) {
  const std::filesystem::path folder = test::shared_data / "chat_templates";
  if (!std::filesystem::exists(folder / "vectors.json")) GTEST_SKIP() << "absent: " << folder / "vectors.json";
  const json templates = json::parse(test::read_file(folder / "templates.json"));
  const json vectors = json::parse(test::read_file(folder / "vectors.json"));
  ASSERT_FALSE(vectors.empty());
  for (const json& vector : vectors) {
    const auto name = vector["template"].get<std::string>();
    SCOPED_TRACE(name + " over " + vector["conversation"].get<std::string>());
    json variables = vector;
    for (const char* key : {"template", "conversation", "expected", "error"}) variables.erase(key);
    const auto source = templates[name].get<std::string>();
    expect_like_reference(vector, source, variables);
    if (!vector.contains("error")) continue;
    EXPECT_NE(refusal_of(source, variables).find(vector["error"].get<std::string>()), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe
