// `troupe eval`: where its text comes from.
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

using eval = program;

TEST_F(eval, reads_standard_input_as_it_reads_a_file) {
  const std::string model = readable_model().string(), text = folder().write("text", "HELLO<|endoftext|>ALL").string();
  const std::string script = R"(text=$1; shift; cat "$text" | "$0" eval "$@" --text -)";
  process piped({"/bin/sh", "-c", script, TROUPE_BINARY, text, model, "--json"}, path("said"),
                {"TROUPE_CACHE=" + cache().string()});
  EXPECT_EQ(piped.wait(), 0) << piped.error();
  EXPECT_EQ(json::parse(piped.out()), run_json({"eval", model, "--text", text}));
}

}  // namespace
}  // namespace troupe::test
