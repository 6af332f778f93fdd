// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_devices.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace berth {
namespace {

std::size_t At(int position) { return static_cast<std::size_t>(position); }

// Numbers as a text: values that differ have texts that differ.
class TextWriter {
 public:
  void Add(std::int64_t number) {
    text_.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  template <class T>
  void AddAll(const std::vector<T>& numbers) {
    Add(static_cast<std::int64_t>(numbers.size()));
    for (const T& number : numbers) Add(static_cast<std::int64_t>(number));
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

struct Suits {
  bool some = false;     // free or not, tainted or not
  bool unknown = false;  // a selector fails on a device, or it is not known whether it suits
};

void Note(DeviceMatch match, Suits& suits) {
  suits.some = suits.some || match == DeviceMatch::kYes || match == DeviceMatch::kTainted;
  suits.unknown = suits.unknown || match == DeviceMatch::kError || match == DeviceMatch::kUnknown;
}

}  // namespace

Result<GangDevices> GangDevices::Make(std::span<const Claims> kinds, const FindClass& find_class,
                                      const DeviceOffers::ByNode& offers,
                                      const Snapshot& snapshot) {
  GangDevices made;
  made.kinds_ = kinds.size();
  std::vector<ClaimQuestion> questions;
  for (const Claims& kind : kinds) {
    std::vector<DeviceClaim> claims;
    for (const auto& claim : kind) claims.push_back(*claim);
    BERTH_TRY(ClaimQuestion question, ClaimQuestion::Make(std::move(claims), find_class));
    if (question.WantsAllOfAnyDriver()) {
      return Invalid("it asks for all devices, and its selectors do not name their driver");
    }
    questions.push_back(std::move(question));
  }
  // By kind, claim and request: whether some device suits.
  std::map<std::vector<std::size_t>, Suits> suits;
  std::unordered_map<std::string, int> known;
  std::map<Digest, int> known_alike;
  made.view_of_.assign(snapshot.size(), kNoView);
  for (const auto& [name, devices] : offers) {
    const NodeIndex node = snapshot.names().Find(name);
    if (node == kNoNode) continue;
    if (devices->likeness) {
      const auto alike = known_alike.find(*devices->likeness);
      if (alike != known_alike.end()) {
        made.view_of_[node] = alike->second;
        continue;
      }
    }
    View view = made.ViewOf(questions, *devices);
    if (made.steps_left_ <= 0) return Invalid("too many devices may suit its claims");
    std::uint64_t cost = 0;
    for (const ClaimQuestion& question : questions) cost += question.cost();
    if (cost >= ClaimQuestion::kMostCost) return Invalid("its selectors take too long");
    const auto [at, is_new] = known.emplace(TextOf(view), static_cast<int>(made.views_.size()));
    made.view_of_[node] = at->second;
    if (devices->likeness && std::ranges::none_of(questions, &ClaimQuestion::sees_identity)) {
      known_alike.emplace(*devices->likeness, at->second);
    }
    if (!is_new) continue;
    for (std::size_t k = 0; k < view.kinds.size(); ++k) {
      const auto& claims = view.kinds[k].matches;
      for (std::size_t c = 0; c < claims.size(); ++c) {
        for (std::size_t r = 0; r < claims[c].size(); ++r) {
          Suits& request = suits[{k, c, r}];
          for (const auto& option : claims[c][r]) {
            for (const DeviceMatch match : option) Note(match, request);
          }
        }
      }
    }
    made.views_.push_back(std::move(view));
  }
  made.steps_left_ = kMostSteps;  // the searches have as much again
  for (std::size_t k = 0; k < questions.size(); ++k) {
    const auto& claims = questions[k].claims();
    for (std::size_t c = 0; c < claims.size(); ++c) {
      for (std::size_t r = 0; r < claims[c].requests.size(); ++r) {
        const Suits& request = suits[{k, c, r}];
        if (request.unknown) return Invalid("it is not known which devices suit it");
        if (!request.some) return Invalid("Berth knows no device that suits it");
      }
    }
  }
  return made;
}

GangDevices::View GangDevices::ViewOf(std::vector<ClaimQuestion>& kinds,
                                      const NodeDevices& devices) {
  View view;
  for (ClaimQuestion& kind : kinds) {
    NodeQuestion node = kind.On(devices.pools, devices.taken, devices.parts);
    steps_left_ -= node.prepared;
    View::OfKind& of_kind = view.kinds.emplace_back();
    const int count = static_cast<int>(node.question.devices.size());
    for (int c = 0; c < static_cast<int>(node.question.claims.size()); ++c) {
      auto& of_claim = of_kind.matches.emplace_back();
      const auto& requests = node.question.claims[At(c)].requests;
      for (int r = 0; r < static_cast<int>(requests.size()); ++r) {
        auto& of_request = of_claim.emplace_back();
        for (int o = 0; o < static_cast<int>(requests[At(r)].options.size()); ++o) {
          auto& of_option = of_request.emplace_back();
          steps_left_ -= count / 4;
          for (int d = 0; d < count; ++d) {
            of_option.push_back(node.question.match({c, r, o}, d));
            const bool in_parts = node.question.devices[At(d)].divisible;
            if (!in_parts || of_option.back() != DeviceMatch::kYes) continue;
            of_kind.parts.emplace(std::array{c, r, o, d}, node.question.part({c, r, o}, d));
          }
        }
      }
    }
    of_kind.claims = std::move(node.question.claims);
    view.pools = std::move(node.question.pools);
    view.devices = std::move(node.question.devices);
  }
  return view;
}

std::string GangDevices::TextOf(const View& view) {
  TextWriter text;
  for (const SearchPool& pool : view.pools) {
    text.Add(pool.usable ? 1 : 0);
    text.AddAll(pool.counters_left);
  }
  for (const SearchDevice& device : view.devices) {
    text.Add(2 * device.pool + (device.taken ? 1 : 0));
    text.Add((device.divisible ? 2 : 0) + (device.in_use ? 1 : 0));
    text.AddAll(device.left);
    text.Add(static_cast<std::int64_t>(device.uses.size()));
    for (const CounterUse& use : device.uses) {
      text.Add(use.counter);
      text.Add(use.milli);
    }
  }
  for (const View::OfKind& kind : view.kinds) {
    for (const auto& [of, part] : kind.parts) text.AddAll(part);
    for (const SearchClaim& claim : kind.claims) {
      for (const SearchConstraint& constraint : claim.constraints) text.AddAll(constraint.values);
    }
    for (const auto& claim : kind.matches) {
      for (const auto& request : claim) {
        for (const auto& option : request) text.AddAll(option);
      }
    }
  }
  return text.Take();
}

bool GangDevices::Search(const View& view, std::span<const int> members) {
  if (steps_left_ <= 0) {
    ran_out_ = true;
    return false;
  }
  DeviceQuestion question{view.pools, view.devices, {}, {}};
  std::vector<std::pair<std::size_t, std::size_t>> source;  // kind and claim, by claim
  for (std::size_t k = 0; k < members.size(); ++k) {
    for (int member = 0; member < members[k]; ++member) {
      for (std::size_t c = 0; c < view.kinds[k].claims.size(); ++c) {
        question.claims.push_back(view.kinds[k].claims[c]);
        source.emplace_back(k, c);
      }
    }
  }
  question.match = [&](const OptionOf& of, int device) {
    const auto [k, c] = source[At(of.claim)];
    return view.kinds[k].matches[c][At(of.request)][At(of.option)][At(device)];
  };
  question.part = [&](const OptionOf& of, int device) {
    const auto [k, c] = source[At(of.claim)];
    return view.kinds[k].parts.at({static_cast<int>(c), of.request, of.option, device});
  };
  const PickedDevices picked = FirstFit(question);
  steps_left_ -= picked.steps;
  ran_out_ = ran_out_ || picked.end == SearchEnd::kUnknown;
  return picked.end == SearchEnd::kFound;
}

bool GangDevices::Has(NodeIndex node, std::span<const int> members) {
  if (std::ranges::all_of(members, [](int count) { return count == 0; })) return true;
  if (view_of_[node] == kNoView) return false;
  View& view = views_[At(view_of_[node])];
  const auto [known, is_new] =
      view.known.emplace(std::vector<int>(members.begin(), members.end()), false);
  if (is_new) known->second = Search(view, members);
  return known->second;
}

int GangDevices::Room(NodeIndex node, int kind, int most) {
  std::vector<int> members(kinds_, 0);
  int room = 0;
  while (room < most) {
    members[At(kind)] = room + 1;
    if (!Has(node, members)) break;
    ++room;
  }
  return room;
}

}  // namespace berth
