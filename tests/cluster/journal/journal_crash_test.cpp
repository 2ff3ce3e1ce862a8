// A process that writes into the journal is killed at any moment. What the journal said is done must be there.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <random>
#include <set>

#include "base/to_size.hpp"
#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

constexpr int kills = 20;

// Words are long and the pipe is short, so that a child never gets far ahead of the process that is to kill it.
constexpr std::size_t word_bytes = 1024;
constexpr int pipe_bytes = 4096;

void say_done(int pipe) {
  const std::string word(word_bytes, '.');
  if (write(pipe, word.data(), word.size()) != static_cast<ssize_t>(word.size())) _exit(2);
}

/// Reads until so many words have come in all, or the pipe has ended.
std::size_t listen(int pipe, std::size_t words) {
  std::size_t bytes = 0;
  std::string word(word_bytes, 0);
  while (bytes < words * word_bytes) {
    const ssize_t got = read(pipe, word.data(), word.size());
    if (got <= 0) break;
    bytes += to_size(got);
  }
  return bytes / word_bytes;
}

template <class Work>
[[noreturn]] void run_child(int pipe, Work&& work) {
  try {
    work(pipe);
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

/// Runs `work` in a child with the writing end of a pipe, and kills it when it has written so many words there (or has
/// ended). Returns how many it wrote.
template <class Work>
std::size_t run_and_kill(std::size_t words, Work&& work) {
  int ends[2];
  if (pipe(ends) != 0) return 0;
  fcntl(ends[1], F_SETPIPE_SZ, pipe_bytes);
  const pid_t child = fork();
  if (child == 0) run_child(ends[1], work);
  close(ends[1]);
  std::size_t heard = listen(ends[0], words);
  kill(child, SIGKILL);
  heard += listen(ends[0], SIZE_MAX / word_bytes);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "the child failed by itself";
  return heard;
}

std::string output_of(const job_line& line) {
  return "out of " + line.text;
}

class a_killed_journal : public journal_fixture {
 protected:
  /// Records what is unfinished in small batches, and writes a word after each.
  static void record_rest(journal& to, int pipe, std::size_t batch) {
    for (;;) {
      const auto lines = to.unfinished_lines("j1", 0, batch);
      if (lines.empty()) return;
      std::vector<std::string> texts;
      std::vector<line_record> records;
      for (const auto& line : lines) texts.push_back(output_of(line));
      for (std::size_t i = 0; i < lines.size(); ++i) records.push_back({"j1", lines[i].index, texts[i], true});
      if (!to.record_all(records).ok()) _exit(3);
      say_done(pipe);
    }
  }

  /// Every output belongs to its line, and the counts are right.
  std::size_t check_outputs() {
    std::size_t found = 0;
    std::set<std::uint64_t> unfinished;
    for (const auto& line : book->unfinished_lines("j1", 0, 100000)) unfinished.insert(line.index);
    const job_info job = *book->find("j1");
    EXPECT_EQ(job.line_ok + unfinished.size(), job.spec.lines);
    for (const auto& output : book->outputs("j1", 0, 100000)) {
      EXPECT_FALSE(unfinished.contains(output.index));
      EXPECT_EQ(output.text, "out of {\"line\":" + std::to_string(output.index) + "}");
      ++found;
    }
    return found;
  }
};

TEST_F(a_killed_journal, has_each_recorded_output_once_and_goes_on) {
  constexpr std::size_t batch = 7;
  open();
  accepted("j1", 6000);
  std::mt19937 random(11);
  std::size_t before = 0;
  for (int round = 0; round < kills; ++round) {
    book.reset();
    const std::size_t heard = run_and_kill(1 + random() % 25, [&](int pipe) {
      journal mine(options);
      record_rest(mine, pipe, batch);
    });
    open();
    const std::size_t now = check_outputs();
    EXPECT_GE(now, before + heard * batch) << "what was recorded is lost";
    before = now;
  }
  const auto rest = book->unfinished_lines("j1", 0, 100000);
  EXPECT_FALSE(rest.empty()) << "the kills came too late to prove anything";
  for (const auto& line : rest) EXPECT_TRUE(*record("j1", line.index, output_of(line), true));
  EXPECT_EQ(check_outputs(), 6000u);
  EXPECT_EQ(book->find("j1")->state, job_state::succeeded);
}

TEST_F(a_killed_journal, has_all_lines_of_every_job_that_was_accepted) {
  std::mt19937 random(12);
  std::size_t acknowledged = 0;
  for (int round = 0; round < kills; ++round) {
    const std::size_t heard = run_and_kill(1 + random() % 12, [&](int pipe) {
      journal mine(options);
      for (int i = 0; i < 40; ++i) {
        const std::string id = "job-" + std::to_string(round) + "-" + std::to_string(i);
        const auto lines = lines_of(50);
        if (!mine.create_job(spec_of(id, 50)).ok()) _exit(3);
        for (std::size_t at = 0; at < 50; at += 10) (void)mine.add_lines(id, at, std::span(lines).subspan(at, 10));
        if (!mine.seal(id).ok()) _exit(3);
        say_done(pipe);
      }
    });
    acknowledged += heard;
    open();
    const auto jobs = book->unfinished();
    EXPECT_GE(jobs.size(), acknowledged) << "an accepted job is lost";
    acknowledged = jobs.size();
    for (const job_info& job : jobs) EXPECT_EQ(book->unfinished_lines(job.spec.id, 0, 100).size(), 50u);
    book.reset();
  }
}

TEST_F(a_killed_journal, takes_the_rest_of_a_job_whose_sender_was_cut_off) {
  const auto lines = lines_of(100);
  (void)run_and_kill(3, [&](int pipe) {
    journal mine(options);
    if (!mine.create_job(spec_of("j1", 100)).ok()) _exit(3);
    for (std::size_t at = 0; at < 100; at += 5) {
      (void)mine.add_lines("j1", at, std::span(lines).subspan(at, 5));
      say_done(pipe);
    }
  });
  open();
  EXPECT_TRUE(book->create_job(spec_of("j1", 100)).ok());
  EXPECT_EQ(*book->add_lines("j1", 0, lines), 100u);
  EXPECT_TRUE(book->seal("j1").ok());
  EXPECT_EQ(book->unfinished_lines("j1", 0, 1000).size(), 100u);
}

}  // namespace
}  // namespace troupe
