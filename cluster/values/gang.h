// SPDX-License-Identifier: Apache-2.0
//
// Gang: a group of pods that start together or not at all, as its pods and its object describe it.
// A value.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace berth {

// Groups that are named in different words are different groups, also if they have one name.
struct GangId {
  std::string convention;  // in whose words its pods name it: "coscheduling"; empty = in nobody's
  std::string namespace_name;
  std::string name;  // empty = no gang

  [[nodiscard]] bool empty() const { return name.empty(); }
  [[nodiscard]] std::string full_name() const;  // "namespace/name"
  // "convention:namespace/name", or without the convention where there is none; "" = no gang.
  [[nodiscard]] std::string text() const;
  // Reads such a text. A text without a '/' is a name without a namespace.
  static GangId Of(std::string_view text);

  friend auto operator<=>(const GangId&, const GangId&) = default;
};

// The convention (GangId) of PodGroups of Kubernetes.
inline constexpr std::string_view kNativeGroups = "kubernetes";
constexpr int kMaxGangPods = 10'000;
constexpr std::size_t kMaxGangRoles = 64;

// The controller that makes the pods of a gang, where its object says how many they are to be.
struct GangController {
  std::string kind = {};  // of the object: "Job"; empty = no such object
  std::string name = {};
  std::string uid = {};  // empty = pods do not say it
  // Its pods ask to start together. Otherwise only the configuration has it so.
  bool asked = false;

  [[nodiscard]] bool empty() const { return kind.empty(); }
  friend bool operator==(const GangController&, const GangController&) = default;
};

// A kind of pods in a gang; so many of it must start together.
struct GangRole {
  std::string name;
  int minimum = 0;
  friend bool operator==(const GangRole&, const GangRole&) = default;
};

// Pods of these roles have to be in one domain of a topology level together, or are to be if they
// can (preferred).
struct GangPart {
  std::vector<std::string> roles = {};  // sorted; empty = all pods of the gang
  std::size_t level = 0;                // as of DomainAsk::required
  bool preferred = false;
  [[nodiscard]] bool Has(const std::string& role) const;
  friend bool operator==(const GangPart&, const GangPart&) = default;
};

// Whether the controller makes the next pod only when the pods before it have a node or run: such
// pods cannot wait for each other.
enum class OneByOne : std::uint8_t { kNo, kStatefulSet, kInOrder, kExclusiveTopology };

// What to do about it, a sentence; "" = nothing is wrong.
std::string_view CureOf(OneByOne why);

struct Gang {
  // The object that has the minimum, where the convention keeps it in one.
  enum class Object {
    kNone,       // the pods say everything
    kFound,      //
    kMissing,    // there is no object of that name (yet)
    kNotServed,  // nobody can tell: its API is not there, or may not be read
  };

  GangId id;
  // So many of its pods have to start together. Empty: nobody says; `object` tells why where that
  // is an object's to say. 1: each of them may start alone.
  std::optional<int> minimum = {};
  std::optional<int> total = {};  // how many pods it is to have; empty = nobody says
  Object object = Object::kNone;
  // For how long its first pods may wait for the others. Empty: nobody says.
  std::optional<Duration> hold = {};
  // Several kinds of its pods have minimums of their own (NeedsAll).
  bool has_roles = false;
  std::vector<GangRole> roles = {};  // by name, at most kMaxGangRoles; a minimum is 1 or more
  // Domains of some of its pods, wide levels first, and that of all among them, the required ones
  // before the preferred; without required ones at most all have one (PodRequest::domain). They
  // name at most 2 * kMaxGangRoles roles.
  std::vector<GangPart> parts = {};
  GangController controller = {};
  // So many pods come only when the leader runs (PodRequest::leads), each with the leader's ask.
  int followers = 0;
  OneByOne one_by_one = OneByOne::kNo;

  [[nodiscard]] bool empty() const { return id.empty(); }
  // kube-scheduler takes all of its pods at once: it wants to know a node for each of them, also
  // for those without GPUs, before it binds the first.
  [[nodiscard]] bool comes_at_once() const { return id.convention == kNativeGroups; }
  // How many pods it will have; 0 = not known. A minimum of 1 says
  // nothing: every group has one pod.
  [[nodiscard]] int size() const;

  friend bool operator==(const Gang&, const Gang&) = default;
};

// How many pods of each role there are; "" = of those that say none.
using RoleCounts = std::map<std::string, std::int64_t, std::less<>>;

// The minimums of its roles, less the pods that are there: what is still missing, by role. Roles of
// which enough are there are left out; none where some pods do not say their role.
std::vector<GangRole> MissingRoles(const Gang& gang, const RoleCounts& there);
// Whether only all of its pods together are sure to meet its minimums: those of its roles are not
// known, or some pods do not say their role.
bool NeedsAll(const Gang& gang, const RoleCounts& there);

// The narrowest part that pods of the role have to be in; nullptr: there is none.
const GangPart* PartOf(const Gang& gang, const std::string& role);
bool RequiresParts(const Gang& gang);

}  // namespace berth
