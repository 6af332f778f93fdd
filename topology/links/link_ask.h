// SPDX-License-Identifier: Apache-2.0
//
// LinkAsk: a pod's requirements for the links between its GPUs. A value; it matters for pods with
// two whole GPUs or more.
#pragma once

#include <compare>
#include <cstdint>

namespace berth {

enum class LinkWish : std::uint8_t {
  kPreferred,  // the fastest set there is
  kRequired,   // its GPUs are connected by a fabric (GpuLinks::Satisfies)
  kNone,       // it does not matter: the fast sets are left to others
};

enum class NumaWish : std::uint8_t {
  kAmongEquals,  // the fewest NUMA groups among sets of equal links
  kPreferred,    // the fewest NUMA groups, before the links
  kRequired,     // one NUMA group
};

// How the pod's processes communicate, which decides what makes a set of GPUs fast for it.
enum class LinkPattern : std::uint8_t {
  kAny,       // what SetTable calls quality
  kRing,      // the worst link of the best ring
  kAllToAll,  // the worst link of any two
  kPairs,     // the worst link of the best division into pairs
  kGrid,      // the worst link of the best mesh of two rows
};
inline constexpr int kLinkPatterns = 5;

struct LinkAsk {
  LinkWish link = LinkWish::kPreferred;
  NumaWish numa = NumaWish::kAmongEquals;
  LinkPattern pattern = LinkPattern::kAny;
  int min_megabytes_per_s = 0;  // of the set's ring, in one direction; 0 = none

  // Whether the ask forbids any set.
  [[nodiscard]] bool limits() const {
    return link == LinkWish::kRequired || numa == NumaWish::kRequired || min_megabytes_per_s > 0;
  }
  friend bool operator==(const LinkAsk&, const LinkAsk&) = default;
  friend auto operator<=>(const LinkAsk&, const LinkAsk&) = default;
};

}  // namespace berth
