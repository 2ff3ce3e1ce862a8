#include "cli/other_programs.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace troupe {
namespace {

/// How other programs call what we call otherwise: to be suggested, never taken.
struct other_word {
  std::string_view theirs, ours;
};
/// Of several for a word the first that a command has.
constexpr other_word other_words[] = {
    {"--host", "--http"},
    {"--host", "--connect"},
    {"--port", "--http"},
    {"--port", "--connect"},
    {"--url", "--connect"},
    {"--http", "--connect"},
    {"--ctx-size", "--context"},
    {"--max-total-tokens", "--context"},
    {"--max-model-len", "--context"},
    {"--max-seq-length", "--length"},
    {"--context", "--length"},
    {"--lora", "--adapter"},
    {"--lora-modules", "--adapter"},
    {"--api-key", "--key"},
    {"--quant", "--scheme"},
    {"--quantization", "--quant"},
    {"--quantize", "--quant"},
    {"--hostname", "--http"},
    {"--allowed-origins", "--http-origins"},
    {"--quantization", "--scheme"},
    {"--dtype", "--quant"},
    {"--dtype", "--scheme"},
    {"--cache-type-k", "--kv"},
    {"--cache-type-v", "--kv"},
    {"-ctk", "--kv"},
    {"-ctv", "--kv"},
    {"--kv-cache-dtype", "--kv"},
    {"-ngl", "--device"},
    {"--n-gpu-layers", "--device"},
    {"--model", "--local"},
    {"--model", "--adapter"},
    {"-m", "--model"},
    {"-m", "--local"},
    {"-m", "--adapter"},
    {"-p", "--prompt"},
    {"-i", "--file"},
    {"-o", "--out"},
    {"-j", "--json"},
    {"-d", "--detach"},
    {"-d", "--data"},
    {"-t", "--threads"},
    {"-c", "--context"},
    {"-c", "--length"},
    {"-c", "--connect"},
    {"-n", "--max-tokens"},
    {"-s", "--seed"},
    {"-f", "--prompt-file"},
    {"--file", "--prompt-file"},
    {"--temp", "--temperature"},
    {"--repeat-penalty", "--repetition-penalty"},
    {"--num-prompts", "--requests"},
    {"--request-rate", "--rate"},
    {"--max-concurrency", "--concurrency"},
    {"--base-url", "--url"},
    {"--base-url", "--connect"},
    {"--n-predict", "--max-tokens"},
    {"--max-new-tokens", "--max-tokens"},
    {"--learning-rate", "--lr"},
    {"--num-epochs", "--epochs"},
    {"--num-train-epochs", "--epochs"},
    {"--max-steps", "--steps"},
    {"--batch-size", "--batch"},
    {"--per-device-train-batch-size", "--batch"},
    {"--gradient-accumulation-steps", "--accumulate"},
    {"--weight-decay", "--decay"},
    {"--lora-rank", "--rank"},
    {"--lora-r", "--rank"},
    {"--lora-alpha", "--alpha"},
    {"--lora-dropout", "--dropout"},
    {"--train-data", "--data"},
    {"--base", "--local"},
    {"--output", "--out"},
    {"--output-dir", "--out"},
    {"run", "generate"},
    {"convert", "quantize"},
    {"perplexity", "eval"},
    {"finetune", "train"},
    {"lora", "adapters"},
    {"list", "status"},
    {"ls", "list"},
    {"ls", "status"},
    {"ps", "status"},
    {"health", "status"},
    {"start", "up"},
    {"stop", "down"},
    {"kill", "down"},
    {"show", "inspect"},
    {"add", "load"},
    {"create", "add"},
    {"rm", "unload"},
    {"rm", "revoke"},
    {"rm", "forget"},
    {"remove", "unload"},
    {"remove", "revoke"},
    {"remove", "forget"},
    {"delete", "unload"},
    {"delete", "revoke"},
    {"delete", "forget"},
};

using command_names = std::span<const std::string_view>;
constexpr std::string_view serving[] = {"serve", "up", "node"};
constexpr std::string_view of_clusters[] = {"up", "node"};
constexpr std::string_view with_file[] = {"up", "down", "node"};
constexpr std::string_view one_node[] = {"node"};
constexpr std::string_view of_load[] = {"bench serve"};

/// What other programs have a word for, and we do in another way.
struct other_way {
  std::string_view word, ours;
  command_names commands = {};  ///< for which that is so; none: for all
};
constexpr std::string_view no_downloads = "troupe downloads no models: fetch one by `hf download`, and name its folder";
constexpr std::string_view own_template =
    "the template is the model's own: chat_template.jinja in its folder, or NAME.jinja beside NAME.gguf";
constexpr std::string_view of_requests = "each request says it (docs/API.md)";
constexpr std::string_view not_needed = "always on, or not needed: leave it out";
constexpr std::string_view no_tls = "a proxy in front has TLS (docs/OPERATING.md)";
constexpr std::string_view no_flag = "the cluster's file is named without a flag";
constexpr std::string_view replicas_in_file = "a cluster's file says it: replicas in [cluster], for troupe up";
constexpr std::string_view steps_in_file = "a cluster's file says it: max_batch_tokens in [scheduler]";
constexpr std::string_view waiting_in_file = "a cluster's file says it: max_waiting in [scheduler]";
constexpr std::string_view resident_in_file = "a cluster's file says it: max_resident in [adapters]";
constexpr std::string_view any_rank = "adapters of all ranks are taken: leave it out";
constexpr std::string_view mapped = "weights are mapped, and what is in use stays in memory: leave it out";
constexpr other_way other_ways[] = {
    {"--api-key", "troupe keys add makes keys for the HTTP API", serving},
    {"--api-key-file", "troupe keys add --from FILE takes them over", serving},
    {"--enable-lora", "adapters are always on: --adapter names one", serving},
    {"--max-loras", resident_in_file, serving},
    {"--max-cpu-loras", resident_in_file, serving},
    {"--max-active-adapters", resident_in_file, serving},
    {"--max-lora-rank", any_rank, serving},
    {"--lora-scaled", "--adapter names it; its own lora_alpha scales it", serving},
    {"--adapter-source", "adapters are folders and files: --adapter and --adapters name them", serving},
    {"--tensor-parallel-size", "a cluster's file says it: tensor in [cluster], for troupe up", serving},
    {"-tp", "a cluster's file says it: tensor in [cluster], for troupe up", serving},
    {"--pipeline-parallel-size", "a cluster's file says it: stages in [cluster], for troupe up", serving},
    {"-pp", "a cluster's file says it: stages in [cluster], for troupe up", serving},
    {"--data-parallel-size", replicas_in_file, serving},
    {"-dp", replicas_in_file, serving},
    {"--replicas", replicas_in_file, serving},
    {"--stages", "a cluster's file says it: stages in [cluster], for troupe up", serving},
    {"--num-shard", "a cluster's file says it: tensor in [cluster], for troupe up", serving},
    {"--workers", "a cluster's file says it: a [[node]] for each, for troupe up", serving},
    {"--kv-memory", "a cluster's file says it: kv_memory in [scheduler]", serving},
    {"--state-dir", "a cluster's file says it: state_dir in [cluster]", serving},
    {"--parallel", "requests share batches by themselves; max_sequences in [scheduler] of a cluster's file limits them",
     serving},
    {"-np", "requests share batches by themselves; max_sequences in [scheduler] of a cluster's file limits them",
     serving},
    {"--max-num-seqs", "a cluster's file says it: max_sequences in [scheduler]", serving},
    {"--max-num-batched-tokens", steps_in_file, serving},
    {"--batch-size", steps_in_file, serving},
    {"-b", steps_in_file, serving},
    {"--ubatch-size", steps_in_file, serving},
    {"-ub", steps_in_file, serving},
    {"--max-concurrent-requests", waiting_in_file, serving},
    {"--gpu-memory-utilization", "a cluster's file says it: kv_memory in [scheduler], memory of a [[node]]", serving},
    {"--model-id", "write MODEL without a flag", serving},
    {"--served-model-name", "troupe serve takes --name; a cluster's file says it: name in [model]", serving},
    {"--alias", "troupe serve takes --name; a cluster's file says it: name in [model]", serving},
    {"--chat-template", own_template},
    {"--chat-template-file", own_template},
    {"-hf", no_downloads},
    {"-hfr", no_downloads},
    {"-hff", no_downloads},
    {"-hft", no_downloads},
    {"--hf-repo", no_downloads},
    {"--hf-file", no_downloads},
    {"-n", "--name says which of the file's nodes it is", one_node},
    {"-n", of_requests, serving},
    {"--n-predict", of_requests, serving},
    {"-s", of_requests, serving},
    {"--seed", of_requests, serving},
    {"--temp", of_requests, serving},
    {"--top-k", of_requests, serving},
    {"--top-p", of_requests, serving},
    {"--min-p", of_requests, serving},
    {"--repeat-penalty", of_requests, serving},
    {"--chat-template-kwargs", of_requests, serving},
    {"--ssl-keyfile", no_tls, serving},
    {"--ssl-certfile", no_tls, serving},
    {"--ssl-key-file", no_tls, serving},
    {"--ssl-cert-file", no_tls, serving},
    {"--trust-remote-code", not_needed, serving},
    {"--enforce-eager", not_needed, serving},
    {"--enable-chunked-prefill", not_needed, serving},
    {"--disable-log-requests", not_needed, serving},
    {"--reasoning-format", not_needed, serving},
    {"--embedding", not_needed, serving},
    {"--embeddings", not_needed, serving},
    {"--no-webui", "the page at / is part of the head: http_origins and keys say who may use what", serving},
    {"--no-mmap", mapped, serving},
    {"--mlock", mapped, serving},
    {"--log-file", "logs are files in the state folder, which troupe up and troupe serve name", serving},
    {"--tokenizer", "the tokenizer is the model's own: tokenizer.json in its folder", serving},
    {"--enable-prefix-caching", not_needed, serving},
    {"--enable-auto-tool-choice", not_needed, serving},
    {"--tool-call-parser", not_needed, serving},
    {"--reasoning-parser", not_needed, serving},
    {"--jinja", not_needed, serving},
    {"-fa", not_needed, serving},
    {"--flash-attn", not_needed, serving},
    {"-cb", not_needed, serving},
    {"--cont-batching", not_needed, serving},
    {"--metrics", not_needed, serving},
    {"-f", no_flag, with_file},
    {"--config", no_flag, with_file},
    {"--quant", "a cluster's file says it: quant in [model]", of_clusters},
    {"--context", "a cluster's file says it: context in [model]", of_clusters},
    {"--random-input-len", "--prompt-min and --prompt-max say it", of_load},
    {"--random-output-len", "--answer-min and --answer-max say it", of_load},
    {"--http", "a cluster's file says it: http in [cluster]", of_clusters},
    {"download", no_downloads},
    {"pull", no_downloads},
    {"logs", "logs are files: troupe up and troupe serve say where"},
    {"tokenize", "a running cluster does it: POST /tokenize (docs/API.md)"},
    {"embed", "a running cluster does it: POST /v1/embeddings (docs/API.md)"},
    {"embedding", "a running cluster does it: POST /v1/embeddings (docs/API.md)"},
    {"models", "a running cluster lists them: GET /v1/models (docs/API.md)"},
    {"restart", "end it by troupe down, and start it as before"},
    {"version", "write troupe --version"},
};

/// "--learning-rate" for "--learning_rate".
std::string with_dashes(std::string_view word) {
  std::string made(word);
  std::ranges::replace(made, '_', '-');
  return made;
}

}  // namespace

const std::string* our_word_for(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string theirs = with_dashes(word);
  for (const other_word& other : other_words)
    if (const auto ours = std::ranges::find(candidates, other.ours); theirs == other.theirs && ours != candidates.end())
      return &*ours;
  return nullptr;
}

std::string_view our_way_of(std::string_view word, std::string_view command) {
  const std::string theirs = with_dashes(word);
  const auto way = std::ranges::find_if(other_ways, [&](const other_way& each) {
    const bool is_for_all = each.commands.empty();
    return each.word == theirs && (is_for_all || std::ranges::find(each.commands, command) != each.commands.end());
  });
  return way == std::end(other_ways) ? std::string_view() : way->ours;
}

}  // namespace troupe
