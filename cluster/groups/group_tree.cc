// SPDX-License-Identifier: Apache-2.0
//
// Trees of groups: CompositePodGroups of Kubernetes, whose parts are others of them and PodGroups.
// All PodGroups below the root are roles of one gang, with the minimum of each, and what has to be
// near together below it are its parts. A group whose parts start by themselves is no root of them.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/dns_name.h"
#include "cluster/groups/pod_groups.h"

namespace berth {
namespace {

constexpr int kMostLevels = 4;             // as kube-scheduler takes, with the PodGroups
constexpr std::size_t kLongestRole = 253;  // as names of objects have

}  // namespace

void SetRoles(std::vector<GangRole> roles, std::span<const std::string> parents, PodGroup& group) {
  group.has_roles = roles.size() > 1;
  const bool too_long = std::ranges::any_of(
      roles, [](const GangRole& role) { return role.name.size() > kLongestRole; });
  if (roles.size() > kMaxGangRoles || too_long) return;
  std::erase_if(roles, [&parents](const GangRole& role) {
    return role.name.empty() || role.minimum == 0 ||
           std::ranges::find(parents, role.name) != parents.end();
  });
  std::ranges::sort(roles, {}, &GangRole::name);
  group.roles = std::move(roles);
}

bool SetParts(PodGroup& group) {
  std::vector<GangPart>& parts = group.parts;
  const auto too_many = [&] {
    std::size_t names = 0;
    for (const GangPart& part : parts) names += part.roles.size();
    return names > (group.roles.empty() ? 0 : 2 * kMaxGangRoles);
  };
  if (too_many()) std::erase_if(parts, &GangPart::preferred);
  if (too_many()) {
    parts.clear();
    return false;
  }
  const DomainAsk& whole = group.domain;
  if (whole.required && !std::ranges::all_of(parts, &GangPart::preferred)) {
    parts.push_back({{}, *whole.required});
  }
  if (whole.preferred) parts.push_back({{}, *whole.preferred, true});
  std::ranges::sort(parts, [](const GangPart& a, const GangPart& b) {
    return std::tie(a.preferred, a.level, a.roles) < std::tie(b.preferred, b.level, b.roles);
  });
  return true;
}

struct PodGroups::Tree {
  PodGroup whole;
  bool is_complete = true;
  std::vector<GangRole> leaves = {};

  // The first objection counts.
  void Refuse(const PodGroup& of, std::string_view kind, const std::string& why) {
    if (!whole.refusal.empty()) return;
    const bool is_root = kind == kCompositePodGroup && of.name == whole.name;
    whole.refusal = (is_root ? "" : std::string(kind) + " " + of.name + ": ") + why;
  }
};

void PodGroups::AddPartsOf(std::string_view table, const std::string& of,
                           std::map<std::string, PodGroup>& parts) const {
  if (behind_ != nullptr) behind_->AddPartsOf(table, of, parts);
  if (const PodGroupTable* const own = Table(table)) own->AddPartsOf(of, parts);
}

std::optional<PodGroup> PodGroups::ObjectOf(Gang& gang) const {
  const std::string& space = gang.id.namespace_name;
  GangController& by = gang.controller;
  auto at = by.empty() ? std::nullopt : Object(by.kind, space, by.name, by.uid);
  // While not all of its parents were there it had the last that was named, and its own name.
  const bool is_old = by.name != gang.id.name || (at && !at->min_groups);
  if (by.kind == kCompositePodGroup && is_old) by = {};
  if (by.empty()) at = Object(gang.id.convention, space, gang.id.name);
  for (int level = 1; at && !at->parent.empty(); ++level) {
    auto parent = Object(kCompositePodGroup, space, at->parent);
    if (parent && !parent->min_groups) break;
    by = {.kind = std::string(kCompositePodGroup), .name = at->parent};
    at = std::move(parent);
    if (!at || level < kMostLevels) continue;
    at->refusal = "want at most " + std::to_string(kMostLevels) + " levels of groups, got more";
    return at;
  }
  return at && by.kind == kCompositePodGroup ? Gathered(*std::move(at)) : at;
}

std::optional<PodGroup> PodGroups::Gathered(PodGroup root) const {
  const std::string name = FullName(root.namespace_name, root.name);
  const std::uint64_t at = changes();
  Trees old, beyond;  // they end after the lock
  {
    const MutexLock lock(trees_mutex_);
    if (std::exchange(trees_at_, at) != at) trees_.swap(old);
    if (const auto known = trees_.find(name); known != trees_.end()) return known->second;
  }
  std::optional<PodGroup> whole = GatheredAnew(std::move(root));
  const MutexLock lock(trees_mutex_);
  if (trees_at_ != at) return whole;
  if (trees_.size() >= kMostTrees) trees_.swap(beyond);
  trees_.insert_or_assign(name, whole);
  return whole;
}

std::optional<PodGroup> PodGroups::GatheredAnew(PodGroup root) const {
  Tree tree{.whole = std::move(root)};
  Gather(tree.whole, 1, tree);
  if (!tree.is_complete) return std::nullopt;
  PodGroup& whole = tree.whole;
  std::int64_t pods = 0;
  for (const GangRole& leaf : tree.leaves) pods += leaf.minimum;
  if (pods > kMaxGangPods) {
    tree.Refuse(whole, kCompositePodGroup,
                "want at most " + std::to_string(kMaxGangPods) + " pods in all, got more");
  }
  whole.min_members = static_cast<int>(std::clamp<std::int64_t>(pods, 1, kMaxGangPods));
  const std::size_t count = tree.leaves.size();
  SetRoles(std::move(tree.leaves), {}, whole);
  if (!SetParts(whole)) {
    tree.Refuse(whole, kCompositePodGroup,
                "want at most " + std::to_string(kMaxGangRoles) + " PodGroups, each with at most " +
                    "two topologies beside that of all, got " + std::to_string(count));
  }
  return std::move(whole);
}

void PodGroups::Gather(const PodGroup& at, int level, Tree& tree) const {
  const std::string name = FullName(at.namespace_name, at.name);
  std::map<std::string, PodGroup> groups, leaves;
  AddPartsOf(kCompositePodGroup, name, groups);
  AddPartsOf(kNativeGroups, name, leaves);
  const std::size_t parts = groups.size() + leaves.size();
  const auto least = static_cast<std::size_t>(*at.min_groups);
  if (parts < least) tree.is_complete = false;
  if (parts > least) {
    tree.Refuse(at, kCompositePodGroup,
                "spec.schedulingPolicy.gang.minGroupCount: want all " + std::to_string(parts) +
                    " of its groups, since Berth starts them together, got " +
                    std::to_string(least));
  }
  if (tree.leaves.size() + parts > kMostGroupsOfTree || (level == kMostLevels && parts > 0)) {
    return tree.Refuse(at, kCompositePodGroup,
                       "want at most " + std::to_string(kMostLevels) + " levels and " +
                           std::to_string(kMostGroupsOfTree) + " groups in all, got more");
  }
  for (auto& [leaf, group] : leaves) {
    if (!group.refusal.empty()) tree.Refuse(group, "PodGroup", group.refusal);
    tree.leaves.push_back({group.name, group.min_members});
    if (group.domain.required) tree.whole.parts.push_back({{group.name}, *group.domain.required});
  }
  for (const auto& [composite, group] : groups) {
    if (!group.refusal.empty()) tree.Refuse(group, kCompositePodGroup, group.refusal);
    if (!group.min_groups) {
      tree.Refuse(group, kCompositePodGroup, "spec.schedulingPolicy: want gang, as its parent has");
      continue;
    }
    const std::size_t first = tree.leaves.size();
    Gather(group, level + 1, tree);
    if (!group.domain.required) continue;
    GangPart part{.level = *group.domain.required};
    for (std::size_t i = first; i < tree.leaves.size(); ++i) {
      part.roles.push_back(tree.leaves[i].name);
    }
    std::ranges::sort(part.roles);
    if (!part.roles.empty()) tree.whole.parts.push_back(std::move(part));
  }
}

}  // namespace berth
