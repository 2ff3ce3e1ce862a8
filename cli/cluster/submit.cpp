#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/requests/own_logprobs_json.hpp"
#include "actors/requests/sampling_fields.hpp"
#include "base/error.hpp"
#include "cli/cluster/cluster_client.hpp"
#include "cli/cluster/collect_job.hpp"
#include "cli/cluster/submit_file.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model/sampling_options.hpp"
#include "cli/output.hpp"
#include "model/text/chat_messages.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct submit_options {
  connect_options cluster;
  prompt_options question;
  std::string adapter, file, out;
  bool is_new = false;
  sampling_options sampling;
};

void check_options(const submit_options& options) {
  if (options.question.prompt.has_value() + !options.question.tokens.empty() + !options.file.empty() != 1)
    refuse("submit takes one of --prompt, --prompt-file, --tokens and --file: give one of them");
  if (options.file.empty() != options.out.empty()) refuse("--file and --out belong together: give both");
  if (options.is_new && options.file.empty()) refuse("--new is about a job: give --file");
  check_chat(options.question);
}

// --- one prompt ---

client_request request_of(const submit_options& options, const sampling_params& params) {
  client_request request;
  request.adapter = options.adapter;
  request.sampling = params;
  const auto& [prompt, tokens, chat, system] = options.question;
  request.tokens = tokens;
  if (!prompt) return request;
  if (!chat) {
    request.text = *prompt;
    return request;
  }
  request.messages = json_line(chat_of(system, *prompt));
  return request;
}

struct whole_answer {
  std::string text;
  std::vector<token_id> tokens;
  std::vector<sampled_token> details;

  void add(const client_text& part) {
    text += part.text;
    tokens.insert(tokens.end(), part.tokens.begin(), part.tokens.end());
    details.insert(details.end(), part.details.begin(), part.details.end());
  }
};

void print_answer(const whole_answer& answer, const client_text& last, bool logprobs) {
  json out{{"prompt_tokens", last.prompt_tokens}, {"tokens", answer.tokens}, {"text", answer.text}};
  out["finish_reason"] = last.finish;
  out["adapter"] = last.adapter.empty() ? json(nullptr) : json(last.adapter);
  if (logprobs) out["logprobs"] = own_logprobs_json(answer.details);
  print_json(out);
}

int submit_prompt(const submit_options& options, const sampling_params& params) {
  const interrupt_guard guard;
  cluster_client cluster(options.cluster);
  whole_answer answer;
  const auto take = [&](const client_text& part) {
    answer.add(part);
    if (!options.sampling.json) print(part.text);
  };
  const auto last = cluster.ask(request_of(options, params), take, is_interrupted);
  check_interrupt();
  if (options.sampling.json)
    print_answer(answer, *last, params.logprobs.has_value());
  else if (answer.text.empty() && !options.question.prompt)  // a model without a tokenizer takes and gives only tokens
    print(fmt::format("{}\n", fmt::join(answer.tokens, ",")));
  else
    print("\n");
  return 0;
}

// --- a file ---

/// What applies to lines that do not say otherwise.
json job_options(const submit_options& options, const sampling_params& params) {
  json made = json_of(params);
  if (!options.adapter.empty()) made["adapter"] = options.adapter;
  if (options.sampling.draws_seed) made["seed"] = -1;  // so that the same command goes on with the job
  return made;
}

int submit_all(const submit_options& options, const sampling_params& params) {
  cluster_client cluster(options.cluster);
  const json job =
      submit_file(cluster, {options.file, options.out, job_options(options, params).dump(), options.is_new});
  if (options.sampling.json) print_json(job);
  check_answered(job, options.out);
  return 0;
}

int submit(const submit_options& options) {
  check_options(options);
  const sampling_params params = checked_sampling(options.sampling);
  return options.file.empty() ? submit_prompt(options, params) : submit_all(options, params);
}

}  // namespace

void add_submit(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "submit", "Have a prompt, or a file of them, answered by a cluster", submit);
  add_connect(own, options.cluster);
  add_prompt(own, options.question, "send");
  own.add_option("--file", options.file, R"(a JSON object a line: {"prompt"|"messages"|"tokens", …})")
      ->type_name("IN.jsonl");
  own.add_option("--out", options.out, "the answers, in the same order; goes on where the file ends")
      ->type_name("OUT.jsonl");
  own.add_flag("--new", options.is_new, "a new job, even where the same was submitted before");
  own.add_option("--adapter", options.adapter, "answer with this adapter: name or name@version")->type_name("NAME");
  add_sampling(own, options.sampling,
               R"(print {"prompt_tokens","tokens","text","finish_reason","adapter"}, or the job, at the end)");
}

}  // namespace troupe
