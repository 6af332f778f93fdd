// SPDX-License-Identifier: Apache-2.0
//
// Every decoder of what others write, in one program; BERTH_FUZZ names the one that is fed. What a
// decoder takes it also has to be able to use: pods are decided about, what is written is read.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "cluster/state/cluster_state.h"
#include "config/config.h"
#include "config/kubeconfig.h"
#include "config/load.h"
#include "config/parse_yaml.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_class_json.h"
#include "server/dialects/dra/dra_json.h"
#include "server/dialects/groups/pod_group.h"
#include "server/dialects/groups/pod_group_json.h"
#include "server/dialects/hami/hami_binding.h"
#include "server/dialects/koordinator/koordinator_dialect.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "server/why/plan_json.h"
#include "server/wire/api/api_json.h"
#include "server/wire/extender/extender_v1.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/bind_now.h"
#include "test/support/dialects.h"

#ifdef BERTH_FUZZ_TRACES
#include <unistd.h>

#include <sys/mman.h>

#include "bench/replay/trace.h"
#endif

namespace berth::fuzz {
namespace {

const Config& Defaults() {
  static const Config config = DefaultConfig();
  return config;
}

const wire::PodRules& Rules() {
  static const wire::PodRules rules(test::AllDialects(), Defaults().resources,
                                    Defaults().topology_levels);
  return rules;
}

const wire::NodeRules& RulesOfNodes() {
  static const wire::NodeRules rules(Defaults(), test::AllDialects());
  return rules;
}

class NoBinder final : public PodBinder {
 public:
  Status Bind(const BindOrder&) override { return {}; }
  Result<PodTruth> Find(const PodId&) override { return Fail(Errc::kNotFound, "no pod"); }
};

class NoSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

// Three nodes and an extender, for one input.
class Service {
 public:
  Service() {
    std::vector<ClusterEvent> events;
    for (const char* name : {"n1", "n2", "n3"}) {
      NodeSpec spec{name, name[1] == '3' ? "T4" : "A100", 64'000, std::int64_t{1} << 38, true, {}};
      spec.gpus.assign(8, GpuSpec{"", 81'251, true});
      events.emplace_back(NodeUpserted{std::move(spec)});
    }
    BERTH_CHECK(state_.Apply(events).has_value());
  }

  Extender& extender() { return extender_; }

 private:
  ClusterState state_;
  NoBinder binder_;
  NoSink sink_;
  SystemClock clock_;
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  Extender extender_{{state_, binder_, sink_, clock_, nullptr, mix_.get()},
                     {EngineFor(Defaults(), mix_, Snapshot()), std::chrono::seconds(30), 100}};
};

void Filter(std::string_view input) {
  Service service;
  const Extender::Moment now = service.extender().Now();
  const auto& snapshot = now.snapshot;
  PaddedText text(input);
  const auto args = wire::DecodeExtenderArgs(text, Rules(), snapshot->names());
  if (!args || !args->pod) return;
  const FilterAnswer answer = service.extender().Filter(now, *args->pod, args->known);
  const std::vector<Reason>& reasons = answer.reasons;
  (void)wire::EncodeFilterResult(*args, snapshot->names(), answer);
  const auto scores = service.extender().Prioritize(now, *args->pod, args->known);
  (void)wire::EncodeHostPriorityList(*args, snapshot->names(), scores);
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] != Reason::kFits) continue;
    const PodId& id = args->pod->id;
    (void)test::BindNow(service.extender(), {id.namespace_name, id.name, id.uid,
                                             std::string(snapshot->names().name(args->known[i]))});
    break;
  }
}

void Preempt(std::string_view input) {
  Service service;
  PaddedText text(input);
  const auto args = wire::DecodePreemptionArgs(text, Rules());
  if (!args) return;
  Extender& extender = service.extender();
  (void)wire::EncodePreemptionResult(extender.Preempt(extender.Now(), args->pod, args->nodes));
}

void Bind(std::string_view input) {
  Service service;
  PaddedText text(input);
  const auto request = wire::DecodeBindingArgs(text);
  if (!request) return;
  const Status bound = test::BindNow(service.extender(), *request);
  (void)wire::EncodeBindingResult(bound ? "" : bound.error().message);
}

void Pod(std::string_view input) {
  const PaddedText text(input);
  const auto pod = wire::DecodeObservedPod(text, Rules());
  if (!pod || pod->node.empty()) return;
  ClusterState state;
  const ClusterEvent bound = PodBound{pod->pod, pod->placement};
  BERTH_CHECK(state.Apply(std::span(&bound, 1)).has_value());
  BERTH_CHECK(wire::DecodeCluster(wire::EncodeCluster(state.Everything()), RulesOfNodes()));
}

void Node(std::string_view input) {
  const PaddedText text(input);
  (void)wire::DecodeNodeList(text, RulesOfNodes());
  const auto node = wire::DecodeNode(text, RulesOfNodes());
  if (!node) return;
  ClusterState state;
  const ClusterEvent there = NodeUpserted{node->spec};
  if (!state.Apply(std::span(&there, 1))) return;
  BERTH_CHECK(wire::DecodeCluster(wire::EncodeCluster(state.Everything()), RulesOfNodes()));
}

// The objects of other schedulers and of DRA: each text is tried as every kind.
void Objects(std::string_view input) {
  const PaddedText text(input);
  std::string problem;
  (void)dialects::DecodeOpenClaim(text);
  (void)dialects::DecodeResourceClaim(text);
  (void)dialects::DecodeResourceSlice(text);
  (void)dialects::DecodeDeviceClass(text, problem);
  (void)wire::DecodeBudget(text);
  if (const auto job = wire::DecodeJobDeadline(text)) {
    JobEndTable jobs;
    jobs.Put(*job);
    PodRequest pod;
    pod.id.namespace_name = job->namespace_name;
    pod.controller = job->uid;
    (void)jobs.Of(pod, {});
  }
  (void)dialects::DecodeKoordinatorDevice(text);
  (void)dialects::DecodeLockedNode(text);
  (void)wire::DecodeLease(text);
  (void)wire::DecodeStatus(text);
  (void)wire::DecodeWatchEvent(text);
  (void)wire::DecodeListPage(text, [](std::string_view) {});
  (void)wire::DecodeListHead(text);
  for (const std::string_view convention :
       {dialects::kKubernetes, dialects::kCoscheduling, dialects::kVolcano, dialects::kKai}) {
    (void)dialects::DecodePodGroup(text, convention, Defaults().topology_levels, problem);
  }
}

void ClusterFile(std::string_view input) {
  const auto file = wire::DecodeCluster(std::string(input), RulesOfNodes(), &Rules());
  if (!file) return;
  ClusterState state;
  if (!state.Apply(file->events)) return;
  const std::string text = wire::EncodeCluster(state.Everything(), file->learned);
  BERTH_CHECK(wire::DecodeCluster(text, RulesOfNodes()).has_value());
}

// A manifest as `berth plan` reads it; what comes of it is asked about.
void Plan(std::string_view input) {
  const auto documents = JsonDocuments(std::string(input), "f");
  if (!documents) return;
  for (const std::string& document : *documents) {
    const auto plan = wire::DecodePlan(document, Rules(), RulesOfNodes());
    if (!plan || plan->pods.size() > 100) continue;
    Service service;
    const Extender& extender = service.extender();
    const Extender::Moment now = extender.Now();
    if (plan->grow > 0) {
      auto told =
          Inquiry(extender, now).WouldTake(plan->pods, plan->nodes, plan->grow, plan->at_zero);
      if (!told) continue;
      const wire::GrowthReport report{
          .request = *plan, .pods = plan->pods, .told = *std::move(told)};
      (void)wire::TextOf(report);
      (void)wire::EncodeGrowth(report);
      continue;
    }
    const auto answer = Inquiry(extender, now).WouldPlace(plan->pods, plan->nodes);
    if (!answer) continue;
    (void)wire::TextOf(*plan, *answer);
    (void)wire::EncodePlan(*plan, *answer);
  }
}

void Configuration(std::string_view input) {
  const auto config = LoadConfig(std::string(input), "f");
  if (!config) return;
  const auto again = LoadConfig(PrintConfig(*config), "f");
  BERTH_CHECK(again && *again == *config);
}

void Kubeconfig(std::string_view input) { (void)ParseKubeconfig(std::string(input), "f", ""); }

#ifdef BERTH_FUZZ_TRACES
// A file that is nowhere: the readers take a path.
void Traces(std::string_view input) {
  const int file = memfd_create("trace", 0);
  BERTH_CHECK(file >= 0 &&
              write(file, input.data(), input.size()) == static_cast<ssize_t>(input.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (const auto nodes = replay::ReadNodes(path)) {
    for (const replay::TraceNode& node : *nodes) (void)replay::ToNodeSpec(node, node.name);
  }
  if (const auto tasks = replay::ReadTasks(path, replay::TaskTimes::kRequired)) {
    for (const replay::TraceTask& task : *tasks) (void)replay::ToShape(task);
  }
  (void)replay::ReadTasks(path);
  close(file);
}
#endif

struct Target {
  std::string_view name;
  void (*feed)(std::string_view);
};
constexpr Target kTargets[] = {
    {"filter", Filter},
    {"preempt", Preempt},
    {"bind", Bind},
    {"pod", Pod},
    {"node", Node},
    {"objects", Objects},
    {"cluster_file", ClusterFile},
    {"plan", Plan},
    {"configuration", Configuration},
    {"kubeconfig", Kubeconfig},
#ifdef BERTH_FUZZ_TRACES
    {"traces", Traces},
#endif
};

const Target& Chosen() {
  const char* const wanted = std::getenv("BERTH_FUZZ");
  for (const Target& target : kTargets) {
    if (wanted != nullptr && target.name == wanted) return target;
  }
  std::fprintf(stderr, "BERTH_FUZZ: want one of");
  for (const Target& target : kTargets) {
    std::fprintf(stderr, " %.*s", static_cast<int>(target.name.size()), target.name.data());
  }
  std::fprintf(stderr, "\n");
  std::exit(2);
}

}  // namespace
}  // namespace berth::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const berth::fuzz::Target& target = berth::fuzz::Chosen();
  target.feed({reinterpret_cast<const char*>(data), size});
  return 0;
}
