// SPDX-License-Identifier: Apache-2.0
//
// PodGroups: the objects in which other schedulers and controllers keep what their gangs need, as
// last seen. A pod names its gang; the object has the gang's minimum. Objects of controllers that
// make the pods, such as Jobs, are kept in the same way, a table for each kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/values/gang.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct PodGroup {
  std::string namespace_name;
  std::string name;
  int min_members = 1;  // so many have to start together; 1 also where the object says nothing
  DomainAsk domain = {};
  std::optional<Duration> hold = {};  // as in Gang, like has_roles, roles and parts
  bool has_roles = false;
  std::vector<GangRole> roles = {};
  std::vector<GangPart> parts = {};
  // Why none of its pods can be placed: a number that makes no sense, a demand that nobody meets.
  // Empty = they can.
  std::string refusal = {};
  // Of a controller's object (GangController):
  std::string uid = {};
  OneByOne one_by_one = OneByOne::kNo;
  bool leader_differs = false;  // its leader asks for something else than its followers
  // Of a tree of groups (kCompositePodGroup): the name of the one that it is a part of, in its
  // namespace; empty: of none. And how many of its parts start together; empty: it is a PodGroup,
  // or each of its parts starts by itself.
  std::string parent = {};
  std::optional<int> min_groups = {};
  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

// The kind of the groups that have others as parts. The leaves are PodGroups of Kubernetes, which
// pods name; the root and all below it are one gang, of the root's name (group_tree.cc).
inline constexpr std::string_view kCompositePodGroup = "CompositePodGroup";
inline constexpr std::size_t kMostGroupsOfTree = 1024;

// Puts the roles into the group as an object has them, if they can be kept. parents: the names of
// those that stand for several others: no pod is of them.
void SetRoles(std::vector<GangRole> roles, std::span<const std::string> parents, PodGroup& group);
// Puts its parts into their order, with those of all pods among them. False, and there are none: a
// pod keeps them, and they name too many roles. What is wished is left out first.
bool SetParts(PodGroup& group);

// The objects of one convention, or of one kind of controllers. Any thread may call any function.
class PodGroupTable {
 public:
  using Object = PodGroup;

  // full_name: "namespace/name".
  [[nodiscard]] std::optional<PodGroup> Find(const std::string& full_name) const
      BERTH_EXCLUDES(mutex_);
  // Those whose parent it is, by their full names: all, or kMostGroupsOfTree and more.
  void AddPartsOf(const std::string& full_name, std::map<std::string, PodGroup>& parts) const
      BERTH_EXCLUDES(mutex_);
  // Whether the API server has them: a name that is not here is the name of no object.
  [[nodiscard]] bool served() const BERTH_EXCLUDES(mutex_);
  // Grows with every change.
  [[nodiscard]] std::uint64_t changes() const BERTH_EXCLUDES(mutex_);

  // Adds it, or replaces the one of that name.
  void Put(PodGroup group) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list; of two with one name the last counts.
  void Reset(const std::vector<PodGroup>& groups) BERTH_EXCLUDES(mutex_);
  // The API server has no such objects.
  void NotServed() BERTH_EXCLUDES(mutex_);

 private:
  void Insert(std::string full_name, PodGroup group) BERTH_REQUIRES(mutex_);
  bool Erase(const std::string& full_name) BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<std::string, PodGroup> by_name_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, std::set<std::string>> parts_ BERTH_GUARDED_BY(mutex_);  // by parent
  bool served_ BERTH_GUARDED_BY(mutex_) = false;
  std::uint64_t changes_ BERTH_GUARDED_BY(mutex_) = 0;
};

// The tables live as long as the object. Any thread may call any function.
class PodGroups {
 public:
  PodGroups() = default;
  // What is not here is looked for in `behind`, which outlives the object: groups that are asked
  // about beside those that are there.
  explicit PodGroups(const PodGroups* behind) : behind_(behind) {}

  // That of the convention or kind, which is made where there is none yet.
  [[nodiscard]] PodGroupTable& Of(std::string_view convention) BERTH_EXCLUDES(mutex_);
  // The object that has the gang's minimum: that of its controller, or of its name. None where its
  // pods say everything.
  [[nodiscard]] std::optional<PodGroup> Find(const Gang& gang) const;
  // Puts into the gang what its object says now, where its convention has objects: a pod that was
  // read earlier may not have heard of it. The gang keeps its name.
  void Update(Gang& gang) const;
  // The same for the pod, and where it has to be. Its gang is that of the tree of its group from
  // now on, if all of its parents are there.
  std::optional<PodGroup> Read(PodRequest& pod) const;
  // Grows with every change of any object: look at gangs anew when it has grown.
  [[nodiscard]] std::uint64_t changes() const BERTH_EXCLUDES(mutex_);

 private:
  struct Tree;
  [[nodiscard]] const PodGroupTable* Table(std::string_view name) const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<PodGroup> Object(std::string_view table, const std::string& space,
                                               const std::string& name,
                                               const std::string& uid = {}) const;
  // Of the gang's own object, or of the tree that it is a part of: then that is its controller.
  [[nodiscard]] std::optional<PodGroup> ObjectOf(Gang& gang) const;
  [[nodiscard]] bool IsServed(std::string_view table) const;
  void AddPartsOf(std::string_view table, const std::string& of,
                  std::map<std::string, PodGroup>& parts) const;
  // The whole tree below the root. Nothing: some of it is not there. Each pod of the tree asks.
  [[nodiscard]] std::optional<PodGroup> Gathered(PodGroup root) const BERTH_EXCLUDES(trees_mutex_);
  [[nodiscard]] std::optional<PodGroup> GatheredAnew(PodGroup root) const;
  void Gather(const PodGroup& at, int level, Tree& tree) const;

  const PodGroups* const behind_ = nullptr;
  mutable Mutex mutex_;
  std::map<std::string, PodGroupTable, std::less<>> tables_ BERTH_GUARDED_BY(mutex_);

  using Trees = std::map<std::string, std::optional<PodGroup>>;
  static constexpr std::size_t kMostTrees = 256;  // that are kept; of more all are gathered anew
  mutable Mutex trees_mutex_;
  mutable Trees trees_ BERTH_GUARDED_BY(trees_mutex_);  // as they were at that count of changes
  mutable std::uint64_t trees_at_ BERTH_GUARDED_BY(trees_mutex_) = 0;
};

// GangMembers: how many pods of each gang are on each node. ClusterState guards it.
class GangMembers {
 public:
  // A pod of the gang is on the node / leaves it. gang: empty = the pod is in none.
  void Add(const GangId& gang, const std::string& node);
  void Remove(const GangId& gang, const std::string& node);

  // How many pods of the gang there are on all nodes.
  [[nodiscard]] std::size_t Count(const GangId& gang) const;
  // The names of the nodes on which they are, sorted.
  [[nodiscard]] std::vector<std::string> NodesOf(const GangId& gang) const;

 private:
  std::map<GangId, std::map<std::string, std::size_t>> pods_;  // [gang][node]
};

}  // namespace berth
