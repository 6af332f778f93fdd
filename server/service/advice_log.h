// SPDX-License-Identifier: Apache-2.0
//
// AdviceLog: logs how nodes had better be partitioned for the pods that wait. Advice is logged only
// when a node's recommended config changes: the number of pods changes all the time.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scoring/mig/repartition_report.h"
#include "server/telemetry/log.h"

namespace berth {

// One thread at a time.
class AdviceLog {
 public:
  explicit AdviceLog(Log& log) : log_(log) {}

  [[nodiscard]] bool IsDue(Instant now) const { return now >= next_; }
  // The advice of this moment; none where this process does not lead.
  void Write(const std::vector<NodeAdvice>& advice, Instant now);

 private:
  Log& log_;
  Instant next_{};
  std::map<std::string, std::string> config_by_node_;  // as logged last
};

}  // namespace berth
