#include <poll.h>

#include "base/file_descriptor.hpp"
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class bench_http : public program {};

/// Its clients are a process of their own, which has the same standard output.
TEST_F(bench_http, leaves_no_process_behind_where_it_cannot_begin) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const file_descriptor from(pipe[0]);
  file_descriptor to(pipe[1]);
  process child = start({"bench", "http", "--streams", "1"}, to.number(), to.number(), {"TMPDIR=/nowhere"});
  to.close();
  EXPECT_EQ(child.wait(), 2);
  std::string said(1 << 10, '\0');
  EXPECT_GT(::read(from.number(), said.data(), said.size()), 0) << "why it ended";
  pollfd ended{from.number(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 10'000), 1) << "somebody still has the other end";
}

TEST_F(bench_http, leaves_no_folder_behind_where_it_is_interrupted) {
  const std::filesystem::path temporary = folder().path() / "temporary";
  std::filesystem::create_directory(temporary);
  file_descriptor out(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  process child = start({"bench", "http", "--streams", "1", "--tokens-per-second", "1000", "--seconds", "3600"},
                        out.number(), out.number(), {"TMPDIR=" + temporary.string()});
  ASSERT_TRUE(is_soon([&] { return !std::filesystem::is_empty(temporary); }));
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
}

/// Not the bursts with which it opens and closes all streams.
TEST_F(bench_http, measures_the_tokens_of_the_load_alone) {
  const json seen = run_json({"bench", "http", "--streams", "3", "--tokens-per-second", "40", "--seconds", "0.5"});
  EXPECT_EQ(seen["tokens"], 20);
  EXPECT_EQ(seen["dropped"], 0);
}

TEST_F(bench_http, refuses_a_load_in_which_a_stream_has_no_gap) {
  refused({"bench", "http", "--streams", "1000", "--tokens-per-second", "500", "--seconds", "2"},
          "1000 streams get 1000 tokens");
}

}  // namespace
}  // namespace troupe::test
