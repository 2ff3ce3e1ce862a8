#include <algorithm>
#include <tuple>
#include <utility>

#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class usage : public program {
 protected:
  std::string llama_ = (golden / "llama").string();
};

TEST_F(usage, refuses_a_command_line_that_it_does_not_understand) {
  refused({}, "no command was given: see troupe --help");
  refused({"genrate"}, "unknown command 'genrate', did you mean 'generate'?: see troupe --help");
  refused({"xyzzy"}, "unknown command 'xyzzy': see troupe --help");
  refused({"--nonsense"}, "unknown option --nonsense: see troupe --help");
  refused({"generate", llama_, "--tokens", "1", "--max-token", "3"},
          "unknown option --max-token, did you mean '--max-tokens'?: see troupe generate --help");
  refused({"generate", llama_, "--promt", "hello"}, "did you mean '--prompt'?");
  refused({"generate", llama_, "more", "--tokens", "1"}, "unexpected argument 'more'");
  refused({"generate", "--tokens", "1"}, "MODEL");
  refused({"generate", llama_, "--tokens"}, "--tokens");
  refused({"generate", llama_, "--tokens", "1,x"}, "--tokens");
  refused({"generate", llama_, "--tokens", "1,99999999999"}, "--tokens");
  refused({"generate", llama_, "--tokens", "1", "--max-tokens", "many"}, "--max-tokens");
  refused({"generate", llama_, "--tokens", "1", "--seed", "-2"}, "--seed");
  refused({"generate", llama_, "--tokens", "1", "--seed", "18446744073709551616"}, "--seed");
  refused({"eval", llama_}, "--text");
  refused({"--json", "status"}, "--json stands before the command: write it behind troupe status");
  refused({"adapters", "--json", "list"}, "write it behind troupe adapters list");
  refused({"adapters", "wat"}, "unknown command 'wat': troupe adapters has list, load, unload");
  refused({"jobs", "folow"}, "unknown command 'folow', did you mean 'follow'?");
  refused({"generate", llama_, "--max-tokens", "1", "--max-tokens", "2"}, "--max-tokens is given twice: give it once");
  refused({"quantize", llama_, "--scheme", "u8"}, "--out");
}

TEST_F(usage, refuses_nothing_where_something_is_needed) {
  refused({"jobs", "pause", ""}, "ID is empty: see troupe jobs pause --help");
  refused({"drain", ""}, "NAME is empty: see troupe drain --help");
  refused({"generate", "", "--tokens", "1"}, "MODEL is empty: see troupe generate --help");
  refused({"quantize", llama_, "--scheme", "u8", "--out", ""}, "--out is empty: see troupe quantize --help");
}

TEST_F(usage, knows_what_may_be_meant) {
  refused({"generate", llama_, "-p", "hello"}, "unknown option -p, did you mean '--prompt'?");
  refused({"generate", llama_, "--temp", "1"}, "did you mean '--temperature'?");
  refused({"generate", llama_, "-n", "1"}, "did you mean '--max-tokens'?");
  refused({"generate", llama_, "-f", "x"}, "did you mean '--prompt-file'?");
  refused({"submit", "--flie", "x"}, "did you mean '--file'?");
  refused({"serve", llama_, "--port", "1"}, "did you mean '--http'?");
  refused({"generate", "-m", llama_}, "unknown option -m: write MODEL without a flag");
  refused({"serve", "--model", llama_}, "unknown option --model: write MODEL without a flag");
  refused({"serve", "--model=" + llama_}, "unknown option --model: write MODEL without a flag");
  refused({"bench", "engine", "--batches", "1,8"}, "MODEL is required: see troupe bench engine --help");
  refused({"bench", "engine", llama_, "--trace", "x.csv", "--schema"}, "--trace excludes --schema");
  refused({"gen"}, "did you mean 'generate'?");
  refused({"stop"}, "did you mean 'down'?");
  refused({"generate", llama_, "hello"}, "unexpected argument 'hello': a prompt stands behind --prompt: see");
  refused({"generate", llama_, "--prompt", "hello", "there"},
          "'there': a prompt of several words stands in quotes: see");
  refused({"adapters", "load", "x", "folder"}, "unexpected argument 'folder': a folder stands behind --path: see");
  refused({"train", "a.jsonl", "--adapter", "x"}, "'a.jsonl': a file of examples stands behind --data: see");
  refused({"train", llama_, "--data", "a.jsonl"}, "a model stands behind --local: see");
}

TEST_F(usage, says_how_else_something_is_done) {
  refused({"serve", llama_, "--api-key", "x"}, "unknown option --api-key: troupe keys add makes keys for the HTTP API");
  refused({"status", "--api-key", "x"}, "unknown option --api-key, did you mean '--key'?");
  refused({"serve", llama_, "--tensor-parallel-size=2"},
          "unknown option --tensor-parallel-size: a cluster's file says");
  refused({"serve", llama_, "-np", "4"}, "unknown option -np: requests share batches by themselves");
  refused({"serve", llama_, "-n", "9"}, "unknown option -n: each request says it");
  refused({"node", "x.toml", "-n", "w0"}, "unknown option -n: --name says which of the file's nodes it is");
  refused({"serve", llama_, "--tool-call-parser", "x"}, "unknown option --tool-call-parser: always on, or not needed");
  refused({"serve", llama_, "--chat-template-file", "x"}, "--chat-template-file: the template is the model's own");
  refused({"bench", "serve", "--random-input-len", "9"}, "--random-input-len: --prompt-min and --prompt-max say it");
  refused({"serve", llama_, "-fa"}, "unknown option -fa: always on, or not needed: leave it out");
  refused({"serve", llama_, "--ssl-keyfile", "x"}, "unknown option --ssl-keyfile: a proxy in front has TLS");
  refused({"up", "x.toml", "--quant", "u8"}, "unknown option --quant: a cluster's file says it: quant in [model]");
  refused({"up", "-f", "x.toml"}, "unknown option -f: the cluster's file is named without a flag");
  refused({"pull", "x"}, "unknown command 'pull': troupe downloads no models: fetch one by");
  refused({"version"}, "unknown command 'version': write troupe --version");
  refused({"forget", "x"}, "unknown command 'forget': write troupe jobs forget");
  refused({"jobs", "cancel"}, "unknown command 'cancel': write troupe cancel");
  refused({"bench", "limit"}, "unknown command 'limit', did you mean 'limits'?: troupe bench has ");
}

TEST_F(usage, says_how_else_something_is_done_only_where_that_is_so) {
  for (const auto& [command, flag] :
       {std::pair("train", "-n"), std::pair("train", "--metrics"), std::pair("eval", "--seed"),
        std::pair("quantize", "-tp"), std::pair("status", "--ssl-keyfile"), std::pair("inspect", "--quant"),
        std::pair("down", "--http"), std::pair("serve", "--config"), std::pair("train", "--config"),
        std::pair("status", "--config"), std::pair("eval", "-f")})
    refused({command, flag, "x"}, fmt::format("unknown option {}: see troupe {} --help", flag, command));
  refused({"train", "--context", "512"}, "unknown option --context, did you mean '--length'?");
  refused({"keys", "list", "--http", "x"}, "unknown option --http: see troupe keys list --help");
  for (const char* bench : {"http", "serve"})
    refused({"bench", bench, "--temp", "0"}, fmt::format("unknown option --temp: see troupe bench {} --help", bench));
}

TEST_F(usage, says_that_nothing_is_downloaded_where_a_flag_for_that_reads_like_help) {
  for (const char* flag : {"-hf", "-hff", "-hft", "--hf-repo", "--hf-file"})
    refused({"serve", flag, "Qwen/Qwen3-0.6B-GGUF"},
            "unknown option " + std::string(flag) + ": troupe downloads no models: fetch one by `hf download`");
  EXPECT_EQ(run({"serve", "-h"}).code, 0);
}

TEST_F(usage, takes_no_flag_that_begins_like_help_for_help) {
  refused({"serve", llama_, "-host", "0.0.0.0"}, "unknown option -host: see troupe serve --help");
  refused({"keys", "list", "-hx"}, "unknown option -hx: see troupe keys list --help");
  refused({"-hello"}, "unknown option -hello: see troupe --help");
}

TEST_F(usage, knows_what_other_programs_call_otherwise) {
  for (const auto& [command, flag, ours] : {std::tuple("serve", "-ctk", "--kv"),
                                            std::tuple("serve", "-ctv", "--kv"),
                                            std::tuple("serve", "--quantization", "--quant"),
                                            std::tuple("quantize", "--quant", "--scheme"),
                                            std::tuple("train", "--batch-size", "--batch"),
                                            std::tuple("train", "--max-steps", "--steps"),
                                            std::tuple("train", "--num-train-epochs", "--epochs"),
                                            std::tuple("train", "--weight-decay", "--decay"),
                                            std::tuple("train", "--lora-dropout", "--dropout"),
                                            std::tuple("train", "--lora-r", "--rank"),
                                            std::tuple("train", "--gradient-accumulation-steps", "--accumulate"),
                                            std::tuple("train", "--output", "--out"),
                                            std::tuple("train", "--train-data", "--data"),
                                            std::tuple("train", "--learning_rate", "--lr"),
                                            std::tuple("train", "--base", "--local"),
                                            std::tuple("chat", "--url", "--connect"),
                                            std::tuple("submit", "-m", "--adapter"),
                                            std::tuple("chat", "-m", "--adapter"),
                                            std::tuple("chat", "--model", "--adapter"),
                                            std::tuple("train", "--model", "--local"),
                                            std::tuple("submit", "-i", "--file"),
                                            std::tuple("serve", "-d", "--detach"),
                                            std::tuple("generate", "--repeat-penalty", "--repetition-penalty"),
                                            std::tuple("status", "--host", "--connect"),
                                            std::tuple("status", "--port", "--connect")})
    refused({command, flag, "x"}, "unknown option " + std::string(flag) + ", did you mean '" + ours + "'?");
  for (const auto& [word, ours] : {std::pair("ls", "status"), std::pair("kill", "down"), std::pair("health", "status")})
    refused({word}, "unknown command '" + std::string(word) + "', did you mean '" + ours + "'?");
  for (const auto& [flag, ours] : {std::pair("--num-prompts", "--requests"), std::pair("--request-rate", "--rate"),
                                   std::pair("--base-url", "--url")})
    refused({"bench", "serve", flag, "x"}, fmt::format("unknown option {}, did you mean '{}'?", flag, ours));
  refused({"jobs", "ls"}, "unknown command 'ls', did you mean 'list'?");
  for (const auto& [group, word, ours] : {std::tuple("adapters", "add", "load"), std::tuple("adapters", "rm", "unload"),
                                          std::tuple("keys", "create", "add"), std::tuple("keys", "delete", "revoke"),
                                          std::tuple("jobs", "remove", "forget")})
    refused({group, word, "x"}, fmt::format("unknown command '{}', did you mean '{}'?", word, ours));
  refused({"restart"}, "unknown command 'restart': end it by troupe down, and start it as before");
  refused({"models"}, "unknown command 'models': a running cluster lists them");
}

TEST_F(usage, says_how_that_is_done_which_other_servers_have_a_flag_for) {
  const std::pair<const char*, const char*> flags[] = {{"--model-id", "write MODEL without a flag"},
                                                       {"--quantize", "did you mean '--quant'?"},
                                                       {"--hostname", "did you mean '--http'?"},
                                                       {"--allowed-origins", "did you mean '--http-origins'?"},
                                                       {"--max-total-tokens", "did you mean '--context'?"},
                                                       {"--max-concurrent-requests", "max_waiting in [scheduler]"},
                                                       {"--num-shard", "tensor in [cluster]"},
                                                       {"--kv-memory", "kv_memory in [scheduler]"},
                                                       {"--api-key-file", "troupe keys add --from FILE"},
                                                       {"--top-k", "each request says it"},
                                                       {"--no-mmap", "leave it out"}};
  for (const auto& [flag, ours] : flags) refused({"serve", llama_, flag, "1"}, ours);
}

TEST_F(usage, takes_no_short_word_for_another) {
  refused({"serve", llama_, "--numa", "x"}, "unknown option --numa: see troupe serve --help");
  for (const char* command : {"generate", "chat"})
    refused({command, "-i"}, fmt::format("unknown option -i: see troupe {} --help", command));
  for (const char* flag : {"-v", "-vv", "--kx"})
    refused({"serve", llama_, flag}, fmt::format("unknown option {}: see troupe serve --help", flag));
  refused({"serve", llama_, "-kv", "f32"}, "unknown option -kv, did you mean '--kv'?");
  refused({"inspect", llama_, "--jsno"}, "did you mean '--json'?");
}

TEST_F(usage, reads_numbers_as_decimals) {
  for (const char* list : {"", ",", "1,,2", "1,2,", "1, 2", "0x10", "1.0"})
    refused({"generate", llama_, "--tokens", list}, "is no list of token ids: write 1,2,3");
  for (const char* number : {"", "010", "0x10", "abc", "1 ", "-"})
    refused({"generate", llama_, "--tokens", "1", "--max-tokens", number},
            "--max-tokens: '" + std::string(number) + "' is no whole decimal number");
  refused({"generate", llama_, "--tokens", "1", "--max-tokens", "1.5"}, "'1.5' is no whole number");
  refused({"generate", llama_, "--tokens", "1", "--max-tokens", "9223372036854775808"}, "is too large");
  refused({"generate", llama_, "--tokens", "1", "--temperature", ""}, "--temperature: '' is no decimal number");
  refused({"generate", llama_, "--tokens", "1", "--stop-token", ""}, "--stop-token: '' is no whole decimal number");
  refused({"generate", llama_, "--tokens", "1", "--seed", "010"}, "--seed");
  for (const char* flag : {"--lr", "--alpha", "--clip", "--dropout", "--decay", "--held-out"})
    refused({"train", "--data", "x", "--adapter", "a", flag, "nan"},
            std::string(flag) + ": 'nan' is no decimal number");
  refused({"train", "--data", "x", "--adapter", "a", "--alpha-of", "q_proj=inf"}, "--alpha-of");
  refused({"train", "--data", "x", "--adapter", "a", "--seed", "-1"}, "--seed");
  refused({"bench", "engine", llama_, "--batches", "1,x"}, "--batches: 'x' is no whole decimal number");
  const ran lists = run({"generate", llama_, "--tokens", "1,2", "--tokens", "3", "--max-tokens", "2"});
  EXPECT_EQ(lists.out, run({"generate", llama_, "--tokens", "1,2,3", "--max-tokens", "2", "--top-p", ".5"}).out);
}

TEST_F(usage, refuses_flags_that_do_not_fit) {
  refused({"generate", llama_}, "one of --prompt, --prompt-file and --tokens");
  refused({"generate", llama_, "--tokens", "1", "--prompt", "x"}, "one of --prompt, --prompt-file and --tokens");
  refused({"generate", llama_, "--tokens", "1", "--chat"}, "give --prompt");
  refused({"generate", llama_, "--prompt", "x", "--system", "y"}, "add --chat");
  refused({"generate", llama_, "--tokens", "1", "--keep", "lm_head"}, "--keep without --quant");
  refused({"generate", llama_, "--tokens", "1", "--logprobs", "1"}, "add --json");
  refused({"generate", llama_, "--tokens", "1", "--logit-bias", "5"}, "write TOKEN=VALUE");
  refused({"generate", llama_, "--tokens", "1", "--quant", "u9"}, "--quant: unknown quantization 'u9'");
  refused({"generate", llama_, "--tokens", "1", "--kv", "i4"}, "--kv");
  refused({"generate", llama_, "--tokens", "1", "--temperature", "-1"}, "temperature is -1");
  refused({"generate", llama_, "--tokens", "1", "--temperature", "nan"}, "temperature");
  for (const char* number : {"0", "-2"})
    refused({"generate", llama_, "--tokens", "1", "--max-tokens", number}, fmt::format("--max-tokens is {}", number));
  refused({"generate", llama_, "--tokens", "1", "--min-tokens", "500"},
          "--min-tokens is 500: use a value from 0 to 128");
  for (const char* number : {"-2", "0", "1025"})
    refused({"generate", llama_, "--tokens", "1", "--threads", number},
            "--threads is " + std::string(number) + ": use 1 to 1024");
  refused({"generate", llama_, "--tokens", "1", "--context", "257"}, "--context is 257");
  refused({"generate", llama_, "--tokens", "1", "--device", "gpu"}, "--device: unknown device 'gpu'");
  refused({"generate", llama_, "--tokens", "1", "--device", "cuda:63"}, "use the device cpu");
  refused({"generate", llama_, "--tokens", "1", "--stop-token", "96"}, "token 96");
  refused({"quantize", llama_, "--scheme", "u9", "--out", path("out").string()}, "--scheme: unknown quantization");
  refused({"generate", llama_, "--tokens", "1", "--quant", "Q4_K_M"}, "mxfp4; q4_k_m is about u4g32 here");
  refused({"generate", llama_, "--tokens", "1", "--quant", "auto"}, "or leave it out to have the weights as the files");
}

TEST_F(usage, refuses_prompts_that_the_model_cannot_take) {
  refused({"generate", llama_, "--tokens", "1,96"}, "token 96");
  refused({"generate", llama_, "--tokens=-1"}, "token -1");
  refused({"generate", llama_, "--tokens", comma_separated(std::vector<int>(256, 1))}, "shorten the prompt");
  refused({"generate", llama_, "--tokens", "1,2,3", "--context", "3"}, "shorten the prompt");
  refused({"generate", llama_, "--prompt", "text"}, "has no tokenizer");
}

TEST_F(usage, refuses_files_that_are_missing_or_broken) {
  refused({"generate", path("nowhere").string(), "--tokens", "1"}, "there is no such model");
  const auto schema = folder().write("schema.json", R"({"type":"wat"})").string();
  refused({"generate", llama_, "--tokens", "1", "--json-schema", schema}, "schema.json: ");
  refused({"inspect", path("nowhere").string()}, "there is no such model");
  refused({"inspect", "Qwen/Qwen3-0.6B"}, "none is downloaded");
  refused({"down", "nowhere"},
          "nowhere: there is no such file: name a cluster's TOML file (of troupe serve: ~/.local/");
  std::filesystem::create_directories(path("hub/snapshots/1f"));
  const auto snapshot = folder().write("hub/snapshots/1f/config.json", "{}").parent_path().string();
  refused({"inspect", path("hub").string()}, "has no config.json: name " + snapshot + ", if you mean that");
  refused({"inspect", path("hub/snapshots").string()}, "has no config.json: name a model's folder");
  refused({"inspect", (golden / "llama" / "adapter").string()}, "is an adapter: name the model that it adapts");
  refused({"eval", llama_, "--text", path("nowhere").string()}, "nowhere");
  refused({"eval", readable_model().string(), "--text", folder().write("short", "x").string()}, "longer text");
  refused({"generate", llama_, "--tokens", "1", "--adapter", path("nowhere").string()},
          "nowhere: there is none: name a folder as PEFT writes it");
  std::filesystem::create_symlink(path("loop"), path("loop"));
  const std::string hidden = (path("loop") / "x").string();
  for (const words& each : {words{"up", hidden}, words{"node", hidden, "--name", "w0"}, words{"down", hidden},
                            words{"keys", "list", hidden}, words{"inspect", hidden},
                            words{"generate", llama_, "--tokens", "1", "--adapter", hidden}})
    refused(each, hidden + ": cannot be opened (Too many levels of symbolic links): check the path");
  std::filesystem::create_directories(path("linked"));
  std::filesystem::create_symlink("config.json", path("linked/config.json"));
  refused({"generate", path("linked").string(), "--tokens", "1"}, "linked/config.json: cannot be opened (Too many ");

  const auto broken = readable_model("broken");
  std::filesystem::resize_file(broken / "model-00001-of-00002.safetensors", 3000);
  for (const words& each : {words{"generate", broken.string(), "--prompt", "x"}, words{"inspect", broken.string()},
                            words{"quantize", broken.string(), "--scheme", "u8", "--out", path("out").string()}})
    refused(each, "model-00001-of-00002.safetensors");
  EXPECT_FALSE(std::filesystem::exists(path("out")));

  std::filesystem::copy(golden / "llama" / "adapter", path("adapter"));
  folder().write("adapter/adapter_config.json", "{");
  refused({"generate", llama_, "--tokens", "1", "--adapter", path("adapter").string()}, "adapter_config.json");
  refused({"generate", llama_, "--tokens", "1", "--adapter", (golden / "gpt2" / "adapter").string()}, "adapter_model");

  const auto template_model = readable_model("template");
  folder().write("template/chat_template.jinja", "{% if %}\n{{");
  refused({"generate", template_model.string(), "--prompt", "x", "--chat"}, "chat template");
  refused({"generate", folder().write("half.gguf", "GGUF").string(), "--tokens", "1"}, "half.gguf");
}

TEST_F(usage, refuses_an_instruction_set_that_is_not_there) {
  expect_one_line(run({"generate", llama_, "--tokens", "1"}, {"TROUPE_ISA=nonsense"}), 2, "TROUPE_ISA=nonsense");
}

TEST_F(usage, puts_a_name_with_line_breaks_into_one_line) {
  refused({"inspect", "no\nwhere\n"}, "no where");
}

TEST_F(usage, puts_a_name_with_what_moves_a_terminals_cursor_into_its_line) {
  refused({"inspect", "no\u009bwhere\x1b\x9b"}, "no where ?");
}

TEST_F(usage, fails_with_1_when_the_output_cannot_be_written) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const words& each : {words{"inspect", llama_}, words{"bench", "limits", "--threads", "1"}}) {
    const int error = ::open(path("problem").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(start(each, full, error).wait(), 1);
    const std::string problem = read_file(path("problem"));
    EXPECT_EQ(problem.rfind("troupe: standard output cannot be written", 0), 0u) << problem;
    ::close(error);
  }
  ::close(full);
}

TEST_F(usage, explains_itself) {
  const ran version = run({"--version"}, {"TROUPE_ISA=generic"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out.rfind("troupe 0.", 0), 0u) << version.out;
  EXPECT_NE(version.out.find("generic (this processor has generic"), std::string::npos) << version.out;
  EXPECT_EQ(version.out.find("unknown"), std::string::npos) << "the linker gave the program a number";
  const ran help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* command : {"generate", "eval", "inspect", "quantize"})
    EXPECT_NE(help.out.find(command), std::string::npos) << help.out;
  EXPECT_NE(run({"generate", "--help"}).out.find("--max-tokens"), std::string::npos);
  EXPECT_EQ(run({"help"}).out, help.out);
  EXPECT_EQ(run({"help", "help"}).out, help.out);
  EXPECT_EQ(run({"help", "adapters", "load"}).out, run({"adapters", "load", "--help"}).out);
  refused({"help", "genrate"}, "unknown command 'genrate'");
}

TEST_F(usage, inspects_a_model) {
  const json got = run_json({"inspect", readable_model().string()});
  EXPECT_EQ(got["family"], "llama");
  EXPECT_EQ(got["context"], 256);
  EXPECT_EQ(got["tensors"]["bytes"], got["parameters"].get<std::int64_t>() * 4);
  EXPECT_EQ(got["quantization"], nullptr);
  EXPECT_EQ(got["tokenizer"]["kind"], "tokenizer.json");
  EXPECT_EQ(got["tokenizer"]["eos"], (json{{"id", 95}, {"text", "</s>"}}));
  EXPECT_EQ(got["chat_template"], false);
  EXPECT_GT(got["memory"]["f32"], got["memory"]["u8"]);
  EXPECT_EQ(run_json({"inspect", llama_})["tokenizer"], nullptr);
  EXPECT_EQ(run({"inspect", llama_}).code, 0);
}

}  // namespace
}  // namespace troupe::test
