// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/device_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace berth {
namespace {

enum class Walk : std::uint8_t {
  kDone,
  kFail,
  kTooMany,  // the claim would have more devices than an allocation has: earlier ones do not matter
  kError,
  kUnknown,
};

constexpr int kLongSearch = 2000;  // steps: from then on it pays to ask whether it can succeed

// What the devices picked so far leave of a claim's constraint.
class ConstraintState {
 public:
  bool Add(const SearchConstraint& constraint, int device) {
    const int value = constraint.values[Nth(device)];
    if (value == kNoValue) return false;
    if (!constraint.distinct && !values_.empty() && (value == kOddValue || value != values_[0])) {
      return false;
    }
    if (constraint.distinct && !values_.empty() &&
        (value == kOddValue || std::ranges::find(values_, value) != values_.end())) {
      return false;
    }
    values_.push_back(value);
    return true;
  }
  void Remove() { values_.pop_back(); }

 private:
  std::vector<int> values_;
};

SearchEnd EndOf(Walk walk) {
  if (walk == Walk::kError) return SearchEnd::kError;
  return walk == Walk::kUnknown ? SearchEnd::kUnknown : SearchEnd::kNone;
}

class SetSearch {
 public:
  explicit SetSearch(const DeviceQuestion& question) : question_(question) {
    for (const SearchPool& pool : question.pools) used_.emplace_back(pool.counters_left.size(), 0);
    picks_.resize(question.devices.size());
    for (const SearchDevice& device : question.devices) left_.push_back(device.left);
    for (const SearchClaim& claim : question.claims) {
      constraints_.emplace_back(claim.constraints.size());
      auto& of_claim = options_.emplace_back();
      for (const SearchRequest& request : claim.requests) {
        of_claim.emplace_back(request.options.size());
      }
    }
  }

  PickedDevices First() {
    most_steps_ = kMostFitSteps;
    if (const Walk walk = Prepare(); walk != Walk::kDone) return {.end = EndOf(walk)};
    const Walk walk = Next({}, 0, false, 0);
    if (impossible_) return {.end = SearchEnd::kNone, .steps = steps_};
    if (walk != Walk::kDone) return {.end = EndOf(walk), .steps = steps_};
    return {.end = SearchEnd::kFound, .devices = picked_, .steps = steps_};
  }

  // `first`: what First found, with another SetSearch of the question.
  PickedDevices Best(PickedDevices first, const RateSet& rate) {
    if (Prepare() != Walk::kDone) return first;
    fixed_ = OptionsOf(first.devices);
    MarkAlike();
    rate_ = &rate;
    best_ = std::move(first.devices);
    best_rating_ = rate(best_);
    most_steps_ = kMostSetSteps;
    const Walk walk = Next({}, 0, false, 0);
    return {.end = SearchEnd::kFound,
            .devices = best_,
            .is_best = walk != Walk::kUnknown,
            .steps = first.steps + steps_};
  }

 private:
  // What is known of one option of a request.
  struct OptionState {
    std::vector<DeviceMatch> match = {};  // by device; filled when first needed
    std::vector<bool> asked = {};
    std::map<int, std::vector<std::int64_t>> parts = {};  // by device, of those asked for
    std::int64_t wanted = 0;
    std::vector<int> all = {};
  };

  const SearchClaim& ClaimOf(const OptionOf& of) const { return question_.claims[Nth(of.claim)]; }
  const SearchRequest& RequestOf(const OptionOf& of) const {
    return ClaimOf(of).requests[Nth(of.request)];
  }
  const SearchOption& OptionAt(const OptionOf& of) const {
    return RequestOf(of).options[Nth(of.option)];
  }
  OptionState& StateOf(const OptionOf& of) {
    return options_[Nth(of.claim)][Nth(of.request)][Nth(of.option)];
  }

  DeviceMatch Match(const OptionOf& of, int device) {
    OptionState& state = StateOf(of);
    if (state.asked.empty()) {
      state.asked.resize(question_.devices.size());
      state.match.resize(question_.devices.size());
    }
    if (!state.asked[Nth(device)]) {
      state.asked[Nth(device)] = true;
      state.match[Nth(device)] = question_.match(of, device);
    }
    return state.match[Nth(device)];
  }

  const std::vector<std::int64_t>& PartOf(const OptionOf& of, int device) {
    const auto [part, is_new] = StateOf(of).parts.try_emplace(device);
    if (is_new) part->second = question_.part(of, device);
    return part->second;
  }

  // Whether some request wants more than there is for it alone: then nothing of what is tried for
  // the others matters. False where a selector fails: an error ends the search, if it gets there.
  bool IsImpossible() {
    bool impossible = false;
    for (int claim = 0; claim < static_cast<int>(question_.claims.size()); ++claim) {
      const auto requests = static_cast<int>(question_.claims[Nth(claim)].requests.size());
      for (int request = 0; request < requests; ++request) {
        bool possible = false;
        const int options = static_cast<int>(RequestOf({claim, request, 0}).options.size());
        for (int option = 0; option < options; ++option) {
          const std::int64_t there_are = CountOf({claim, request, option});
          if (there_are < 0) return false;
          const std::int64_t wanted = StateOf({claim, request, option}).wanted;
          possible = possible || (there_are >= wanted &&
                                  !(OptionAt({claim, request, option}).all && wanted == 0));
        }
        impossible = impossible || !possible;
      }
    }
    impossible_ = impossible;
    return impossible;
  }

  // The free devices for an option; -1 where that is not known for all.
  std::int64_t CountOf(const OptionOf& of) {
    std::int64_t count = 0;
    for (int device = 0; device < static_cast<int>(question_.devices.size()); ++device) {
      const SearchDevice& candidate = question_.devices[Nth(device)];
      if (candidate.taken || !question_.pools[Nth(candidate.pool)].usable) continue;
      const DeviceMatch match = Match(of, device);
      if (match == DeviceMatch::kError || match == DeviceMatch::kUnknown) return -1;
      count += match == DeviceMatch::kYes ? 1 : 0;
    }
    return count;
  }

  // How many devices each option wants. kDone, kError or kUnknown.
  Walk Prepare() {
    for (int claim = 0; claim < static_cast<int>(question_.claims.size()); ++claim) {
      std::int64_t least = 0;
      const auto& requests = question_.claims[Nth(claim)].requests;
      for (int request = 0; request < static_cast<int>(requests.size()); ++request) {
        std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
        const int options = static_cast<int>(requests[Nth(request)].options.size());
        for (int option = 0; option < options; ++option) {
          const Walk walk = PrepareOption({claim, request, option});
          if (walk != Walk::kDone) return walk;
          fewest = std::min(fewest, StateOf({claim, request, option}).wanted);
        }
        if (fewest > kMostClaimDevices - least) return Walk::kError;
        least += fewest;
      }
    }
    return Walk::kDone;
  }

  Walk PrepareOption(const OptionOf& of) {
    OptionState& state = StateOf(of);
    const SearchOption& option = OptionAt(of);
    state.wanted = option.count;
    if (!option.all) return Walk::kDone;
    if (std::ranges::any_of(question_.pools, [](const SearchPool& pool) { return !pool.usable; })) {
      return Walk::kError;
    }
    for (int device = 0; device < static_cast<int>(question_.devices.size()); ++device) {
      const DeviceMatch match = Match(of, device);
      if (match == DeviceMatch::kError) return Walk::kError;
      if (match == DeviceMatch::kUnknown) return Walk::kUnknown;
      if (match != DeviceMatch::kNo) state.all.push_back(device);
    }
    state.wanted = static_cast<std::int64_t>(state.all.size());
    return Walk::kDone;
  }

  // One device more: the `nth` of the option. in_option: of a request with several, one is being
  // tried. start: the first device to be tried.
  Walk Next(const OptionOf& of, std::int64_t nth, bool in_option, int start) {
    if (++steps_ > most_steps_) return Walk::kUnknown;
    if (Nth(of.claim) >= question_.claims.size()) return Complete();
    if (Nth(of.request) >= ClaimOf(of).requests.size()) {
      const Walk walk = Next({of.claim + 1, 0, 0}, 0, false, 0);
      return walk == Walk::kTooMany ? Walk::kFail : walk;
    }
    if (RequestOf(of).first_available && !in_option) return EachOption(of);
    const bool all = OptionAt(of).all;
    const std::int64_t wanted = StateOf(of).wanted;
    if (all && wanted == 0) return Walk::kFail;
    if (nth >= wanted) return Next({of.claim, of.request + 1, 0}, 0, false, 0);
    if (wanted - nth > kMostClaimDevices - InClaim(of.claim)) return Walk::kTooMany;
    return all ? NextOfAll(of, nth, in_option)
               : NextOfAny(of, nth, in_option, nth == 0 ? StartOf(of) : start);
  }

  Walk EachOption(OptionOf of) {
    bool all_too_many = true;
    const int options = static_cast<int>(RequestOf(of).options.size());
    const int only = rate_ != nullptr ? fixed_[Nth(of.claim)][Nth(of.request)] : -1;
    for (of.option = 0; of.option < options; ++of.option) {
      if (only >= 0 && of.option != only) continue;
      const Walk walk = Next(of, 0, true, 0);
      if (walk == Walk::kTooMany) continue;
      all_too_many = false;
      if (walk != Walk::kFail) return walk;
    }
    return all_too_many ? Walk::kTooMany : Walk::kFail;
  }

  Walk NextOfAll(const OptionOf& of, std::int64_t nth, bool in_option) {
    const int device = StateOf(of).all[static_cast<std::size_t>(nth)];
    bool constrained = false;
    if (!Take(of, device, constrained)) {
      // A claim for all devices that its own constraints forbid is wrong, on every node.
      return constrained ? Walk::kError : Walk::kFail;
    }
    const Walk walk = Next(of, nth + 1, in_option, 0);
    if (walk != Walk::kDone) GiveBack(of, device);
    return walk;
  }

  Walk NextOfAny(const OptionOf& of, std::int64_t nth, bool in_option, int start) {
    for (int device = start; device < static_cast<int>(question_.devices.size()); ++device) {
      if (++steps_ > most_steps_ || (steps_ == kLongSearch && IsImpossible())) {
        return Walk::kUnknown;
      }
      const SearchDevice& candidate = question_.devices[Nth(device)];
      if (!question_.pools[Nth(candidate.pool)].usable || IsTaken(device)) continue;
      const DeviceMatch match = Match(of, device);
      if (rate_ == nullptr && match == DeviceMatch::kError) return Walk::kError;
      if (rate_ == nullptr && match == DeviceMatch::kUnknown) return Walk::kUnknown;
      bool constrained = false;
      if (match != DeviceMatch::kYes || !Take(of, device, constrained)) continue;
      const Walk walk = Next(of, nth + 1, in_option, device + 1);
      if (walk == Walk::kDone) return walk;
      GiveBack(of, device);
      if (walk != Walk::kFail) return walk;
    }
    return Walk::kFail;
  }

  bool IsTaken(int device) const {
    const SearchDevice& there = question_.devices[Nth(device)];
    return there.taken || (!there.divisible && picks_[Nth(device)] > 0);
  }

  std::int64_t InClaim(int claim) const {
    return std::ranges::count_if(
        picked_, [claim](const PickedDevice& picked) { return picked.of.claim == claim; });
  }

  bool Take(const OptionOf& of, int device, bool& constrained) {
    if (IsTaken(device)) return false;
    if (!UseCounters(device)) return false;
    if (Match(of, device) == DeviceMatch::kTainted || !Constrain(of, device, constrained)) {
      ReturnCounters(device);
      return false;
    }
    if (!UsePart(of, device)) {
      Release(of, ClaimOf(of).constraints.size());
      ReturnCounters(device);
      return false;
    }
    ++picks_[Nth(device)];
    picked_.push_back({of, device});
    return true;
  }

  void GiveBack(const OptionOf& of, int device) {
    picked_.pop_back();
    --picks_[Nth(device)];
    if (question_.devices[Nth(device)].divisible) {
      const std::vector<std::int64_t>& part = PartOf(of, device);
      for (std::size_t i = 0; i < part.size(); ++i) left_[Nth(device)][i] += part[i];
    }
    Release(of, ClaimOf(of).constraints.size());
    ReturnCounters(device);
  }

  bool UsePart(const OptionOf& of, int device) {
    if (!question_.devices[Nth(device)].divisible) return true;
    std::vector<std::int64_t>& left = left_[Nth(device)];
    const std::vector<std::int64_t>& part = PartOf(of, device);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part[i] > left[i]) return false;
    }
    for (std::size_t i = 0; i < part.size(); ++i) left[i] -= part[i];
    return true;
  }

  bool Covers(const SearchConstraint& constraint, const OptionOf& of) const {
    return constraint.covers[Nth(of.request)][Nth(of.option)];
  }

  bool Constrain(const OptionOf& of, int device, bool& constrained) {
    const auto& all = ClaimOf(of).constraints;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!Covers(all[i], of) || constraints_[Nth(of.claim)][i].Add(all[i], device)) continue;
      Release(of, i);
      constrained = true;
      return false;
    }
    return true;
  }

  // Takes the device last added out of the first `count` constraints.
  void Release(const OptionOf& of, std::size_t count) {
    const auto& all = ClaimOf(of).constraints;
    for (std::size_t i = 0; i < count; ++i) {
      if (Covers(all[i], of)) constraints_[Nth(of.claim)][i].Remove();
    }
  }

  // A pool in which more is used than there is gives nothing that uses any counter.
  bool UseCounters(int number) {
    const SearchDevice& device = question_.devices[Nth(number)];
    if (!CountsNow(number)) return true;
    auto& used = used_[Nth(device.pool)];
    for (const CounterUse& use : device.uses) used[Nth(use.counter)] += use.milli;
    const auto& left = question_.pools[Nth(device.pool)].counters_left;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] >= used[i]) continue;
      ReturnCounters(number);
      return false;
    }
    return true;
  }

  void ReturnCounters(int number) {
    const SearchDevice& device = question_.devices[Nth(number)];
    if (!CountsNow(number)) return;
    auto& used = used_[Nth(device.pool)];
    for (const CounterUse& use : device.uses) used[Nth(use.counter)] -= use.milli;
  }

  // Whether its counters go with what is taken or given back now: nobody else has a part.
  bool CountsNow(int number) const {
    const SearchDevice& device = question_.devices[Nth(number)];
    return !device.uses.empty() && !device.in_use && picks_[Nth(number)] == 0;
  }

  // The rest is for Best.

  Walk Complete() {
    if (rate_ == nullptr) return Walk::kDone;
    const SetRating rating = (*rate_)(picked_);
    if (rating < best_rating_) {
      best_rating_ = rating;
      best_ = picked_;
    }
    return Walk::kFail;  // the next one
  }

  // By claim and request.
  std::vector<std::vector<int>> OptionsOf(std::span<const PickedDevice> devices) const {
    std::vector<std::vector<int>> options;
    for (const SearchClaim& claim : question_.claims) options.emplace_back(claim.requests.size());
    for (const PickedDevice& each : devices) {
      options[Nth(each.of.claim)][Nth(each.of.request)] = each.of.option;
    }
    return options;
  }

  OptionOf Fixed(int claim, int request) const {
    return {claim, request, fixed_[Nth(claim)][Nth(request)]};
  }

  // Requests that want the same are alike: which of two sets the one has and which the other makes
  // no difference, so that only one of the two ways is tried.
  void MarkAlike() {
    std::vector<OptionOf> all;
    for (int claim = 0; claim < static_cast<int>(question_.claims.size()); ++claim) {
      const auto requests = static_cast<int>(question_.claims[Nth(claim)].requests.size());
      for (int request = 0; request < requests; ++request) all.push_back(Fixed(claim, request));
    }
    for (std::size_t i = 1; i < all.size(); ++i) {
      if (AreAlike(all[i - 1], all[i])) alike_.emplace_back(all[i - 1], all[i]);
    }
  }

  bool AreAlike(const OptionOf& a, const OptionOf& b) {
    if (OptionAt(a).all || OptionAt(b).all || OptionAt(a).count != OptionAt(b).count) return false;
    const auto& constraints = ClaimOf(a).constraints;
    if (a.claim != b.claim) {
      if (!constraints.empty() || !ClaimOf(b).constraints.empty()) return false;
    } else if (std::ranges::any_of(constraints, [&](const SearchConstraint& constraint) {
                 return Covers(constraint, a) != Covers(constraint, b);
               })) {
      return false;
    }
    for (int device = 0; device < static_cast<int>(question_.devices.size()); ++device) {
      if (Match(a, device) != Match(b, device)) return false;
      const bool suits = Match(a, device) == DeviceMatch::kYes;
      const bool in_parts = suits && question_.devices[Nth(device)].divisible;
      if (in_parts && PartOf(a, device) != PartOf(b, device)) return false;
    }
    return true;
  }

  int StartOf(const OptionOf& of) const {
    for (const auto& [before, after] : alike_) {
      if (!(after == of)) continue;
      const OptionOf& other = before;
      const auto first = std::ranges::find_if(
          picked_, [&other](const PickedDevice& each) { return each.of == other; });
      return first == picked_.end() ? 0 : first->device;  // it may have room for two
    }
    return 0;
  }

  const DeviceQuestion& question_;
  std::vector<std::vector<std::vector<OptionState>>> options_;  // by claim, request, option
  std::vector<std::vector<ConstraintState>> constraints_;       // by claim
  std::vector<std::vector<std::int64_t>> used_;                 // of counters, by pool
  std::vector<int> picks_;                                      // by device
  std::vector<std::vector<std::int64_t>> left_;                 // of capacities, by device
  std::vector<PickedDevice> picked_;
  int steps_ = 0;
  int most_steps_ = 0;
  bool impossible_ = false;

  const RateSet* rate_ = nullptr;
  std::vector<std::vector<int>> fixed_;  // options, by claim and request
  std::vector<std::pair<OptionOf, OptionOf>> alike_;
  std::vector<PickedDevice> best_;
  SetRating best_rating_ = {};
};

}  // namespace

PickedDevices FirstFit(const DeviceQuestion& question) { return SetSearch(question).First(); }

PickedDevices BestSet(const DeviceQuestion& question, const RateSet& rate) {
  PickedDevices first = FirstFit(question);
  if (first.end != SearchEnd::kFound) return first;
  return SetSearch(question).Best(std::move(first), rate);
}

}  // namespace berth
