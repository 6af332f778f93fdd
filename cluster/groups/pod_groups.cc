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

void PodGroupTable::AddPartsOf(const std::string& full_name,
                               std::map<std::string, PodGroup>& parts) const {
  const MutexLock lock(mutex_);
  const auto found = parts_.find(full_name);
  if (found == parts_.end()) return;
  for (const std::string& name : found->second) {
    if (parts.size() > kMostGroupsOfTree) return;
    parts.insert_or_assign(name, by_name_.at(name));
  }
}

void PodGroupTable::Insert(std::string full_name, PodGroup group) {
  (void)Erase(full_name);
  if (!group.parent.empty()) {
    parts_[FullName(group.namespace_name, group.parent)].insert(full_name);
  }
  by_name_.emplace(std::move(full_name), std::move(group));
}

bool PodGroupTable::Erase(const std::string& full_name) {
  const auto known = by_name_.find(full_name);
  if (known == by_name_.end()) return false;
  const auto of = parts_.find(FullName(known->second.namespace_name, known->second.parent));
  if (of != parts_.end() && of->second.erase(full_name) > 0 && of->second.empty()) parts_.erase(of);
  by_name_.erase(known);
  return true;
}

void PodGroupTable::Put(PodGroup group) {
  std::string name = FullName(group.namespace_name, group.name);
  const MutexLock lock(mutex_);
  served_ = true;
  // Objects change more often than what is read of them.
  const auto known = by_name_.find(name);
  if (known != by_name_.end() && known->second == group) return;
  ++changes_;
  Insert(std::move(name), std::move(group));
}

void PodGroupTable::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  if (Erase(FullName(namespace_name, name))) ++changes_;
}

void PodGroupTable::Reset(const std::vector<PodGroup>& groups) {
  PodGroupTable made;  // while nobody waits
  const MutexLock own(made.mutex_);
  for (const PodGroup& group : groups) {
    made.Insert(FullName(group.namespace_name, group.name), group);
  }
  const MutexLock lock(mutex_);
  served_ = true;
  ++changes_;
  by_name_.swap(made.by_name_);
  parts_.swap(made.parts_);
}

void PodGroupTable::NotServed() {
  const MutexLock lock(mutex_);
  served_ = false;
  ++changes_;
  by_name_.clear();
  parts_.clear();
}

PodGroupTable& PodGroups::Of(std::string_view convention) {
  const MutexLock lock(mutex_);
  const auto known = tables_.find(convention);
  if (known != tables_.end()) return known->second;
  return tables_[std::string(convention)];
}

const PodGroupTable* PodGroups::Table(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto table = tables_.find(name);
  return table == tables_.end() ? nullptr : &table->second;
}

std::optional<PodGroup> PodGroups::Find(const Gang& gang) const {
  Gang of = gang;
  return gang.object == Gang::Object::kNone ? std::nullopt : ObjectOf(of);
}

std::optional<PodGroup> PodGroups::Object(std::string_view table, const std::string& space,
                                          const std::string& name, const std::string& uid) const {
  const PodGroupTable* const own = Table(table);
  auto group = own == nullptr ? std::nullopt : own->Find(FullName(space, name));
  // Another controller of that name, before its time or after it.
  if (group && !uid.empty() && group->uid != uid) group.reset();
  if (!group && behind_ != nullptr) return behind_->Object(table, space, name, uid);
  return group;
}

bool PodGroups::IsServed(std::string_view table) const {
  const PodGroupTable* const own = Table(table);
  return (own != nullptr && own->served()) || (behind_ != nullptr && behind_->IsServed(table));
}

std::optional<PodGroup> PodGroups::Read(PodRequest& pod) const {
  const bool says_all = pod.gang.object == Gang::Object::kNone;
  const std::optional<PodGroup> group = says_all ? std::nullopt : ObjectOf(pod.gang);
  if (group && pod.gang.controller.kind == kCompositePodGroup) pod.gang.id.name = group->name;
  Update(pod.gang);
  const bool says_domain = !RequiresParts(pod.gang) && pod.domain != DomainAsk{};
  if (group && !says_domain) pod.domain = group->domain;
  if (const GangPart* const part = PartOf(pod.gang, pod.role)) pod.domain.required = part->level;
  return group;
}

void PodGroups::Update(Gang& gang) const {
  const bool pods_say_all = gang.object == Gang::Object::kNone;
  if (pods_say_all && gang.controller.empty()) return;
  std::optional<PodGroup> group = ObjectOf(gang);
  // Its pods are of another gang by now.
  const bool is_of_tree = gang.controller.kind == kCompositePodGroup;
  if (group && is_of_tree && group->name != gang.id.name) group.reset();
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
    const GangController& by = gang.controller;
    const bool waits = by.asked || IsServed(by.empty() ? gang.id.convention : by.kind);
    gang.object = waits ? Gang::Object::kMissing : Gang::Object::kNotServed;
    if (!by.empty()) gang.minimum = gang.total;
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
