#include <unistd.h>

#include <iostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/field_error.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model/sampling_options.hpp"
#include "cli/output.hpp"
#include "cli/usage.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"
#include "model/text/channels.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct chat_options {
  const CLI::App* own = nullptr;  ///< the command that has these options as flags
  connect_options cluster;
  std::string adapter, system;
  sampling_options sampling;
};

constexpr std::size_t most_typed = 4095;  // the kernel drops what a longer line has besides

constexpr const char* help =
    "/quit ends, /adapter NAME answers with an adapter (without a name: the bare model), /clear forgets what was "
    "said,\n"
    "Ctrl-C stops an answer\n";

/// Special tokens of the model, as the head names them.
struct head_tags {
  std::string thought_begin, thought_end;  ///< empty: the model has none
  std::string answer_begin, answer_end;    ///< likewise around what it answers

  thought_tags all() const { return {thought_begin, thought_end, answer_begin, answer_end}; }
};

class conversation {
 public:
  explicit conversation(const chat_options& options)
      : options_(options),
        params_(checked_sampling(options.sampling)),
        cluster_(options.cluster),
        adapter_(options.adapter) {
    check_template();
    clear();
  }

  /// False: the user wants to end.
  bool take(const std::string& typed) {
    const std::string line = one_line(typed);
    if (line.empty()) return true;
    if (line.front() != '/') {
      answer(typed.ends_with('\r') ? typed.substr(0, typed.size() - 1) : typed);
      return true;
    }
    const std::string word = line.substr(0, line.find(' '));
    if (word == "/quit" || word == "/exit") return false;
    if (word == "/clear")
      clear();
    else if (word == "/adapter")
      change_to(line.size() > word.size() + 1 ? line.substr(word.size() + 1) : std::string());
    else
      print(help);
    return true;
  }

  /// Whether a message got no answer, since it or what goes with it was refused.
  bool was_refused() const { return was_refused_; }

 private:
  /// Refuses at once what would refuse every message.
  void check_template() {
    const json hello = cluster_.command("hello", {});
    if (const auto why = hello.value("no_chat", std::string()); !why.empty())
      refuse("{}; troupe submit takes one", why);
    model_ = hello.value("model", std::string());
    has_channels_ = hello.value("has_channels", false);
    const auto tag = [&](const char* name) { return hello.value(name, std::string()); };
    tags_ = {tag("thought_begin"), tag("thought_end"), tag("answer_begin"), tag("answer_end")};
  }

  /// Without thoughts that special tokens tell: a template refuses a message that has them, or leaves them in it.
  std::string answer_in(const std::string& said) const {
    if (has_channels_) return without_thoughts(said);
    return tags_.thought_begin.empty() ? said : without_thoughts(said, tags_.all());
  }

  /// "pricing" of "base:pricing@2".
  std::string name_of_adapter(const std::string& text) const {
    const auto colon = text.find(':');
    const bool has_base = colon != text.npos && is_base_name(text.substr(0, colon), model_);
    const std::string version = has_base ? text.substr(colon + 1) : text;
    return version.substr(0, version.find('@'));
  }

  /// It may be one that a message publishes, so one that is not there yet is no error. What can be no name is refused
  /// when a message comes.
  void change_to(const std::string& adapter) {
    adapter_ = adapter;
    const std::string name = name_of_adapter(adapter);
    if (is_base_name(adapter, model_) || !is_adapter_name(name)) return;
    const json page = cluster_.command("adapters.list", {{"after", name}});  // begins with its versions
    if (page.empty() || page.front().value("name", "") != name)
      write_error(
          fmt::format("troupe: adapter {}: there is none yet (see troupe adapters list): the next message looks for it "
                      "in adapters.dir of the cluster\n",
                      name));
  }

  void clear() {
    messages_ = json::array();
    if (!options_.system.empty()) messages_.push_back({{"role", "system"}, {"content", options_.system}});
  }

  void answer(const std::string& message) {
    messages_.push_back({{"role", "user"}, {"content", message}});
    client_request request;
    request.messages = json_line(messages_);
    request.adapter = adapter_;
    request.sampling = params_;
    std::string said;
    const interrupt_guard guard;
    try {
      const auto show = [&](const client_text& part) {
        said += part.text;
        print(part.text);
      };
      cluster_.ask(std::move(request), show, is_interrupted);
      print("\n");
      messages_.push_back({{"role", "assistant"}, {"content", answer_in(said)}});
    } catch (const input_error& error) {
      // The conversation goes on without this message.
      messages_.erase(messages_.size() - 1);
      was_refused_ = true;
      write_error(fmt::format("troupe: {}\n", one_line(why_refused(error))));
    }
    (void)take_ctrl_c();  // it ends the answer alone
    check_interrupt();
  }

  std::string why_refused(const input_error& error) const {
    const auto* of_field = dynamic_cast<const field_error*>(&error);
    if (of_field == nullptr) return error.what();
    if (has_history() && of_field->code() == too_long_code)
      return "the conversation is longer than the context: /clear begins a new one";
    return in_flags(*options_.own, *of_field);
  }

  bool has_history() const { return messages_.size() > (options_.system.empty() ? 0 : 1); }

  const chat_options& options_;
  sampling_params params_;
  cluster_client cluster_;
  std::string adapter_;
  json messages_;
  bool was_refused_ = false, has_channels_ = false;
  std::string model_;  ///< the base's name
  head_tags tags_;
};

/// Whoever types the messages has seen what was refused; a script has not.
int chat(const chat_options& options) {
  conversation talk(options);
  const bool types = ::isatty(STDIN_FILENO) == 1, terminal = types && ::isatty(STDOUT_FILENO) == 1;
  const auto code = [&] { return talk.was_refused() && !types ? 2 : 0; };
  if (terminal) print(help);
  for (std::string line;;) {
    if (terminal) print("> ");
    if (!std::getline(std::cin, line)) break;
    if (types && line.size() >= most_typed) {
      write_error("troupe: a terminal gives 4,095 bytes of a line and no more: use submit --chat --prompt-file FILE\n");
      continue;
    }
    if (!talk.take(line)) return code();
  }
  if (terminal) print("\n");
  return code();
}

}  // namespace

void add_chat(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "chat", "Talk with a cluster's model; a line is a message", chat);
  options.own = &own;
  add_connect(own, options.cluster);
  own.add_option("--adapter", options.adapter, "answer with this adapter: name or name@version")->type_name("NAME");
  own.add_option("--system", options.system, "a system message before all others")->type_name("TEXT");
  add_sampling(own, options.sampling, {});
  options.sampling.params.max_tokens = INT32_MAX;
  own.get_option("--max-tokens")->description("tokens of an answer at most [as many as the context has room for]");
}

}  // namespace troupe
