// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <algorithm>
#include <span>
#include <sstream>
#include <type_traits>
#include <vector>

#include "base/mutex.h"
#include "base/text.h"
#include "base/version.h"
#include "cluster/node/mig_use.h"

namespace berth {
namespace {

// The values of labels, in the order of the enums.
constexpr std::array<std::string_view, 4> kResults = {"ok", "refused", "bad_request",
                                                      "unavailable"};
constexpr std::array<std::string_view, 3> kReloadResults = {"applied", "refused", "unchanged"};
constexpr std::array<std::string_view, 2> kPlanResults = {"found", "none"};
// Of GangNews::why.
constexpr std::array<std::string_view, 7> kGangAborts = {
    "timeout", "no_room", "plan_broken", "member_gone", "first_refused", "no_size", "claims_lost"};

// What pods have been given.
constexpr std::array<std::string_view, 7> kAsks = {"share", "MIG", "1", "2", "3-4", "5-8", "9+"};
// kAsks.size(): no GPU.
std::size_t AskOf(const Placement& placement) {
  if (!placement.mig.empty()) return 1;
  const bool is_share = !placement.grants.empty() && placement.grants[0].milli < kMilliPerGpu;
  if (is_share) return 0;
  const std::size_t gpus =
      placement.grants.size() + static_cast<std::size_t>(std::max(placement.places, 0));
  if (gpus == 0) return kAsks.size();
  return gpus == 1 ? 2 : 3 + GpuSizeOf(gpus);
}

template <class Enum>
constexpr std::size_t Index(Enum value) {
  return static_cast<std::size_t>(value);
}

// A refusal has a reason: all codes but that of kFits, which is the first.
std::vector<std::string_view> RefusalCodes() {
  static_assert(Index(Reason::kFits) == 0);
  std::vector<std::string_view> codes;
  for (std::size_t r = 1; r < Index(Reason::kCount); ++r) codes.push_back(CodeOf(Reason(r)));
  return codes;
}

struct Label {
  const char* key;
  std::span<const std::string_view> values;
};

using Buckets = prometheus::Histogram::BucketBoundaries;

// One metric. All its series are there from the start: one for each combination of the values of
// its labels, those of the last label one after the other.
template <class Metric>
class Series {
 public:
  Series(prometheus::Registry& registry, const char* name, const char* help,
         const std::vector<Label>& labels, const Buckets& buckets = {})
      : family_(Begin().Name(name).Help(help).Register(registry)) {
    std::vector<prometheus::Labels> all = {{}};
    for (const Label& label : labels) {
      std::vector<prometheus::Labels> longer;
      for (const prometheus::Labels& known : all) {
        for (const std::string_view value : label.values) {
          longer.emplace_back(known)[label.key] = value;
        }
      }
      all = std::move(longer);
    }
    for (const prometheus::Labels& values : all) {
      if constexpr (kIsHistogram) series_.push_back(&family_.Add(values, buckets));
      if constexpr (!kIsHistogram) series_.push_back(&family_.Add(values));
    }
  }

  Metric& operator[](std::size_t index) { return *series_[index]; }
  // Made now, if there is none.
  Metric& Of(const prometheus::Labels& labels) { return family_.Add(labels); }

 private:
  static constexpr bool kIsHistogram = std::is_same_v<Metric, prometheus::Histogram>;

  static auto Begin() {
    if constexpr (kIsHistogram) return prometheus::BuildHistogram();
    if constexpr (std::is_same_v<Metric, prometheus::Counter>) return prometheus::BuildCounter();
    if constexpr (std::is_same_v<Metric, prometheus::Gauge>) return prometheus::BuildGauge();
  }

  prometheus::Family<Metric>& family_;
  std::vector<Metric*> series_;
};

using Counters = Series<prometheus::Counter>;
using Gauges = Series<prometheus::Gauge>;
using Histograms = Series<prometheus::Histogram>;

Buckets LatencyBuckets() {
  return {50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 200e-3, 1, 5, 30};
}

// A family may have a sample for each GPU of the cluster, and a sample takes several times the
// bytes of its text.
constexpr std::size_t kMostSamples = 1024;

// "0:1000,3:250": index and thousandths of every GPU granted; "1g.5gb at 4 of GPU 2" of MIG
// devices.
std::string GrantText(const Placement& placement) {
  std::string text = Join(placement.grants, ",", [](const DeviceGrant& grant) {
    return std::to_string(grant.gpu) + ":" + std::to_string(grant.milli);
  });
  for (const MigGrant& grant : placement.mig) text += (text.empty() ? "" : ",") + NameOf(grant);
  return text;
}

}  // namespace

// The table of what is counted where it happens.
struct Metrics::Impl {
  prometheus::Registry registry;
  Counters calls{registry,
                 "berth_calls_total",
                 "Extender calls by verb and result",
                 {{"verb", kVerbNames}, {"result", kResults}}};
  Histograms durations{registry,
                       "berth_call_duration_seconds",
                       "Time from the first byte of the request to the encoded answer, by verb",
                       {{"verb", kVerbNames}},
                       LatencyBuckets()};
  Histograms arrivals{registry,
                      "berth_call_arrival_seconds",
                      "Time from the first byte of the request until its handler starts, by verb",
                      {{"verb", kVerbNames}},
                      LatencyBuckets()};
  Counters refusals{registry,
                    "berth_refusals_total",
                    "Filter calls that refused a node, by the first reason",
                    {{"reason", RefusalCodes()}}};
  Histograms waits{registry,
                   "berth_pod_wait_seconds",
                   "Time from the creation of a pod to its bind, by the GPUs that it got",
                   {{"size", kAsks}},
                   {0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600, 4 * 3600, 24 * 3600}};
  Histograms link_quality{
      registry,
      "berth_link_quality_ratio",
      "Link quality of a bound pod's GPUs relative to the best idle set, by number of GPUs",
      {{"size", kGpuSizes}},
      {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}};
  Counters gang_plans{registry,
                      "berth_gang_plans_total",
                      "Plans for gangs, by whether room was found",
                      {{"result", kPlanResults}}};
  Counters gang_aborts{registry,
                       "berth_gang_aborts_total",
                       "Plans of gangs given up before any pod was bound, by reason",
                       {{"reason", kGangAborts}}};
  Histograms gang_hold{registry,
                       "berth_gang_hold_seconds",
                       "How long the first bind of a gang waited for the others",
                       {},
                       {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 50}};
  Counters reloads{registry,
                   "berth_config_reloads_total",
                   "Changes of the configuration file, by result",
                   {{"result", kReloadResults}}};

  const std::array<std::string_view, 1> version = {BerthVersion()};
  Gauges build{
      registry, "berth_build_info", "1 for the version of Berth that runs", {{"version", version}}};
  prometheus::Family<prometheus::Gauge>& configs =
      prometheus::BuildGauge()
          .Name("berth_config_info")
          .Help("1 for the configuration in use; hash is the start of its SHA-256")
          .Register(registry);
  Gauges reload_failed{
      registry,
      "berth_config_reload_failed",
      "1 while the configuration file is refused and the previous one stays in use",
      {}};
  Gauges needs_restart{
      registry, "berth_config_needs_restart", "1 while changed settings wait for a restart", {}};
  Gauges decisions_changed{
      registry,
      "berth_config_decisions_changed_ratio",
      "Fraction of recent decisions whose best node differs since the last policy change",
      {}};

  prometheus::Counter& Calls(Verb verb, CallResult result) {
    return calls[Index(verb) * kResults.size() + Index(result)];
  }

  Mutex mutex;                                                  // no scrape takes it
  prometheus::Gauge* config BERTH_GUARDED_BY(mutex) = nullptr;  // the one of `configs`, once known
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) { impl_->build[0].Set(1); }

Metrics::~Metrics() = default;

void Metrics::CountCall(Verb verb, CallResult result, std::chrono::duration<double> taken) {
  impl_->Calls(verb, result).Increment();
  impl_->durations[Index(verb)].Observe(taken.count());
}

void Metrics::CountUnavailable(Verb verb) {
  impl_->Calls(verb, CallResult::kUnavailable).Increment();
}

void Metrics::CountRefusal(Reason reason) {
  if (reason != Reason::kFits) impl_->refusals[Index(reason) - 1].Increment();
}

void Metrics::ObserveWait(const Placement& placement, std::chrono::duration<double> waited) {
  const std::size_t ask = AskOf(placement);
  if (ask < kAsks.size()) impl_->waits[ask].Observe(std::max(waited.count(), 0.0));
}

void Metrics::ObserveArrival(Verb verb, std::chrono::duration<double> taken) {
  impl_->arrivals[Index(verb)].Observe(taken.count());
}

void Metrics::Count(const GangNews& news) {
  switch (news.what) {
    case GangNews::What::kPlanned:
      return impl_->gang_plans[0].Increment();
    case GangNews::What::kNoRoom:
      return impl_->gang_plans[1].Increment();
    case GangNews::What::kAborted:
      return impl_->gang_aborts.Of({{"reason", std::string(news.why)}}).Increment();
    case GangNews::What::kBegun:
      return impl_->gang_hold[0].Observe(std::chrono::duration<double>(news.took).count());
  }
}

void Metrics::ObserveLinkQuality(std::size_t gpus, double ratio) {
  impl_->link_quality[GpuSizeOf(gpus)].Observe(ratio);
}

void Metrics::ShowConfig(std::string_view hash, bool needs_restart) {
  impl_->needs_restart[0].Set(needs_restart ? 1 : 0);
  const MutexLock lock(impl_->mutex);
  prometheus::Gauge& used = impl_->configs.Add({{"hash", std::string(hash)}});
  used.Set(1);
  if (impl_->config != nullptr && impl_->config != &used) impl_->configs.Remove(impl_->config);
  impl_->config = &used;
}

void Metrics::CountReload(ReloadResult result, bool failed) {
  impl_->reloads[Index(result)].Increment();
  impl_->reload_failed[0].Set(failed ? 1 : 0);
}

void Metrics::ShowDecisionsChanged(double ratio) { impl_->decisions_changed[0].Set(ratio); }

void Metrics::AddTo(MetricsText& text) const { text.Add(impl_->registry); }

struct MetricsText::Impl {
  using Families = std::vector<prometheus::MetricFamily>;

  void Begin(prometheus::MetricType type, std::string_view name, std::string_view help) {
    WriteSamples();
    begun.assign(1, {std::string(name), std::string(help), type, {}});
    is_new = true;
  }

  // Those that are held. More of the family may follow: its type is said once.
  void WriteSamples() {
    if (begun.empty()) return;
    prometheus::MetricFamily& family = begun.front();
    const std::size_t start = text.size();
    Write(begun);
    if (!is_new) text.erase(start, text.find('\n', start) + 1 - start);
    family.metric.clear();
    family.help.clear();  // without it the serializer leaves the line out
    is_new = false;
  }

  void Write(const Families& families) {
    std::ostringstream written;
    prometheus::TextSerializer().Serialize(written, families);
    text += written.view();
  }

  std::string text;
  Families begun;  // none or one
  bool is_new = false;
};

MetricsText::MetricsText() : impl_(std::make_unique<Impl>()) {}

MetricsText::~MetricsText() = default;

MetricsText& MetricsText::Counter(std::string_view name, std::string_view help) {
  impl_->Begin(prometheus::MetricType::Counter, name, help);
  return *this;
}

MetricsText& MetricsText::Gauge(std::string_view name, std::string_view help) {
  impl_->Begin(prometheus::MetricType::Gauge, name, help);
  return *this;
}

MetricsText& MetricsText::Sample(double value, Labels labels) {
  prometheus::MetricFamily& family = impl_->begun.front();
  if (family.metric.size() == kMostSamples) impl_->WriteSamples();
  prometheus::ClientMetric& sample = family.metric.emplace_back();
  sample.label.reserve(labels.size());
  for (const auto& [name, label] : labels) {
    sample.label.push_back({std::string(name), std::string(label)});
  }
  const bool counts = family.type == prometheus::MetricType::Counter;
  (counts ? sample.counter.value : sample.gauge.value) = value;
  return *this;
}

void MetricsText::Add(const prometheus::Collectable& counted) {
  impl_->WriteSamples();
  impl_->begun.clear();
  impl_->Write(counted.Collect());
}

std::string MetricsText::Take() {
  impl_->WriteSamples();
  return std::move(impl_->text);
}

void DecisionRecorder::Record(const Decision& decision) {
  metrics_.CountRefusal(decision.first_reason);
  if (decision.link_quality) {
    metrics_.ObserveLinkQuality(decision.placement->grants.size(), *decision.link_quality);
  }
  if (decision.waited) metrics_.ObserveWait(*decision.placement, *decision.waited);
  const PodId& pod = *decision.pod;
  if (decision.error != nullptr) {
    log_.Write(LogLevel::kWarn, "bind_failed",
               {{"namespace", pod.namespace_name},
                {"pod", pod.name},
                {"pod_uid", pod.uid},
                {"decision", decision.id},
                {"code", ErrcName(decision.error->code)},
                {"error", decision.error->message}});
  } else if (decision.placement != nullptr) {
    log_.Write(LogLevel::kInfo, "pod_bound",
               {{"namespace", pod.namespace_name},
                {"pod", pod.name},
                {"pod_uid", pod.uid},
                {"decision", decision.id},
                {"node", decision.placement->node},
                {"grants", GrantText(*decision.placement)}});
  } else if (log_.Enabled(LogLevel::kDebug)) {
    log_.Write(LogLevel::kDebug, "decision",
               {{"verb", NameOf(decision.verb)},
                {"pod_uid", pod.uid},
                {"candidates", decision.candidates},
                {"fitting", decision.fitting},
                {"first_reason", CodeOf(decision.first_reason)},
                {"shortage", decision.shortage}});
  }
}

void DecisionRecorder::Record(const GangNews& news) {
  metrics_.Count(news);
  using enum GangNews::What;
  const bool is_problem = news.what == kNoRoom || news.what == kAborted;
  const char* const event = news.what == kPlanned  ? "gang_planned"
                            : news.what == kNoRoom ? "gang_without_room"
                            : news.what == kBegun  ? "gang_begun"
                                                   : "gang_aborted";
  log_.Write(is_problem ? LogLevel::kWarn : LogLevel::kInfo, event,
             {{"gang", news.gang.text()}, {"text", news.text}});
}

void DecisionRecorder::Record(const PodWaits& news) {
  log_.Write(LogLevel::kInfo, "pod_waits",
             {{"pod", news.pod.full_name()}, {"text", news.sentence}});
}

void DecisionRecorder::Record(const RoomNews& news) {
  using enum RoomNews::What;
  constexpr std::array<std::string_view, 7> kNames = {
      "room_advice", "room_begun",    "room_evicts",        "room_moved",
      "room_made",   "room_given_up", "idle_nodes_given_up"};
  const bool is_problem = news.what == kEvicted || news.what >= kGivenUp;
  log_.Write(is_problem ? LogLevel::kWarn : LogLevel::kInfo,
             kNames[static_cast<std::size_t>(news.what)],
             {{"pod", news.pod.name.empty() ? "" : news.pod.full_name()},
              {"moved", news.moved.name.empty() ? "" : news.moved.full_name()},
              {"text", news.text}});
}

void DecisionRecorder::Record(const PodsEvicted& news) {
  log_.Write(LogLevel::kWarn, "evicted_for_devices",
             {{"pod", news.pod.full_name()},
              {"node", news.node},
              {"victims", Join(news.victims, " ", &PodId::full_name)}});
}

}  // namespace berth
