// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/other_limits.h"

#include <cstdint>

namespace berth {
namespace {

constexpr const char* kPods = "pods";  // as Kubernetes calls it

std::int64_t TakenOf(const Node& node, const std::string& name) {
  std::int64_t taken = 0;
  for (const auto& record : node.pods()) {
    if (record->pod.others == nullptr) continue;
    if (const OtherResource* const has = FindOther(*record->pod.others, name)) taken += has->amount;
  }
  return taken;
}

}  // namespace

std::string LackOf(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  if (spec.most_pods < 0) return "";
  if (std::ssize(node.pods()) >= spec.most_pods) return kPods;
  if (pod.others == nullptr) return "";
  for (const OtherResource& asked : *pod.others) {
    const OtherResource* const has = FindOther(spec.others, asked.name);
    if (has == nullptr && spec.others.size() == kMostOtherResources) continue;  // it may have some
    const std::int64_t amount = has == nullptr ? 0 : has->amount;
    if (asked.amount > 0 && amount - TakenOf(node, asked.name) < asked.amount) return asked.name;
  }
  return "";
}

std::vector<std::string> NotJudgedOf(const PodRequest& pod) {
  std::vector<std::string> what;
  const OwnToScheduler& own = pod.own_to_scheduler;
  if (own.host_ports) what.emplace_back("host ports");
  if (own.volumes) what.emplace_back("volumes");
  // Those of OtherResources are judged.
  const bool reads_all = pod.others != nullptr && pod.claims.empty();
  if (own.resources && !reads_all) what.emplace_back("resources that Berth does not read");
  if (own.keeps_apart) what.emplace_back("required anti-affinity");
  if (own.minds_others) what.emplace_back("required affinity or spread");
  return what;
}

std::string TextOfLacks(const std::map<std::string, int>& lacks) {
  std::string text;
  for (const auto& [what, nodes] : lacks) {
    text += (text.empty() ? "" : ", ") + std::to_string(nodes);
    if (what == kPods) {
      text += nodes == 1 ? " takes no more pods" : " take no more pods";
    } else {
      text += (nodes == 1 ? " lacks " : " lack ") + what;
    }
  }
  return text;
}

}  // namespace berth
