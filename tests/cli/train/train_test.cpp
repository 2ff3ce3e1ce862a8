// `troupe train --local`: what it writes, how it is interrupted, what it refuses.
#include <fcntl.h>
#include <pty.h>
#include <sys/file.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "base/file_descriptor.hpp"
#include "base/to_size.hpp"
#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

namespace fs = std::filesystem;

class train : public program {
 protected:
  std::string data() const {
    std::string lines;
    for (int i = 0; i < 12; ++i)
      lines += json{{"prompt", std::string(1, static_cast<char>('A' + i))}, {"completion", "HELLO"}}.dump() + "\n";
    return folder().write("data.jsonl", lines).string();
  }
  words arguments(const std::string& model, const std::string& out, const words& more = {}) const {
    words all{"train", "--local", model, "--data", data(), "--adapter", path(out).string(), "--lr", "0.01"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  void await_checkpoint(process& training, const std::string& out) const {
    EXPECT_TRUE(is_soon([&] { return fs::exists(path(out) / "checkpoint.safetensors") || training.poll(); },
                        std::chrono::seconds(60)));
  }
};

TEST_F(train, writes_an_adapter_that_generate_uses) {
  const auto model = readable_model().string();
  const json done = run_json(arguments(model, "adapter", {"--steps", "60", "--validate-every", "20"}));
  EXPECT_EQ(done["steps"], 60);
  EXPECT_LT(done["validation_loss"], 0.5 * done["base_validation_loss"].get<double>());
  EXPECT_FALSE(fs::exists(path("adapter") / "checkpoint.safetensors"));
  EXPECT_TRUE(fs::exists(path("adapter") / "best" / "adapter_model.safetensors"));
  const json answer = run_json({"generate", model, "--prompt", "C", "--adapter", path("adapter").string()});
  EXPECT_EQ(answer["text"], "HELLO");
  EXPECT_EQ(answer["finish_reason"], "stop");
}

TEST_F(train, reads_data_from_standard_input) {
  const auto model = readable_model().string();
  const words more{"--steps", "3"};
  const auto train_on = [&](const std::string& text, const std::string& out) {
    const std::string script = R"(exec "$0" train --local "$1" --data - --adapter "$2" --lr 0.01 --steps 3 < "$3")";
    process piped({"/bin/sh", "-c", script, TROUPE_BINARY, model, path(out).string(), text}, path("said"),
                  {"TROUPE_CACHE=" + cache().string()});
    const int code = piped.wait();
    return ran{code, piped.out(), piped.error()};
  };
  const ran got = train_on(data(), "piped");
  EXPECT_EQ(got.code, 0) << got.error;
  ASSERT_EQ(run(arguments(model, "named", more)).code, 0);
  EXPECT_EQ(read_file(path("piped") / "adapter_model.safetensors"),
            read_file(path("named") / "adapter_model.safetensors"));
  expect_one_line(train_on(folder().write("bad", "{\"text\": 5}\n").string(), "none"), 2, "standard input:1: ");
}

TEST_F(train, says_how_many_examples_of_the_validation_data_are_cut) {
  const json line{{"prompt", "A"}, {"completion", std::string(40, 'B')}};
  const auto file = folder().write("validation.jsonl", line.dump() + "\n").string();
  const ran got =
      run(arguments(readable_model().string(), "out", {"--steps", "1", "--length", "16", "--validation", file}));
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_NE(got.error.find("1 examples of the validation data are cut to 16 tokens"), std::string::npos) << got.error;
}

TEST_F(train, says_how_many_chats_teach_no_end) {
  const auto model = readable_model().string();
  folder().write("readable/chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
  const auto message = [](const char* role) { return json{{"role", role}, {"content", "AB"}}; };
  const json chat{{"messages", json::array({message("user"), message("assistant")})}};
  const auto file = folder().write("chats.jsonl", chat.dump() + "\n").string();
  const auto ran_with = [&](const std::string& name, const char* out) {
    return run({"train", "--local", model, "--data", name, "--adapter", path(out).string(), "--steps", "1"});
  };
  const ran got = ran_with(file, "chats");
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_NE(got.error.find("1 chats whose template writes no end behind an answer: the adapter will not learn to stop"),
            std::string::npos)
      << got.error;
  EXPECT_EQ(ran_with(data(), "completions").error.find("no end behind"), std::string::npos);
}

TEST_F(train, what_replaces_an_adapter_leaves_no_best_one_of_it) {
  const auto model = readable_model().string();
  const words more{"--steps", "2", "--force", "--held-out"};
  const auto train_with = [&](const char* held_out) {
    words all = more;
    all.emplace_back(held_out);
    EXPECT_EQ(run(arguments(model, "out", all)).code, 0);
  };
  train_with("0.2");
  EXPECT_TRUE(fs::exists(path("out") / "best"));
  train_with("0");
  EXPECT_TRUE(fs::exists(path("out") / "adapter_model.safetensors"));
  EXPECT_FALSE(fs::exists(path("out") / "best"));
}

TEST_F(train, interrupted_and_resumed_gives_the_same_bytes) {
  const auto model = readable_model().string();
  const words more{"--steps", "150", "--checkpoint-every", "1", "--dropout", "0.1", "--quant", "u8"};
  const auto with_log = [&](const char* log) {
    words all = more;
    all.insert(all.end(), {"--validate-every", "7", "--log", path(log).string()});
    return all;
  };
  ASSERT_EQ(run(arguments(model, "whole", with_log("whole.log"))).code, 0);
  const auto checkpoint = path("parts") / "checkpoint.safetensors";
  const file_descriptor said(::open(path("said").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  process child = start(arguments(model, "parts", with_log("parts.log")), STDOUT_FILENO, said.number());
  await_checkpoint(child, "parts");
  child.signal(SIGINT);
  ASSERT_EQ(child.wait(), 130);
  EXPECT_NE(read_file(path("said")).find("the same command with --resume goes on"), std::string::npos);
  ASSERT_TRUE(fs::exists(checkpoint));
  refused(arguments(model, "parts", with_log("parts.log")), "--resume");
  std::ofstream(path("parts.log"), std::ios::app)
      << R"({"step":150,"loss":1.0})"
      << "\n"
      << R"({"step":1)";  // as of a process that was killed after its checkpoint
  const auto torn = folder().write("parts/checkpoint.safetensors.7.partial", "of a process that died");
  const auto foreign = folder().write("parts/film.partial", "of somebody else");
  words again = with_log("parts.log");
  again.push_back("--resume");
  again.push_back("--json");
  const ran done = run(arguments(model, "parts", again));
  ASSERT_EQ(done.code, 0) << done.error;
  EXPECT_EQ(done.out.find("base_validation_loss"), std::string::npos) << "the process measured it that was interrupted";
  const auto bytes = [&](const char* out) { return read_file(path(out) / "adapter_model.safetensors"); };
  EXPECT_EQ(bytes("parts"), bytes("whole"));
  EXPECT_EQ(read_file(path("parts.log")), read_file(path("whole.log")));
  EXPECT_FALSE(fs::exists(torn));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(train, leaves_a_checkpoint_when_its_terminal_is_closed) {
  const auto model = readable_model().string();
  const words more{"--steps", "1000000", "--checkpoint-every", "1"};
  const file_descriptor said(::open(path("said").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  process child = start(arguments(model, "out", more), STDOUT_FILENO, said.number());
  await_checkpoint(child, "out");
  child.signal(SIGHUP);
  EXPECT_EQ(child.wait(), 128 + SIGHUP);
  EXPECT_NE(read_file(path("said")).find("the same command with --resume goes on"), std::string::npos);
}

TEST_F(train, writes_checkpoints_by_time_alone_unless_a_number_of_steps_is_named) {
  const auto model = readable_model().string();
  const words more{"--steps", "1000000", "--log", path("log").string()};
  process child = start(arguments(model, "out", more), STDOUT_FILENO, STDERR_FILENO);
  EXPECT_TRUE(is_soon([&] { return read_file(path("log")).find("{\"step\":110,") != std::string::npos; },
                      std::chrono::seconds(50)));
  EXPECT_FALSE(fs::exists(path("out") / "checkpoint.safetensors"));
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 128 + SIGINT);
  EXPECT_TRUE(fs::exists(path("out") / "checkpoint.safetensors"));
}

TEST_F(train, goes_on_without_its_terminal_where_that_is_wanted) {
  const auto model = readable_model().string();
  const words more{"--steps", "1000000", "--checkpoint-every", "1"};
  const auto before = std::signal(SIGHUP, SIG_IGN);  // as nohup does
  process child = start(arguments(model, "out", more), STDOUT_FILENO, STDERR_FILENO);
  std::signal(SIGHUP, before);
  await_checkpoint(child, "out");
  child.signal(SIGHUP);
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 128 + SIGINT);
}

TEST_F(train, keeps_its_bar_in_one_row_of_a_terminal) {
  const auto model = readable_model().string();
  const winsize size{24, 60, 0, 0};
  int ours = -1, theirs = -1;
  ASSERT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, &size), 0);
  process child = start(arguments(model, "out", {"--steps", "1000000"}), theirs, theirs);
  ::close(theirs);
  std::string seen;
  char bytes[4096];
  const auto last_bar = [&] { return seen.rfind("\r\x1b[Ktraining ["); };
  // one bar and the beginning of the next
  while (last_bar() == std::string::npos || last_bar() == seen.find("\r\x1b[Ktraining [")) {
    const auto got = ::read(ours, bytes, sizeof bytes);
    if (got <= 0) break;
    seen.append(bytes, to_size(got));
  }
  child.signal(SIGINT);
  EXPECT_EQ(child.wait(), 130);
  ::close(ours);
  const std::size_t bar = seen.find("training [");
  ASSERT_NE(bar, std::string::npos) << seen;
  const std::string line = seen.substr(bar, seen.find('\r', bar) - bar);
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  EXPECT_LT(std::count_if(line.begin(), line.end(), begins_character), 60) << line;
  EXPECT_TRUE(line.ends_with("…")) << line << " has no room for all of it";
  EXPECT_NE(line.find("loss"), std::string::npos) << line;
}

TEST_F(train, refuses_a_folder_that_cannot_be_written_before_its_first_step) {
  const auto model = readable_model().string();
  const auto log = path("log");
  folder().write("file", "not a folder");
  refused(arguments(model, "file/adapter", {"--steps", "2", "--log", log.string()}), "choose another folder");
  EXPECT_FALSE(fs::exists(log));
}

TEST_F(train, refuses_a_folder_that_another_run_writes) {
  fs::create_directory(path("out"));
  const file_descriptor held(::open(path("out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(held.number(), LOCK_EX), 0);
  const auto model = readable_model().string();
  for (const words& more : {words{}, words{"--force"}})
    refused(arguments(model, "out", more), path("out").string() + ": another troupe train writes there");
  EXPECT_TRUE(fs::is_empty(path("out")));
}

TEST_F(train, leaves_no_folder_where_nothing_was_written) {
  const auto model = readable_model().string(), log = path("nowhere/log").string();
  refused(arguments(model, "out", {"--steps", "2", "--log", log}), log + ": cannot be written");
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(train, shows_validations_in_a_pipe_too) {
  const auto model = readable_model().string();
  const ran got = run(arguments(model, "out", {"--steps", "4", "--validate-every", "2", "--held-out", "0.2"}));
  EXPECT_EQ(got.code, 0);
  for (const char* step : {"step 0", "step 2", "step 4"})
    EXPECT_NE(got.error.find(std::string("validation: ") + step), std::string::npos) << got.error;
}

TEST_F(train, all_weights_make_a_model_of_their_own) {
  const auto model = readable_model();
  words all{"train", "--local", model.string(), "--data", data(), "--full", "--fresh", "--out", path("model").string(),
            "--lr",  "0.01",    "--steps",      "60"};
  std::ofstream(model / "generation_config.json") << R"({"temperature":0.6})";
  fs::create_directory(model / "additional_chat_templates");
  std::ofstream(model / "additional_chat_templates" / "tool_use.jinja") << "for tools";
  const json done = run_json(all);
  EXPECT_EQ(read_file(path("model") / "generation_config.json"), R"({"temperature":0.6})");
  EXPECT_EQ(read_file(path("model") / "additional_chat_templates" / "tool_use.jinja"), "for tools");
  EXPECT_LT(done["loss"], 1.0);
  const json answer = run_json({"generate", path("model").string(), "--prompt", "B"});
  EXPECT_EQ(answer["text"], "HELLO");
  ASSERT_EQ(run({"quantize", path("model").string(), "--scheme", "u8", "--out", path("packed").string()}).code, 0);
  all[2] = path("packed").string(), all[8] = path("other").string();
  std::erase(all, "--fresh");
  refused(all, "is quantized");
}

TEST_F(train, refuses_a_rank_that_is_no_whole_number) {
  const auto model = readable_model().string();
  for (const std::string given : {"q_proj=2.5", "q_proj=0", "q_proj=513"})
    refused(arguments(model, "out", {"--rank-of", given}),
            "--rank-of: " + given + ": use a whole number from 1 to 512");
}

TEST_F(train, starts_from_an_adapter_of_its_own) {
  const auto model = readable_model().string();
  const words init{"--steps", "5", "--init", (golden / "llama" / "adapter").string()};
  ASSERT_EQ(run(arguments(model, "first", init)).code, 0);
  const json config = json::parse(read_file(path("first") / "adapter_config.json"));
  EXPECT_EQ(config["r"], 2);
}

TEST_F(train, names_the_adapter_that_it_started_from_where_that_may_be_what_is_no_use) {
  const auto model = readable_model().string();
  fs::copy(golden / "llama" / "adapter", path("huge"));
  std::string weights = read_file(path("huge") / "adapter_model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  const float huge = 1e30f;
  for (std::size_t at = sizeof header + header; at < weights.size(); at += sizeof huge)
    std::memcpy(&weights[at], &huge, sizeof huge);
  folder().write("huge/adapter_model.safetensors", weights);
  const ran got = run(arguments(model, "out", {"--steps", "2", "--init", path("huge").string()}));
  EXPECT_EQ(got.code, 1);
  EXPECT_NE(got.error.find("the base or the adapter " + path("huge").string() + " has weights that are none"),
            std::string::npos)
      << got.error;
}

TEST_F(train, goes_on_only_from_the_adapter_that_it_started_from) {
  const auto model = readable_model().string(), first = (golden / "llama" / "adapter").string();
  ASSERT_EQ(run(arguments(model, "other", {"--steps", "2", "--init", first})).code, 0);
  ASSERT_EQ(run(arguments(model, "out", {"--steps", "2", "--init", first, "--keep-checkpoint"})).code, 0);
  refused(arguments(model, "out", {"--steps", "2", "--init", path("other").string(), "--resume"}),
          "of a run with other data or options (the adapter of --init): use");
  EXPECT_EQ(run(arguments(model, "out", {"--steps", "2", "--init", first, "--resume"})).code, 0);
  EXPECT_TRUE(fs::exists(path("out") / "checkpoint.safetensors")) << "what a finished run kept stays";
}

TEST_F(train, refuses_devices_that_are_not_there_or_do_not_train_that) {
  const auto model = readable_model().string();
  refused(arguments(model, "out", {"--device", "tpu"}), "use cpu, cuda:0");
  refused(arguments(model, "out", {"--device", "cuda:15"}), "use the device cpu");
  refused({"train", "--local", model, "--data", data(), "--full", "--out", path("out").string(), "--device", "cuda:0"},
          "leave out --device");
  EXPECT_FALSE(fs::exists(path("out")));
}

TEST_F(train, refuses_flags_that_mean_nothing_for_what_is_trained) {
  const auto model = readable_model().string(), other = path("other").string();
  refused(arguments(model, "out", {"--out", other}), "--out is for --full alone");
  refused(arguments(model, "out", {"--fresh"}), "--fresh is for --full alone");
  refused(arguments(model, "out", {"--full"}), "--adapter is for an adapter: leave it out, or --full");
  refused(arguments(model, "out", {"--keep", "lm_head"}), "--keep without --quant");
  const words whole{"train", "--local", model, "--data", data(), "--full", "--out", other};
  for (const words& more : {words{"--rank", "4"}, words{"--targets", "q_proj"}, words{"--rslora"},
                            words{"--init", other}, words{"--quant", "u8"}}) {
    words all = whole;
    all.insert(all.end(), more.begin(), more.end());
    refused(all, more.front() + " is for an adapter");
  }
  for (const words& more :
       {words{"--rank", "4"}, words{"--alpha", "4"}, words{"--rslora"}, words{"--targets", "q_proj"},
        words{"--rank-of", "q_proj=4"}, words{"--alpha-of", "q_proj=4"}}) {
    words all = arguments(model, "out", {"--init", (golden / "llama" / "adapter").string()});
    all.insert(all.end(), more.begin(), more.end());
    refused(all, more.front() + " is that of the adapter of --init");
  }
  for (const std::string& folder : {path("out").string(), other}) EXPECT_FALSE(fs::exists(folder));
}

TEST_F(train, refuses_amounts_by_which_nothing_is_learned) {
  const words order{"train", "--data", data(), "--adapter", path("out").string()};
  for (const words& where : {words{"--local", readable_model().string()}, words{}})
    for (const auto& [flag, value] :
         {std::pair("--steps", "0"), std::pair("--steps", "-3"), std::pair("--lr", "0"), std::pair("--length", "1")}) {
      words all = order;
      all.insert(all.end(), where.begin(), where.end());
      all.insert(all.end(), {flag, value});
      refused(all, std::string(flag) + " is " + value + ": use ");
    }
}

TEST_F(train, looks_at_both_files_before_it_sends_one_of_them) {
  const std::string none = path("nowhere.jsonl").string();
  refused({"train", "--data", data(), "--validation", none, "--adapter", "sums", "--connect", "tcp://127.0.0.1:1"},
          none + ": cannot be read");
}

TEST_F(train, refuses_what_it_cannot_read_whole) {
  const auto model = readable_model().string();
  const auto bad = folder().write("bad.jsonl", "{\"text\":\"AB\"}\n{\"text\":\"A").string();
  const auto refused_with = [&](const words& more, const std::string& part) {
    words all{"train", "--local", model, "--adapter", path("out").string(), "--data"};
    all.insert(all.end(), more.begin(), more.end());
    refused(all, part);
  };
  refused_with({bad}, "bad.jsonl:2: ");
  refused_with({data(), "--rank", "0"}, "rank is 0");
  refused_with({data(), "--alpha-of", "q_proj=0"}, "alpha is 0");
  refused_with({data(), "--alpha", "-16"}, "the adapter's alpha is -16: use 1e-06 to 1000000");
  refused_with({data(), "--alpha", "1e30"}, "the adapter's alpha is 1e+30: use 1e-06 to 1000000");
  refused_with({data(), "--dropout", "0.97"}, "the adapter's dropout is 0.97: use 0 to 0.95");
  refused_with({data(), "--held-out", "0.995"}, "the share held out is 0.995: use 0 to 0.99");
  refused_with({data(), "--targets", "c_attn"}, "\"c_attn\" fits no linear layer");
  refused_with({data(), "--rank-of", "zz=4"}, "\"zz\" fits no layer");
  refused_with({data(), "--schedule", "square"}, "unknown schedule 'square'");
  refused_with({data(), "--resume"}, "has no checkpoint");
  EXPECT_FALSE(fs::exists(path("out")));
  refused({"train", "--local", model, "--data", data(), "--adapter", path("bad").parent_path().string()},
          "is there already");
}

TEST_F(train, never_writes_into_the_folder_of_the_model_itself) {
  const auto model = readable_model();
  const std::string before = read_file(model / "model-00001-of-00002.safetensors"),
                    other = (model / "..").string() + "/readable/.";
  for (const words& more : {words{"--full", "--out"}, words{"--adapter"}}) {
    words all{"train", "--local", model.string(), "--data", data(), "--steps", "2", "--force"};
    all.insert(all.end(), more.begin(), more.end());
    all.push_back(other);
    refused(all, "is the folder of the model itself");
  }
  EXPECT_EQ(read_file(model / "model-00001-of-00002.safetensors"), before);
  EXPECT_FALSE(fs::exists(model / "checkpoint.safetensors"));
}

}  // namespace
}  // namespace troupe::test
