// SPDX-License-Identifier: Apache-2.0
#include "server/kube/kube_cluster.h"

#include <utility>

#include "base/keep_going.h"
#include "server/kube/check/api_audit.h"
#include "server/wire/api/api_json.h"
#include "server/wire/pod/pod_object.h"

namespace berth::kube {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(100), kLookSoon = std::chrono::milliseconds(5);

constexpr const char* kNotLeading = "not the leader (lease held elsewhere or unavailable)";
constexpr const char* kLabelUnknown =
    "cannot write label berth.dev/leader on its own pod (the log says why)";
// A reservation that nobody has settled for this long after its deadline is an orphan.
constexpr Duration kOrphanGrace = std::chrono::minutes(2);

}  // namespace

KubeCluster::KubeCluster(const Parts& parts, Options options)
    : parts_(parts),
      options_(std::move(options)),
      elector_(options_.election
                   ? std::make_unique<LeaderElector>(parts.client, parts.clock, *options_.election)
                   : nullptr),
      fence_(elector_ ? static_cast<WriteFence&>(*elector_) : no_fence_),
      label_(options_.label
                 ? std::make_unique<LeaderLabel>(parts.client, parts.clock, *options_.label)
                 : nullptr),
      binder_({.write = Writing(),
               .rules = parts.pod_rules,
               .surround = [this](const BindOrder& order,
                                  const auto& bind) { return AroundBind(order, bind); }}),
      events_(parts.client, parts.clock, options_.instance, Logs("event_refused")),
      waker_(parts.client, parts.clock, fence_, Logs("wake_refused")),
      evictor_(parts.client, parts.clock, fence_, Logs("eviction_refused")),
      holder_(parts.client, parts.clock, fence_, Logs("hold_refused")),
      gang_history_(parts.client, parts.pod_rules),
      starts_({.state = parts.state,
               .clock = parts.clock,
               .why_not_admitted = [this](const PodId& pod) { return WhyNotAdmitted(pod); },
               .log = options_.on_log}),
      extensions_(Extend()),
      nodes_(
          NodePublisher(), parts.node_rules, ReportUnreadable(),
          [this](const std::string& node, const wire::NodeHold& hold) { holder_.Saw(node, hold); }),
      pods_(
          parts.state, parts.pod_rules, ReportUnreadable(),
          [this](const DeviceDispute& dispute) { Report(dispute); }, parts.waiting, &starts_),
      budgets_(parts.budgets, Whole(wire::DecodeBudget), "poddisruptionbudgets",
               ReportUnreadable()) {
  if (parts.run_times != nullptr) ended_pods_.emplace(*parts.run_times, parts.pod_rules);
}

std::function<void(const std::string&)> KubeCluster::Logs(const char* event) const {
  return [this, event](const std::string& problem) { options_.on_log(true, event, problem); };
}

WriteContext KubeCluster::Writing() const {
  return {
      .client = parts_.client, .clock = parts_.clock, .fence = fence_, .sleep = [](Duration time) {
        std::this_thread::sleep_for(time);
      }};
}

ClusterExtensions KubeCluster::Extend() {
  if (!parts_.extensions) return {};
  return parts_.extensions(
      {.write = Writing(),
       .state = parts_.state,
       .on_unreadable = ReportUnreadable(),
       .on_log = options_.on_log,
       .evictor = &evictor_,
       .warn = [this](const PodId& pod, std::string reason, std::string message) {
         events_.Warn(pod, std::move(reason), std::move(message));
       }});
}

PublishNodes KubeCluster::NodePublisher() const {
  PublishNodes publish = PublishTo(parts_.state);
  for (const auto& extension : extensions_) publish = extension->DecorateNodes(std::move(publish));
  return publish;
}

ClaimAllocator* KubeCluster::claim_allocator() {
  for (const auto& extension : extensions_) {
    if (ClaimAllocator* const allocator = extension->claim_allocator()) return allocator;
  }
  return nullptr;
}

KubeCluster::~KubeCluster() { Stop(); }

OnUnreadable KubeCluster::ReportUnreadable() const {
  return [this](std::string_view resource, std::string_view object, const std::string& why) {
    options_.on_log(true, "unreadable_object",
                    std::string(resource) + " " + std::string(object) + ": " + why);
  };
}

std::optional<std::string> KubeCluster::WhyNotAdmitted(const PodId& id) const {
  Result<std::string> path = PodPath(id.namespace_name, id.name);
  if (!path) return "";
  Result<ApiResponse> response = parts_.client.Send({.path = *std::move(path)});
  if (!response) return std::nullopt;
  if (!response->ok()) return "";  // gone, or not to be had: nothing is learned
  const auto pod = wire::DecodeObservedPod(PaddedText(std::move(response->body)), parts_.pod_rules);
  return pod && pod->pod.id.uid == id.uid ? pod->not_admitted : "";
}

void KubeCluster::Report(const DeviceDispute& dispute) {
  const PodId& id = dispute.pod;
  const std::string problem = "annotation berth.dev/devices " + dispute.problem;
  options_.on_log(true, "devices_disputed", "pod " + id.full_name() + ": " + problem);
  events_.Warn(id, "DevicesDisputed", problem);
}

std::jthread KubeCluster::On(void (KubeCluster::*work)(const std::stop_token&)) {
  return std::jthread(
      [this, work](const std::stop_token& stop) { KeepGoing([&] { (this->*work)(stop); }); });
}

void KubeCluster::Start() {
  if (elector_) elects_ = On(&KubeCluster::Elect);
  if (label_) labels_ = On(&KubeCluster::KeepLabel);
  watches_and_tells_ = On(&KubeCluster::Run);
  audits_again_ = On(&KubeCluster::AuditAgain);
}

void KubeCluster::Stop() {
  if (!watches_and_tells_.joinable()) return;
  const auto threads = {&labels_, &elects_, &watches_and_tells_, &audits_again_};
  for (std::jthread* const thread : threads) thread->request_stop();
  for (std::jthread* const thread : threads) *thread = {};  // waits for it
  Upkeep();
  if (!elector_) return;
  const Status released = elector_->Release();
  if (!released) options_.on_log(true, "lease_not_released", released.error().message);
}

// The last extension is the outermost.
Status KubeCluster::AroundBind(const BindOrder& order, const std::function<Status()>& bind) const {
  std::function<Status()> next = bind;
  for (const auto& extension : extensions_) {
    next = [&order, &extension, inner = std::move(next)] {
      return extension->AroundBind(order, inner);
    };
  }
  return next();
}

void KubeCluster::Upkeep() {
  starts_.Look();
  for (const auto& extension : extensions_) extension->Upkeep();
}

void KubeCluster::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    FollowLeadership();
    const char* const why_not = WhyNotReady();
    if (why_not == nullptr) HoldWhatWasLeft();
    if (why_not == nullptr && parts_.waiting != nullptr && !tells_arrivals_) {
      if (options_.on_listed) options_.on_listed();
      parts_.waiting->TellArrivals();
      tells_arrivals_ = true;
    }
    options_.on_readiness(why_not);
    const bool has_label = !label_ || label_->written() == (why_not == nullptr);
    options_.on_unreachable(has_label ? nullptr : kLabelUnknown);
    ready_watch_ = why_not == nullptr ? watches_ : 0;
    if (why_not == nullptr) WatchTheRest();
    std::this_thread::sleep_for(begins() ? kLookSoon : kLook);
  }
  options_.on_readiness("shutting down");
  ready_watch_ = 0;
  Unwatch();
}

void KubeCluster::HoldWhatWasLeft() {
  WriteJournal* const journal = options_.election ? options_.election->journal : nullptr;
  if (journal == nullptr) return;
  for (const std::string& note : journal->TakeLeft()) {
    const auto bound = BindOfNote(note, parts_.node_rules);
    if (!bound) {
      options_.on_log(true, "write_left", "cannot be read: " + bound.error().message);
    } else if (*bound) {
      HoldLeft(**bound, journal->left_until());
    }
  }
}

// As it would be if this process had sent the Binding and heard nothing.
void KubeCluster::HoldLeft(const PodBound& bound, Instant until) {
  const PodId& id = bound.pod.id;
  const auto held = parts_.state.FindPod(id.uid);
  if (held && held->state == PodState::kBound) return;  // it was carried out
  const auto reserved = parts_.state.Reserve(bound.pod, bound.placement, until);
  options_.on_log(!reserved, "write_left",
                  "pod " + id.full_name() + " was being bound to node " + bound.placement.node +
                      (reserved ? "; its devices are kept until the API server has the outcome"
                                : ": " + reserved.error().message));
}

bool KubeCluster::begins() const {
  if (elector_ && !knows_leader_) return true;
  return ready_watch_ == 0 && parts_.clock.Now() < fence_.WritableUntil();
}

// --- election

void KubeCluster::Elect(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (parts_.clock.Now() >= next_step_) StepElection();
    knows_leader_ = true;
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

const char* KubeCluster::WhyNotLeading() const {
  return label_ && elector_ && elector_->another_leads() ? kStandby : kNotLeading;
}

// On a thread of its own: neither the lease nor the verbs wait for it.
void KubeCluster::KeepLabel(const std::stop_token& stop) {
  std::string problem;
  // A process that goes on where one was killed has that one's label: the Service need not lose it.
  while (!stop.stop_requested() && begins()) std::this_thread::sleep_for(kLookSoon);
  while (!stop.stop_requested()) {
    const bool answers = ready_watch_ != 0 && parts_.clock.Now() < fence_.WritableUntil();
    const Status step = label_->Step(answers);
    const std::string now = step ? "" : step.error().message;
    if (now != problem && !step) options_.on_log(true, "leader_label_refused", now);
    problem = now;
    std::this_thread::sleep_for(kLook);
  }
}

// --- watching

std::vector<WatchSource> KubeCluster::Sources() {
  std::vector<WatchSource> sources = {
      {.kind = {.name = "nodes",
                .paths = {"/api/v1/nodes"},
                .await = Await::kList,
                .why_not_ready = "waiting for the list of nodes"},
       .sink = nodes_,
       .unreadable = [this] { return nodes_.unreadable(); }},
      {.kind = {.name = "pods",
                .paths = {"/api/v1/pods"},
                .query = PodSink::kQuery,
                .await = Await::kList,
                .why_not_ready = "waiting for the list of pods"},
       .sink = pods_,
       .unreadable = [this] { return pods_.unreadable(); }},
      {.kind = {.name = "poddisruptionbudgets",
                .paths = {"/apis/policy/v1/poddisruptionbudgets"},
                .why_not_ready = "waiting for the list of poddisruptionbudgets"},
       .sink = budgets_,
       .unreadable = [this] { return budgets_.unreadable(); }}};
  if (ended_pods_) {
    sources.push_back({.kind = {.name = "ended-pods",
                                .paths = {"/api/v1/pods"},
                                .query = EndedPodSink::kQuery,
                                .await = Await::kNot},
                       .sink = *ended_pods_,
                       .unreadable = [] { return std::size_t{0}; }});
  }
  for (const auto& extension : extensions_) {
    for (WatchSource& source : extension->Sources()) sources.push_back(std::move(source));
  }
  return sources;
}

KubeCluster::Watched KubeCluster::Watch(WatchSource source) {
  const WatchedKind& kind = source.kind;
  ReflectorOptions options;
  options.path = kind.paths.front();
  options.may_be_absent = kind.optional;
  options.other_paths.assign(kind.paths.begin() + 1, kind.paths.end());
  options.query = kind.query;
  options.seed = static_cast<std::uint64_t>(parts_.clock.Wall().time_since_epoch().count());
  options.absent_pause = options_.look_again_every;
  options.on_problem = Logs("watch_problem");
  options.on_note = [this](const std::string& note) { options_.on_log(false, "watch", note); };
  auto reflector =
      std::make_unique<Reflector>(parts_.client, source.sink, parts_.clock, std::move(options));
  return {.source = std::move(source), .reflector = std::move(reflector)};
}

void KubeCluster::Watch() {
  if (parts_.waiting != nullptr) parts_.waiting->HoldArrivalsBack();
  std::vector<Watched> watched;
  later_.clear();
  for (WatchSource& source : Sources()) {
    if (source.kind.await == Await::kNot) {
      later_.push_back(std::move(source));
    } else {
      watched.push_back(Watch(std::move(source)));
    }
  }
  const MutexLock lock(mutex_);
  watched_ = std::move(watched);
  watching_ = true;  // all of them, or memory ran out before
  ++watches_;
}

// The API server has one thing less to do while pods wait for the lists.
void KubeCluster::WatchTheRest() {
  for (WatchSource& source : later_) {
    Watched watched = Watch(std::move(source));
    const MutexLock lock(mutex_);
    watched_.push_back(std::move(watched));
  }
  later_.clear();
}

void KubeCluster::Unwatch() {
  watching_ = tells_arrivals_ = false;
  std::vector<Watched> watched;
  {
    const MutexLock lock(mutex_);
    watched.swap(watched_);
  }
  watched.clear();      // which ends their threads, without the lock
  starts_.BeginAnew();  // nobody tells it of that term any more
}

const char* KubeCluster::WhyNotReady() const {
  if (!watching_) return WhyNotLeading();
  const MutexLock lock(mutex_);
  for (const Watched& watched : watched_) {
    if (HoldsBack(watched)) return watched.source.kind.why_not_ready;
  }
  return nullptr;
}

// A kind that holds no devices and cannot be listed, such as one of a CRD whose webhook is gone, is
// done without: its reflector goes on trying.
bool KubeCluster::HoldsBack(const Watched& watched) {
  const WatchedKind& kind = watched.source.kind;
  const ReflectorStats stats = watched.reflector->stats();
  if (stats.synced || (kind.optional && stats.forbidden)) return false;
  if (kind.await != Await::kList) return kind.await == Await::kAnswer && stats.problems == 0;
  const bool is_needed = !watched.source.is_needed || watched.source.is_needed();
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
  Tell("node_overfull", report.overfull, told_overfull_);
  Tell("whole_gpu_with_shares", report.over_shares, told_over_shares_);
  const MutexLock lock(mutex_);
  ++audits_;
  if (asks && there) differences_to_api_ = there->differences;
  audit_ = report;
  LogAudit(report);
}

void KubeCluster::Tell(const char* event, const std::vector<std::string>& found,
                       std::vector<std::string>& told) const {
  if (found == told) return;
  for (const std::string& text : found) options_.on_log(true, event, text);
  told = found;
}

void KubeCluster::LogAudit(const AuditReport& report) {
  if (report == AuditReport() && differences_to_api_ == 0) return;
  options_.on_log(
      true, "audit_failed",
      "double grants " + std::to_string(report.double_grants) +
          ", GPUs with shares given as a whole " + std::to_string(report.given_over_shares) +
          ", unknown devices " + std::to_string(report.unknown_devices) +
          ", orphaned reservations " + std::to_string(report.orphaned_reservations) +
          ", overcommitted nodes " + std::to_string(report.overfull_nodes) +
          ", nodes with wrong free amounts " + std::to_string(report.differences) +
          ", pods that differ from the API server " + std::to_string(differences_to_api_));
}

KubeClusterStats KubeCluster::stats() const {
  KubeClusterStats stats;
  stats.leading = parts_.clock.Now() < fence_.WritableUntil();
  if (label_) stats.labelled = label_->written().value_or(false);
  stats.binds = binder_.stats();
  stats.events_dropped = events_.dropped();
  stats.wakes = waker_.stats();
  stats.refusals = starts_.stats();
  stats.disputed_pods = parts_.state.DisputeCount();
  for (const auto& extension : extensions_) extension->AddTo(stats.extensions);
  const MutexLock lock(mutex_);
  for (const Watched& watched : watched_) {
    stats.resources.push_back({.name = watched.source.kind.name,
                               .watch = watched.reflector->stats(),
                               .unreadable = watched.source.unreadable()});
  }
  stats.audits = audits_;
  stats.audit = audit_;
  stats.differences_to_api = differences_to_api_;
  return stats;
}

}  // namespace berth::kube
