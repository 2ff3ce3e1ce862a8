// Jobs as clients are shown them.
#pragma once
#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "actors/interfaces.hpp"
#include "actors/status_board.hpp"
#include "cluster/journal/journal.hpp"

namespace troupe {

using fine_tunes_by_job = std::map<std::string, fine_tune_figures>;

nlohmann::ordered_json job_json(const job_info& job);
/// With what trainers have told of it, if it is a fine-tune; and with its last figures where it is over, or no trainer
/// has told any since the head began.
nlohmann::ordered_json job_json(const job_info& job, const fine_tunes_by_job& fine_tunes, const journal& book);
/// Where an earlier head has left a fine-tune.
fine_tune_mark mark_of(const journal& book, const std::string& job);
nlohmann::ordered_json job_event_json(const job_event& event);
/// What a message_event holds. `level`: "info", "warn" or "error".
std::string message_text(const char* level, const std::string& text);

}  // namespace troupe
