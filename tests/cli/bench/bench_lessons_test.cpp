#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class bench_lessons : public program {
 protected:
  std::string llama_ = (golden / "llama").string();
};

TEST_F(bench_lessons, gives_one_lesson_with_its_table_and_plot) {
  const std::string folder = path("lessons").string();
  const result got = run({"bench", "lessons", llama_, "--only", "6", "--threads", "1", "--out", folder});
  EXPECT_EQ(got.code, 0) << got.error;
  for (const char* part : {"latency = ", "Lesson 6: Three streams at once", "one after another", "continuous batch"})
    EXPECT_NE(got.out.find(part), std::string::npos) << part;
  EXPECT_EQ(got.out.find("Lesson 5"), std::string::npos);
  EXPECT_TRUE(read_file(folder + "/6-streams.svg").starts_with("<svg"));
  EXPECT_TRUE(read_file(folder + "/6-streams.md").starts_with("# Lesson 6: Three streams at once\n"));
}

TEST_F(bench_lessons, prints_a_lesson_as_one_line_of_json) {
  const result got =
      run({"bench", "lessons", llama_, "--only", "4", "--threads", "1", "--json", "--keep", "layers.0."});
  EXPECT_EQ(got.code, 0) << got.error;
  const json lesson = json::parse(got.out);
  EXPECT_EQ(lesson["lesson"], 4);
  ASSERT_EQ(lesson["rows"].size(), 6u);
  EXPECT_EQ(lesson["rows"][3]["weights"], "u8, layers.0. kept");
  EXPECT_GT(lesson["rows"][3]["of f32"], lesson["rows"][2]["of f32"]);
  EXPECT_FALSE(lesson["finding"].get<std::string>().empty());
}

TEST_F(bench_lessons, refuses_what_it_cannot_do) {
  const auto refused = [&](const words& arguments, const std::string& part) {
    words all{"bench", "lessons"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const result got = run(all);
    EXPECT_EQ(got.code, 2) << got.error;
    EXPECT_EQ(got.out, "");
    EXPECT_NE(got.error.find(part), std::string::npos) << got.error;
  };
  refused({llama_, "--only", "7"}, "--only");
  refused({path("nowhere").string()}, "nowhere");
  refused({llama_, "--quant", "u9"}, "--quant: unknown quantization 'u9'");
  refused({llama_, "--text", path("nothing.txt").string()}, "nothing.txt");
  refused({llama_, "--out", llama_ + "/config.json/x"}, "--out: ");
}

}  // namespace
}  // namespace troupe::test
