// SPDX-License-Identifier: Apache-2.0
//
// Gang: a group of pods that start together or not at all, as its pods and its object describe it.
// A value.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

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

constexpr int kMaxGangPods = 10'000;

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
  // Kinds of its pods have minimums of their own, of which nothing more is known: only all of its
  // pods together are sure to meet them.
  bool has_roles = false;

  [[nodiscard]] bool empty() const { return id.empty(); }
  // How many pods it will have, as far as that is known; 0 = not known. A minimum of 1 says
  // nothing: every group has one pod.
  [[nodiscard]] int size() const;

  friend bool operator==(const Gang&, const Gang&) = default;
};

}  // namespace berth
