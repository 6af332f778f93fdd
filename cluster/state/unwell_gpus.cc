// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/unwell_gpus.h"

#include <algorithm>

namespace berth {
namespace {

constexpr std::string_view kSaidBy = "status of pods";

bool SaysUnwell(const PodRecords& pods, const std::string& id) {
  return std::ranges::any_of(
      pods, [&id](const auto& pod) { return pod->given != nullptr && pod->given->IsUnwell(id); });
}

}  // namespace

bool UnwellGpus::Hear(const std::string& node, const GivenDevices* before, const GivenDevices* now,
                      const NodeSpec* spec) {
  const auto known = by_node_.find(node);
  if (known == by_node_.end()) {
    if (now == nullptr || now->unwell.empty()) return false;
    Entry entry{{now->unwell.begin(), now->unwell.end()}, nullptr};
    if (spec != nullptr) entry.said = std::make_shared<const NodeSpec>(*spec);
    by_node_.emplace(node, std::move(entry));
    return true;
  }
  if (now == nullptr) return before != nullptr && !before->unwell.empty();
  std::set<std::string>& ids = known->second.ids;
  const std::set<std::string> was = ids;
  for (const std::string& id : now->ids) {
    if (now->IsUnwell(id)) {
      ids.insert(id);
    } else {
      ids.erase(id);
    }
  }
  return ids != was;
}

void UnwellGpus::Close(NodeSpec& said, const PodRecords& pods) {
  const auto known = by_node_.find(said.name);
  if (known == by_node_.end()) return;
  Entry& entry = known->second;
  if (said.missing == 0) {
    std::erase_if(entry.ids, [&pods](const std::string& id) { return !SaysUnwell(pods, id); });
  }
  if (entry.ids.empty()) {
    by_node_.erase(known);
    return;
  }
  entry.said = std::make_shared<const NodeSpec>(said);
  for (GpuSpec& gpu : said.gpus) {
    if (entry.ids.contains(gpu.uuid)) CloseGpu(said, gpu, kSaidBy);
  }
}

const NodeSpec& UnwellGpus::SaidOf(const NodeSpec& spec) const {
  const auto known = by_node_.find(spec.name);
  const bool has = known != by_node_.end() && known->second.said != nullptr;
  return has ? *known->second.said : spec;
}

void UnwellGpus::Forget(std::string_view node) {
  const auto known = by_node_.find(node);
  if (known != by_node_.end()) by_node_.erase(known);
}

}  // namespace berth
