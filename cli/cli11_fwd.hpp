// CLI11's classes by name, for headers that hand them on.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): the library's own name
class App;
class FormatterBase;
class Option;
class ParseError;
}  // namespace CLI
