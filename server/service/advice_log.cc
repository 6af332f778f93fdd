// SPDX-License-Identifier: Apache-2.0
#include "server/service/advice_log.h"

#include <chrono>
#include <utility>

namespace berth {

void AdviceLog::Write(const std::vector<NodeAdvice>& advice, Instant now) {
  constexpr Duration kEvery = std::chrono::seconds(30);
  next_ = now + kEvery;
  std::map<std::string, std::string> config_by_node;
  for (const NodeAdvice& at : advice) {
    config_by_node.emplace(at.node, at.advice.config);
    const auto before = config_by_node_.find(at.node);
    if (before != config_by_node_.end() && before->second == at.advice.config) continue;
    log_.Write(LogLevel::kInfo, "repartition_advice", {{"text", TextOf(at)}});
  }
  config_by_node_ = std::move(config_by_node);
}

}  // namespace berth
