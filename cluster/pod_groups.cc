// SPDX-License-Identifier: Apache-2.0
#include "cluster/pod_groups.h"

#include <utility>

#include "base/dns_name.h"

namespace berth {
std::optional<PodGroup> PodGroupTable::Find(const std::string& gang) const {
  const MutexLock lock(mutex_);
  const auto found = by_gang_.find(gang);
  if (found == by_gang_.end()) return std::nullopt;
  return found->second;
}

void PodGroupTable::Put(PodGroup group) {
  std::string gang = FullName(group.namespace_name, group.name);
  const MutexLock lock(mutex_);
  by_gang_.insert_or_assign(std::move(gang), std::move(group));
}

void PodGroupTable::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  by_gang_.erase(FullName(namespace_name, name));
}

void PodGroupTable::Reset(std::vector<PodGroup> groups) {
  std::unordered_map<std::string, PodGroup> by_gang;
  for (PodGroup& group : groups) {
    std::string gang = FullName(group.namespace_name, group.name);
    by_gang.insert_or_assign(std::move(gang), std::move(group));
  }
  const MutexLock lock(mutex_);
  by_gang_.swap(by_gang);
}

std::optional<PodGroup> PodGroups::Find(const std::string& gang) const {
  for (const PodGroupTable& table : tables_) {
    if (auto group = table.Find(gang)) return group;
  }
  return std::nullopt;
}

}  // namespace berth
