// SPDX-License-Identifier: Apache-2.0
//
// HeldBytes: about what a value takes in memory, itself and all that it owns: what each store that
// keeps such values counts. What is shared counts in full wherever it is held.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cluster/values/describe.h"
#include "cluster/values/pod_request.h"

namespace berth {

// What the allocator takes beside the bytes that it was asked for.
inline constexpr std::size_t kPerBlock = 16;

// Counts what a value owns, member by member.
class OwnedBytes {
 public:
  [[nodiscard]] std::size_t sum() const { return sum_; }

  template <class T>
  void Add(const T& value) {
    if constexpr (!std::is_trivially_copyable_v<T>) {
      ForEachMember(value, [&](const auto& member) { Add(member.value); });
    }
  }
  void Add(const std::string& text) {
    // A short text is inside of the string.
    if (text.capacity() > std::string().capacity()) sum_ += kPerBlock + text.capacity() + 1;
  }
  template <class T>
  void Add(const std::vector<T>& list) {
    if (list.capacity() > 0) sum_ += kPerBlock + list.capacity() * sizeof(T);
    for (const T& item : list) Add(item);
  }
  template <class T>
  void Add(const std::span<const T>& list) {  // of a value that shows no list of its own
    if (!list.empty()) sum_ += kPerBlock + list.size_bytes();
    for (const T& item : list) Add(item);
  }
  template <class T, std::size_t n>
  void Add(const std::array<T, n>& list) {
    for (const T& item : list) Add(item);
  }
  template <class A, class B>
  void Add(const std::pair<A, B>& both) {
    Add(both.first);
    Add(both.second);
  }
  template <class T>
  void Add(const std::optional<T>& value) {
    if (value) Add(*value);
  }
  template <class... Kinds>
  void Add(const std::variant<Kinds...>& value) {
    std::visit([&](const auto& kind) { Add(kind); }, value);
  }
  template <class T>
  void Add(const std::shared_ptr<T>& value) {
    constexpr std::size_t kCounts = 16;
    if (value == nullptr) return;
    sum_ += kPerBlock + kCounts + sizeof(T);
    Add(*value);
  }

 private:
  std::size_t sum_ = 0;
};

template <class T>
std::size_t HeldBytes(const T& value) {
  OwnedBytes owned;
  owned.Add(value);
  return sizeof(T) + owned.sum();
}

// How large a pod's request may be, and what is kept of one that is too large. Tenants write pods:
// the API server admits 1.5 MiB of labels, selectors and annotations with each.

// Of one request (HeldBytes): 30,000 names of nodes in its affinity take less.
inline constexpr std::size_t kMostRequestBytes = std::size_t{2} << 20;
// Of its labels, for which budgets, gangs and pods that look for neighbours look at it.
inline constexpr std::size_t kMostLabelBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostRefusalBytes = 1000;
inline constexpr std::size_t kMostGroupNameBytes = 512;

// What stays of the request is at most kMostRequestBytes: a larger one is kept in outline, and
// refused if it asks for GPUs. Labels beyond their bound are left out, texts of refusals are cut, a
// group whose name is too long is ignored.
// Requires: the pod's own names are short (server/wire/json/object_meta.h).
void BoundRequest(PodRequest& pod);

// The pod's names, its group, its priority and what it asks for in numbers, with `why` as the
// reason why it cannot be placed; without labels, conditions and rules.
PodRequest OutlineOf(const PodRequest& pod, std::string_view why);

}  // namespace berth
