// SPDX-License-Identifier: Apache-2.0
//
// Whether two pods are alike, by the roles of their members (describe.h). SamePodKind is the pod
// signature, as kube-scheduler has one (SignPod): pods of one kind fit on the same nodes, and
// equally well. What has to tell apart more names more roles.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "cluster/values/describe.h"

namespace berth {

template <Role... roles>
class RoleComparison {
 public:
  // Whether the values are equal in all members of these roles.
  template <class T>
  static bool Same(const T& a, const T& b) {
    bool same = true;
    ForEachMemberOf(a, b, [&same](const auto& one, const auto& other) {
      constexpr Role role = std::remove_cvref_t<decltype(one)>::role;
      if constexpr (((role == roles) || ...)) same = same && Equal(one.value, other.value);
    });
    return same;
  }

 private:
  template <class T>
  static bool Equal(const T& a, const T& b) {
    return a == b;
  }
  template <class T>
  static bool Equal(const std::shared_ptr<T>& a, const std::shared_ptr<T>& b) {
    return a == b || (a != nullptr && b != nullptr && *a == *b);
  }
  static bool Equal(const std::vector<ContainerAsk>& a, const std::vector<ContainerAsk>& b) {
    return std::ranges::equal(a, b, Same<ContainerAsk>);
  }
};

template <Role... roles>
bool SameIn(const PodRequest& a, const PodRequest& b) {
  return RoleComparison<roles...>::Same(a, b);
}

// Whether nodes are the same to both: what one of them gets, the other would get.
inline bool SamePodKind(const PodRequest& a, const PodRequest& b) {
  return SameIn<Role::kKind>(a, b);
}

}  // namespace berth
