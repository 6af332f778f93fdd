// SPDX-License-Identifier: Apache-2.0
#include "scoring/claims/claim_question.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <string>

#include "scoring/devices/device_picker.h"

namespace berth {
namespace {

Status Compile(const std::vector<std::string>& expressions, std::vector<cel::Program>& into) {
  for (const std::string& expression : expressions) {
    auto program = cel::Program::Compile(expression);
    if (!program) return Invalid("a selector is not read: " + program.error().message);
    into.push_back(*std::move(program));
  }
  return {};
}

SearchClaim SearchedFor(const DeviceClaim& claim) {
  SearchClaim searched;
  for (const DeviceRequest& request : claim.requests) {
    SearchRequest& search = searched.requests.emplace_back();
    search.first_available = request.first_available;
    for (const DeviceWant& want : request.wants) search.options.push_back({want.all, want.count});
  }
  for (const DeviceConstraint& constraint : claim.constraints) {
    SearchConstraint& search = searched.constraints.emplace_back();
    search.distinct = constraint.distinct;
    for (const DeviceRequest& request : claim.requests) {
      auto& covers = search.covers.emplace_back();
      for (const DeviceWant& want : request.wants) {
        covers.push_back(Covers(constraint.requests, request, want));
      }
    }
  }
  return searched;
}

const cel::AttributeValue* Attribute(const cel::Device& device, std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return nullptr;
  return device.attribute(name.substr(0, slash), name.substr(slash + 1));
}

// Lists equal nothing: kube-scheduler compares them behind an alpha gate alone.
bool IsScalar(const cel::AttributeValue& value) { return value.index() < 4; }

// steps: gets what it takes.
std::vector<int> ValuesOf(std::string_view attribute,
                          const std::vector<NodeQuestion::Source>& sources, std::int64_t& steps) {
  std::vector<int> numbers;
  std::vector<const cel::AttributeValue*> known;
  for (const NodeQuestion::Source& source : sources) {
    const cel::AttributeValue* const value = Attribute(source.device->seen, attribute);
    if (value == nullptr || !IsScalar(*value)) {
      numbers.push_back(value == nullptr ? kNoValue : kOddValue);
      continue;
    }
    const auto same = std::ranges::find_if(
        known, [value](const cel::AttributeValue* other) { return *other == *value; });
    numbers.push_back(static_cast<int>(same - known.begin()));
    steps += same - known.begin();
    if (same == known.end()) known.push_back(value);
  }
  return numbers;
}

// The counters of a pool by their numbers.
class Counters {
 public:
  Counters(const DevicePool& pool, SearchPool& search) {
    for (const auto& slice : pool.slices) {
      for (const ConsumedCounter& there_is : slice->counters) {
        numbers_.emplace(Name(there_is.set, there_is.counter),
                         static_cast<int>(search.counters_left.size()));
        search.counters_left.push_back(there_is.milli);
      }
    }
  }
  std::vector<CounterUse> UsesOf(const PublishedDevice& device) const {
    std::vector<CounterUse> uses;
    for (const ConsumedCounter& used : device.consumed()) {
      const auto number = numbers_.find(Name(used.set, used.counter));
      if (number != numbers_.end()) uses.push_back({number->second, used.milli});
    }
    return uses;
  }

 private:
  using Name = std::pair<std::string_view, std::string_view>;  // set and counter
  std::map<Name, int> numbers_;
};

// What a want takes of each capacity of a device, in their order. No match: the device never has so
// much, or gives other parts. Source: consumable_capacity.go, beside the allocator.
DeviceMatch TakePart(const DeviceWant& want, const PublishedDevice& device,
                     std::vector<std::int64_t>& taken) {
  const DeviceCapacities& capacities = device.capacities();
  for (const auto& [name, milli] : want.capacity) {
    if (std::ranges::find(capacities, name, &DeviceCapacity::name) == capacities.end()) {
      return DeviceMatch::kNo;
    }
  }
  for (const DeviceCapacity& capacity : capacities) {
    const auto asked = want.capacity.find(capacity.name);
    const auto takes = capacity.TakenFor(asked == want.capacity.end() ? nullptr : &asked->second);
    if (!capacity.is_exact || !takes) return DeviceMatch::kUnknown;
    if (*takes < 0) return DeviceMatch::kError;
    taken.push_back(*takes);
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!capacities[i].Admits(taken[i]) || taken[i] > capacities[i].there_is) {
      return DeviceMatch::kNo;
    }
  }
  return DeviceMatch::kYes;
}

// What claims leave of a divisible device.
std::vector<std::int64_t> LeftOf(const PublishedDevice& device, const CapacityUses* used) {
  std::vector<std::int64_t> left;
  for (const DeviceCapacity& capacity : device.capacities()) {
    const auto of_it = used == nullptr ? CapacityUses::const_iterator() : used->find(capacity.name);
    const bool is_used = used != nullptr && of_it != used->end();
    left.push_back(capacity.there_is - (is_used ? of_it->second : 0));
  }
  return left;
}

void AddPool(const DevicePool& pool, const std::set<DeviceName>& taken, const UsedParts& parts,
             NodeQuestion& node) {
  const int number = static_cast<int>(node.question.pools.size());
  SearchPool& search = node.question.pools.emplace_back();
  search.usable = pool.usable;
  if (!pool.usable) return;
  const Counters counters(pool, search);
  for (const auto& slice : pool.slices) {
    for (const PublishedDevice& device : slice->devices) {
      const DeviceName name = {pool.name, device.name};
      const auto used = parts.find(name);
      const bool in_use = used != parts.end();
      SearchDevice& searched = node.question.devices.emplace_back(
          SearchDevice{number, taken.contains(name) || (in_use && !device.divisible),
                       counters.UsesOf(device), device.divisible, in_use});
      if (device.divisible) searched.left = LeftOf(device, in_use ? &used->second : nullptr);
      node.sources.push_back({&pool, &device});
      if (!searched.taken && !in_use) continue;
      for (const CounterUse& use : searched.uses) {
        search.counters_left[Nth(use.counter)] -= use.milli;
      }
    }
  }
}

// The pools that publish a device of that name; all are of one driver.
std::vector<const DevicePool*> PoolsWith(const NodeDevices& devices, const std::string& name) {
  std::vector<const DevicePool*> pools;
  for (const DevicePool& pool : devices.pools) {
    if (pool.Find(name) != nullptr) pools.push_back(&pool);
  }
  return pools;
}

// What is taken beyond 64 bits stays taken: how much that is nobody knows.
void GiveBack(const ClaimedGpu& held, CapacityUses& uses) {
  for (const OtherResource& part : held.parts) {
    const auto use = uses.find(part.name);
    const bool is_known =
        use != uses.end() && use->second != std::numeric_limits<std::int64_t>::max();
    if (is_known) use->second -= part.amount;
  }
}

// Whether a claim has a part of the device that is not among these.
bool IsShared(const std::vector<ClaimedGpu>& claims, const std::string& device,
              const std::set<const ClaimedGpu*>& gone) {
  return std::ranges::any_of(claims, [&](const ClaimedGpu& held) {
    return held.shared && held.device == device && !gone.contains(&held);
  });
}

// How many GPUs, or parts of them, the claims ask for; 0: other devices too, or not so many.
int GpusAskedFor(const std::vector<DeviceClaim>& claims, const FindClass& find_class) {
  std::int64_t count = 0;
  for (const DeviceClaim& claim : claims) {
    for (const DeviceRequest& request : claim.requests) {
      if (request.first_available || request.wants.front().all) return 0;
      const auto device_class = find_class(request.wants.front().device_class);
      if (!device_class || !device_class->whole) return 0;
      const std::int64_t wanted = request.wants.front().count;
      if (wanted < 1 || wanted > kMaxGpusPerNode - count) return 0;
      count += wanted;
    }
  }
  return static_cast<int>(count);
}

bool AsksForParts(const std::vector<DeviceClaim>& claims) {
  return std::ranges::any_of(claims, [](const DeviceClaim& claim) {
    return std::ranges::any_of(claim.requests, [](const DeviceRequest& request) {
      return !request.wants.front().capacity.empty();
    });
  });
}

}  // namespace

Result<ClaimQuestion> ClaimQuestion::Make(std::vector<DeviceClaim> claims,
                                          const FindClass& find_class) {
  ClaimQuestion question;
  for (const DeviceClaim& claim : claims) {
    auto& of_claim = question.selectors_.emplace_back();
    for (const DeviceRequest& request : claim.requests) {
      auto& of_request = of_claim.emplace_back();
      for (const DeviceWant& want : request.wants) {
        const auto device_class = find_class(want.device_class);
        if (!device_class) return Invalid("there is no DeviceClass " + want.device_class);
        if (!device_class->readable) return Invalid("a DeviceClass has a selector without CEL");
        Selectors& selectors = of_request.emplace_back();
        BERTH_TRY_STATUS(Compile(device_class->selectors, selectors));
        BERTH_TRY_STATUS(Compile(want.selectors, selectors));
      }
    }
    question.searched_.push_back(SearchedFor(claim));
  }
  question.claims_ = std::move(claims);
  return question;
}

bool ClaimQuestion::WantsAllOfAnyDriver() const {
  const cel::Device other("another.driver.invalid");
  for (std::size_t claim = 0; claim < claims_.size(); ++claim) {
    for (std::size_t request = 0; request < claims_[claim].requests.size(); ++request) {
      const auto& wants = claims_[claim].requests[request].wants;
      for (std::size_t want = 0; want < wants.size(); ++want) {
        if (!wants[want].all) continue;
        const Selectors& selectors = selectors_[claim][request][want];
        const bool excluded =
            std::ranges::any_of(selectors, [&other](const cel::Program& selector) {
              const auto matches = selector.Matches(other);
              return matches && !*matches;
            });
        if (!excluded) return true;
      }
    }
  }
  return false;
}

DeviceMatch ClaimQuestion::Match(const OptionOf& of, const PublishedDevice& device) {
  for (const cel::Program& selector : selectors_[Nth(of.claim)][Nth(of.request)][Nth(of.option)]) {
    if (cost_ >= kMostCost) return DeviceMatch::kUnknown;
    cel::Program::Effort effort;
    const auto matches = selector.Matches(device.seen, &effort);
    cost_ += effort.cost + 1;
    sees_identity_ = sees_identity_ || effort.sees_identity;
    if (!matches) {
      return matches.error().kind == cel::FailureKind::kFailed ? DeviceMatch::kError
                                                               : DeviceMatch::kUnknown;
    }
    if (!*matches) return DeviceMatch::kNo;
  }
  if (device.binds) return DeviceMatch::kUnknown;
  const DeviceWant& want = WantOf(of);
  std::vector<std::int64_t> taken;
  const bool by_part = device.divisible || !want.capacity.empty();
  const DeviceMatch part = by_part ? TakePart(want, device, taken) : DeviceMatch::kYes;
  if (part != DeviceMatch::kYes) return part;
  const bool tainted = std::ranges::any_of(
      device.taints, [&want](const Taint& taint) { return !Tolerates(want.tolerations, taint); });
  return tainted ? DeviceMatch::kTainted : DeviceMatch::kYes;
}

NodeQuestion ClaimQuestion::On(const DevicePools& pools, const std::set<DeviceName>& taken,
                               const UsedParts& parts) {
  NodeQuestion node;
  sees_identity_ = false;
  for (const DevicePool& pool : pools) AddPool(pool, taken, parts, node);
  node.question.claims = searched_;
  node.owners = owners_;
  node.prepared = std::ssize(node.sources) / 4;
  for (std::size_t claim = 0; claim < claims_.size(); ++claim) {
    auto& constraints = node.question.claims[claim].constraints;
    for (std::size_t i = 0; i < constraints.size(); ++i) {
      constraints[i].values =
          ValuesOf(claims_[claim].constraints[i].attribute, node.sources, node.prepared);
      node.prepared += std::ssize(node.sources);
      for (const auto& of_request : constraints[i].covers) {  // they were copied
        node.prepared += std::ssize(of_request);
      }
    }
  }
  const auto sources = std::make_shared<const std::vector<NodeQuestion::Source>>(node.sources);
  node.question.match = [this, sources](const OptionOf& of, int device) {
    return Match(of, *(*sources)[Nth(device)].device);
  };
  node.question.part = [this, sources](const OptionOf& of, int device) {
    std::vector<std::int64_t> part;
    (void)TakePart(WantOf(of), *(*sources)[Nth(device)].device, part);
    return part;
  };
  return node;
}

std::optional<RequestShape> WholeGpusOf(const std::vector<DeviceClaim>& claims,
                                        const FindClass& find_class, const RequestShape& pod) {
  const int count = GpusAskedFor(claims, find_class);
  if (count == 0 || AsksForParts(claims)) return std::nullopt;
  RequestShape shape = pod;
  shape.gpus = WholeGpus{count};
  shape.gpu_resource = kOfClaims;
  if (count < 2) shape.links = {};
  return shape;
}

std::vector<HeldByPod> GpusByPod(const Node& node, const ClaimEnds& ends) {
  if (node.claims() == nullptr) return {};
  std::map<std::string, std::vector<const PodRecord*>, std::less<>> users;  // of a claim
  for (const auto& held : node.pods()) {
    for (const std::string& claim : held->pod.claims) {
      users[held->pod.id.namespace_name + "/" + claim].push_back(held.get());
    }
  }
  std::map<std::string_view, std::vector<const ClaimedGpu*>> by_pod;
  for (const ClaimedGpu& device : *node.claims()) {
    if (!device.profile.empty()) continue;
    if (ends && ends(device)) {
      by_pod[""].push_back(&device);
      continue;
    }
    if (!device.pod.empty()) {
      const PodRecord* const made_for = node.FindPod(device.pod);
      const bool is_its =
          made_for != nullptr && made_for->pod.made_claim != 0 && device.IsWholeOf(made_for->pod);
      if (is_its) by_pod[device.pod].push_back(&device);
      continue;
    }
    const auto of = users.find(device.claim);
    if (of == users.end() || of->second.size() != 1) continue;
    const PodRecord& pod = *of->second.front();
    const RequestShape& shape = pod.pod.shape;
    const bool by_claims_alone = !shape.wants_gpu() || shape.gpu_resource == kOfClaims;
    if (by_claims_alone) by_pod[pod.pod.id.uid].push_back(&device);
  }
  std::vector<HeldByPod> held;
  for (auto& [uid, devices] : by_pod) held.push_back({uid, std::move(devices)});
  return held;
}

Result<ClaimRoom> ClaimRoom::Make(std::vector<DeviceClaim> claims, const FindClass& find_class,
                                  std::shared_ptr<const DeviceOffers::ByNode> offers,
                                  const RequestShape& pod) {
  if (GpusAskedFor(claims, find_class) == 0) {
    return Invalid("its claims do not ask for a number of GPUs or parts of GPUs");
  }
  std::optional<RequestShape> whole = WholeGpusOf(claims, find_class, pod);
  BERTH_TRY(ClaimQuestion question, ClaimQuestion::Make(std::move(claims), find_class));
  return ClaimRoom(std::move(question), std::move(offers), std::move(whole), pod);
}

const NodeDevices* ClaimRoom::DevicesOn(const Node& node) const {
  const auto devices = offers_->find(node.spec().name);
  return devices == offers_->end() ? nullptr : devices->second.get();
}

bool ClaimRoom::InParts(const Node& node) const {
  if (!whole_ || !node.spec().has_gpus()) return true;
  const NodeDevices* const devices = DevicesOn(node);
  return devices != nullptr && std::ranges::any_of(devices->pools, [](const DevicePool& pool) {
           return std::ranges::any_of(pool.slices, [](const auto& slice) {
             return std::ranges::any_of(slice->devices, &PublishedDevice::divisible);
           });
         });
}

bool ClaimRoom::Has(const Node& node, const Node& left, const ClaimEnds& ends) {
  const NodeDevices* const devices = DevicesOn(node);
  if (devices == nullptr) return false;
  if (steps_left_ <= 0) {
    ran_out_ = true;
    return false;
  }
  std::set<DeviceName> taken = devices->taken;
  UsedParts parts = devices->parts;
  std::set<const ClaimedGpu*> gone;
  for (const HeldByPod& held : GpusByPod(node, ends)) {
    if (left.FindPod(held.uid) != nullptr) continue;
    for (const ClaimedGpu* const device : held.devices) {
      const auto pools = PoolsWith(*devices, device->device);
      if (pools.size() != 1) continue;
      gone.insert(device);
      const DeviceName name = {pools.front()->name, device->device};
      if (!device->shared) {
        taken.erase(name);
      } else if (const auto used = parts.find(name); used != parts.end()) {
        GiveBack(*device, used->second);
        const bool is_free = std::ranges::all_of(
            used->second, [](const auto& use) { return use.second == 0; });  // not held either
        if (is_free && !IsShared(*node.claims(), device->device, gone)) parts.erase(used);
      }
    }
  }
  const NodeQuestion asked = question_.On(devices->pools, taken, parts);
  const PickedDevices picked = FirstFit(asked.question);
  steps_left_ -= picked.steps + asked.prepared + kStepsOfOne;
  ran_out_ = ran_out_ || picked.end == SearchEnd::kUnknown;
  return picked.end == SearchEnd::kFound;
}

std::optional<ClaimRoom::Lack> ClaimRoom::LackOn(const Node& node) {
  const NodeDevices* const devices = DevicesOn(node);
  if (devices == nullptr) return std::nullopt;
  std::optional<Lack> most;
  const NodeQuestion asked = question_.On(devices->pools, devices->taken, devices->parts);
  for (int i = 0; i < std::ssize(asked.sources); ++i) {
    const SearchDevice& device = asked.question.devices[Nth(i)];
    if (device.taken || asked.question.match({}, i) != DeviceMatch::kYes) continue;
    if (!device.divisible) return std::nullopt;  // it has one
    const PublishedDevice& published = *asked.sources[Nth(i)].device;
    const std::vector<std::int64_t> part = asked.question.part({}, i);
    bool is_short = false;
    for (std::size_t c = 0; c < part.size(); ++c) {
      const std::int64_t left = device.left[c];
      if (part[c] <= left) continue;
      is_short = true;
      if (most && most->left >= left) continue;
      const DeviceCapacity& capacity = published.capacities()[c];
      const bool would_do = left > 0 && capacity.TakenFor(&left) == left && capacity.Admits(left);
      most = {published.name, capacity.name, left, would_do};
    }
    if (!is_short) return std::nullopt;
  }
  return most;
}

}  // namespace berth
