#pragma once
#include <string>
#include <string_view>

#include "base/mapped_file.hpp"
#include "cli/model/model_options.hpp"
#include "model/engine/evaluate.hpp"
#include "model/engine/text/model_text.hpp"

namespace troupe {

/// A text from a file, mapped.
class text_file {
 public:
  explicit text_file(const std::string& path) : file_(path) {}
  std::string_view text() const { return {reinterpret_cast<const char*>(file_.bytes().data()), file_.bytes().size()}; }

 private:
  mapped_file file_;
};

/// evaluate() in the runtime's context, with progress shown.
evaluation evaluate_text(runtime& run, const tokenizer& tokens, const text_file& text, const std::string& what);

}  // namespace troupe
