#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

struct example {
  std::string command, output;
};

/// Those of docs/CLI.md that begin so.
std::vector<example> examples_of(const std::string& beginning) {
  const std::string text = read_file(docs / "CLI.md"), mark = "```\n$ ";
  std::vector<example> all;
  for (std::size_t at = text.find(mark + beginning); at != text.npos; at = text.find(mark + beginning, at)) {
    at += mark.size();
    const std::size_t line_end = text.find('\n', at) + 1, end = text.find("```\n", line_end);
    all.push_back({text.substr(at, line_end - at), text.substr(line_end, end - line_end)});
  }
  return all;
}

class documented_examples : public program {
 protected:
  /// What a shell prints for a line that is typed where the repository is.
  std::string printed(const std::string& line) const {
    const std::string there = "cd '" + docs.parent_path().string() +
                              "' && PATH=" + std::filesystem::path(TROUPE_BINARY).parent_path().string() +
                              ":$PATH TROUPE_CACHE=" + cache().string() + " " + line.substr(0, line.size() - 1) +
                              " > " + path("said").string();
    EXPECT_EQ(std::system(there.c_str()), 0) << line;
    return read_file(path("said"));
  }
};

TEST_F(documented_examples, print_what_stands_there) {
  std::vector<example> all = examples_of("troupe generate ");
  EXPECT_EQ(all.size(), 2u);
  const std::vector<example> inspected = examples_of("troupe inspect ");
  EXPECT_EQ(inspected.size(), 1u);
  all.insert(all.end(), inspected.begin(), inspected.end());
  for (const example& each : all) EXPECT_EQ(printed(each.command), each.output) << each.command;
}

}  // namespace
}  // namespace troupe::test
