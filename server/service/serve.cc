// SPDX-License-Identifier: Apache-2.0
#include "server/service/serve.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "config/kubeconfig.h"
#include "config/load.h"
#include "scoring/mig/repartition_report.h"
#include "scoring/waste/request_mix.h"
#include "scoring/waste/waste_report.h"
#include "server/dialects/cluster_loader.h"
#include "server/dialects/registry.h"
#include "server/extender/inquiry.h"
#include "server/extender/ports/embedded_cluster.h"
#include "server/http/http_server.h"
#include "server/kube/client/http_api_client.h"
#include "server/kube/kube_cluster.h"
#include "server/kube/lead/write_journal.h"
#include "server/pages/metrics_parts.h"
#include "server/pages/plan_page.h"
#include "server/planners/moves/room_maker.h"
#include "server/planners/preemption/device_preemption.h"
#include "server/service/routes.h"
#include "server/service/serve_parts.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"
#include "server/why/live.h"
#include "server/why/waiting_whys.h"

namespace berth {
namespace {

constexpr int kBindThreads = 128;  // each waits for the API server most of the time
constexpr std::size_t kMaxWaitingBinds = 10'000;
constexpr std::size_t kMaxWaitingTables = 1'000;

// For people: the name of the host (of the pod, that is) and the port.
std::string NameOf(const std::string& listen) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  const std::string port = listen.substr(listen.rfind(':') + 1);
  return std::string(host) + ":" + (port == "0" ? "pid-" + std::to_string(getpid()) : port);
}

// Where this process may go on when one is killed that was started in the same place; nullptr: it
// may not, and a lease of the one before has to run out.
std::unique_ptr<kube::WriteJournal> JournalIn(const char* folder, const Clock& clock,
                                              Duration lease, Log& log) {
  if (folder == nullptr || *folder == '\0') return nullptr;
  auto journal = kube::WriteJournal::Open(folder, clock, lease);
  if (journal) return *std::move(journal);
  log.Write(LogLevel::kWarn, "no_journal",
            {{"text", "BERTH_RUNTIME_DIR: " + journal.error().message +
                          "; after a crash Berth waits until its lease has run out"}});
  return nullptr;
}

// Everything that lives as long as the service, in the order in which it is built.
class Service {
 public:
  // Without access the cluster is an embedded one.
  Service(const Config& config, ConfigFile config_file, std::unique_ptr<kube::HttpApiClient> client,
          const std::string& pod_namespace)
      : config_(config),
        log_(LevelNamed(config.log_level)),
        recorder_(log_, metrics_),
        dialects_(dialects::AllDialects(config)),
        pod_rules_(dialects_, config, &groups_, &device_classes_),
        node_rules_(config, dialects_),
        client_(std::move(client)),
        kube_(client_ ? ConnectTo(*client_, pod_namespace) : nullptr),
        sinks_(recorder_, kube_ ? &kube_->events() : nullptr),
        all_sinks_(sinks_, &recent_binds_),
        extender_({.state = state_,
                   .binder = kube_ ? kube_->binder() : embedded_,
                   .sink = all_sinks_,
                   .clock = clock_,
                   .budgets = &budgets_,
                   .mix = mix_.get(),
                   .domains = &domains_,
                   .watches_arrivals = kube_ != nullptr,
                   .behind_scheduler = kube_ != nullptr,
                   .gangs = &gangs_,
                   .waiting = &waiting_,
                   .waker = kube_ ? &kube_->pod_waker() : nullptr,
                   .history = kube_ ? &kube_->gang_history() : nullptr,
                   .rooms = &rooms_,
                   .claims = judges_claims() ? &gang_claims_ : nullptr,
                   .moves = &move_holds_,
                   .run_times = &run_times_,
                   .job_ends = &job_ends_},
                  PolicyNow()),
        reload_(std::move(config_file), {extender_, log_, metrics_, mix_, EnginesBackground(),
                                         [this](const Config& changed) { UseClasses(changed); },
                                         [this](const Config& changed) {
                                           if (room_maker_) room_maker_->Use(changed.make_room);
                                         }}),
        verbs_(extender_, pod_rules_, metrics_) {}

  Status Load(const std::string& cluster_file) {
    BERTH_TRY(const dialects::LoadedCluster cluster,
              dialects::LoadCluster(cluster_file,
                                    {.state = state_,
                                     .waiting = waiting_,
                                     .budgets = budgets_,
                                     .mix = *mix_,
                                     .most_learned = double(LearningParameters().half_life_pods),
                                     .node_rules = node_rules_,
                                     .extensions = ExtensionsFilled()}));
    for (const std::string& problem : cluster.problems) {
      log_.Write(LogLevel::kWarn, "unreadable_object", {{"text", problem}});
    }
    extender_.Use(PolicyNow());
    BERTH_TRY_STATUS(AssignBound());
    extender_.TakeStock();
    ReturnFreedMemory();
    log_.Write(LogLevel::kInfo, "cluster_loaded",
               {{"file", cluster_file}, {"nodes", state_.Current()->size()}});
    readiness_.Set(nullptr);
    return {};
  }

  Status Listen() {
    pages_ = std::make_unique<PageWriter>();
    plans_ = std::make_unique<PageWriter>(kMostWaitingPlans);
    if (kube_) {
      bind_pool_ = std::make_unique<WorkerPool>(kBindThreads, kMaxWaitingBinds);
      extender_.BindOn(InBackground(*bind_pool_));
    }
    ClaimAllocator* const allocator = kube_ ? kube_->claim_allocator() : nullptr;
    if (allocator != nullptr && config_.dra.choose_devices) {
      verbs_.AllocateClaims(*allocator, *bind_pool_);
    }
    if (kube_) {
      const auto fits = [this](const std::shared_ptr<const Snapshot>& snapshot,
                               const PodRequest& pod) {
        return Inquiry(extender_, {snapshot, extender_.policy()}).WouldFit(pod);
      };
      second_look_ = std::make_unique<SecondLook>(
          SecondLook::Parts{state_, kube_->pod_waker(), &groups_, rooms_, fits});
      verbs_.LookTwice(*second_look_);
    }
    const RouteParts parts{.verbs = verbs_,
                           .live = live_,
                           .metrics = metrics_,
                           .more_metrics = [this](MetricsText& text) { AddOwnMetrics(text); },
                           .many_metrics = config_.metrics,
                           .cluster_name = config_.cluster_name,
                           .pages = pages_.get(),
                           .plans = plans_.get()};
    http::Router routes, debug_routes;
    AddServiceRoutes(routes, parts);
    if (config_.server.debug_listen.empty()) AddDebugRoutes(routes, parts);
    AddHealthRoutes(debug_routes, parts);
    AddDebugRoutes(debug_routes, parts);
    BERTH_TRY(server_, http::HttpServer::Start(ServiceOptions(config_.server, log_), routes));
    serving_ = server_.get();
    if (!config_.server.debug_listen.empty() && config_.server.debug_listen != "off") {
      BERTH_TRY(debug_server_, http::HttpServer::Start(DebugOptions(config_.server), debug_routes));
      debugging_ = debug_server_.get();
    }
    return {};
  }

  // Joins the real cluster, if there is one.
  void Join() {
    if (kube_) kube_->Start();
  }

  void Announce() {
    const bool tls = !config_.server.tls.certificate_file.empty();
    const std::string text = std::string("berth: listening on ") + (tls ? "https" : "http") +
                             "://" + server_->address() + "\n";
    log_.Write(LogLevel::kInfo, "listening",
               {{"address", server_->address()}, {"profile", config_.profile}});
    // Last: who waits for it asks at once.
    WriteWithin(STDOUT_FILENO, text, std::chrono::seconds(1));
  }

  // The next look at the configuration is due at once.
  void LookSoon() {
    log_.Write(LogLevel::kInfo, "hangup", {{"text", "looks at the configuration"}});
    look_soon_ = true;
  }
  bool IsToLook() { return look_soon_.exchange(false); }

  // The cluster of a file stands still until somebody schedules: no hold of a gang ends.
  void LookAtGangs() {
    if (!kube_ && extender_.pending().Schedulers().empty()) return;
    extender_.LookAtGangs();
    extender_.LookAtEarmarks();
  }

  void Tick() {
    reload_.Look();
    if (const std::size_t settled = extender_.SettleOverdue(); settled > 0) {
      log_.Write(LogLevel::kWarn, "overdue_binds_settled", {{"count", settled}});
    }
    if (kube_) kube_->Upkeep();
    const bool leads = readiness_.reason() == nullptr;
    if (kube_ && leads) {
      waiting_news_.Look();
      extender_.LearnOfGangs();
    }
    if (preemption_ && leads) preemption_->Look();
    if (preemption_ && !leads) preemption_->LetGo();
    if (room_maker_ && leads) room_maker_->Look();
    if (room_maker_ && !leads) room_maker_->LetGo();
    if (held_nodes_ && leads) held_nodes_->Look();
    if (held_nodes_ && !leads) held_nodes_->LetGo();
    if (advice_.IsDue(clock_.Now())) {
      advice_.Write(
          leads ? AdviseNodes(*state_.Current(), waiting_.Current()) : std::vector<NodeAdvice>(),
          clock_.Now());
    }
    if (second_look_) refused_bytes_ = second_look_->refused_bytes();
    const std::vector<HeldStore> stores = Stores();
    trim_.Look(stores[0].bytes + stores[1].bytes);  // what comes and goes: requests, answers
  }

  // Requests under way are answered first; then the lease goes to the next process.
  void Drain() {
    log_.Write(LogLevel::kInfo, "draining", {});
    readiness_.BeginDrain();
    extender_.LetGoOfGangs({Errc::kUnavailable, "berth is stopping"});
    server_->Drain(std::chrono::seconds(config_.server.drain_seconds));
    if (kube_) kube_->Stop();
    log_.Write(LogLevel::kInfo, "stopped", {});
  }

 private:
  // The cluster has the pods of the file as the books have them. Those of nodes that are not known
  // are in the books alone.
  Status AssignBound() {
    const std::shared_ptr<const Snapshot> snapshot = state_.Current();
    for (NodeIndex node = 0; node < static_cast<NodeIndex>(snapshot->size()); ++node) {
      for (const auto& pod : snapshot->node(node).pods()) {
        if (pod->pod.id.name.empty()) continue;
        BERTH_TRY_STATUS(embedded_.Assign(pod));
      }
    }
    return {};
  }

  void UseClasses(const Config& config) {
    pod_rules_.Use(wire::WorkloadClasses(config));
    if (second_look_) second_look_->ClassesChanged();
  }

  // A first leader takes the pods that are bound for those that have come so far;
  // a former leader goes on with what it knows.
  void BeginToLearn() {
    const std::shared_ptr<const Snapshot> snapshot = state_.Current();
    if (mix_->Current().pods == 0) {
      mix_->Restore(BoundPods(*snapshot, LearningParameters().half_life_pods));
    }
    extender_.Arrived({});
  }

  // nullptr: verbs are answered. What gangs that have begun lack is planned before anybody asks.
  void BeReady(const char* why_not) {
    const bool was_ready = readiness_.reason() == nullptr;
    if (why_not == nullptr && !was_ready) extender_.TakeOverGangs();
    readiness_.Set(why_not);
    if (why_not != nullptr && was_ready) extender_.LetGoOfGangs({Errc::kUnavailable, why_not});
  }

  [[nodiscard]] Extender::Policy PolicyNow() {
    return PolicyOf(config_, EngineFor(config_, mix_, *state_.Current(), EnginesBackground()));
  }

  // When a background is done depends on the machine. On an embedded cluster nobody waits for a
  // millisecond, and the same calls are to give the same answers: replays and the demo count on it.
  [[nodiscard]] Background EnginesBackground() {
    return kube_ ? InBackground(learning_) : Background();
  }

  // A file has all that claims need, also where Berth does not choose their devices.
  [[nodiscard]] bool judges_claims() const { return !client_ || config_.dra.choose_devices; }

  [[nodiscard]] dialects::ExtensionParts ExtensionsFilled() {
    return {.groups = groups_,
            .mig_offers = mig_offers_,
            .device_classes = device_classes_,
            .devices = devices_,
            .open_claims = open_claims_,
            .pod_rules = pod_rules_,
            .links = *node_rules_.links,
            .job_ends = &job_ends_,
            .chooses_devices = judges_claims()};
  }

  std::unique_ptr<kube::KubeCluster> ConnectTo(kube::ApiClient& client,
                                               const std::string& pod_namespace) {
    const LeaderElectionConfig& election = config_.leader_election;
    const std::string& own = election.namespace_name;
    kube::KubeCluster::Options options;
    options.instance = NameOf(config_.server.listen);
    if (election.enabled) {
      const std::chrono::seconds lease(election.lease_seconds);
      journal_ = JournalIn(std::getenv("BERTH_RUNTIME_DIR"), clock_, lease, log_);
      // Two hosts may have one name: the token tells them apart.
      const std::string token = journal_ ? journal_->token() : kube::NewToken();
      options.election = {.namespace_name = own.empty() ? pod_namespace : own,
                          .name = election.name,
                          .identity = options.instance + "_" + token,
                          .lease = lease,
                          .journal = journal_.get()};
    }
    options.on_listed = [this] { BeginToLearn(); };
    options.on_readiness = [this](const char* why_not) { BeReady(why_not); };
    options.on_unreachable = [this](const char* why) { readiness_.SetUnreachable(why); };
    if (const char* const pod = std::getenv("BERTH_POD_NAME"); pod != nullptr && *pod != '\0') {
      options.label.emplace();
      options.label->namespace_name = pod_namespace;
      options.label->pod = pod;
      own_pod_ = {"", pod_namespace, pod};
    }
    options.on_log = [this](bool is_problem, std::string_view event, std::string_view text) {
      log_.Write(is_problem ? LogLevel::kWarn : LogLevel::kInfo, event, {{"text", text}});
    };
    return std::make_unique<kube::KubeCluster>(
        kube::KubeCluster::Parts{.client = client,
                                 .state = state_,
                                 .budgets = budgets_,
                                 .pod_rules = pod_rules_,
                                 .node_rules = node_rules_,
                                 .clock = clock_,
                                 .waiting = &waiting_,
                                 .run_times = &run_times_,
                                 .extensions = dialects::AllExtensions(ExtensionsFilled())},
        std::move(options));
  }

  [[nodiscard]] std::unique_ptr<DevicePreemption> MakesRoom() {
    if (!kube_ || !config_.dra.preempt) return nullptr;
    return std::make_unique<DevicePreemption>(
        DevicePreemption::Parts{.state = state_,
                                .waiting = waiting_,
                                .extender = extender_,
                                .open = open_claims_,
                                .rooms = rooms_,
                                .evictor = kube_->pod_evictor(),
                                .waker = kube_->pod_waker(),
                                .sink = all_sinks_,
                                .clock = clock_});
  }

  [[nodiscard]] std::unique_ptr<RoomMaker> MovesForRoom() {
    if (!kube_) return nullptr;
    return std::make_unique<RoomMaker>(RoomMaker::Parts{.run = {.state = state_,
                                                                .waiting = waiting_,
                                                                .extender = extender_,
                                                                .rooms = rooms_,
                                                                .holds = move_holds_,
                                                                .evictor = kube_->pod_evictor(),
                                                                .waker = kube_->pod_waker(),
                                                                .sink = all_sinks_,
                                                                .clock = clock_,
                                                                .budgets = &budgets_},
                                                        .groups = &groups_,
                                                        .self = own_pod_},
                                       config_.make_room);
  }

  [[nodiscard]] std::unique_ptr<HeldNodes> HoldsNodes() {
    if (!kube_) return nullptr;
    return std::make_unique<HeldNodes>(HeldNodes::Parts{.extender = extender_,
                                                        .rooms = rooms_,
                                                        .maker = *room_maker_,
                                                        .holder = kube_->node_holder(),
                                                        .clock = clock_});
  }

  using Server = std::atomic<const http::HttpServer*>;  // nullptr: not there yet
  static http::HttpServerStats StatsOf(const Server& known) {
    const http::HttpServer* const server = known.load();
    return server == nullptr ? http::HttpServerStats{} : server->stats();
  }

  [[nodiscard]] std::vector<HeldStore> Stores() const {
    const http::HttpServerStats http = StatsOf(serving_), debug = StatsOf(debugging_);
    const http::HttpServerOptions limits;
    return {{"requests", http.request_bytes + debug.request_bytes,
             limits.max_request_bytes + kDebugRequestBytes},
            {"answers", http.answer_bytes + debug.answer_bytes,
             limits.max_answer_bytes + kDebugAnswerBytes},
            {"pages", pages_->held_bytes(), PageWriter::kMostSentBytes},
            {"pending_pods", extender_.pending().bytes(), PendingPods::kMostBytes},
            {"waiting_pods", waiting_.bytes(), WaitingPods::kMostBytes},
            {"refused_pods", refused_bytes_.load(), RefusedPods::kMostBytes},
            {"log", log_.held_bytes(), Log::kMostHeldBytes}};
  }

  void AddOwnMetrics(MetricsText& text) const {
    AddHttpMetrics(StatsOf(serving_), text);
    text.Counter("berth_log_lines_dropped_total",
                 "Log lines dropped because nobody read them in time")
        .Sample(log_.dropped_lines());
    AddHeldMemory(Stores(), text);
    if (kube_) {
      AddDevicePreemptionMetrics(preemption_ ? preemption_->stats() : DevicePreemption::Stats(),
                                 text);
      AddRoomMakerMetrics(room_maker_->stats(), text);
    }
    if (kube_) AddKubeMetrics(kube_->stats(), client_->stats(), clock_.Now(), text);
  }

  const Config& config_;
  Log log_;
  Metrics metrics_;
  DecisionRecorder recorder_;
  PodGroups groups_;
  MigOffers mig_offers_;
  DeviceClasses device_classes_;
  DeviceOffers devices_;
  OpenClaims open_claims_;
  WaitingPods waiting_{[this](const WaitingPods::Pods& pods) {
    if (kube_) extender_.Arrived(pods);  // what a file has is learned as it is loaded
  }};
  const std::shared_ptr<const wire::Dialects> dialects_;
  wire::PodRules pod_rules_;
  const wire::NodeRules node_rules_;
  SystemClock clock_;
  ClusterState state_;
  DisruptionBudgets budgets_;
  RunTimeTable run_times_;
  JobEndTable job_ends_;
  Readiness readiness_{"the cluster is not loaded yet"};
  const std::unique_ptr<kube::HttpApiClient> client_;
  EmbeddedCluster embedded_;
  std::unique_ptr<kube::WriteJournal> journal_;    // set by ConnectTo
  PodId own_pod_;                                  // the same; no name: it is not known
  const std::unique_ptr<kube::KubeCluster> kube_;  // none: embedded_ it is
  BothSinks sinks_;
  RecentBinds recent_binds_{clock_};
  BothSinks all_sinks_;
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters());
  WasteReport waste_{WasteParameters()};
  NodeDomains domains_{config_.topology_levels};
  WorkerPool learning_{1, kMaxWaitingTables};  // makes what engines need next
  const GangClaims gang_claims_{open_claims_, devices_, device_classes_};
  DeviceRooms rooms_;
  GangTable gangs_{
      {state_, waiting_, domains_, &groups_, judges_claims() ? &gang_claims_ : nullptr, &rooms_}};
  MoveHolds move_holds_{state_};
  Extender extender_;
  const std::unique_ptr<DevicePreemption> preemption_{MakesRoom()};  // none: dra.preempt is off
  const std::unique_ptr<RoomMaker> room_maker_{MovesForRoom()};      // none: there is no API server
  const std::unique_ptr<HeldNodes> held_nodes_{HoldsNodes()};        // the same
  const Live live_{.extender = extender_,
                   .state = state_,
                   .waiting = waiting_,
                   .gangs = gangs_,
                   .domains = domains_,
                   .pod_rules = pod_rules_,
                   .node_rules = node_rules_,
                   .readiness = readiness_,
                   .shows_waiting = kube_ != nullptr,
                   .leader = [this] { return kube_ ? kube_->leader() : ""; },
                   .binds = &recent_binds_,
                   .mix = mix_.get(),
                   .waste = &waste_,
                   .mig_offers = &mig_offers_,
                   .rooms = &rooms_,
                   .maker = room_maker_.get()};
  ConfigReload reload_;
  Verbs verbs_;
  std::atomic<bool> look_soon_{false};
  std::atomic<std::size_t> refused_bytes_{0};  // as Tick saw it
  MemoryTrim trim_;                            // the upkeep's thread alone, as what follows
  AdviceLog advice_{log_};                     // how nodes had better be partitioned
  WaitingNews waiting_news_{live_, sinks_, clock_};
  // server_ and debug_server_, once they are there.
  Server serving_{nullptr}, debugging_{nullptr};
  std::unique_ptr<http::HttpServer> server_;
  std::unique_ptr<http::HttpServer> debug_server_;
  std::unique_ptr<PageWriter> pages_;        // ends before the servers, to which it answers
  std::unique_ptr<PageWriter> plans_;        // the same
  std::unique_ptr<WorkerPool> bind_pool_;    // ends before the server, to which its jobs answer
  std::unique_ptr<SecondLook> second_look_;  // and so does this, before the pool that it uses
};

Result<ClusterAccess> AccessTo(const ServeTarget& target) {
  if (!target.kubeconfig.empty()) return LoadKubeconfig(target.kubeconfig);
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  if (host == nullptr || port == nullptr) {
    return Invalid(
        "serve: want --kubeconfig FILE or --cluster FILE outside of a pod "
        "(KUBERNETES_SERVICE_HOST is not set)");
  }
  return InClusterAccess(host, port);
}

// What pods that start together wait for: not beside anything that may wait for the API server.
void LookAtGangs(Service& service, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      service.LookAtGangs();
    } catch (const std::exception&) {  // out of memory: the next look is soon
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

// What goes on beside the requests.
void Upkeep(Service& service, const std::stop_token& stop) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  for (int looks = 1; !stop.stop_requested(); ++looks) {
    if (service.IsToLook() || looks % 10 == 0) {
      try {
        service.Tick();
      } catch (const std::exception&) {  // out of memory: the next tick is soon
      }
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

Status Serve(ConfigFile config_file, const ServeTarget& target) {
  const Signals signals;
  BoundAllocator();
  const Config config = config_file.config();
  std::unique_ptr<kube::HttpApiClient> client;
  std::string pod_namespace;
  if (target.cluster_file.empty()) {
    BERTH_TRY(const ClusterAccess access, AccessTo(target));
    pod_namespace = access.default_namespace;
    BERTH_TRY(client, kube::HttpApiClient::Create(access));
  }
  Service service(config, std::move(config_file), std::move(client), pod_namespace);
  if (!target.cluster_file.empty()) BERTH_TRY_STATUS(service.Load(target.cluster_file));
  BERTH_TRY_STATUS(service.Listen());
  service.Announce();
  service.Join();
  {
    const std::jthread upkeep([&service](const std::stop_token& stop) { Upkeep(service, stop); });
    const std::jthread gangs(
        [&service](const std::stop_token& stop) { LookAtGangs(service, stop); });
    signals.AwaitStop([&service] { service.LookSoon(); });
  }
  service.Drain();
  return {};
}

}  // namespace berth
