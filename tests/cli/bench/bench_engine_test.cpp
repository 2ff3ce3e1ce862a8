#include "base/file_descriptor.hpp"
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class bench_engine : public program {};

TEST_F(bench_engine, leaves_no_adapters_behind_where_it_is_interrupted) {
  const std::filesystem::path temporary = folder().path() / "temporary";
  std::filesystem::create_directory(temporary);
  file_descriptor out(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  process child = start(
      {"bench", "engine", (golden / "llama").string(), "--adapters-on-disk", "20000", "--adapter-rank", "1",
       "--decode-context", "4", "--decode-tokens", "1", "--prompt-tokens", "4", "--requests", "1", "--threads", "1"},
      out.number(), out.number(), {"TMPDIR=" + temporary.string()});
  ASSERT_TRUE(is_soon([&] { return !std::filesystem::is_empty(temporary); }, std::chrono::minutes(1)));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 128 + SIGINT);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

TEST_F(bench_engine, refuses_flags_of_a_load_without_one) {
  for (const char* flag : {"--requests", "--sequences"})
    refused({"bench", "engine", (golden / "llama").string(), flag, "4"}, std::string(flag) + " is for --trace or");
}

}  // namespace
}  // namespace troupe::test
