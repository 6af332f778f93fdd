// SPDX-License-Identifier: Apache-2.0
#include "cluster/groups/pod_groups.h"

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
  // Objects change more often than what is read of them.
  const auto known = by_name_.find(name);
  if (known != by_name_.end() && known->second == group) return;
  ++changes_;
  by_name_.insert_or_assign(std::move(name), std::move(group));
}

void PodGroupTable::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  changes_ += by_name_.erase(FullName(namespace_name, name));
}

void PodGroupTable::Reset(const std::vector<PodGroup>& groups) {
  std::unordered_map<std::string, PodGroup> by_name;
  for (const PodGroup& group : groups) {
    by_name.insert_or_assign(FullName(group.namespace_name, group.name), group);
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

const PodGroupTable* PodGroups::TableOf(const Gang& gang) const {
  const MutexLock lock(mutex_);
  const std::string& name = gang.controller.empty() ? gang.id.convention : gang.controller.kind;
  const auto table = tables_.find(name);
  return table == tables_.end() ? nullptr : &table->second;
}

std::optional<PodGroup> PodGroups::Find(const Gang& gang) const {
  return gang.object == Gang::Object::kNone ? std::nullopt : ObjectOf(gang);
}

std::optional<PodGroup> PodGroups::ObjectOf(const Gang& gang) const {
  const GangController& controller = gang.controller;
  const std::string& name = controller.empty() ? gang.id.name : controller.name;
  const PodGroupTable* const table = TableOf(gang);
  auto group =
      table == nullptr ? std::nullopt : table->Find(FullName(gang.id.namespace_name, name));
  // Another controller of that name, before its time or after it.
  if (group && !controller.uid.empty() && group->uid != controller.uid) group.reset();
  if (!group && behind_ != nullptr) return behind_->ObjectOf(gang);
  return group;
}

bool PodGroups::IsServed(const Gang& gang) const {
  const PodGroupTable* const table = TableOf(gang);
  return (table != nullptr && table->served()) || (behind_ != nullptr && behind_->IsServed(gang));
}

void PodGroups::Update(Gang& gang) const {
  const bool pods_say_all = gang.object == Gang::Object::kNone;
  if (pods_say_all && gang.controller.empty()) return;
  const std::optional<PodGroup> group = ObjectOf(gang);
  // The others are for the pods to say.
  if (gang.one_by_one == OneByOne::kNo || gang.one_by_one == OneByOne::kInOrder) {
    gang.one_by_one = group ? group->one_by_one : OneByOne::kNo;
  }
  if (pods_say_all) return;
  gang.minimum.reset();
  gang.hold.reset();
  gang.has_roles = false;
  gang.roles.clear();
  gang.parts.clear();
  gang.followers = 0;
  if (!group) {
    // Pods that ask to start together wait also where nobody can tell how many they are.
    const bool waits = gang.controller.asked || IsServed(gang);
    gang.object = waits ? Gang::Object::kMissing : Gang::Object::kNotServed;
    if (!gang.controller.empty()) gang.minimum = gang.total;
    return;
  }
  gang.object = Gang::Object::kFound;
  gang.minimum = group->min_members;
  gang.hold = group->hold;
  gang.has_roles = group->has_roles;
  gang.roles = group->roles;
  gang.parts = group->parts;
  // Its leader may start alone because the others are made only then.
  const bool leader_first = group->min_members == 1 && !group->leader_differs && gang.total;
  if (leader_first) gang.followers = *gang.total - 1;
}

std::uint64_t PodGroups::changes() const {
  const MutexLock lock(mutex_);
  std::uint64_t changes = behind_ == nullptr ? 0 : behind_->changes();
  for (const auto& [convention, table] : tables_) changes += table.changes();
  return changes;
}

void GangMembers::Add(const GangId& gang, const std::string& node) {
  if (!gang.empty()) ++pods_[gang][node];
}

void GangMembers::Remove(const GangId& gang, const std::string& node) {
  const auto nodes = pods_.find(gang);
  if (nodes == pods_.end()) return;
  const auto on_node = nodes->second.find(node);
  if (--on_node->second == 0) nodes->second.erase(on_node);
  if (nodes->second.empty()) pods_.erase(nodes);
}

std::size_t GangMembers::Count(const GangId& gang) const {
  const auto nodes = pods_.find(gang);
  if (nodes == pods_.end()) return 0;
  std::size_t count = 0;
  for (const auto& [node, pods] : nodes->second) count += pods;
  return count;
}

std::vector<std::string> GangMembers::NodesOf(const GangId& gang) const {
  std::vector<std::string> names;
  if (const auto nodes = pods_.find(gang); nodes != pods_.end()) {
    for (const auto& [node, pods] : nodes->second) names.push_back(node);
  }
  return names;
}

}  // namespace berth
