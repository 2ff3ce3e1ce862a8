// The built program as a process of its own, and small models for it.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/formats/tensors/safetensors.hpp"
#include "tests/base/places.hpp"
#include "tests/base/process.hpp"
#include "tests/model/formats/fixtures.hpp"
#include "tests/model/tokenizer/letters.hpp"

namespace troupe::test {

using json = nlohmann::ordered_json;

/// How a run of the program ended, and what it wrote.
struct ran {
  int code = 0;
  std::string out, error;

  json parsed() const { return json::parse(out, nullptr, false); }
};

/// A folder for packed models and test files, and the program that uses it.
class program : public testing::Test {
 protected:
  ran run(const words& arguments, const words& environment = {}) const {
    process running(command(arguments), path("stdout"), with_cache(environment));
    const int code = running.wait(std::chrono::minutes(5));
    return {code, running.out(), running.error()};
  }
  /// Standard output and error are the caller's.
  process start(const words& arguments, int out, int error, const words& environment = {}) const {
    return {command(arguments), out, error, with_cache(environment)};
  }
  /// The JSON that a command prints, which must succeed.
  json run_json(words arguments) const {
    arguments.push_back("--json");
    const ran got = run(arguments);
    EXPECT_EQ(got.code, 0) << got.error;
    EXPECT_EQ(got.error, "");
    return got.parsed();
  }

  /// Ended with this code and one line that says so much, without any output.
  void expect_one_line(const ran& got, int code, const std::string& part) const {
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
  std::filesystem::path readable_model(const std::string& name = "readable", const std::string& of = "llama") const {
    std::filesystem::copy(golden / of, path(name), std::filesystem::copy_options::recursive);
    folder_.write(name + "/tokenizer.json", letters_tokenizer().dump());
    folder_.write(name + "/tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>"})");
    return path(name);
  }

 private:
  static words command(const words& arguments) {
    words all{TROUPE_BINARY};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  words with_cache(const words& environment) const {
    words all{"TROUPE_CACHE=" + cache().string()};
    all.insert(all.end(), environment.begin(), environment.end());
    return all;
  }

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
