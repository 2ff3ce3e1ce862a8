// Macros: what a call of one binds, and what its body writes.
#include <algorithm>

#include "model/chat/evaluator.hpp"
#include "model/chat/evaluator_support.hpp"

namespace troupe::detail::jinja {

value evaluator::make_macro(const macro& source) {
  keep_scope();
  const auto call = [this, &source, defined_in = scope_](runtime&, arguments&& given) {
    return run_macro(source, defined_in, std::move(given));
  };
  return {std::make_shared<const callable>(callable{source.name, call, 0})};
}

value evaluator::run_macro(const macro& source, const scope_ptr& defined_in, arguments&& given) {
  return in_scope(defined_in, [&] {
    bind_parameters(source, std::move(given));
    return make_text(captured([&] { execute(source.body); }));
  });
}

// Arguments by place, then by name, then the defaults.
void evaluator::bind_parameters(const macro& source, arguments&& given) {
  std::vector<value> more;
  for (std::size_t i = 0; i < given.positional.size(); ++i) {
    const bool has_name = i < source.parameters.size();
    if (has_name)
      define(source.parameters[i].first, std::move(given.positional[i]));
    else
      more.push_back(std::move(given.positional[i]));
  }
  if (!more.empty() && !source.takes_more_positional) {
    fail("the macro '{}' takes at most {} argument(s)", source.name, source.parameters.size());
  }
  bind_named(source, given);
  bind_defaults(source, given.positional.size());
  if (source.takes_more_positional) define("varargs", make_sequence(sequence_kind::tuple, std::move(more)));
}

void evaluator::bind_named(const macro& source, arguments& given) {
  std::vector<std::pair<value, value>> more;
  for (auto& [name, argument] : given.named) {
    const auto known = std::find_if(source.parameters.begin(), source.parameters.end(),
                                    [&wanted = name](const auto& parameter) { return parameter.first == wanted; });
    if (known != source.parameters.end()) {
      if (find_named(scope_->names, name)) fail("the macro '{}' got '{}' twice", source.name, name);
      define(known->first, std::move(argument));
    } else if (name == "caller" && source.takes_caller) {
      define("caller", std::move(argument));
    } else if (source.takes_more_named) {
      set_entry(run_.cost, more, make_text(name), std::move(argument));
    } else {
      fail("the macro '{}' has no parameter '{}'", source.name, name);
    }
  }
  if (source.takes_more_named) define("kwargs", make_mapping(std::move(more)));
}

// Defaults may use the parameters before them, and no parameter's name means what it means outside.
void evaluator::bind_defaults(const macro& source, std::size_t first) {
  std::vector<std::size_t> not_given;
  for (std::size_t i = first; i < source.parameters.size(); ++i) {
    const std::string& name = source.parameters[i].first;
    if (find_named(scope_->names, name)) continue;
    define(name, make_undefined(fmt::format("the parameter '{}' was not given", name)));
    not_given.push_back(i);
  }
  for (const std::size_t i : not_given)
    if (const auto& [name, otherwise] = source.parameters[i]; otherwise) define(name, evaluate(*otherwise));
}

}  // namespace troupe::detail::jinja
