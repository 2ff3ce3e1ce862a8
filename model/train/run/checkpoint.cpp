#include "model/train/run/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/number_in.hpp"
#include "base/sha256.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/safetensors.hpp"

namespace troupe {
namespace {

constexpr std::string_view format_key = "troupe.training", format_version = "1";
constexpr const char* digest_key = "sha256";

using bytes = std::span<const std::byte>;

/// Of everything else in the file: otherwise a run would go on with whatever a damaged disk returns.
std::string digest_of(std::map<std::string, std::string> metadata, std::span<const bytes> tensors) {
  metadata.erase(digest_key);
  sha256 digest;
  for (const auto& [key, value] : metadata) digest.add_field(key).add_field(value);
  for (const bytes each : tensors) digest.add(each);
  return digest.finish();
}

/// A checkpoint of an earlier build has no digest.
void check_digest(const tensor_set& set, std::span<const bytes> tensors, const std::string& where) {
  const auto written = set.metadata.find(digest_key);
  if (written != set.metadata.end() && written->second != digest_of(set.metadata, tensors))
    refuse("{}: holds something else than was written: the disk may be damaged: start anew", where);
}

template <class T>
T number(const tensor_set& set, const std::string& key, const std::string& where) {
  const auto found = set.metadata.find(key);
  const auto value = found == set.metadata.end() ? std::nullopt : number_in<T>(found->second);
  if (!value) refuse("{}: \"{}\" is no number: the checkpoint is broken", where, key);
  return *value;
}

/// The identity has neither the rank nor the layers.
[[noreturn]] void refuse_shape(const std::string& where) {
  refuse("{}: is of an adapter with other --rank or --targets: use the same, or start anew", where);
}

const tensor_view& tensor_of(const tensor_set& set, const std::string& name, const parameter& p,
                             const std::string& where) {
  const tensor_view* tensor = set.find(name);
  if (!tensor || tensor->type != dtype::f32 || tensor->shape != std::vector<std::int64_t>{p.rows, p.columns})
    refuse_shape(where);
  return *tensor;
}

/// What a run's identity (training_run) and its subject say, each a name with values behind it. Digests say nothing to
/// people but that they differ.
struct named_values {
  std::string_view name, shown;
  bool has_digest = false;
};
constexpr std::array<named_values, 14> subjects{{{"data", "the data", true},
                                                 {"rows", "length, batch and accumulation"},
                                                 {"epochs", "epochs"},
                                                 {"steps", "steps"},
                                                 {"schedule", "schedule, rate and warm-up"},
                                                 {"adam", "Adam's numbers, decay and clipping"},
                                                 {"dropout", "dropout"},
                                                 {"held", "what is held out", true},
                                                 {"seed", "seed"},
                                                 {"precision", "precision", true},
                                                 {"base", "the base", true},
                                                 {"alpha", "alpha"},
                                                 {"init", "the adapter of --init", true},
                                                 {"on", "device"}}};

/// The values by name.
std::map<std::string, std::string, std::less<>> values_in(std::string_view identity) {
  std::map<std::string, std::string, std::less<>> found;
  std::string* last = nullptr;
  while (!identity.empty()) {
    const std::size_t end = std::min(identity.find(' '), identity.size());
    const std::string_view word = identity.substr(0, end);
    identity.remove_prefix(std::min(end + 1, identity.size()));
    if (std::ranges::find(subjects, word, &named_values::name) != subjects.end())
      last = &found[std::string(word)];
    else if (last)
      last->append(last->empty() ? "" : " ").append(word);
  }
  return found;
}

/// "steps 2, here 5; the data": what another run was asked for otherwise.
std::string differences(const std::string& there, const std::string& here) {
  auto theirs = values_in(there), ours = values_in(here);
  std::string text;
  for (const named_values& each : subjects) {
    std::string &a = theirs[std::string(each.name)], &b = ours[std::string(each.name)];
    if (a == b) continue;
    text += text.empty() ? "" : "; ";
    const auto or_none = [](const std::string& value) { return value.empty() ? "none" : value; };
    text +=
        each.has_digest ? std::string(each.shown) : fmt::format("{} {}, here {}", each.shown, or_none(a), or_none(b));
  }
  return text.empty() ? "another kind of run" : text;
}

void check_identity(const tensor_set& set, const checkpoint& state, const std::string& where) {
  const auto text = [&](std::string_view key) {
    const auto found = set.metadata.find(std::string(key));
    return found == set.metadata.end() ? std::string() : found->second;
  };
  if (text(format_key) != format_version) refuse("{}: is no checkpoint of this version", where);
  if (text("identity") != state.identity)
    refuse("{}: is of a run with other data or options ({}): use the same, or start anew", where,
           differences(text("identity"), state.identity));
}

}  // namespace

void write_checkpoint(const std::filesystem::path& file, const parameter_set& parameters, const checkpoint& state) {
  std::vector<tensor_description> tensors;
  std::vector<std::vector<float>> compacted;  // of rows that are padded; others are written from where they lie
  std::vector<bytes> data;
  for (const auto& part : state.parts)
    for (const parameter& p : parameters.list()) {
      tensors.push_back({part.name + "/" + p.name, dtype::f32, {p.rows, p.columns}});
      const std::span<const float> floats =
          p.stride == p.columns ? part.floats.subspan(p.offset, p.size())
                                : std::span<const float>(compacted.emplace_back(parameters.compact(p, part.floats)));
      data.push_back(std::as_bytes(floats));
    }
  std::map<std::string, std::string> metadata{{std::string(format_key), std::string(format_version)},
                                              {"identity", state.identity},
                                              {"step", std::to_string(state.step)},
                                              {"best_step", std::to_string(state.best_step)},
                                              {"best_loss", fmt::format("{}", state.best_loss)}};
  metadata[digest_key] = digest_of(metadata, data);
  write_safetensors(file, tensors, data, metadata);
}

void read_checkpoint(const std::filesystem::path& file, const parameter_set& parameters, std::int64_t most_steps,
                     checkpoint& state) {
  const tensor_set set = open_safetensors(file);
  const std::string where = file.string();
  check_identity(set, state, where);
  const auto step = number<std::int64_t>(set, "step", where), best_step = number<std::int64_t>(set, "best_step", where);
  if (step < 0) refuse("{}: is at step {}: the checkpoint is broken", where, step);
  if (step > most_steps) refuse("{}: is at step {} of {}", where, step, most_steps);
  const auto best_loss = number<double>(set, "best_loss", where);
  const auto wanted = [&](const checkpoint::part& part) { return part.name != "best" || best_step >= 0; };
  std::vector<bytes> data;
  for (const auto& part : state.parts)
    for (const parameter& p : parameters.list())
      if (wanted(part)) data.push_back(tensor_of(set, part.name + "/" + p.name, p, where).data);
  if (data.size() != set.tensors.size()) refuse_shape(where);  // the digest is of all of them
  check_digest(set, data, where);
  for (const auto& part : state.parts)
    for (const parameter& p : parameters.list()) {
      if (!wanted(part)) continue;
      std::vector<float> values(to_size(p.rows * p.columns));
      std::memcpy(values.data(), tensor_of(set, part.name + "/" + p.name, p, where).data.data(), values.size() * 4);
      parameters.expand(p, values, part.floats);
    }
  state.step = step;
  state.best_step = best_step;
  state.best_loss = best_loss;
}

}  // namespace troupe
