// SPDX-License-Identifier: Apache-2.0
#include "cluster/pod_groups.h"

#include <utility>

#include "base/dns_name.h"

namespace berth {

std::optional<PodGroup> PodGroupTable::Find(const std::string& full_name) const {
  const MutexLock lock(mutex_);
  const auto found = by_name_.find(full_name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

bool PodGroupTable::served() const {
  const MutexLock lock(mutex_);
  return served_;
}

std::uint64_t PodGroupTable::changes() const {
  const MutexLock lock(mutex_);
  return changes_;
}

void PodGroupTable::Put(PodGroup group) {
  std::string name = FullName(group.namespace_name, group.name);
  const MutexLock lock(mutex_);
  served_ = true;
  ++changes_;
  by_name_.insert_or_assign(std::move(name), std::move(group));
}

void PodGroupTable::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  changes_ += by_name_.erase(FullName(namespace_name, name));
}

void PodGroupTable::Reset(std::vector<PodGroup> groups) {
  std::unordered_map<std::string, PodGroup> by_name;
  for (PodGroup& group : groups) {
    std::string name = FullName(group.namespace_name, group.name);
    by_name.insert_or_assign(std::move(name), std::move(group));
  }
  const MutexLock lock(mutex_);
  served_ = true;
  ++changes_;
  by_name_.swap(by_name);
}

void PodGroupTable::NotServed() {
  const MutexLock lock(mutex_);
  served_ = false;
  ++changes_;
  by_name_.clear();
}

PodGroupTable& PodGroups::Of(std::string_view convention) {
  const MutexLock lock(mutex_);
  const auto known = tables_.find(convention);
  if (known != tables_.end()) return known->second;
  return tables_[std::string(convention)];
}

const PodGroupTable* PodGroups::TableOf(const GangId& gang) const {
  const MutexLock lock(mutex_);
  const auto table = tables_.find(gang.convention);
  return table == tables_.end() ? nullptr : &table->second;
}

std::optional<PodGroup> PodGroups::Find(const GangId& gang) const {
  const PodGroupTable* const table = TableOf(gang);
  auto group = table == nullptr ? std::nullopt : table->Find(gang.full_name());
  if (!group && behind_ != nullptr) return behind_->Find(gang);
  return group;
}

void PodGroups::Update(Gang& gang) const {
  if (gang.object == Gang::Object::kNone) return;
  const PodGroupTable* const table = TableOf(gang.id);
  const auto group = table == nullptr ? std::nullopt : table->Find(gang.id.full_name());
  if (!group && behind_ != nullptr) return behind_->Update(gang);
  gang.minimum.reset();
  gang.hold.reset();
  gang.has_roles = false;
  if (!group) {
    const bool served = table != nullptr && table->served();
    gang.object = served ? Gang::Object::kMissing : Gang::Object::kNotServed;
    return;
  }
  gang.object = Gang::Object::kFound;
  gang.minimum = group->min_members;
  gang.hold = group->hold;
  gang.has_roles = group->has_roles;
}

std::uint64_t PodGroups::changes() const {
  const MutexLock lock(mutex_);
  std::uint64_t changes = behind_ == nullptr ? 0 : behind_->changes();
  for (const auto& [convention, table] : tables_) changes += table.changes();
  return changes;
}

}  // namespace berth
