// SPDX-License-Identifier: Apache-2.0
//
// PodGroups: the PodGroup objects of other schedulers and controllers, as last seen. A pod names
// its group; the object has the group's size.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cluster/pod_request.h"

namespace berth {

struct PodGroup {
  std::string namespace_name;
  std::string name;
  int min_members = 0;  // the smallest size of the group; 0 = unknown
  DomainAsk domain = {};
  friend bool operator==(const PodGroup&, const PodGroup&) = default;
};

// The objects of one API. Any thread may call any function.
class PodGroupTable {
 public:
  using Object = PodGroup;

  // gang: "namespace/name".
  [[nodiscard]] std::optional<PodGroup> Find(const std::string& gang) const BERTH_EXCLUDES(mutex_);

  // Adds it, or replaces the one of that name.
  void Put(PodGroup group) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list; of two with one name the last counts.
  void Reset(std::vector<PodGroup> groups) BERTH_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::unordered_map<std::string, PodGroup> by_gang_ BERTH_GUARDED_BY(mutex_);
};

enum class PodGroupApi { kCoscheduling, kKubernetes, kVolcano, kKai, kCount };

// The tables live as long as the object. Any thread may call any function.
class PodGroups {
 public:
  [[nodiscard]] PodGroupTable& Of(PodGroupApi api) {
    return tables_[static_cast<std::size_t>(api)];
  }
  // The group of that name in the first API, in order, that has one.
  [[nodiscard]] std::optional<PodGroup> Find(const std::string& gang) const;

 private:
  std::array<PodGroupTable, static_cast<std::size_t>(PodGroupApi::kCount)> tables_;
};

}  // namespace berth
