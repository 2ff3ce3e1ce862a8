#include "model/lora/module_pattern.hpp"

#include "base/error.hpp"
#include "base/pcre2_impl.hpp"

namespace troupe::detail {
namespace {

constexpr std::uint32_t most_match_steps = 2000;  // names are short: published patterns take some dozens

}  // namespace

module_pattern module_pattern::of_whole_names(const std::string& pattern, const std::string& where) {
  return {"", pattern, "", where};
}

module_pattern module_pattern::of_ends(const std::string& pattern, const std::string& where) {
  return {"(.*\\.)?(", pattern, ")", where};
}

module_pattern::module_pattern(std::string_view before, const std::string& pattern, std::string_view after,
                               const std::string& where)
    : pattern_(pattern), where_(where) {
  const auto whole = fmt::format("{}{}{}", before, pattern, after);
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(whole.data()), whole.size(),
                                   PCRE2_ANCHORED | PCRE2_ENDANCHORED, &error, &at, nullptr);
  if (!code) refuse("{}: the pattern \"{}\" is no regular expression", where, shown());
  code_ = std::shared_ptr<const pcre2_code>(code, pcre2_release());
}

bool module_pattern::fits(std::string_view module) const {
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  const auto match = own(pcre2_match_data_create_from_pattern(code, nullptr));
  const auto context = own(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), most_match_steps);
  pcre2_set_depth_limit(context.get(), most_match_steps);
  const auto found =
      pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(module.data()), module.size(), 0, 0, match.get(), context.get());
  if (found >= 0) return true;
  if (found != PCRE2_ERROR_NOMATCH) refuse("{}: the pattern \"{}\" takes too long to match", where_, shown());
  return false;
}

}  // namespace troupe::detail
