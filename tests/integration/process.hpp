// What tests of several processes ask again and again.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "tests/base/process.hpp"

namespace troupe::test {

/// is_soon for what processes do, which takes longer.
bool wait_until(const std::function<bool()>& holds, std::chrono::milliseconds longest = std::chrono::seconds(15));

/// Lets so much time pass, where that is what a test is about.
void pass(std::chrono::milliseconds time);

/// How often the words stand in a text.
int count_of(const std::string& text, std::string_view words);

/// Of a process: a number from /proc/PID/status (like "VmRSS", in kB), and how many files it has open.
long status_number(pid_t pid, const std::string& key);
std::size_t open_files(pid_t pid);

}  // namespace troupe::test
