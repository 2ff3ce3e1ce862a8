// The built program as a process of its own, and small models for it.
#pragma once
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/formats/safetensors.hpp"
#include "tests/base/places.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe::test {

using words = std::vector<std::string>;
using json = nlohmann::ordered_json;

/// Starts the program; `out` and `error` become its standard output and error, `cache` its folder for packed models.
inline pid_t start(const words& arguments, int out, int error, const std::filesystem::path& cache,
                   const words& environment = {}) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::dup2(out, STDOUT_FILENO);
  ::dup2(error, STDERR_FILENO);
  ::setenv("TROUPE_CACHE", cache.c_str(), 1);
  for (const auto& each : environment) ::putenv(const_cast<char*>(each.c_str()));
  std::vector<char*> pointers{const_cast<char*>(TROUPE_BINARY)};
  for (const auto& each : arguments) pointers.push_back(const_cast<char*>(each.c_str()));
  pointers.push_back(nullptr);
  ::execv(TROUPE_BINARY, pointers.data());
  ::_exit(127);
}

/// The exit code; 1000 + the signal if a signal ended the process.
inline int wait_for(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

struct result {
  int code = 0;
  std::string out, error;

  json parsed() const { return json::parse(out, nullptr, false); }
};

/// A folder for packed models and test files, and the program that uses it.
class program : public testing::Test {
 protected:
  result run(const words& arguments, const words& environment = {}) const {
    const auto open = [&](const char* name) {
      return ::open((folder_.path() / name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    };
    const int out = open("stdout"), error = open("stderr");
    const int code = wait_for(start(arguments, out, error, cache(), environment));
    ::close(out);
    ::close(error);
    return {code, read_file(path("stdout")), read_file(path("stderr"))};
  }
  /// The JSON that a command prints, which must succeed.
  json run_json(words arguments) const {
    arguments.push_back("--json");
    const result got = run(arguments);
    EXPECT_EQ(got.code, 0) << got.error;
    EXPECT_EQ(got.error, "");
    return got.parsed();
  }

  /// Ended with this code and one line that says so much, without any output.
  void expect_one_line(const result& got, int code, const std::string& part) const {
    EXPECT_EQ(got.code, code) << got.error;
    EXPECT_EQ(got.out, "");
    EXPECT_EQ(got.error.rfind("troupe: ", 0), 0u) << got.error;
    EXPECT_EQ(std::count(got.error.begin(), got.error.end(), '\n'), 1) << got.error;
    EXPECT_NE(got.error.find(part), std::string::npos) << got.error << "should say: " << part;
  }
  void refused(const words& arguments, const std::string& part) const { expect_one_line(run(arguments), 2, part); }

  std::filesystem::path cache() const { return folder_.path() / "cache"; }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  const temp_folder& folder() const { return folder_; }

  /// Copies a golden model under another name, with a tokenizer: <s>, one letter a token from 'A' on, </s> as token 95.
  std::filesystem::path readable_model(const std::string& name = "readable") const {
    std::filesystem::copy(golden / "llama", path(name), std::filesystem::copy_options::recursive);
    folder_.write(name + "/tokenizer.json", letters_tokenizer().dump());
    folder_.write(name + "/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
    return path(name);
  }

 private:
  temp_folder folder_;
};

inline std::vector<int> expected_tokens(const std::string& model, const std::string& name) {
  const tensor_set set = open_safetensors(golden / model / "expected.safetensors");
  const tensor_view* tensor = set.find(name);
  std::vector<int> values(tensor->data.size() / sizeof(int));
  std::memcpy(values.data(), tensor->data.data(), tensor->data.size());
  return values;
}

inline std::string comma_separated(const std::vector<int>& tokens) {
  std::string text;
  for (const int token : tokens) text += (text.empty() ? "" : ",") + std::to_string(token);
  return text;
}

}  // namespace troupe::test
