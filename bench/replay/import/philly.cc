// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "bench/replay/csv.h"
#include "bench/replay/import/import.h"

namespace berth::replay {
namespace {

using JobLog = nlohmann::json;

// A field that is a text; "" for what is none, as for "None".
std::string TextIn(const JobLog& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return "";
  return found->get<std::string>();
}

// How many GPUs on each server, as the log has it; empty where it does not say.
std::vector<std::int64_t> GpusOfAttempt(const JobLog& attempt) {
  std::vector<std::int64_t> gpus;
  const auto detail = attempt.find("detail");
  if (detail == attempt.end() || !detail->is_array()) return gpus;
  for (const JobLog& server : *detail) {
    const auto found = server.is_object() ? server.find("gpus") : server.end();
    if (!server.is_object() || found == server.end() || !found->is_array()) continue;
    gpus.push_back(static_cast<std::int64_t>(found->size()));
  }
  return gpus;
}

// The job asked for the same GPUs each time that it was tried, and ran for as long as all attempts
// together. Pods on servers with other numbers of GPUs are jobs of their own here.
void AddPhillyJob(const JobLog& log, JobImporter& importer) {
  const auto submitted = SecondsOf(TextIn(log, "submitted_time"));
  if (!submitted) return importer.PassOver("when it was submitted is not there");
  std::vector<std::int64_t> gpus;
  std::int64_t ran = 0;
  const auto attempts = log.find("attempts");
  if (attempts != log.end() && attempts->is_array()) {
    for (const JobLog& attempt : *attempts) {
      if (!attempt.is_object()) continue;
      const auto start = SecondsOf(TextIn(attempt, "start_time"));
      const auto end = SecondsOf(TextIn(attempt, "end_time"));
      if (start && end && *end > *start) ran += *end - *start;
      if (auto given = GpusOfAttempt(attempt); !given.empty()) gpus = std::move(given);
    }
  }
  if (gpus.empty()) return importer.PassOver("no attempt says which GPUs it had");
  std::map<std::int64_t, std::int64_t> servers;  // with so many GPUs -> how many
  for (const std::int64_t count : gpus) ++servers[count];
  const std::string name = TextIn(log, "jobid");
  for (const auto& [count, pods] : servers) {
    importer.Add({.name = servers.size() == 1 ? name : name + "-of-" + std::to_string(count),
                  .pods = pods,
                  .gpu_milli = count * kMilliPerGpu,
                  .submitted_s = *submitted,
                  .runs_s = ran});
  }
}

Result<std::vector<TraceNode>> Machines(const std::string& path) {
  constexpr std::array<std::string_view, 1> kColumns = {"machineId"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  if (table.columns() != 3) {
    return Invalid(path + ":1: want machineId, number of GPUs and memory of a GPU, got " +
                   std::to_string(table.columns()) + " columns");
  }
  std::vector<TraceNode> nodes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto gpus = NumberOf(Trimmed(table.at(row, 1)));
    if (!gpus || *gpus < 0 || *gpus > kMaxGpusPerNode) {
      return Invalid(table.PlaceOf(row) + ": want a number of GPUs, got \"" +
                     std::string(table.at(row, 1)) + "\"");
    }
    // Their models are not published; those of one memory are taken for one.
    nodes.push_back({std::string(table.at(row, 0)), 0, 0, static_cast<int>(*gpus),
                     std::string(Trimmed(table.at(row, 2)))});
  }
  return nodes;
}

}  // namespace

Result<Imported> ImportPhilly(const std::string& jobs, const std::string& nodes) {
  BERTH_TRY(const std::string text, ReadTextFile(jobs));
  JobImporter importer;
  // One job at a time: the log as a document would take gigabytes.
  const auto take = [&importer](int depth, JobLog::parse_event_t event, JobLog& parsed) {
    if (depth != 1 || event != JobLog::parse_event_t::object_end) return true;
    AddPhillyJob(parsed, importer);
    return false;
  };
  const JobLog rest = JobLog::parse(text, take, false);
  if (rest.is_discarded() || !rest.is_array()) {
    return Invalid(jobs + ": want a list of jobs in JSON, got something else");
  }
  Imported imported = importer.Take();
  if (!nodes.empty()) {
    BERTH_TRY(imported.nodes, Machines(nodes));
  }
  return imported;
}

}  // namespace berth::replay
