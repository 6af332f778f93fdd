// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_binding.h"

#include <algorithm>
#include <cstdint>

#include "base/cleanup.h"
#include "cluster/node/mig_use.h"
#include "server/dialects/hami/hami_dialect.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/kube/write/pod_writes.h"
#include "server/wire/api/api_json.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/pod_object.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::Json;
using wire::ReadObject;

constexpr Duration kMostPerRequest = std::chrono::seconds(3);
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::milliseconds(500);
constexpr int kReleaseAttempts = 3;

// A conflict: the node was changed since it was read.
bool IsForNow(int status) { return status == 409 || kube::IsTransient(status); }

kube::Attempt RefusalOf(const kube::ApiResponse& response) {
  const bool is_for_now = IsForNow(response.status);
  const Errc code = response.status == 404 ? Errc::kNotFound
                    : is_for_now           ? Errc::kDeadline
                                           : Errc::kInvalidArgument;
  return {.status = Fail(code, "HAMi's lock on the node: " + kube::RefusalText(response)),
          .final = !is_for_now,
          .retry_after = response.retry_after};
}

Result<LockedNode> NodeIn(kube::ApiResponse response) {
  return DecodeLockedNode(PaddedText(std::move(response.body)));
}

// Whether HAMi's scheduler has placed the pod; yes where that cannot be read.
bool IsHamis(std::string_view pod) {
  const wire::Json json = wire::Json::parse(pod, nullptr, false);
  if (!json.is_object()) return true;
  return json.contains(wire::Json::json_pointer("/metadata/annotations/hami.io~1vgpu-node"));
}

// Counts down at the end of the wait.
class WaitingPlace {
 public:
  explicit WaitingPlace(std::atomic<int>& waiting) : waiting_(waiting) {}
  ~WaitingPlace() {
    if (taken_) --waiting_;
  }
  WaitingPlace(const WaitingPlace&) = delete;
  WaitingPlace& operator=(const WaitingPlace&) = delete;

  bool Take() {
    if (!taken_) taken_ = ++waiting_ <= HamiNodeLock::kMostWaiting;
    if (!taken_) --waiting_;
    return taken_;
  }

 private:
  std::atomic<int>& waiting_;
  bool taken_ = false;
};

using wire::Annotations;
using wire::Json;

constexpr int kCoresPerGpu = 100;

// One device of one container, as both texts have it.
struct Device {
  int container = 0;
  int index = 0;  // in the container
  const std::string& uuid;
  const MigRow& row;
  int start = 0;
};

std::vector<Device> DevicesOf(const PodRequest& pod, const Placement& placement,
                              const MigSpec& mig) {
  std::vector<Device> devices;
  for (const auto& [name, grants] : MigByContainer(pod, placement)) {
    const auto container = std::ranges::find(pod.containers, name, &ContainerAsk::name);
    int index = 0;
    for (const MigGrant& grant : grants) {
      const auto slot = SlotOf(mig, grant);
      if (container == pod.containers.end() || !slot) continue;
      const auto row = static_cast<std::size_t>(
          mig.product->placements()[static_cast<std::size_t>(slot->placement)].row);
      devices.push_back({container->index, index++, mig.gpus[slot->gpu].uuid,
                         mig.product->rows()[row], grant.start});
    }
  }
  return devices;
}

std::vector<VgpuDevice> AsVgpu(const std::vector<Device>& devices, int slices_of_gpu) {
  std::vector<VgpuDevice> all;
  for (const Device& device : devices) {
    all.push_back({device.container, device.uuid, device.row.memory_mib,
                   device.row.profile.compute_slices * kCoresPerGpu / slices_of_gpu});
  }
  return all;
}

std::string Segments(const std::vector<VgpuDevice>& devices, int containers) {
  std::string out;
  for (int container = 0; container < containers; ++container) {
    out += VgpuSegment(devices, container) + ";";
  }
  return out;
}

std::string Allocations(const std::vector<Device>& devices) {
  Json json = Json::array();
  for (const Device& device : devices) {
    json.push_back({{"containerIndex", device.container},
                    {"deviceIndex", device.index},
                    {"gpuUUID", device.uuid},
                    {"profile", MigProfileName(device.row.profile)},
                    {"placement", {{"start", device.start}, {"size", device.row.memory_units}}}});
  }
  return wire::JsonText(json);
}

}  // namespace

kube::Backoff HamiNodeLock::Waits() const {
  const auto seed = static_cast<std::uint64_t>(write_.clock.Now().time_since_epoch().count());
  return {kFirstWait, kMostWait, seed};
}

Status HamiNodeLock::Take(const PodId& pod, Instant deadline, Held& held) {
  BERTH_TRY_STATUS(kube::NodePath(held.node));
  WaitingPlace place(waiting_);
  return kube::FencedRetry(write_, deadline, Waits(), [&](Duration left) {
    bool held_by_other = false;
    kube::Attempt attempt = TryTake(pod, held, std::min(kMostPerRequest, left), held_by_other);
    if (held_by_other && !place.Take()) attempt.final = true;
    return attempt;
  });
}

kube::Attempt HamiNodeLock::TryTake(const PodId& pod, Held& held, Duration timeout,
                                    bool& held_by_other) {
  auto response = write_.client.Send({.path = *kube::NodePath(held.node), .timeout = timeout});
  if (!response) return {.status = Fail(Errc::kDeadline, std::move(response).error().message)};
  if (!response->ok()) return RefusalOf(*response);
  const auto node = NodeIn(*std::move(response));
  if (!node) return {.status = Fail(Errc::kDeadline, node.error().message)};
  const auto open = IsOpen(node->lock, held.node, pod, timeout);
  if (!open) return {.status = tl::unexpected(open.error()), .final = true};
  if (!*open) {
    held_by_other = true;
    return {.status = Fail(Errc::kDeadline, "HAMi's lock on the node is held for another pod")};
  }
  held.text = EncodeHamiLock(write_.clock.Wall(), pod);
  response = Patch(held.node, node->resource_version, held.text, timeout);
  if (!response) return {.status = Fail(Errc::kDeadline, std::move(response).error().message)};
  if (response->ok()) return {.status = {}, .final = true};
  return RefusalOf(*response);
}

Result<bool> HamiNodeLock::IsOpen(const std::string& text, const std::string& node,
                                  const PodId& pod, Duration timeout) {
  if (text.empty()) return true;
  auto lock = ParseHamiLock(text);
  if (!lock) {
    return tl::unexpected(std::move(lock).error().Within("node " + node + ": annotation " +
                                                         std::string(kHamiLockAnnotation)));
  }
  if (lock->namespace_name == pod.namespace_name && lock->pod == pod.name) return true;
  if (write_.clock.Wall() - lock->since > kExpires) return true;
  if (lock->pod.empty()) return false;
  auto path = kube::PodPath(lock->namespace_name, lock->pod);
  if (!path) return true;  // there can be no such pod
  auto response = write_.client.Send({.path = *std::move(path), .timeout = timeout});
  if (!response) return false;
  if (response->status == 404) return true;
  if (!response->ok()) return false;
  const PaddedText pod_text(std::move(response->body));
  const auto owner = wire::DecodeObservedPod(pod_text, rules_);
  if (!owner) return false;
  if (owner->over || (!owner->node.empty() && owner->node != node)) return true;
  return owner->node.empty() && write_.clock.Wall() - lock->since > kAbandoned &&
         !is_binding_(FullName(lock->namespace_name, lock->pod)) && !IsHamis(pod_text.view());
}

Status HamiNodeLock::Release(const Held& held) {
  Error last;
  kube::Backoff waits = Waits();
  for (int attempt = 0; attempt < kReleaseAttempts; ++attempt) {
    if (attempt > 0) write_.sleep(waits.Next());
    auto response =
        write_.client.Send({.path = *kube::NodePath(held.node), .timeout = kMostPerRequest});
    if (response && response->status == 404) return {};
    if (response && response->ok()) {
      const auto node = NodeIn(*std::move(response));
      if (node && node->lock != held.text) return {};
      if (!node) return Fail(Errc::kUnavailable, node.error().message);
      response = Patch(held.node, node->resource_version, "", kMostPerRequest);
      if (response && response->ok()) return {};
    }
    last.message = response ? kube::RefusalText(*response) : std::move(response).error().message;
  }
  return Fail(Errc::kUnavailable, std::move(last.message));
}

Result<kube::ApiResponse> HamiNodeLock::Patch(const std::string& node, const std::string& version,
                                              std::string_view lock, Duration timeout) {
  kube::ApiRequest request;
  request.method = "PATCH";
  request.path = *kube::NodePath(node);
  request.body = EncodeLockPatch(version, lock);
  request.content_type = "application/merge-patch+json";
  request.timeout = timeout;
  return write_.client.Send(request);
}

Result<HamiLock> ParseHamiLock(std::string_view text) {
  const std::vector<std::string_view> parts = PartsOf(text, ',');
  const auto since = wire::ParseTime(text.substr(0, text.find(',')));
  if (!since || (parts.size() != 1 && parts.size() != 3)) {
    return Invalid("want TIME,NAMESPACE,POD with the time as 2026-08-21T10:00:00Z, got \"" +
                   std::string(text.substr(0, 100)) + "\"");
  }
  if (parts.size() == 1) return HamiLock{*since, "", ""};
  return HamiLock{*since, std::string(parts[1]), std::string(parts[2])};
}

std::string EncodeHamiLock(WallTime now, const PodId& pod) {
  return wire::SecondTime(now) + "," + pod.namespace_name + "," + pod.name;
}

Result<LockedNode> DecodeLockedNode(const PaddedText& text) {
  LockedNode node;
  BERTH_TRY_STATUS(ReadObject(text, [&node](simdjson::ondemand::object fields) -> Status {
    ForEachField(fields, [&node](std::string_view key, simdjson::ondemand::value metadata) {
      if (key != "metadata") return;
      ForEachField(metadata.get_object(), [&node](std::string_view name, auto content) {
        if (name == "resourceVersion") {
          node.resource_version = std::string_view(content.get_string());
        }
        if (name != "annotations") return;
        ForEachField(content.get_object(), [&node](std::string_view annotation, auto value) {
          if (annotation == kHamiLockAnnotation) node.lock = std::string_view(value.get_string());
        });
      });
    });
    return {};
  }));
  if (node.resource_version.empty()) return Invalid("want a Node with a resourceVersion, got none");
  return node;
}

std::string EncodeLockPatch(std::string_view resource_version, std::string_view lock) {
  Json annotations = {{kHamiLockAnnotation, nullptr}};
  if (!lock.empty()) annotations[std::string(kHamiLockAnnotation)] = lock;
  return wire::JsonText(
      {{"metadata",
        {{"resourceVersion", resource_version}, {"annotations", std::move(annotations)}}}});
}

bool SpeaksHami(const Placement& placement, const NodeSpec& node) {
  if (!placement.grants.empty() && node.share_agent == kHamiAgent) return true;
  return !placement.mig.empty() && node.mig.known() && node.mig->agent == kHamiAgent;
}

Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                            WallTime now) {
  std::vector<VgpuDevice> given = VgpuDevicesOf(pod, placement, node);
  std::string mig;
  if (!placement.mig.empty()) {
    const std::vector<Device> devices = DevicesOf(pod, placement, *node.mig);
    given = AsVgpu(devices, node.mig->product->compute_slices());
    mig = Allocations(devices);
  }
  const std::string segments = Segments(given, pod.container_count);
  const std::string time = std::to_string(std::chrono::system_clock::to_time_t(now));
  Annotations all = {{"hami.io/vgpu-node", placement.node},
                     {"hami.io/vgpu-time", time},
                     {"hami.io/vgpu-devices-to-allocate", segments},
                     {std::string(kHamiDevicesAnnotation), segments},
                     {"hami.io/bind-phase", "allocating"},
                     {"hami.io/bind-time", time}};
  if (!mig.empty()) all.emplace_back(kHamiMigAnnotation, std::move(mig));
  return all;
}

Status HamiBinds::AroundBind(const BindOrder& order, const std::function<Status()>& bind) {
  if (!SpeaksHami(order.placement, order.node)) return bind();
  const std::string pod = order.pod.id.full_name();
  {
    const MutexLock lock(mutex_);
    binding_.insert(pod);
  }
  const Cleanup leave([&] {
    const MutexLock lock(mutex_);
    binding_.erase(binding_.find(pod));
  });
  return BindUnderLock(order, bind);
}

bool HamiBinds::IsBinding(const std::string& full_name) const {
  const MutexLock lock(mutex_);
  const auto is_it = [&](const Locked& left) { return left.pod.full_name() == full_name; };
  return binding_.contains(full_name) || std::ranges::any_of(left_, is_it);
}

Status HamiBinds::BindUnderLock(const BindOrder& order, const std::function<Status()>& bind) {
  const PodId& id = order.pod.id;
  HamiNodeLock::Held held{order.node.name};
  Status bound = lock_.Take(id, order.deadline, held);
  if (bound) {
    {
      const MutexLock lock(mutex_);  // this bind now has the lock that an earlier one left
      std::erase_if(
          left_, [&](const Locked& left) { return left.pod == id && left.held.node == held.node; });
    }
    bound = bind();
  }
  if (!bound && !held.text.empty()) (void)LetGo({id, std::move(held)});  // else Upkeep does
  return bound;
}

bool HamiBinds::LetGo(Locked locked) {
  const Result<PodTruth> truth = kube::FindPod(write_.client, rules_, locked.pod);
  const bool known = truth || truth.error().code == Errc::kNotFound;
  if (truth && truth->placement && truth->placement->node == locked.held.node) return true;
  if (known && lock_.Release(locked.held)) return true;
  const MutexLock lock(mutex_);
  left_.push_back(std::move(locked));
  return false;
}

void HamiBinds::Upkeep() {
  std::vector<Locked> left;
  {
    const MutexLock lock(mutex_);
    left.swap(left_);
  }
  auto next = left.begin();
  while (next != left.end() && LetGo(std::move(*next++))) {
  }
  const MutexLock lock(mutex_);
  left_.insert(left_.end(), next, left.end());
}

}  // namespace berth::dialects
