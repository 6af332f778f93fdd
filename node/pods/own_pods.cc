// SPDX-License-Identifier: Apache-2.0
#include "node/pods/own_pods.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text.h"
#include "node/kubelet/registrar.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/devices_annotation.h"
#include "server/wire/pod/given_json.h"

namespace berth::node {
namespace {

using wire::In;
using wire::Json;
using wire::TextIn;

int NumberOf(const Json& object, const char* key, int otherwise) {
  const Json& found = In(object, {key});
  if (!found.is_number_integer()) return otherwise;
  const auto number = found.get<std::int64_t>();
  return number < 0 || number > 1'000'000 ? otherwise : static_cast<int>(number);
}

std::vector<PlannedGpu> ParseGpus(const Json& list) {
  std::vector<PlannedGpu> gpus;
  if (!list.is_array()) return gpus;
  for (const Json& gpu : list) {
    if (gpus.size() >= kMostPlannedDevices) break;
    gpus.push_back(
        {NumberOf(gpu, "index", -1), TextIn(gpu, {"uuid"}), NumberOf(gpu, "milli", 1000)});
  }
  return gpus;
}

ContainerPlan ParseContainer(const Json& content) {
  ContainerPlan plan;
  plan.gpus = ParseGpus(In(content, {"gpus"}));
  plan.places = ParseGpus(In(content, {"places"}));
  const Json& mig = In(content, {"mig"});
  for (std::size_t i = 0; mig.is_array() && i < std::min(mig.size(), kMostPlannedDevices); ++i) {
    plan.mig.push_back(
        {NumberOf(mig[i], "gpu", -1), TextIn(mig[i], {"profile"}), NumberOf(mig[i], "start", -1)});
  }
  return plan;
}

// Takes devices out of those that are available, each once.
class Takes {
 public:
  explicit Takes(const std::vector<std::string>& available) {
    for (const std::string& id : available) by_device_.emplace(WithoutReplica(id), id);
  }

  bool Take(std::string_view device) {
    const auto found = device.empty() ? by_device_.end() : by_device_.find(device);
    if (found == by_device_.end()) return false;
    taken_.push_back(found->second);
    by_device_.erase(found);
    return true;
  }

  std::vector<std::string> taken() && { return std::move(taken_); }

 private:
  std::multimap<std::string_view, std::string> by_device_;
  std::vector<std::string> taken_;
};

constexpr std::size_t kMostContainers = 500;
constexpr std::size_t kMostAsked = 1'000'000;
// A Binding of Berth brings both; an admission policy refuses the second from anybody else.
constexpr const char* kNotBound =
    "berth.dev/devices: want berth.dev/decision beside it, which says that Berth bound the pod";

// Extended resources are whole numbers: "2", or 2 as some write it.
std::size_t CountOf(const Json& amount) {
  if (amount.is_number_unsigned()) return std::min(amount.get<std::size_t>(), kMostAsked);
  if (!amount.is_string()) return 0;
  const auto count =
      ParseInt(amount.get_ref<const std::string&>(), 0, std::numeric_limits<std::int64_t>::max());
  return std::min(static_cast<std::size_t>(count.value_or(0)), kMostAsked);
}

void AddContainers(const Json& list, bool init, OwnPod& pod) {
  if (!list.is_array()) return;
  for (const Json& container : list) {
    if (pod.containers.size() >= kMostContainers) return;
    OwnContainer own;
    own.name = TextIn(container, {"name"});
    own.ends_first = init && TextIn(container, {"restartPolicy"}) != "Always";
    const Json& limits = In(container, {"resources", "limits"});
    if (!limits.is_object()) continue;
    for (const auto& [resource, amount] : limits.items()) {
      const std::size_t count = CountOf(amount);
      if (count > 0 && CheckResourceName(resource)) own.asks.emplace(resource, count);
    }
    if (!own.asks.empty()) pod.containers.push_back(std::move(own));
  }
}

void AddStatuses(const Json& list, OwnPod& pod) {
  if (!list.is_array()) return;
  for (const Json& status : list) {
    const auto found =
        std::ranges::find(pod.containers, TextIn(status, {"name"}), &OwnContainer::name);
    if (found == pod.containers.end()) continue;
    found->running = In(status, {"state", "running"}).is_object();
    const Json& devices = In(status, {"allocatedResourcesStatus"});
    found->reports_devices = devices.is_array() && !devices.empty();
  }
}

std::string KeyOf(const OwnPod& pod) { return pod.namespace_name + "/" + pod.name; }

}  // namespace

ContainerPlan PodPlan::Whole() const {
  ContainerPlan whole;
  for (const auto& [name, plan] : containers) {
    for (const PlannedGpu& gpu : plan.gpus) {
      const auto same = [&gpu](const PlannedGpu& other) {
        return other.index == gpu.index && other.uuid == gpu.uuid;
      };
      if (std::ranges::none_of(whole.gpus, same)) whole.gpus.push_back(gpu);
    }
    whole.mig.insert(whole.mig.end(), plan.mig.begin(), plan.mig.end());
    whole.places.insert(whole.places.end(), plan.places.begin(), plan.places.end());
  }
  return whole;
}

Result<PodPlan> ParsePlan(std::string_view annotation, std::string_view node) {
  if (annotation.size() > kMostPlanBytes) return Invalid("berth.dev/devices: more than 64 KiB");
  const Json json = Json::parse(annotation, nullptr, false);
  if (json.is_discarded() || NumberOf(json, "version", 0) != 1) {
    return Invalid("berth.dev/devices: want JSON of version 1");
  }
  if (const std::string planned_for = TextIn(json, {"node"}); planned_for != node) {
    return Invalid("berth.dev/devices.node: want " + std::string(node) + ", got \"" +
                   planned_for.substr(0, 253) + "\"");
  }
  const Json& containers = In(json, {"containers"});
  if (!containers.is_object()) {
    return Invalid("berth.dev/devices.containers: want an object");
  }
  PodPlan plan;
  for (const auto& [name, content] : containers.items()) {
    plan.containers.emplace(name, ParseContainer(content));
  }
  return plan;
}

std::vector<std::string> DevicesOf(const ContainerPlan& plan,
                                   const std::vector<std::string>& available,
                                   const NodeFacts& facts) {
  Takes takes(available);
  for (const auto* const gpus : {&plan.gpus, &plan.places}) {
    for (const PlannedGpu& gpu : *gpus) {
      if (takes.Take(gpu.uuid)) continue;
      const auto fact = std::ranges::find(facts.gpus, gpu.index, &GpuFact::index);
      if (fact != facts.gpus.end()) takes.Take(fact->id);
    }
  }
  for (const PlannedMig& planned : plan.mig) {
    for (const MigFact& fact : facts.mig) {
      const bool is_it = fact.profile == planned.profile &&
                         (planned.gpu < 0 || planned.gpu == fact.gpu) &&
                         (planned.start < 0 || planned.start == fact.start);
      if (is_it && takes.Take(fact.id)) break;
    }
  }
  return std::move(takes).taken();
}

bool OwnPod::Asks(const std::string& resource) const {
  return std::ranges::any_of(containers, [&resource](const OwnContainer& container) {
    return container.asks.contains(resource);
  });
}

Result<OwnPod> ParseOwnPod(std::string_view text, std::string_view node) {
  const Json json = Json::parse(text, nullptr, false);
  const Json& meta = In(json, {"metadata"});
  OwnPod pod;
  pod.namespace_name = TextIn(meta, {"namespace"});
  pod.name = TextIn(meta, {"name"});
  pod.uid = TextIn(meta, {"uid"});
  if (pod.name.empty() || pod.uid.empty()) {
    return Invalid("pod: want metadata.name and metadata.uid");
  }
  pod.created = TextIn(meta, {"creationTimestamp"});
  pod.ending = In(meta, {"deletionTimestamp"}).is_string();
  const Json& status = In(json, {"status"});
  const std::string phase = TextIn(status, {"phase"});
  pod.over = phase == "Succeeded" || phase == "Failed";
  const Json& spec = In(json, {"spec"});
  AddContainers(In(spec, {"initContainers"}), true, pod);
  AddContainers(In(spec, {"containers"}), false, pod);
  AddStatuses(In(status, {"initContainerStatuses"}), pod);
  AddStatuses(In(status, {"containerStatuses"}), pod);
  const Json& annotations = In(meta, {"annotations"});
  pod.given = TextIn(annotations, {wire::kGivenKey});
  if (const std::string devices = TextIn(annotations, {wire::kDevicesKey}); !devices.empty()) {
    const bool bound = !TextIn(annotations, {wire::kDecisionKey}).empty();
    Result<PodPlan> plan = bound ? ParsePlan(devices, node) : Invalid(kNotBound);
    if (plan) {
      pod.plan = *std::move(plan);
    } else {
      pod.plan_problem = plan.error().message;
    }
  }
  return pod;
}

OwnPods::OwnPods(std::string node, std::function<void()> on_change)
    : node_(std::move(node)), on_change_(std::move(on_change)) {}

void OwnPods::ListBegins() { listed_.clear(); }

void OwnPods::Listed(const PaddedText& object) { Put(object, false); }

void OwnPods::ListEnds() {
  {
    const MutexLock lock(mutex_);
    std::erase_if(pods_, [this](const auto& entry) { return !listed_.contains(entry.first); });
    synced_ = true;
  }
  listed_.clear();
  Told();
}

void OwnPods::Changed(const PaddedText& object) {
  Put(object, true);
  listed_.clear();
  Told();
}

void OwnPods::Deleted(const PaddedText& object) {
  const Result<OwnPod> pod = ParseOwnPod(object.view(), node_);
  if (!pod) return;
  {
    const MutexLock lock(mutex_);
    pods_.erase(KeyOf(*pod));
  }
  Told();
}

void OwnPods::Put(const PaddedText& object, bool news) {
  Result<OwnPod> pod = ParseOwnPod(object.view(), node_);
  if (!pod) return;
  std::string key = KeyOf(*pod);
  const MutexLock lock(mutex_);
  if (pods_.size() >= kMostPods && !pods_.contains(key)) return;
  listed_.insert(key);
  OwnPodPtr& place = pods_[std::move(key)];
  if (place && place->uid == pod->uid) {
    pod->bound = place->bound;
  } else if (news) {
    pod->bound = Instant::clock::now();
  }
  place = std::make_shared<const OwnPod>(*std::move(pod));
}

void OwnPods::Told() {
  {
    const MutexLock lock(mutex_);
    ++version_;
    failed_until_ = {};
    changed_.NotifyAll();
  }
  if (on_change_) on_change_();
}

void OwnPods::Failed(Instant until) {
  const MutexLock lock(mutex_);
  failed_until_ = until;
}

OwnPods::Pods OwnPods::All() const {
  const MutexLock lock(mutex_);
  return pods_;
}

bool OwnPods::Live() const {
  const MutexLock lock(mutex_);
  return synced_ && Instant::clock::now() >= failed_until_;
}

bool OwnPods::NewsExpected() const {
  const Instant now = Instant::clock::now();
  const MutexLock lock(mutex_);
  return now >= failed_until_ && (synced_ || now < made_ + kFirstList);
}

std::uint64_t OwnPods::Version() const {
  const MutexLock lock(mutex_);
  return version_;
}

void OwnPods::WaitForChange(std::uint64_t version, Instant until) const {
  const MutexLock lock(mutex_);
  while (version_ == version && Instant::clock::now() < until) {
    changed_.WaitUntil(mutex_, until);
  }
}

}  // namespace berth::node
