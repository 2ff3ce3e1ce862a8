#include "cli/other_programs.hpp"

#include <algorithm>
#include <iterator>

namespace troupe {
namespace {

/// How other programs call what we call otherwise: to be suggested, never taken.
struct other_word {
  std::string_view theirs, ours;
};
constexpr other_word other_words[] = {
    {"--host", "--http"},
    {"--port", "--http"},
    {"--ctx-size", "--context"},
    {"--max-model-len", "--context"},
    {"--max-seq-length", "--length"},
    {"--lora", "--adapter"},
    {"--lora-modules", "--adapter"},
    {"--api-key", "--key"},
    {"--dtype", "--quant"},
    {"--cache-type-k", "--kv"},
    {"--kv-cache-dtype", "--kv"},
    {"-ngl", "--device"},
    {"--n-gpu-layers", "--device"},
    {"-n", "--max-tokens"},
    {"-s", "--seed"},
    {"-f", "--prompt-file"},
    {"--file", "--prompt-file"},
    {"--n-predict", "--max-tokens"},
    {"--max-new-tokens", "--max-tokens"},
    {"--learning-rate", "--lr"},
    {"--num-epochs", "--epochs"},
    {"--lora-rank", "--rank"},
    {"--lora-alpha", "--alpha"},
    {"--output-dir", "--out"},
    {"run", "generate"},
    {"convert", "quantize"},
    {"perplexity", "eval"},
    {"finetune", "train"},
    {"lora", "adapters"},
    {"list", "status"},
    {"ps", "status"},
    {"start", "up"},
    {"stop", "down"},
    {"show", "inspect"},
};

/// What other programs have a word for, and we do in another way.
struct other_way {
  std::string_view word, ours;
};
constexpr other_way other_ways[] = {
    {"--api-key", "troupe keys add makes keys for the HTTP API"},
    {"--enable-lora", "adapters are always on: --adapter names one"},
    {"--max-loras", "a cluster's file says it: max_resident in [adapters]"},
    {"--tensor-parallel-size", "a cluster's file says it: tensor in [cluster], for troupe up"},
    {"-tp", "a cluster's file says it: tensor in [cluster], for troupe up"},
    {"--pipeline-parallel-size", "a cluster's file says it: stages in [cluster], for troupe up"},
    {"--data-parallel-size", "a cluster's file says it: replicas in [cluster], for troupe up"},
    {"--parallel",
     "requests share batches by themselves; max_sequences in [scheduler] of a cluster's file limits them"},
    {"-np", "requests share batches by themselves; max_sequences in [scheduler] of a cluster's file limits them"},
    {"--max-num-seqs", "a cluster's file says it: max_sequences in [scheduler]"},
    {"--max-num-batched-tokens", "a cluster's file says it: max_batch_tokens in [scheduler]"},
    {"--gpu-memory-utilization", "a cluster's file says it: kv_memory in [scheduler], memory of a [[node]]"},
    {"--served-model-name", "troupe serve takes --name; a cluster's file says it: name in [model]"},
    {"--alias", "troupe serve takes --name; a cluster's file says it: name in [model]"},
    {"--chat-template", "the template is the model's own: chat_template.jinja in its folder"},
    {"download", "troupe downloads no models: fetch one by `hf download`, and name its folder"},
    {"pull", "troupe downloads no models: fetch one by `hf download`, and name its folder"},
    {"logs", "logs are files: troupe up and troupe serve say where"},
    {"tokenize", "a running cluster does it: POST /tokenize (docs/API.md)"},
    {"embed", "a running cluster does it: POST /v1/embeddings (docs/API.md)"},
    {"embedding", "a running cluster does it: POST /v1/embeddings (docs/API.md)"},
    {"version", "write troupe --version"},
};

}  // namespace

const std::string* our_word_for(const std::string& word, const std::vector<std::string>& candidates) {
  for (const other_word& other : other_words)
    if (const auto ours = std::ranges::find(candidates, other.ours); word == other.theirs && ours != candidates.end())
      return &*ours;
  return nullptr;
}

std::string_view our_way_of(std::string_view word) {
  const auto way = std::ranges::find(other_ways, word, &other_way::word);
  return way == std::end(other_ways) ? std::string_view() : way->ours;
}

}  // namespace troupe
