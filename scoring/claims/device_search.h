// SPDX-License-Identifier: Apache-2.0
//
// DeviceSearch: which devices of one node the requests of a pod's ResourceClaims get. Numbers
// alone: which device suits which request, and which values attributes have, is decided by who asks
// (claim_question.h).
//
//   FirstFit   what kube-scheduler's own allocator takes: devices in the order given, one request
//              after the other, with backtracking. Source: k8s.io/dynamic-resource-allocation
//              structured/internal/incubating, allocateOne (1.37).
//   BestSet    the best rated of all sets that it could have taken. There is one whenever FirstFit
//              finds one.
//
// Both are bounded by kMostFitSteps and kMostSetSteps. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace berth {

// A position as an index.
inline std::size_t Nth(int position) { return static_cast<std::size_t>(position); }

// An allocation of a claim has no more devices (resource.k8s.io/v1, AllocationResultsMaxSize).
inline constexpr int kMostClaimDevices = 32;

// What a device is to a request: by the selectors of class and request, and by its taints.
enum class DeviceMatch : std::uint8_t {
  kNo,
  kYes,
  kTainted,  // the selectors accept it; it has a taint that the request does not tolerate
  kError,    // a selector fails on it. kube-scheduler then gives up the pod, on all nodes
  kUnknown,  // Berth cannot tell
};

// Of counters of its pool, by their positions there; in thousandths.
struct CounterUse {
  int counter = 0;
  std::int64_t milli = 0;
};

struct SearchDevice {
  int pool = 0;  // its position in DeviceQuestion::pools
  bool taken = false;
  std::vector<CounterUse> uses = {};
  // Several requests may have parts of it, of different claims or of one, while there is so much
  // left of each of its capacities (KEP-5075). The counters are used once, with the first part.
  bool divisible = false;
  bool in_use = false;                  // a claim has a part already
  std::vector<std::int64_t> left = {};  // in thousandths
};

struct SearchPool {
  // Not while slices of it are missing, or contradict each other: nothing of it is taken, and a
  // request for all devices is an error.
  bool usable = true;
  std::vector<std::int64_t> counters_left = {};  // in thousandths, less what taken devices use
};

struct SearchOption {
  bool all = false;        // every device that suits it, at least one
  std::int64_t count = 1;  // unless all
};

// Exactly one thing, or the first of several that can be had.
struct SearchRequest {
  std::vector<SearchOption> options;
  bool first_available = false;
};

// The value that a device has of an attribute, as a number: equal values, of one type, have equal
// ones, from 0.
inline constexpr int kNoValue = -1;
inline constexpr int kOddValue = -2;  // of a type that equals nothing

// matchAttribute: one value for all devices that it covers. distinctAttribute: no value twice.
struct SearchConstraint {
  bool distinct = false;
  std::vector<int> values;                // by device
  std::vector<std::vector<bool>> covers;  // by request and option of its claim
};

struct SearchClaim {
  std::vector<SearchRequest> requests;
  std::vector<SearchConstraint> constraints = {};
};

// A request of a claim, with one of its options.
struct OptionOf {
  int claim = 0;
  int request = 0;
  int option = 0;
  friend bool operator==(const OptionOf&, const OptionOf&) = default;
};

struct DeviceQuestion {
  std::vector<SearchPool> pools;
  std::vector<SearchDevice> devices;  // in the order in which they are tried
  std::vector<SearchClaim> claims;
  // Asked once at most for each device and option, and only where the search comes by.
  std::function<DeviceMatch(const OptionOf&, int device)> match;
  // How much the option takes of each capacity of a divisible device that suits it: at least 0.
  std::function<std::vector<std::int64_t>(const OptionOf&, int device)> part = {};
};

struct PickedDevice {
  OptionOf of;
  int device = 0;
  friend bool operator==(const PickedDevice&, const PickedDevice&) = default;
};

enum class SearchEnd : std::uint8_t {
  kFound,
  kNone,     // the node does not have them
  kError,    // kube-scheduler gives up the pod with an error
  kUnknown,  // it depends on a match that is unknown, or is too long a search
};

struct PickedDevices {
  SearchEnd end = SearchEnd::kNone;
  // In the order of claims and requests; of one request by device.
  std::vector<PickedDevice> devices = {};
  bool is_best = false;  // of BestSet: every set was looked at
  int steps = 0;
};

// So many devices are looked at, each as often as the search comes by: at most some ten
// milliseconds.
inline constexpr int kMostFitSteps = 1'000'000;
inline constexpr int kMostSetSteps = 100'000;

// Of a complete set: less is better, the first number first.
using SetRating = std::array<std::int64_t, 5>;
using RateSet = std::function<SetRating(std::span<const PickedDevice>)>;

PickedDevices FirstFit(const DeviceQuestion& question);

// The options are those of the first fit: who prefers one before another gets it as before. Of
// equally rated sets it is the first. After kMostSetSteps it is the best of those seen.
PickedDevices BestSet(const DeviceQuestion& question, const RateSet& rate);

}  // namespace berth
