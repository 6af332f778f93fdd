// SPDX-License-Identifier: Apache-2.0
#include "node/guard/guard.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <malloc.h>

#include "base/clock.h"
#include "config/kubeconfig.h"
#include "node/interposer/interposer.h"
#include "node/kubelet/registrar.h"
#include "node/pods/given.h"
#include "node/pods/own_pods.h"
#include "node/pods/plan_chooser.h"
#include "node/publish/node_publisher.h"
#include "server/kube/client/api_client.h"
#include "server/kube/client/http_api_client.h"
#include "server/wire/node/agent_annotations.h"

namespace berth::node {

std::vector<std::string> Arguments(const NodeOptions& options) {
  std::vector<std::string> arguments = {"--dir", options.folder, "--pod-resources",
                                        options.pod_resources};
  const auto add = [&arguments](const char* name, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  add("--node-name", options.node_name);
  add("--kubeconfig", options.kubeconfig);
  add("--kubelet-url", options.kubelet_url);
  add("--driver-root", options.driver_root);
  if (options.lift_numa) arguments.emplace_back("--lift-numa");
  return arguments;
}

namespace {

constexpr Duration kBeat = std::chrono::milliseconds(120);
constexpr int kBeatsToTrim = 80;      // when the start is over
constexpr int kBeatsUntilNext = 250;  // 30 s: what admissions used meanwhile is given back too
constexpr Duration kLate = std::chrono::milliseconds(500);  // of a call, before it counts as hung
constexpr Duration kMostFarewell = std::chrono::seconds(1);
constexpr Duration kNextProblem = std::chrono::seconds(35);  // the reflector asks again within it

Result<std::unique_ptr<kube::HttpApiClient>> Connect(const NodeOptions& options) {
  const char* const host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* const port = std::getenv("KUBERNETES_SERVICE_PORT");
  Result<ClusterAccess> access =
      !options.kubeconfig.empty() ? LoadKubeconfig(options.kubeconfig)
      : host != nullptr && port != nullptr
          ? InClusterAccess(host, port)
          : Fail(Errc::kNotFound, "want --kubeconfig, or to run in a pod of a cluster");
  if (!access) return tl::unexpected(access.error());
  if (options.node_name.empty()) return Invalid("want --node-name or NODE_NAME");
  return kube::HttpApiClient::Create(*access);
}

// Beats as long as no call is late.
class Pulse {
 public:
  Pulse(Heartbeat* heartbeat, const CallWatch& calls)
      : thread_([heartbeat, &calls](const std::stop_token& stop) {
          for (int beat = 0; heartbeat != nullptr && !stop.stop_requested(); ++beat) {
            // It takes long on a busy machine: a beat is to follow before we sleep.
            if (beat % kBeatsUntilNext == kBeatsToTrim && calls.Idle()) TrimResident();
            if (calls.InTime(kLate)) heartbeat->Beat();
            std::this_thread::sleep_for(kBeat);
          }
        }) {}

 private:
  std::jthread thread_;
};

// What the interposer sees, for the Node and for the pods.
class Reports final : public InterposerReports {
 public:
  void Carries(std::set<std::string> resources) override {
    if (given != nullptr) given->Carries(resources);
    if (publisher != nullptr) publisher->Carries(std::move(resources));
  }
  void Unhealthy(const std::string& resource, std::set<std::string> devices) override {
    if (publisher != nullptr) publisher->Health(resource, std::move(devices));
  }
  void NumaNodes(const std::string& resource, bool known) override {
    if (publisher != nullptr) publisher->NumaNodes(resource, known);
  }
  void PluginRegistered() override {
    if (publisher != nullptr) publisher->PluginRegistered();
  }

  GivenWriter* given = nullptr;
  NodePublisher* publisher = nullptr;
};

PublisherOptions PublisherFor(const NodeOptions& options, Log& log) {
  PublisherOptions publish;
  publish.probe = {"/proc/self/exe", "facts"};
  if (!options.driver_root.empty()) {
    publish.probe.insert(publish.probe.end(), {"--driver-root", options.driver_root});
  }
  publish.kubelet_url = options.kubelet_url;
  if (!options.kubelet_url.empty() && options.kubeconfig.empty()) {
    publish.kubelet_token_file = std::string(kServiceAccountFolder) + "/token";
  }
  publish.log = [&log](std::string_view line) {
    log.Write(LogLevel::kInfo, "node", {{"text", line}});
  };
  return publish;
}

kube::ReflectorOptions PodsOf(const std::string& node, OwnPods& pods, Log& log) {
  kube::ReflectorOptions watch;
  watch.path = "/api/v1/pods";
  watch.query = "fieldSelector=spec.nodeName%3D" + kube::EscapeForQuery(node);
  watch.seed = std::hash<std::string>{}(node);
  watch.on_problem = [&pods, &log](const std::string& problem) {
    pods.Failed(Instant::clock::now() + kNextProblem);
    log.Write(LogLevel::kWarn, "pods_not_known", {{"problem", problem}});
  };
  return watch;
}

// All parts of the worker, in the order in which they need each other.
class Worker {
 public:
  Worker(const NodeOptions& options, Heartbeat* heartbeat, Log& log)
      : pulse_(heartbeat, calls_),
        kubelet_(options.pod_resources),
        pods_(options.node_name, [this] { LookAtGiven(); }),
        chooser_(
            pods_, kubelet_, [this] { return Facts(); }, log,
            [this] {
              if (GivenWriter* const writer = looks_) writer->Admitted();
            }),
        interposer_({options.folder, options.lift_numa}, chooser_, reports_, calls_, log) {
    Result<std::unique_ptr<kube::HttpApiClient>> client = Connect(options);
    if (!client) {
      log.Write(LogLevel::kWarn, "without_api_server", {{"problem", client.error().message}});
      return;
    }
    client_ = *std::move(client);
    publisher_.emplace(*client_, options.node_name, PublisherFor(options, log));
    given_.emplace(GivenWriter::Parts{
        *client_, pods_, kubelet_, [this] { return Facts(); }, options.node_name, log,
        [this, heartbeat](bool keeps) {
          if (heartbeat) heartbeat->SetKubeletKeepsBoth(keeps);
          if (keeps) interposer_.KubeletKeepsBoth(kubelet_);
        },
        GivenWriter::kStart, [this](const ClosedDevices& closed) { interposer_.Close(closed); }});
    reports_.publisher = &*publisher_;
    reports_.given = &*given_;
    looks_ = &*given_;
    reflector_.emplace(*client_, pods_, clock_, PodsOf(options.node_name, pods_, log));
  }

  Status Run() { return interposer_.Run(); }

  // From the thread that waits for signals.
  void Stop() {
    const Instant end = Instant::clock::now() + kMostFarewell;
    while (!calls_.Idle() && Instant::clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    interposer_.Stop();
  }

 private:
  std::shared_ptr<const NodeFacts> Facts() const {
    static const auto nothing = std::make_shared<const NodeFacts>();
    return publisher_ ? publisher_->Facts() : nothing;
  }
  void LookAtGiven() {
    if (GivenWriter* const writer = looks_) writer->Look();
  }

  CallWatch calls_;
  Pulse pulse_;
  SystemClock clock_;
  Reports reports_;
  std::atomic<GivenWriter*> looks_ = nullptr;
  KubeletPodResources kubelet_;
  std::unique_ptr<kube::HttpApiClient> client_;
  OwnPods pods_;
  std::optional<NodePublisher> publisher_;
  std::optional<GivenWriter> given_;
  PlanChooser chooser_;
  Interposer interposer_;
  std::optional<kube::Reflector> reflector_;
};

}  // namespace

int RunWorker(const NodeOptions& options, int heartbeat, Log& log) {
  mallopt(M_ARENA_MAX, 2);  // many threads, little memory
  std::optional<Heartbeat> shared;
  if (heartbeat >= 0) {
    Result<Heartbeat> joined = Heartbeat::Join(heartbeat);
    if (joined) shared.emplace(*std::move(joined));
  }
  auto worker = std::make_unique<Worker>(options, shared ? &*shared : nullptr, log);
  std::thread signals([&worker] {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    int got = 0;
    sigwait(&ends, &got);
    worker->Stop();
  });
  const Status ran = worker->Run();
  if (!ran) log.Write(LogLevel::kError, "not_served", {{"problem", ran.error().message}});
  // The streams have ended, which is what the kubelet waits for: the rest ends with the process.
  signals.detach();
  static_cast<void>(worker.release());
  return ran ? 0 : 1;
}

int RunHandBack(const NodeOptions& options, HandBackWhen when, Log& log) {
  const AgentFolder folder(options.folder);
  KubeletPodResources kubelet(options.pod_resources);
  bool all = true;
  std::vector<PluginAddress> plugins;
  for (const HandedBack& plugin :
       HandBack(ReadPlugins(folder.plugin_file()), kubelet, {options.folder, when})) {
    const bool good = plugin.registered && plugin.devices > 0;
    all = all && good;
    plugins.push_back(plugin.plugin);
    log.Write(good ? LogLevel::kInfo : LogLevel::kError, "handed_back",
              {{"resource", plugin.plugin.resource},
               {"devices", plugin.devices},
               {"problem", plugin.problem}});
  }
  if (const Status kept = WritePlugins(folder.plugin_file(), plugins); !kept) {
    log.Write(LogLevel::kWarn, "plugins_not_kept", {{"problem", kept.error().message}});
  }
  return all ? 0 : 1;
}

int RunWithdraw(const NodeOptions& options, Log& log) {
  const Result<std::unique_ptr<kube::HttpApiClient>> client = Connect(options);
  const Result<std::string> path = kube::NodePath(options.node_name);
  if (!client || !path) return 1;
  const std::string patch =
      R"({"metadata":{"annotations":{")" + std::string(wire::kCarriesOutKey) + R"(":null}}})";
  const std::string problem =
      kube::ProblemOf((*client)->Send(kube::MergePatch(*path, patch, std::chrono::seconds(3))));
  if (problem.empty()) return 0;
  log.Write(LogLevel::kWarn, "not_withdrawn", {{"problem", problem}});
  return 1;
}

}  // namespace berth::node
