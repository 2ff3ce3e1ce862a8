#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class bench_lessons : public program {
 protected:
  std::string llama_ = (golden / "llama").string();
};

TEST_F(bench_lessons, gives_one_lesson_with_its_table_and_plot) {
  const std::string folder = path("lessons").string();
  const ran got = run({"bench", "lessons", llama_, "--only", "6", "--threads", "1", "--out", folder});
  EXPECT_EQ(got.code, 0) << got.error;
  for (const char* part : {"latency = ", "Lesson 6: Three streams at once", "one after another", "continuous batch"})
    EXPECT_NE(got.out.find(part), std::string::npos) << part;
  EXPECT_EQ(got.out.find("Lesson 5"), std::string::npos);
  EXPECT_TRUE(read_file(folder + "/6-streams.svg").starts_with("<svg"));
  EXPECT_TRUE(read_file(folder + "/6-streams.md").starts_with("# Lesson 6: Three streams at once\n"));
}

TEST_F(bench_lessons, prints_a_lesson_as_one_line_of_json) {
  const ran got = run({"bench", "lessons", llama_, "--only", "4", "--threads", "1", "--json", "--keep", "layers.0."});
  EXPECT_EQ(got.code, 0) << got.error;
  const json lesson = json::parse(got.out);
  EXPECT_EQ(lesson["lesson"], 4);
  ASSERT_EQ(lesson["rows"].size(), 6u);
  EXPECT_EQ(lesson["rows"][3]["weights"], "u8, layers.0. kept");
  EXPECT_GT(lesson["rows"][3]["of f32"], lesson["rows"][2]["of f32"]);
  EXPECT_FALSE(lesson["finding"].get<std::string>().empty());
}

TEST_F(bench_lessons, have_numbers_in_json_where_rows_are_numbers) {
  const ran got = run({"bench", "lessons", llama_, "--only", "2", "--threads", "1", "--json"});
  EXPECT_EQ(got.code, 0) << got.error;
  const json lesson = json::parse(got.out);
  EXPECT_EQ(lesson["rows"][0]["batch"], 1);
  EXPECT_EQ(lesson["rows"][1]["batch"], 2);
}

TEST_F(bench_lessons, leave_out_the_one_about_schemes_where_the_model_has_one_already) {
  const std::string model = path("q8").string();
  ASSERT_EQ(run({"quantize", llama_, "--scheme", "q8", "--out", model}).code, 0);
  const ran got = run({"bench", "lessons", model, "--threads", "1"});
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_EQ(got.out.find("Lesson 4"), std::string::npos) << got.out;
  for (const char* part : {"Lesson 3", "Lesson 5", "Lesson 6"})
    EXPECT_NE(got.out.find(part), std::string::npos) << part;
  EXPECT_NE(got.error.find("left out: lesson 4 compares schemes"), std::string::npos) << got.error;
  refused({"bench", "lessons", model, "--only", "4"}, "quantized already");
}

/// It has 160 of them.
TEST_F(bench_lessons, leave_out_what_takes_more_positions_than_the_model_has) {
  const std::string gpt2 = (golden / "gpt2").string();
  const ran got = run({"bench", "lessons", gpt2, "--threads", "1"});
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_EQ(got.out.find("Lesson 3"), std::string::npos) << got.out;
  for (const char* part : {"Lesson 1", "Lesson 2", "Lesson 4", "Lesson 5", "Lesson 6"})
    EXPECT_NE(got.out.find(part), std::string::npos) << part;
  EXPECT_NE(got.error.find("left out: lesson 3 takes 189 positions"), std::string::npos) << got.error;
  refused({"bench", "lessons", gpt2, "--only", "3"}, gpt2 + " has 160");
}

TEST_F(bench_lessons, look_for_a_use_of_the_text_before_the_first_lesson) {
  const std::string text = folder().write("text", "A bear went to the lake.").string();
  refused({"bench", "lessons", llama_, "--text", text, "--only", "1"}, "--text: lesson 1 measures no perplexity");
  refused({"bench", "lessons", llama_, "--text", text}, llama_ + ": has no tokenizer");
}

TEST_F(bench_lessons, name_the_temporary_folder_that_cannot_be_written) {
  const std::string file = folder().write("file", "no folder").string();
  const ran got = run({"bench", "lessons"}, {"TMPDIR=" + file});
  EXPECT_EQ(got.code, 2) << got.error;
  EXPECT_NE(got.error.find(file + "/troupe-lessons-"), std::string::npos) << got.error;
  EXPECT_NE(got.error.find("set TMPDIR"), std::string::npos) << got.error;
}

TEST_F(bench_lessons, refuses_what_it_cannot_do) {
  const auto refused = [&](const words& arguments, const std::string& part) {
    words all{"bench", "lessons"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ran got = run(all);
    EXPECT_EQ(got.code, 2) << got.error;
    EXPECT_EQ(got.out, "");
    EXPECT_NE(got.error.find(part), std::string::npos) << got.error;
  };
  refused({llama_, "--only", "7"}, "--only");
  refused({path("nowhere").string()}, "nowhere");
  refused({llama_, "--quant", "u9"}, "--quant: unknown quantization 'u9'");
  refused({llama_, "--text", path("nothing.txt").string()}, "nothing.txt");
  refused({llama_, "--out", llama_ + "/config.json/x"}, "/config.json/x: cannot be written");
}

}  // namespace
}  // namespace troupe::test
