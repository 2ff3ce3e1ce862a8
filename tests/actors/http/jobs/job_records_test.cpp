#include "actors/http/jobs/job_records.hpp"

#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class job_records_kept : public testing::Test {
 protected:
  temp_folder folder_;
  job_records records_{folder_.path() / "files"};
};

TEST_F(job_records_kept, are_found_until_they_are_forgotten) {
  records_.keep("batch_1", R"({"endpoint": "/v1/completions"})");
  records_.keep("ftjob-1", "{}");
  EXPECT_EQ(records_.find("batch_1"), json({{"endpoint", "/v1/completions"}}));
  EXPECT_TRUE(records_.find_batch("batch_1"));
  EXPECT_TRUE(records_.find("ftjob-1"));
  EXPECT_FALSE(records_.find_batch("ftjob-1"));
  records_.forget("batch_1");
  EXPECT_FALSE(records_.find("batch_1"));
}

TEST_F(job_records_kept, are_forgotten_where_a_process_died_before_there_was_a_job) {
  records_.keep("batch_1", "{}");
  records_.keep("batch_2", "{}");
  folder_.write("files/batch_2.json", "{}");
  folder_.write("files/two words.job", "{}");
  job_records later(folder_.path() / "files");
  later.forget_unknown([](const std::string& job) { return job == "batch_1"; });
  EXPECT_TRUE(later.find("batch_1"));
  EXPECT_FALSE(later.find("batch_2"));
  for (const char* other : {"files/batch_2.json", "files/two words.job"})
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / other)) << other;
}

TEST_F(job_records_kept, are_no_files_of_other_names) {
  folder_.write("outside.job", "{}");
  EXPECT_FALSE(records_.find("../outside"));
  records_.forget("../outside");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "outside.job"));
  EXPECT_THROW(records_.keep("../outside", "{}"), input_error);
}

TEST_F(job_records_kept, remember_how_long_outputs_are_also_after_a_restart) {
  records_.keep("batch_1", "{}");
  EXPECT_FALSE(records_.sizes("batch_1"));
  records_.keep_sizes("batch_1", {.answers = 7, .errors = 5});
  EXPECT_EQ(records_.sizes("batch_1")->answers, 7u);
  job_records later(folder_.path() / "files");
  EXPECT_EQ(later.sizes("batch_1")->errors, 5u);
  records_.keep_sizes("batch_2", {.answers = 1});
  EXPECT_FALSE(records_.sizes("batch_2")) << "which has no record";
}

}  // namespace
}  // namespace troupe::test
