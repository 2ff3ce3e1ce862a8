#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class manual : public program {
 protected:
  /// What a bash offers after these words.
  std::string completions(const std::string& script, const std::string& line) const {
    return said(script + "\nCOMP_WORDS=(" + line + ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n" +
                "_troupe\necho \"${COMPREPLY[@]}\"\n");
  }

  /// What a zsh offers: the script is one that bash understands, too. `_describe -o` offers nothing before a dash.
  std::string zsh_completions(const std::string& script, const std::string& line) const {
    const std::string stand_ins =
        "compdef() { :; }\n"
        "_files() { echo files; }\n"
        "compadd() { shift; echo \"$@\"; }\n"
        "_describe() { [[ $1 != -o ]] && local -n each=$2 && ((${#each[@]})) && echo \"${each[@]%%:*}\"; }\n";
    return said(stand_ins + script + "\nwords=(zsh " + line + ")\nCURRENT=$((${#words[@]} - 1))\n_troupe\n");
  }

 private:
  std::string said(const std::string& script) const {
    folder().write("complete.bash", script);
    const std::string command = "bash " + path("complete.bash").string() + " > " + path("offered").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    return read_file(path("offered"));
  }
};

TEST_F(manual, in_docs_is_what_the_program_says) {
  EXPECT_EQ(run({"man", "--markdown"}).out, read_file(docs / "FLAGS.md")) << "type scripts/write-docs";
}

TEST_F(manual, has_every_command) {
  const ran page = run({"man"});
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(page.out.rfind(".TH TROUPE 1", 0), 0u);
  for (const char* part :
       {".SS troupe generate", ".SS troupe keys add", "\\-\\-max\\-tokens", ".SH EXIT STATUS", ".B TROUPE_CACHE\n"})
    EXPECT_NE(page.out.find(part), std::string::npos) << part;
  EXPECT_EQ(page.out.find("INT:INT"), std::string::npos) << "what CLI11 says about limits";
}

TEST_F(manual, completes_commands_in_zsh_before_a_dash_is_typed) {
  const std::string script = run({"completion", "zsh"}).out;
  EXPECT_EQ(zsh_completions(script, "troupe keys ''"), "add limit list revoke\n");
  EXPECT_EQ(zsh_completions(script, "troupe up ''"), "files\n");
}

TEST_F(manual, offers_no_flags_in_bash_before_a_dash_is_typed) {
  const std::string script = run({"completion", "bash"}).out;
  EXPECT_EQ(completions(script, "troupe keys ''"), "add limit list revoke\n");
  EXPECT_EQ(completions(script, "troupe up ''"), "\n") << "so that files are offered";
  EXPECT_EQ(completions(script, "troupe up --d"), "--detach\n");
}

TEST_F(manual, completes_values_where_a_flag_has_a_few) {
  const std::string bash = run({"completion", "bash"}).out, zsh = run({"completion", "zsh"}).out;
  EXPECT_EQ(completions(bash, "troupe serve x --quant u"), "u8 u8g64 u4g32\n");
  EXPECT_EQ(completions(bash, "troupe quantize x --scheme mx"), "mxfp4\n");
  EXPECT_EQ(completions(bash, "troupe train --schedule ''"), "constant linear cosine\n");
  EXPECT_EQ(completions(bash, "troupe train --precision ''"), "served fine exact\n");
  EXPECT_EQ(zsh_completions(zsh, "troupe serve x --kv ''"), "f16 f32 int8\n");
  EXPECT_EQ(zsh_completions(zsh, "troupe serve x --device ''"), "cpu cuda:0\n");
  EXPECT_NE(run({"completion", "fish"}).out.find("-l kv -x -a 'f16 f32 int8'"), std::string::npos);
}

TEST_F(manual, completes_help_and_the_commands_behind_it) {
  for (const char* shell : {"zsh", "fish"})
    EXPECT_NE(run({"completion", shell}).out.find("Show what a command takes"), std::string::npos) << shell;
  const std::string bash = run({"completion", "bash"}).out;
  EXPECT_EQ(completions(bash, "troupe he"), "help\n");
  EXPECT_EQ(completions(bash, "troupe help keyg"), "keygen\n");
}

TEST_F(manual, completes_words_where_they_fit) {
  const std::string script = run({"completion", "bash"}).out;
  EXPECT_NE(completions(script, "troupe gen").find("generate"), std::string::npos);
  EXPECT_EQ(completions(script, "troupe keys rev"), "revoke\n");
  EXPECT_NE(completions(script, "troupe keys add --con").find("--concurrent"), std::string::npos);
  EXPECT_EQ(completions(script, "troupe generate --concurrent"), "\n");
  EXPECT_NE(run({"completion", "fish"}).out.find("Make a key"), std::string::npos);
  EXPECT_EQ(run({"completion", "tcsh"}).code, 2);
}

}  // namespace
}  // namespace troupe::test
