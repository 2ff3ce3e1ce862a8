#include <algorithm>

#include <pty.h>
#include <sys/ioctl.h>

#include "base/to_size.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "tests/cli/model/gguf_model.hpp"
#include "tests/cli/program.hpp"
#include "tests/model/lora/gguf_adapter.hpp"

namespace troupe::test {
namespace {

class generate : public program {};
class generate_golden : public program, public testing::WithParamInterface<std::string> {
 protected:
  json answer(const words& more) const {
    words all{"generate",     (golden / GetParam()).string(),
              "--tokens",     comma_separated(expected_tokens(GetParam(), "prompt")),
              "--max-tokens", "64",
              "--quant",      "f32"};
    all.insert(all.end(), more.begin(), more.end());
    return run_json(all);
  }
};

TEST_P(generate_golden, gives_the_reference_tokens) {
  const json got = answer({});
  EXPECT_EQ(got["prompt_tokens"], expected_tokens(GetParam(), "prompt"));
  EXPECT_EQ(got["tokens"], expected_tokens(GetParam(), "greedy"));
  EXPECT_EQ(got["text"], "");  // these models have no tokenizer
  EXPECT_EQ(got["finish_reason"], "length");
  EXPECT_EQ(got.size(), 4u);
}

TEST_P(generate_golden, gives_the_reference_tokens_with_an_adapter) {
  EXPECT_EQ(answer({"--adapter", (golden / GetParam() / "adapter").string()})["tokens"],
            expected_tokens(GetParam(), "adapter_greedy"));
}

INSTANTIATE_TEST_SUITE_P(models, generate_golden, testing::Values("gpt2", "llama", "mistral", "qwen3"),
                         [](const auto& info) { return info.param; });

TEST_F(generate, gives_the_same_tokens_whichever_of_model_and_adapter_is_a_gguf_file) {
  const auto peft = golden / "llama" / "adapter";
  const model_config base = read_hf_config(golden / "llama");
  const auto model = folder().write("model.gguf", gguf_model().build());
  const auto adapter = folder().write("adapter.gguf", gguf_adapter(peft, base, "llama").build());
  for (const auto& [one, other] :
       {std::pair(model, adapter), std::pair(model, peft), std::pair(golden / "llama", adapter)})
    EXPECT_EQ(run_json({"generate", one.string(), "--tokens", comma_separated(expected_tokens("llama", "prompt")),
                        "--max-tokens", "64", "--ignore-eos", "--adapter", other.string()})["tokens"],
              expected_tokens("llama", "adapter_greedy"))
        << one << " with " << other;
}

TEST_F(generate, says_where_the_packed_model_cannot_be_kept) {
  const auto nowhere = folder().write("a file", "where a folder should be") / "cache";
  const words question{"generate", readable_model().string(), "--prompt", "Hello", "--max-tokens", "2"};
  const ran got = run(question, {"TROUPE_CACHE=" + nowhere.string()});
  EXPECT_EQ(got.code, 0);
  EXPECT_EQ(got.error.rfind("troupe: " + nowhere.string() + ": cannot be written: Not a directory: ", 0), 0u)
      << got.error;
  EXPECT_EQ(run(question).error, "");
}

TEST_F(generate, streams_the_text_and_ends_with_a_newline) {
  const words question{"generate", readable_model().string(), "--prompt", "Hello", "--max-tokens", "20"};
  const json whole = run_json(question);
  const ran streamed = run(question);
  EXPECT_EQ(streamed.code, 0);
  EXPECT_EQ(streamed.error, "");
  EXPECT_EQ(streamed.out, whole["text"].get<std::string>() + "\n");
  EXPECT_EQ(whole["prompt_tokens"], (std::vector<int>{40, 69, 76, 76, 79}));
  EXPECT_EQ(whole["tokens"].size(), 20u);
}

TEST_F(generate, reads_its_prompt_from_a_file) {
  const std::string model = readable_model().string(), file = folder().write("prompt", "Hello\n").string();
  const auto prompt_of = [&](const std::string& named) {
    return run_json({"generate", model, "--prompt-file", named, "--max-tokens", "1"})["prompt_tokens"];
  };
  const std::vector<int> hello{40, 69, 76, 76, 79};
  EXPECT_EQ(prompt_of(file), hello) << "without its last line break";
  const std::string piped = "TROUPE_CACHE=" + cache().string() + " " + TROUPE_BINARY + " generate " + model +
                            " --prompt-file - --max-tokens 1 --json < " + file + " > " + path("piped").string();
  EXPECT_EQ(std::system(piped.c_str()), 0);
  EXPECT_EQ(json::parse(read_file(path("piped")))["prompt_tokens"], hello);
  for (const auto& [named, why] :
       {std::pair(path("nowhere"), "nowhere: cannot be read: No such file or directory: check the path"),
        std::pair(path("."), "is a folder: name a file, or - for standard input")})
    refused({"generate", model, "--prompt-file", named.string()}, why);
  refused({"generate", model, "--prompt-file", file, "--prompt", "x"}, "--prompt excludes --prompt-file");
}

TEST_F(generate, keeps_to_the_form_that_is_asked_for) {
  const std::string model = readable_model().string();
  const auto text = [&](const words& form) {
    words all{"generate", model, "--prompt", "Hello", "--max-tokens", "200", "--temperature", "1", "--seed", "4"};
    all.insert(all.end(), form.begin(), form.end());
    return run_json(all)["text"].get<std::string>();
  };
  folder().write("schema.json", R"({"type":"object","properties":{"a":{"type":"integer"},
    "b":{"enum":["x","y"]}},"required":["a","b"]})");
  const json value = json::parse(text({"--json-schema", path("schema.json").string()}));
  EXPECT_TRUE(value["a"].is_number_integer());
  EXPECT_TRUE(value["b"] == "x" || value["b"] == "y");
  const std::string matched = text({"--regex", "[a-c]{4}!"});
  ASSERT_EQ(matched.size(), 5u);
  EXPECT_EQ(matched.find_first_not_of("abc!"), matched.npos);
  folder().write("rules", "root ::= \"(\" root \")\" | \"x\"");
  const std::string nested = text({"--grammar", path("rules").string()});
  EXPECT_EQ(std::count(nested.begin(), nested.end(), '('), std::count(nested.begin(), nested.end(), ')'));
}

TEST_F(generate, refuses_a_form_that_is_none) {
  const std::string model = readable_model().string();
  refused({"generate", model, "--prompt", "Hello", "--regex", "(a"}, "troupe: --regex: a group has no end: add a )");
  const auto rules = folder().write("rules", "root ::= x").string();
  refused({"generate", model, "--prompt", "Hello", "--grammar", rules}, "troupe: " + rules + ": ");
  refused({"generate", model, "--prompt", "Hello", "--json-schema", "/nowhere.json"}, "/nowhere.json");
  refused({"generate", model, "--prompt", "Hello", "--regex", "a", "--grammar", "x"}, "--grammar");
}

TEST_F(generate, prints_token_ids_where_the_model_has_no_tokenizer) {
  const ran got = run({"generate", (golden / "llama").string(), "--tokens",
                       comma_separated(expected_tokens("llama", "prompt")), "--quant", "f32", "--max-tokens", "3"});
  auto expected = expected_tokens("llama", "greedy");
  expected.resize(3);
  EXPECT_EQ(got.out, comma_separated(expected) + "\n");
}

TEST_F(generate, takes_the_model_after_the_flags) {
  const std::string model = (golden / "llama").string();
  EXPECT_EQ(run_json({"generate", "--tokens", "1,2", model, "--max-tokens", "3"}),
            run_json({"generate", model, "--tokens", "1,2", "--max-tokens", "3"}));
}

TEST_F(generate, starts_from_bos_alone_when_the_prompt_is_empty) {
  const json got = run_json({"generate", readable_model().string(), "--prompt", "", "--max-tokens", "2"});
  EXPECT_EQ(got["prompt_tokens"], std::vector<int>{0});
}

TEST_F(generate, takes_a_model_of_any_name) {
  const std::string model = readable_model("m\xff").string();
  EXPECT_EQ(run({"generate", model, "--prompt", "A", "--max-tokens", "1"}).code, 0);
  EXPECT_EQ(run({"inspect", model}).code, 0);
}

TEST_F(generate, takes_any_text_as_a_prompt) {
  const std::string model = readable_model().string();
  for (const std::string text : {"{}", "[A,B]", "--json", "-1", "%%", "a,b", "\"x\"", "@f", "\\n"}) {
    const json got = run_json({"generate", model, "--prompt", text, "--max-tokens", "1"});
    std::vector<int> expected;
    for (const char c : text) expected.push_back(c - ' ');
    EXPECT_EQ(got["prompt_tokens"], expected) << text;
  }
}

TEST_F(generate, ends_before_a_stop_text_and_at_a_stop_token) {
  const std::string model = readable_model().string();
  const words question{"generate", model, "--prompt", "Hello", "--max-tokens", "20"};
  const json whole = run_json(question);
  const std::string text = whole["text"];
  const auto with = [&](const std::string& flag, const std::string& value) {
    words more = question;
    more.insert(more.end(), {flag, value});
    return run_json(more);
  };
  const std::string stop = text.substr(6, 2);
  EXPECT_EQ(with("--stop", stop)["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(with("--stop", stop)["finish_reason"], "stop");
  const std::vector<int> tokens = whole["tokens"];
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[7]) - tokens.begin();
  EXPECT_EQ(with("--stop-token", std::to_string(tokens[7]))["tokens"].size(), to_size(first));
}

TEST_F(generate, writes_min_tokens_before_a_stop_text_or_a_stop_token_ends_it) {
  const std::string model = readable_model().string();
  words question{"generate", model, "--prompt", "Hello", "--max-tokens", "20", "--min-tokens", "8"};
  for (int token = 0; token < 96; token += 2) question.insert(question.end(), {"--stop-token", std::to_string(token)});
  EXPECT_GE(run_json(question)["tokens"].size(), 8u);
  words stopped{"generate", model, "--prompt", "Hello", "--max-tokens", "20"};
  const std::string text = run_json(stopped)["text"];
  stopped.insert(stopped.end(), {"--stop", text.substr(2, 1), "--min-tokens", "5"});
  const std::string longer = run_json(stopped)["text"];
  EXPECT_GE(longer.size(), 5u);
  EXPECT_TRUE(text.starts_with(longer)) << text << " / " << longer;
}

TEST_F(generate, reports_logprobs_when_asked) {
  const json got =
      run_json({"generate", readable_model().string(), "--prompt", "Hi", "--max-tokens", "3", "--logprobs", "2"});
  ASSERT_EQ(got["logprobs"].size(), 3u);
  const json first = got["logprobs"][0];
  EXPECT_EQ(first["token"], got["tokens"][0]);
  EXPECT_EQ(first["top"].size(), 2u);
  EXPECT_EQ(first["top"][0]["token"], first["token"]);
  EXPECT_EQ(first["top"][0]["logprob"], first["logprob"]);
}

TEST_F(generate, draws_the_same_answer_from_the_same_seed_whatever_the_threads) {
  const std::string model = readable_model().string();
  const auto answer = [&](const char* seed, const char* threads) {
    return run_json({"generate", model, "--prompt", "Hi", "--temperature", "1.5", "--seed", seed, "--threads", threads,
                     "--max-tokens", "40"})["tokens"];
  };
  EXPECT_EQ(answer("7", "1"), answer("7", "3"));
  EXPECT_NE(answer("7", "1"), answer("8", "1"));
  EXPECT_NE(answer("-1", "1"), answer("-1", "1")) << "each draws its own";
}

TEST_F(generate, lets_a_bias_decide) {
  const json got = run_json(
      {"generate", readable_model().string(), "--prompt", "Hi", "--logit-bias", "34=100", "--max-tokens", "3"});
  EXPECT_EQ(got["text"], "BBB");
}

TEST_F(generate, ends_where_the_context_does) {
  const words question{"generate", readable_model().string(), "--prompt", "Hello", "--context", "20", "--min-tokens",
                       "30"};
  const json got = run_json(question);
  EXPECT_EQ(got["tokens"].size(), 15u);
  EXPECT_EQ(got["finish_reason"], "length");
  words all{question.begin(), question.begin() + 6};
  all.insert(all.end(), {"--max-tokens", "-1", "--ignore-eos"});
  EXPECT_EQ(run_json(all)["tokens"].size(), 15u);
}

/// Of the golden phi3's 256 positions the first 16 are the original ones.
TEST_F(generate, turns_longrope_by_the_context_however_few_tokens_are_asked_for) {
  auto prompt = expected_tokens("phi3", "prompt");
  prompt.resize(6);
  const auto begins = [&](const std::string& tokens, const words& more = {}) {
    words all{"generate",     (golden / "phi3").string(),
              "--tokens",     comma_separated(prompt),
              "--ignore-eos", "--quant",
              "f32",          "--max-tokens",
              tokens};
    all.insert(all.end(), more.begin(), more.end());
    auto answer = run_json(all)["tokens"].get<std::vector<int>>();
    answer.resize(8);
    return answer;
  };
  const std::vector<int> whole = begins("40");
  EXPECT_EQ(begins("8"), whole);
  EXPECT_EQ(begins("10"), whole) << "16 positions";
  EXPECT_EQ(begins("11"), whole) << "17 positions";
  const std::vector<int> original = begins("8", {"--context", "16"});
  EXPECT_NE(original, whole) << "the short divisors";
  EXPECT_EQ(begins("8", {"--context", "17"}), whole);
}

TEST_F(generate, writes_a_chat_in_the_models_template) {
  const auto model = readable_model();
  const words question{"generate", model.string(), "--prompt", "Hi", "--chat", "--system", "Sys", "--max-tokens", "1"};
  EXPECT_EQ(
      run(question).error,
      "troupe: " + model.string() +
          ": has no chat template, as chat_template.jinja in its folder would be: give the prompt as plain text\n");
  const char* source =
      "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}:{{ m.content }};{% endfor %}"
      "{% if add_generation_prompt %}A:{% endif %}";
  const std::vector<int> expected = [] {
    std::vector<int> ids{0};
    for (const char c : std::string("s:Sys;u:Hi;A:")) ids.push_back(c - ' ');
    return ids;
  }();
  folder().write("readable/chat_template.jinja", source);
  EXPECT_EQ(run_json(question)["prompt_tokens"], expected);
  std::filesystem::remove(model / "chat_template.jinja");
  json config{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"chat_template", source}};
  folder().write("readable/tokenizer_config.json", config.dump());
  EXPECT_EQ(run_json(question)["prompt_tokens"], expected);
  config["chat_template"] = {{{"name", "tool_use"}, {"template", "no"}}, {{"name", "default"}, {"template", source}}};
  folder().write("readable/tokenizer_config.json", config.dump());
  EXPECT_EQ(run_json(question)["prompt_tokens"], expected);
}

TEST_F(generate, takes_the_template_beside_a_gguf_file) {
  const auto model = folder().write("m.gguf", gguf_model().build());
  const words question{"generate", model.string(), "--prompt", "Hi", "--chat", "--max-tokens", "1"};
  const auto prompt = [&](const words& asked) { return run_json(asked)["prompt_tokens"].get<std::vector<int>>(); };
  EXPECT_EQ(prompt(question).back(), '!' - '!') << "as the template in it ends";
  folder().write("m.jinja", "{{ messages[0].content }}A");
  EXPECT_EQ(prompt(question).back(), 'A' - '!');
  ASSERT_EQ(run({"quantize", model.string(), "--scheme", "u8", "--out", path("out").string()}).code, 0);
  words of_copy = question;
  of_copy[1] = path("out").string();
  EXPECT_EQ(prompt(of_copy), prompt(question));
}

TEST_F(generate, shows_the_special_tokens_that_tell_the_thoughts_of_a_chat) {
  const auto model = readable_model();
  const auto text = [&](const char* marks, const words& flags) {
    folder().write("readable/chat_template.jinja", std::string("{# ") + marks + " #}{{ messages[0].content }}");
    words all{"generate", model.string(), "--prompt", "Hi", "--max-tokens", "3", "--logit-bias", "0=100"};
    all.insert(all.end(), flags.begin(), flags.end());
    return run_json(all)["text"];
  };
  for (const char* marks : {"[THINK][/THINK]", "<|channel>thought<channel|>", "<|channel|>analysis<|channel|>final"}) {
    EXPECT_EQ(text(marks, {"--chat"}), "<s><s><s>") << marks;
    EXPECT_EQ(text(marks, {}), "") << marks;
  }
  EXPECT_EQ(text("<think></think>", {"--chat"}), "");
}

TEST_F(generate, ends_quietly_when_nobody_reads) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ::close(ends[0]);
  const int error = ::open(path("error").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const words arguments{"generate", readable_model().string(), "--prompt", "Hello"};
  EXPECT_EQ(start(arguments, ends[1], error).wait(), 0);
  EXPECT_EQ(read_file(path("error")), "");
  ::close(ends[1]);
  ::close(error);
}

/// The pipe is nearly full, so the program cannot get to its end before the signal.
TEST_F(generate, ends_with_130_and_a_new_line_of_the_terminal_on_ctrl_c) {
  int ends[2], waiting = 0, ours = -1, theirs = -1;
  ASSERT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const int size = ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
  ASSERT_GE(size, 4096);
  const int filled = size - 50;
  ASSERT_EQ(::write(ends[1], std::string(to_size(filled), '.').data(), to_size(filled)), filled);
  const words arguments{"generate", readable_model().string(), "--prompt", "Hello", "--ignore-eos", "--max-tokens",
                        "200"};
  process child = start(arguments, ends[1], theirs);
  EXPECT_TRUE(is_soon([&] { return ::ioctl(ends[0], FIONREAD, &waiting) != 0 || waiting > filled || child.poll(); },
                      std::chrono::seconds(60)));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 130);
  std::string shown(1 << 12, '\0');
  const ssize_t read = ::read(ours, shown.data(), shown.size());
  ASSERT_GT(read, 0);
  shown.resize(to_size(read));
  EXPECT_TRUE(shown.ends_with("\r\n")) << shown << " may begin with a bar on a slow machine";
  for (const int end : {ends[0], ends[1], ours, theirs}) ::close(end);
}

}  // namespace
}  // namespace troupe::test
