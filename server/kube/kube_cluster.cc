// SPDX-License-Identifier: Apache-2.0
#include "server/kube/kube_cluster.h"

#include <utility>

#include "server/kube/api_audit.h"
#include "server/wire/budget_json.h"
#include "server/wire/device_class_json.h"
#include "server/wire/dra_json.h"
#include "server/wire/pod_group_json.h"

namespace berth::kube {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(100);

constexpr const char* kWaitingPods = "waitingpods";
constexpr const char* kDeviceClasses = "deviceclasses";
constexpr const char* kDevices = "devices";
constexpr const char* kAllocations = "allocationclaims";

// A reservation that nobody has settled for this long after its deadline is an orphan.
constexpr Duration kOrphanGrace = std::chrono::minutes(2);

// Whether a node has GPUs that were cut before pods came.
bool HasFixedMig(const Snapshot& snapshot) {
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeMig& mig = snapshot.node(i).spec().mig;
    if (mig.known() && !mig->dynamic && !mig->gpus.empty()) return true;
  }
  return false;
}

}  // namespace

struct WatchedKind {
  std::string name;  // in logs and metrics
  std::string path;
  std::vector<std::string> other_paths = {};
  std::string query = {};
  bool optional = false;
  bool awaited = true;  // before verbs are answered
};

namespace {

// An API that not every cluster serves, in the versions that Berth reads, the best first.
WatchedKind Optional(std::string name, const std::string& group,
                     const std::vector<std::string>& versions, const std::string& resource) {
  WatchedKind kind{.name = std::move(name), .path = {}, .optional = true};
  for (const std::string& version : versions) {
    std::string path = "/apis/" + group + "/" + version + "/" + resource;
    if (kind.path.empty()) {
      kind.path = std::move(path);
    } else {
      kind.other_paths.push_back(std::move(path));
    }
  }
  return kind;
}

WatchedKind Device(const std::string& resource) {
  return Optional(resource, "resource.k8s.io", {"v1", "v1beta2", "v1beta1"}, resource);
}

WatchedKind GroupKind(PodGroupApi api) {
  const auto groups = [](const std::string& group, const std::vector<std::string>& versions) {
    return Optional("podgroups." + group, group, versions, "podgroups");
  };
  switch (api) {
    case PodGroupApi::kCoscheduling:
      return groups("scheduling.x-k8s.io", {"v1alpha1"});
    case PodGroupApi::kKubernetes:
      return groups("scheduling.k8s.io", {"v1", "v1beta1", "v1alpha3", "v1alpha2"});
    case PodGroupApi::kVolcano:
      return groups("scheduling.volcano.sh", {"v1beta1"});
    case PodGroupApi::kKai:
    case PodGroupApi::kCount:
      break;
  }
  return groups("scheduling.run.ai", {"v2alpha2"});
}

std::unique_ptr<TableSink<PodGroupTable>> GroupSink(PodGroupTable& table, PodGroupApi api,
                                                    const TopologyLevels& levels,
                                                    OnUnreadable report) {
  const auto decode = [api, &levels](const std::string& text, std::string& problem) {
    return wire::DecodePodGroup(text, api, levels, problem);
  };
  return std::make_unique<TableSink<PodGroupTable>>(table, decode, GroupKind(api).name,
                                                    std::move(report));
}

// A decoder of what is read whole or not at all.
template <class Object>
auto Whole(Result<Object> (*decode)(const std::string&)) {
  return [decode](const std::string& text, std::string&) { return decode(text); };
}

}  // namespace

KubeCluster::KubeCluster(const Parts& parts, Options options)
    : parts_(parts),
      options_(std::move(options)),
      binder_({parts.client, parts.pod_rules, parts.clock, *this,
               [](Duration time) { std::this_thread::sleep_for(time); }}),
      events_(
          parts.client, parts.clock, options_.instance,
          [this](const std::string& problem) { options_.on_log(true, "event_refused", problem); }),
      links_(parts.state, *parts.node_rules.links, ReportUnreadable()),
      nodes_(parts.state, parts.node_rules, ReportUnreadable(), &links_),
      pods_(parts.state, parts.pod_rules, ReportUnreadable()),
      budgets_(parts.budgets, Whole(wire::DecodeBudget), "poddisruptionbudgets",
               ReportUnreadable()),
      claims_(parts.state, parts.mig_offers, parts.device_classes, ReportUnreadable()),
      allocator_({parts.client, parts.mig_offers, claims_, parts.clock, *this,
                  [](Duration time) { std::this_thread::sleep_for(time); },
                  [this](bool is_problem, const std::string& text) {
                    options_.on_log(is_problem, "claim_allocation", text);
                  }}),
      slice_sink_(claims_.slices(), Whole(wire::DecodeResourceSlice), "resourceslices",
                  ReportUnreadable()),
      claim_sink_(claims_.claims(), Whole(wire::DecodeResourceClaim), "resourceclaims",
                  ReportUnreadable()),
      class_sink_(claims_.classes(), wire::DecodeDeviceClass, kDeviceClasses, ReportUnreadable()),
      device_sink_(links_, Whole(wire::DecodeKoordinatorDevice), kDevices, ReportUnreadable()),
      allocations_(parts.state),
      allocation_sink_(allocations_, Whole(wire::DecodeAllocationClaim), kAllocations,
                       ReportUnreadable()) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(PodGroupApi::kCount); ++i) {
    const auto api = static_cast<PodGroupApi>(i);
    groups_.push_back(
        GroupSink(parts.groups.Of(api), api, parts.pod_rules.levels(), ReportUnreadable()));
  }
  if (parts.waiting != nullptr) {
    const auto decode = [&rules = parts.pod_rules](const std::string& text, std::string&) {
      return wire::DecodeWaitingPod(text, rules);
    };
    waiting_.emplace(*parts.waiting, decode, kWaitingPods, ReportUnreadable());
  }
  if (options_.election) elector_.emplace(parts.client, parts.clock, *options_.election);
}

KubeCluster::~KubeCluster() { Stop(); }

OnUnreadable KubeCluster::ReportUnreadable() const {
  return [this](std::string_view resource, std::string_view object, const std::string& why) {
    options_.on_log(true, "unreadable_object",
                    std::string(resource) + " " + std::string(object) + ": " + why);
  };
}

Instant KubeCluster::WritableUntil() const {
  return elector_ ? elector_->WritableUntil() : Instant::max();
}

void KubeCluster::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

void KubeCluster::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
  thread_ = {};
}

void KubeCluster::Run(const std::stop_token& stop) {
  next_audit_ = parts_.clock.Now() + options_.audit_every;
  while (!stop.stop_requested()) {
    if (elector_ && parts_.clock.Now() >= next_step_) StepElection();
    const bool leading = parts_.clock.Now() < WritableUntil();
    if (leading && !watching_) Watch();
    if (!leading && watching_) Unwatch();
    if (watching_ && waiting_ && !watching_waiting_ && HasFixedMig(*parts_.state.Current())) {
      WatchWaiting();
    }
    const char* const why_not = WhyNotReady();
    options_.on_readiness(why_not);
    if (why_not == nullptr && parts_.clock.Now() >= next_audit_) AuditNow();
    std::this_thread::sleep_for(kLook);
  }
  options_.on_readiness("shutting down");
  Unwatch();
  binder_.ReleaseLocks();
  if (elector_) elector_->Release();
}

void KubeCluster::StepElection() {
  const bool led = elector_->leading();
  const Status step = elector_->Step();
  next_step_ = parts_.clock.Now() + elector_->RetryPeriod();
  const std::string problem = step ? "" : step.error().message;
  if (problem != election_problem_) {
    election_problem_ = problem;
    if (!step) options_.on_log(led, "not_leading", problem);
  }
  if (!led && elector_->leading()) {
    options_.on_log(false, "leading", options_.election->identity);
  }
}

// --- watching

KubeCluster::Watched KubeCluster::Watch(const WatchedKind& kind, ObjectSink& sink,
                                        std::function<std::size_t()> unreadable) {
  ReflectorOptions options;
  options.path = kind.path;
  options.other_paths = kind.other_paths;
  options.query = kind.query;
  options.seed = static_cast<std::uint64_t>(parts_.clock.Wall().time_since_epoch().count());
  options.absent_pause = options_.look_again_every;
  options.on_problem = [this](const std::string& problem) {
    options_.on_log(true, "watch_problem", problem);
  };
  options.on_note = [this](const std::string& note) { options_.on_log(false, "watch", note); };
  return {kind.name, kind.optional, kind.awaited,
          std::make_unique<Reflector>(parts_.client, sink, parts_.clock, std::move(options)),
          std::move(unreadable)};
}

void KubeCluster::Watch() {
  watching_ = true;
  std::vector<Watched> watched;
  const auto watch = [&](const WatchedKind& kind, auto& sink) {
    watched.push_back(Watch(kind, sink, [&sink] { return sink.unreadable(); }));
  };
  watch({"nodes", "/api/v1/nodes"}, nodes_);
  watch({"pods", "/api/v1/pods", {}, PodSink::kQuery}, pods_);
  watch({"poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets"}, budgets_);
  WatchedKind slices = Device("resourceslices");
  slices.query = "fieldSelector=spec.driver=" + std::string(wire::kGpuDriver);
  watched.push_back(Watch(slices, slice_sink_,
                          [this] { return slice_sink_.unreadable() + claims_.unknown_pools(); }));
  watched.push_back(Watch(Device("resourceclaims"), claim_sink_,
                          [this] { return claim_sink_.unreadable() + claims_.unknown(); }));
  // Extended resources of DRA came with v1.
  watch(Optional(kDeviceClasses, "resource.k8s.io", {"v1"}, kDeviceClasses), class_sink_);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    watch(GroupKind(static_cast<PodGroupApi>(i)), *groups_[i]);
  }
  watch(Optional(kAllocations, "inference.redhat.com", {"v1alpha1"}, kAllocations),
        allocation_sink_);
  watched.push_back(Watch(Optional(kDevices, "scheduling.koordinator.sh", {"v1alpha1"}, kDevices),
                          device_sink_,
                          [this] { return device_sink_.unreadable() + links_.unfit(); }));
  const MutexLock lock(mutex_);
  watched_ = std::move(watched);
}

void KubeCluster::WatchWaiting() {
  watching_waiting_ = true;
  const WatchedKind kind{.name = kWaitingPods,
                         .path = "/api/v1/pods",
                         .query = "fieldSelector=spec.nodeName=,status.phase=Pending",
                         .optional = true,
                         .awaited = false};
  Watched watched = Watch(kind, *waiting_, [this] { return waiting_->unreadable(); });
  const MutexLock lock(mutex_);
  watched_.push_back(std::move(watched));
}

void KubeCluster::Unwatch() {
  watching_ = watching_waiting_ = false;
  std::vector<Watched> watched;
  {
    const MutexLock lock(mutex_);
    watched.swap(watched_);
  }
}  // which ends their threads, without the lock

const char* KubeCluster::WhyNotReady() const {
  if (!watching_) return "another process leads, or the lease cannot be had";
  const MutexLock lock(mutex_);
  for (const Watched& watched : watched_) {
    const ReflectorStats stats = watched.reflector->stats();
    if (stats.synced || !watched.awaited || (watched.optional && stats.forbidden)) continue;
    return "the API server has not been listed yet";
  }
  return nullptr;
}

// --- audit

void KubeCluster::AuditNow() {
  const AuditReport report = Audit(parts_.state.Everything(), parts_.clock.Now(), kOrphanGrace);
  std::optional<std::size_t> differences;
  if (stats().audits % static_cast<std::uint64_t>(options_.api_audit_every) == 0) {
    const Result<std::size_t> counted =
        CountDifferences(parts_.client, binder_, parts_.state, parts_.pod_rules);
    if (counted) differences = *counted;
    if (!counted) options_.on_log(true, "audit_incomplete", counted.error().message);
  }
  next_audit_ = parts_.clock.Now() + options_.audit_every;
  const MutexLock lock(mutex_);
  ++audits_;
  audit_ = report;
  differences_to_api_ = differences.value_or(differences_to_api_);
  if (report != AuditReport() || differences_to_api_ > 0) {
    options_.on_log(true, "audit_failed",
                    "double grants " + std::to_string(report.double_grants) + ", unknown devices " +
                        std::to_string(report.unknown_devices) + ", orphaned reservations " +
                        std::to_string(report.orphaned_reservations) + ", nodes that differ " +
                        std::to_string(report.differences) + ", pods that differ " +
                        std::to_string(differences_to_api_));
  }
}

KubeClusterStats KubeCluster::stats() const {
  KubeClusterStats stats;
  stats.leading = parts_.clock.Now() < WritableUntil();
  stats.binds = binder_.stats();
  stats.events_dropped = events_.dropped();
  stats.overlapping_claims = claims_.overlapping();
  stats.allocations = allocator_.stats();
  const MutexLock lock(mutex_);
  for (const Watched& watched : watched_) {
    stats.resources.push_back({watched.name, watched.reflector->stats(), watched.unreadable()});
  }
  stats.audits = audits_;
  stats.audit = audit_;
  stats.differences_to_api = differences_to_api_;
  return stats;
}

}  // namespace berth::kube
