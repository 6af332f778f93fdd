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

constexpr const char* kNotLeading = "another process leads, or the lease cannot be had";
constexpr const char* kWaitingPods = "waitingpods";
constexpr const char* kDeviceClasses = "deviceclasses";
constexpr const char* kDevices = "devices";
constexpr const char* kAllocations = "allocationclaims";

// What /readyz says while a kind is awaited. Constants, as on_readiness wants them.
constexpr std::pair<std::string_view, const char*> kAwaited[] = {
    {"nodes", "waiting for the list of nodes"},
    {"pods", "waiting for the list of pods"},
    {"poddisruptionbudgets", "waiting for an answer to the list of poddisruptionbudgets"},
    {"resourceslices", "waiting for the list of resourceslices"},
    {"resourceclaims", "waiting for the list of resourceclaims"},
    {kDeviceClasses, "waiting for an answer to the list of deviceclasses"},
    {kDevices, "waiting for an answer to the list of Koordinator's devices"},
    {kAllocations, "waiting for the list of allocationclaims"},
};

const char* WhyNotReadyWithout(std::string_view name) {
  for (const auto& [kind, why] : kAwaited) {
    if (kind == name) return why;
  }
  return "waiting for an answer to the list of podgroups";
}

// A reservation that nobody has settled for this long after its deadline is an orphan.
constexpr Duration kOrphanGrace = std::chrono::minutes(2);

// Whether a node has GPUs that are cut.
bool HasMig(const Snapshot& snapshot) {
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeMig& mig = snapshot.node(i).spec().mig;
    if (mig.known() && !mig->gpus.empty()) return true;
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
  Await await = Await::kAnswer;
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
  WatchedKind kind = Optional(resource, "resource.k8s.io", {"v1", "v1beta2", "v1beta1"}, resource);
  kind.await = Await::kList;
  return kind;
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
      elector_(options_.election
                   ? std::make_unique<LeaderElector>(parts.client, parts.clock, *options_.election)
                   : nullptr),
      fence_(elector_ ? static_cast<WriteFence&>(*elector_) : no_fence_),
      binder_({parts.client, parts.pod_rules, parts.clock, fence_,
               [](Duration time) { std::this_thread::sleep_for(time); }}),
      events_(
          parts.client, parts.clock, options_.instance,
          [this](const std::string& problem) { options_.on_log(true, "event_refused", problem); }),
      waker_(
          parts.client, parts.clock, fence_,
          [this](const std::string& problem) { options_.on_log(true, "wake_refused", problem); }),
      links_(parts.state, *parts.node_rules.links, ReportUnreadable()),
      nodes_(parts.state, parts.node_rules, ReportUnreadable(), &links_),
      pods_(parts.state, parts.pod_rules, ReportUnreadable(),
            [this](const DeviceDispute& dispute) { Report(dispute); }),
      budgets_(parts.budgets, Whole(wire::DecodeBudget), "poddisruptionbudgets",
               ReportUnreadable()),
      claims_(parts.state, parts.mig_offers, parts.device_classes, ReportUnreadable()),
      allocator_({parts.client, parts.mig_offers, claims_, parts.clock, fence_,
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
}

KubeCluster::~KubeCluster() { Stop(); }

OnUnreadable KubeCluster::ReportUnreadable() const {
  return [this](std::string_view resource, std::string_view object, const std::string& why) {
    options_.on_log(true, "unreadable_object",
                    std::string(resource) + " " + std::string(object) + ": " + why);
  };
}

void KubeCluster::Report(const DeviceDispute& dispute) {
  const PodId& id = dispute.pod;
  const std::string problem = "annotation berth.dev/devices " + dispute.problem;
  options_.on_log(true, "devices_disputed",
                  "pod " + id.namespace_name + "/" + id.name + ": " + problem);
  events_.Warn(id, "DevicesDisputed", problem);
}

void KubeCluster::Start() {
  if (elector_) elects_ = std::jthread([this](const std::stop_token& stop) { Elect(stop); });
  watches_and_tells_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  audits_again_ = std::jthread([this](const std::stop_token& stop) { AuditAgain(stop); });
}

void KubeCluster::Stop() {
  if (!watches_and_tells_.joinable()) return;
  const auto threads = {&elects_, &watches_and_tells_, &audits_again_};
  for (std::jthread* const thread : threads) thread->request_stop();
  for (std::jthread* const thread : threads) *thread = {};  // waits for it
  binder_.ReleaseLocks();
  if (!elector_) return;
  const Status released = elector_->Release();
  if (!released) options_.on_log(true, "lease_not_released", released.error().message);
}

void KubeCluster::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    FollowLeadership();
    const char* const why_not = WhyNotReady();
    if (why_not == nullptr && waiting_ && !watching_waiting_) {
      if (options_.on_listed) options_.on_listed();
      WatchWaiting();
    }
    options_.on_readiness(why_not);
    ready_watch_ = why_not == nullptr ? watches_ : 0;
    std::this_thread::sleep_for(kLook);
  }
  options_.on_readiness("shutting down");
  ready_watch_ = 0;
  Unwatch();
}

// --- election

void KubeCluster::Elect(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (parts_.clock.Now() >= next_step_) StepElection();
    std::this_thread::sleep_for(kLook);
  }
}

void KubeCluster::FollowLeadership() {
  const bool leading = parts_.clock.Now() < fence_.WritableUntil();
  const std::uint64_t term = elector_ ? elector_->term() : 0;
  if (watching_ && (!leading || term != term_)) {
    options_.on_readiness(kNotLeading);
    ready_watch_ = 0;
    Unwatch();
  }
  if (leading && !watching_) {
    term_ = term;
    Watch();
  }
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
  return {kind.name,
          kind.optional,
          kind.await,
          WhyNotReadyWithout(kind.name),
          std::make_unique<Reflector>(parts_.client, sink, parts_.clock, std::move(options)),
          std::move(unreadable)};
}

void KubeCluster::Watch() {
  watching_ = true;
  ++watches_;
  std::vector<Watched> watched;
  const auto watch = [&](const WatchedKind& kind, auto& sink) {
    watched.push_back(Watch(kind, sink, [&sink] { return sink.unreadable(); }));
  };
  watch({.name = "nodes", .path = "/api/v1/nodes", .await = Await::kList}, nodes_);
  watch({.name = "pods", .path = "/api/v1/pods", .query = PodSink::kQuery, .await = Await::kList},
        pods_);
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
  WatchedKind allocations =
      Optional(kAllocations, "inference.redhat.com", {"v1alpha1"}, kAllocations);
  allocations.await = Await::kList;
  watch(allocations, allocation_sink_);
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
                         .await = Await::kNot};
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
  if (!watching_) return kNotLeading;
  const MutexLock lock(mutex_);
  for (const Watched& watched : watched_) {
    if (HoldsBack(watched)) return watched.why_not_ready;
  }
  return nullptr;
}

// A kind that holds no devices and cannot be listed, such as one of a CRD whose webhook is gone, is
// done without: its reflector goes on trying.
bool KubeCluster::HoldsBack(const Watched& watched) const {
  const ReflectorStats stats = watched.reflector->stats();
  if (stats.synced || (watched.optional && stats.forbidden)) return false;
  if (watched.await != Await::kList) return watched.await == Await::kAnswer && stats.problems == 0;
  const bool is_needed = watched.name != kAllocations || HasMig(*parts_.state.Current());
  return is_needed || stats.problems == 0;
}

// --- audit

// The lists have just been read when a watch is new: it audits against the API server later.
void KubeCluster::AuditAgain(const std::stop_token& stop) {
  std::uint64_t watch = 0;
  int audits = 0;
  Instant next{};
  while (!stop.stop_requested()) {
    const std::uint64_t ready = ready_watch_;
    if (ready != watch) {
      watch = ready;
      audits = 0;
      next = parts_.clock.Now() + options_.audit_every;
    }
    if (watch != 0 && parts_.clock.Now() >= next) {
      AuditNow(++audits % options_.api_audit_every == 0, watch, stop);
      next = parts_.clock.Now() + options_.audit_every;
    }
    std::this_thread::sleep_for(kLook);
  }
}

void KubeCluster::AuditNow(bool lists_pods, std::uint64_t watch, const std::stop_token& stop) {
  const auto audit_books = [this] {
    return Audit(parts_.state.Everything(), parts_.clock.Now(), kOrphanGrace);
  };
  AuditReport report = audit_books();
  Result<ApiAudit> there = ApiAudit();
  // What is granted twice in the books may be the books' fault.
  const bool asks = lists_pods || report.double_granted != told_double_;
  if (asks) {
    there = AuditApi(parts_.client, binder_, parts_.state, parts_.pod_rules, OnDifference::kRepair,
                     stop);
    if (stop.stop_requested() || ready_watch_ != watch) return;
    if (!there) options_.on_log(true, "audit_incomplete", there.error().message);
    report = audit_books();
  }
  if (there) {
    for (const std::string& finding : there->findings) {
      options_.on_log(true, "books_differ", finding);
    }
  }
  if (report.double_granted != told_double_) {
    for (const std::string& text : report.double_granted) {
      options_.on_log(true, "double_grant", text);
    }
    if (there) told_double_ = report.double_granted;
  }
  const MutexLock lock(mutex_);
  ++audits_;
  if (asks && there) differences_to_api_ = there->differences;
  audit_ = report;
  TellAudit(report);
}

void KubeCluster::TellAudit(const AuditReport& report) {
  if (report == AuditReport() && differences_to_api_ == 0) return;
  options_.on_log(true, "audit_failed",
                  "double grants " + std::to_string(report.double_grants) + ", unknown devices " +
                      std::to_string(report.unknown_devices) + ", orphaned reservations " +
                      std::to_string(report.orphaned_reservations) + ", nodes that differ " +
                      std::to_string(report.differences) + ", pods that differ " +
                      std::to_string(differences_to_api_));
}

KubeClusterStats KubeCluster::stats() const {
  KubeClusterStats stats;
  stats.leading = parts_.clock.Now() < fence_.WritableUntil();
  stats.binds = binder_.stats();
  stats.events_dropped = events_.dropped();
  stats.wakes = waker_.stats();
  stats.overlapping_claims = claims_.overlapping();
  stats.disputed_pods = parts_.state.Disputes().size();
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
