// SPDX-License-Identifier: Apache-2.0
//
// Conform: the cases of the extender protocol against a running extender. One pass takes less than
// a minute and a few hundred requests, and binds nothing: its pods do not exist.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/conform/checks.h"

namespace berth::conform {

struct ConformOptions {
  std::string url;  // urlPrefix
  std::map<char, std::string> verbs = {
      {'f', "filter"}, {'p', "prioritize"}, {'v', "preempt"}, {'b', "bind"}};
  std::vector<std::string> nodes;             // names that the extender knows; empty: invented ones
  std::string resource = "nvidia.com/gpu";    // what a pod with a GPU asks for
  bool node_bodies = false;                   // ordinary requests have full nodes (not names)
  std::set<std::string> only;                 // numbers and verbs of the cases; empty: all
  std::chrono::milliseconds patience{3'000};  // for each step of an exchange
  std::chrono::milliseconds budget{45'000};   // for all; what comes later is skipped
};

struct ConformLine {
  int number;
  std::string verb;  // as it is configured
  Outcome outcome;
  std::string sent, wanted, got, why;
};

// Error: `only` names what is no case and no verb, the URL is none, nothing listens there, or no
// verb is there.
Result<std::vector<ConformLine>> Conform(const ConformOptions& options);

// How many lines have that outcome.
std::size_t CountOf(const std::vector<ConformLine>& lines, Outcome outcome);
// A line each, then a sentence with the counts.
std::string ConformText(const std::vector<ConformLine>& lines);
nlohmann::ordered_json ConformJson(const std::vector<ConformLine>& lines);

}  // namespace berth::conform
