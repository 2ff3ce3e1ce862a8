// GGUF files that are made of the golden folders, as llama.cpp's converter makes them.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/to_size.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {

struct converted_tensor {
  std::vector<std::uint64_t> sizes;  ///< the contiguous one first
  std::vector<float> values;
};
using converted_tensors = std::map<std::string, converted_tensor>;

inline converted_tensor as_floats(const tensor_view& tensor) {
  converted_tensor made{{tensor.shape.rbegin(), tensor.shape.rend()}, {}};
  made.values.resize(to_size(tensor.elements()));
  to_floats(tensor.type, tensor.data.data(), tensor.elements(), made.values.data());
  return made;
}

struct renamed {
  std::string from, to;
};
inline std::string with_names(std::string name, std::span<const renamed> names) {
  for (const renamed& each : names)
    if (const auto at = name.find(each.from); at != name.npos) name.replace(at, each.from.size(), each.to);
  return name;
}

inline std::string gguf_of(test::gguf_builder metadata, const converted_tensors& tensors) {
  for (const auto& [name, tensor] : tensors)
    metadata.tensor(name, tensor.sizes, 0,
                    std::string(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4));
  return metadata.build();
}

/// `file` gives what the golden model of this name does, also with its adapter, whose factors are those of the folder.
inline void expect_golden_logits(const std::string& file, const std::string& model) {
  test::temp_folder folder;
  folder.write("model.gguf", file);
  const tensor_set expected = open_safetensors(golden / model / "expected.safetensors");
  const auto loaded = load_for_test(folder.path() / "model.gguf", scheme::f32);
  const lora_adapter adapter(read_adapter(golden / model / "adapter", loaded->config), loaded->config.layers);
  const auto error = [&](const std::string& name, const run_options& options) {
    const auto prompt = values<std::int32_t>(expected, "prompt");
    return relative_error(logits_of(loaded, prompt, options), values<float>(expected, name));
  };
  EXPECT_LT(error("logits", {}), 1e-4);
  EXPECT_LT(error("adapter_logits", {.adapter = &adapter}), 1e-4);
}

}  // namespace troupe
