// SPDX-License-Identifier: Apache-2.0
//
// `berth doctor`: what is wrong with the GPU scheduling of a cluster, and the cure of each
// (docs/doctor.md). It reads, and changes nothing.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "server/commands/ask_server.h"
#include "server/wire/json/strict_json.h"

namespace berth {

struct DoctorFlags {
  ServerAddress at;      // of the cluster
  std::string cluster;   // a file used instead; empty: the cluster
  bool install = false;  // print how to install Berth there
};

struct DoctorAnswer {
  std::string text;
  bool is_well = true;
};

// Error: kNotFound, kInvalidArgument for the file, kUnavailable without nodes and pods.
Result<DoctorAnswer> DoctorCommand(const DoctorFlags& flags);

// What was read of a cluster.
struct SeenCluster {
  std::map<std::string, std::vector<wire::Json>> objects;  // by kind
  std::set<std::string> unread;                            // kinds that may be there, or not
  std::string version;  // of the API server, "v1.37.2"; empty: not known
  std::string metrics;  // of Berth's leader; empty: not known
  WallTime now;

  [[nodiscard]] const std::vector<wire::Json>& Of(const std::string& kind) const;
};

// A text as of `kubectl get nodes,pods,... -A -o json`. Error: kInvalidArgument.
Result<SeenCluster> SeeText(const std::string& text, const std::string& origin, WallTime now);

DoctorAnswer AnswerOn(const SeenCluster& seen, bool install);

}  // namespace berth
