// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "scoring/node_guard.h"
#include "scoring/node_watts.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

constexpr std::array<Verb, 4> kVerbs = {Verb::kFilter, Verb::kPrioritize, Verb::kPreempt,
                                        Verb::kBind};
constexpr std::array<std::string_view, 4> kResults = {"ok", "refused", "bad_request",
                                                      "unavailable"};

constexpr std::array<std::string_view, 3> kReloadResults = {"applied", "refused", "unchanged"};

prometheus::Histogram::BucketBoundaries LatencyBuckets() {
  return {50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 50e-3, 200e-3, 1, 5, 30};
}

// Pods by the number of their GPUs.
constexpr std::array<std::string_view, 4> kSizes = {"2", "3-4", "5-8", "9+"};
std::size_t SizeOf(std::size_t gpus) { return gpus <= 2 ? 0 : gpus <= 4 ? 1 : gpus <= 8 ? 2 : 3; }

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
  return gpus == 1 ? 2 : 3 + SizeOf(gpus);
}

prometheus::Histogram::BucketBoundaries WaitBuckets() {
  return {0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 3600, 4 * 3600, 24 * 3600};
}

prometheus::Histogram::BucketBoundaries RatioBuckets() {
  return {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1};
}

prometheus::Histogram::BucketBoundaries HoldBuckets() {
  return {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 50};
}

// Of GangNews::why.
constexpr std::array<const char*, 6> kGangAborts = {"timeout",     "no_room",       "plan_broken",
                                                    "member_gone", "first_refused", "no_size"};

template <class Enum>
constexpr std::size_t Index(Enum value) {
  return static_cast<std::size_t>(value);
}

// The number of GPUs by state.
struct GpuTotals {
  double allocated = 0, free = 0, unhealthy = 0;
  double idle = 0;     // GPUs with nothing on them
  double claimed = 0;  // GPUs of which a ResourceClaim holds a part or all
};

// A GPU that is out of order counts whole as unhealthy, also where it is unknown which one it is
// and whatever pod holds it. What pods hold of the other GPUs, as far as known, counts as
// allocated.
void AddGpusOf(const Node& node, GpuTotals& totals) {
  totals.claimed += std::popcount(node.claimed());
  double free = 0;
  for (std::size_t g = 0; g < node.gpus().size(); ++g) {
    if (!node.IsOpen(static_cast<int>(g))) continue;
    free += node.gpus()[g].milli / double{kMilliPerGpu};
    totals.idle += node.gpus()[g].idle() ? 1 : 0;
  }
  totals.free += free;
  totals.unhealthy += static_cast<double>(node.gpus().size()) - node.healthy_gpus();
  totals.allocated += node.healthy_gpus() - free;
}

// Places on GPUs with several users.
struct PlaceTotals {
  double taken = 0, free = 0, unhealthy = 0;
  double taken_bytes = 0, free_bytes = 0;  // of the places whose memory is known
};

void AddPlacesOf(const Node& node, PlaceTotals& totals) {
  totals.taken += node.places_taken();
  totals.free += std::max(node.free_places(), 0);
  totals.unhealthy += node.spec().missing;
  const double bytes_each = static_cast<double>(node.spec().places.memory_mib) * (1 << 20);
  totals.taken_bytes += node.places_taken() * bytes_each;
  totals.free_bytes += std::max(node.free_places(), 0) * bytes_each;
}

std::map<std::string, PlaceTotals> PlacesByModel(const Snapshot& snapshot) {
  std::map<std::string, PlaceTotals> by_model;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (node.spec().places.count == 0) continue;
    AddPlacesOf(node, by_model[node.spec().gpu_model]);
  }
  return by_model;
}

std::map<std::string, GpuTotals> TotalsByModel(const Snapshot& snapshot) {
  std::map<std::string, GpuTotals> by_model;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    if (node.gpus().empty()) continue;
    AddGpusOf(node, by_model[node.spec().gpu_model]);
  }
  return by_model;
}

// GPUs and places of one vendor.
struct VendorTotals {
  GpuTotals gpus;
  PlaceTotals places;
};

std::map<std::string, VendorTotals> TotalsByVendor(const Snapshot& snapshot) {
  std::map<std::string, VendorTotals> by_vendor;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const Node& node = snapshot.node(i);
    const NodeSpec& spec = node.spec();
    if (spec.gpus.empty() && spec.places.count == 0) continue;
    VendorTotals& totals = by_vendor[std::string(VendorOf(spec.gpu_resource))];
    AddGpusOf(node, totals.gpus);
    if (spec.places.count > 0) AddPlacesOf(node, totals.places);
  }
  return by_vendor;
}

}  // namespace

std::string_view NameOf(Verb verb) {
  switch (verb) {
    case Verb::kFilter:
      return "filter";
    case Verb::kPrioritize:
      return "prioritize";
    case Verb::kPreempt:
      return "preempt";
    case Verb::kBind:
      return "bind";
  }
  return "";
}

class Metrics::Impl {
 public:
  Impl()
      : calls_(prometheus::BuildCounter()
                   .Name("berth_calls_total")
                   .Help("Extender calls by verb and result")
                   .Register(registry_)),
        refusals_(prometheus::BuildCounter()
                      .Name("berth_refusals_total")
                      .Help("Filter calls that refused a node, by the first reason")
                      .Register(registry_)),
        gpus_(prometheus::BuildGauge()
                  .Name("berth_gpus")
                  .Help("GPUs by model and state; a share counts as a fraction, an unhealthy GPU "
                        "as one")
                  .Register(registry_)),
        idle_(prometheus::BuildGauge()
                  .Name("berth_gpus_idle")
                  .Help("Healthy GPUs without any allocation, by model")
                  .Register(registry_)),
        claimed_(prometheus::BuildGauge()
                     .Name("berth_gpus_claimed")
                     .Help("GPUs that ResourceClaims hold wholly or in part, by model; counted as "
                           "allocated")
                     .Register(registry_)),
        places_(prometheus::BuildGauge()
                    .Name("berth_gpu_places")
                    .Help("GPU replicas (time-slicing or MPS), by model and state")
                    .Register(registry_)),
        place_memory_(prometheus::BuildGauge()
                          .Name("berth_gpu_place_memory_bytes")
                          .Help("Memory of the GPU replicas, by model and state")
                          .Register(registry_)),
        vendor_gpus_(prometheus::BuildGauge()
                         .Name("berth_vendor_gpus")
                         .Help("GPUs as in berth_gpus, by vendor and state")
                         .Register(registry_)),
        vendor_places_(prometheus::BuildGauge()
                           .Name("berth_vendor_gpu_places")
                           .Help("GPU replicas as in berth_gpu_places, by vendor and state")
                           .Register(registry_)),
        nodes_(prometheus::BuildGauge()
                   .Name("berth_nodes")
                   .Help("Nodes in the snapshot")
                   .Register(registry_)
                   .Add({})),
        reservations_(prometheus::BuildGauge()
                          .Name("berth_reservations")
                          .Help("Pods that hold devices and whose bind is not confirmed yet")
                          .Register(registry_)
                          .Add({})),
        without_devices_(
            prometheus::BuildGauge()
                .Name("berth_pods_without_devices")
                .Help("GPU pods bound without Berth; Berth assumes which GPUs they use")
                .Register(registry_)
                .Add({})),
        unguarded_(prometheus::BuildGauge()
                       .Name("berth_unguarded_gpu_nodes")
                       .Help("GPU nodes without a taint that keeps other pods away")
                       .Register(registry_)
                       .Add({})),
        conditions_(prometheus::BuildGauge()
                        .Name("berth_nodes_with_gpu_condition")
                        .Help("Nodes closed to GPU pods by a node condition, by condition")
                        .Register(registry_)),
        watts_(prometheus::BuildGauge()
                   .Name("berth_gpu_power_estimate_watts")
                   .Help("Estimated power draw of nodes by GPU model: GPUs in use at their power "
                         "limit, others idle")
                   .Register(registry_)),
        config_(prometheus::BuildGauge()
                    .Name("berth_config_info")
                    .Help("1 for the configuration in use; hash is the start of its SHA-256")
                    .Register(registry_)),
        reload_failed_(
            prometheus::BuildGauge()
                .Name("berth_config_reload_failed")
                .Help("1 while the configuration file is refused and the previous one stays in use")
                .Register(registry_)
                .Add({})),
        needs_restart_(prometheus::BuildGauge()
                           .Name("berth_config_needs_restart")
                           .Help("1 while changed settings wait for a restart")
                           .Register(registry_)
                           .Add({})),
        decisions_changed_(prometheus::BuildGauge()
                               .Name("berth_config_decisions_changed_ratio")
                               .Help("Fraction of recent decisions whose best node differs since "
                                     "the last policy change")
                               .Register(registry_)
                               .Add({})),
        gang_aborts_(prometheus::BuildCounter()
                         .Name("berth_gang_aborts_total")
                         .Help("Plans of gangs given up before any pod was bound, by reason")
                         .Register(registry_)),
        gang_hold_(prometheus::BuildHistogram()
                       .Name("berth_gang_hold_seconds")
                       .Help("How long the first bind of a gang waited for the others")
                       .Register(registry_)
                       .Add({}, HoldBuckets())) {
    prometheus::BuildGauge()
        .Name("berth_build_info")
        .Help("1 for the version of Berth that runs")
        .Register(registry_)
        .Add({{"version", BERTH_VERSION}})
        .Set(1);
    auto& reloads = prometheus::BuildCounter()
                        .Name("berth_config_reloads_total")
                        .Help("Changes of the configuration file, by result")
                        .Register(registry_);
    for (std::size_t r = 0; r < kReloadResults.size(); ++r) {
      reloads_[r] = &reloads.Add({{"result", std::string(kReloadResults[r])}});
    }
    auto& seconds =
        prometheus::BuildHistogram()
            .Name("berth_call_duration_seconds")
            .Help("Time from the first byte of the request to the encoded answer, by verb")
            .Register(registry_);
    auto& arrival =
        prometheus::BuildHistogram()
            .Name("berth_call_arrival_seconds")
            .Help("Time from the first byte of the request until its handler starts, by verb")
            .Register(registry_);
    auto& waits = prometheus::BuildHistogram()
                      .Name("berth_pod_wait_seconds")
                      .Help("Time from the creation of a pod to its bind, by the GPUs that it got")
                      .Register(registry_);
    for (std::size_t a = 0; a < kAsks.size(); ++a) {
      waits_[a] = &waits.Add({{"size", std::string(kAsks[a])}}, WaitBuckets());
    }
    for (const Verb verb : kVerbs) {
      const std::string name(NameOf(verb));
      seconds_[Index(verb)] = &seconds.Add({{"verb", name}}, LatencyBuckets());
      arrival_[Index(verb)] = &arrival.Add({{"verb", name}}, LatencyBuckets());
      for (std::size_t r = 0; r < kResults.size(); ++r) {
        count_[Index(verb)][r] =
            &calls_.Add({{"verb", name}, {"result", std::string(kResults[r])}});
      }
    }
    auto& link_quality = prometheus::BuildHistogram()
                             .Name("berth_link_quality_ratio")
                             .Help(
                                 "Link quality of a bound pod's GPUs relative to the best idle "
                                 "set, by number of GPUs")
                             .Register(registry_);
    for (std::size_t s = 0; s < kSizes.size(); ++s) {
      link_quality_[s] = &link_quality.Add({{"size", std::string(kSizes[s])}}, RatioBuckets());
    }
    auto& plans = prometheus::BuildCounter()
                      .Name("berth_gang_plans_total")
                      .Help("Plans for gangs, by whether room was found")
                      .Register(registry_);
    gang_planned_ = &plans.Add({{"result", "found"}});
    gang_without_room_ = &plans.Add({{"result", "none"}});
    for (const char* const reason : kGangAborts) gang_aborts_.Add({{"reason", reason}});
    for (std::size_t r = 0; r < Index(Reason::kCount); ++r) {
      if (Reason(r) == Reason::kFits) continue;
      refusal_[r] = &refusals_.Add({{"reason", std::string(CodeOf(Reason(r)))}});
    }
  }

  void CountCall(Verb verb, CallResult result, double seconds) {
    count_[Index(verb)][Index(result)]->Increment();
    seconds_[Index(verb)]->Observe(seconds);
  }

  void ObserveWait(const Placement& placement, double seconds) {
    const std::size_t ask = AskOf(placement);
    if (ask < kAsks.size()) waits_[ask]->Observe(std::max(seconds, 0.0));
  }

  void ObserveArrival(Verb verb, double seconds) { arrival_[Index(verb)]->Observe(seconds); }

  void CountUnavailable(Verb verb) {
    count_[Index(verb)][Index(CallResult::kUnavailable)]->Increment();
  }

  void CountRefusal(Reason reason) {
    if (reason != Reason::kFits) refusal_[Index(reason)]->Increment();
  }

  void Count(const GangNews& news) {
    switch (news.what) {
      case GangNews::What::kPlanned:
        return gang_planned_->Increment();
      case GangNews::What::kNoRoom:
        return gang_without_room_->Increment();
      case GangNews::What::kAborted:
        return gang_aborts_.Add({{"reason", std::string(news.why)}}).Increment();
      case GangNews::What::kBegun:
        return gang_hold_.Observe(std::chrono::duration<double>(news.took).count());
    }
  }

  void ObserveLinkQuality(std::size_t gpus, double ratio) {
    link_quality_[SizeOf(gpus)]->Observe(ratio);
  }

  void ShowConfig(std::string_view hash, bool needs_restart) {
    const MutexLock lock(scrape_mutex_);
    if (config_shown_ != nullptr) config_.Remove(config_shown_);
    config_shown_ = &config_.Add({{"hash", std::string(hash)}});
    config_shown_->Set(1);
    needs_restart_.Set(needs_restart ? 1 : 0);
  }

  void CountReload(ReloadResult result, bool failed) {
    reloads_[Index(result)]->Increment();
    reload_failed_.Set(failed ? 1 : 0);
  }

  void ShowDecisionsChanged(double ratio) { decisions_changed_.Set(ratio); }

  std::string Text(const Snapshot& snapshot) {
    const MutexLock lock(scrape_mutex_);
    nodes_.Set(static_cast<double>(snapshot.size()));
    reservations_.Set(static_cast<double>(snapshot.CountReserved()));
    without_devices_.Set(static_cast<double>(snapshot.CountUnattributed()));
    unguarded_.Set(UnguardedGpuNodes(snapshot));
    const auto by_model = TotalsByModel(snapshot);
    std::erase_if(shown_, [&](const auto& shown) {
      if (by_model.contains(shown.first)) return false;
      Hide(shown.second);
      return true;
    });
    for (const auto& [model, totals] : by_model) {
      const ModelGauges gauges = {&gpus_.Add({{"model", model}, {"state", "allocated"}}),
                                  &gpus_.Add({{"model", model}, {"state", "free"}}),
                                  &gpus_.Add({{"model", model}, {"state", "unhealthy"}}),
                                  &idle_.Add({{"model", model}}),
                                  &claimed_.Add({{"model", model}})};
      shown_.insert_or_assign(model, gauges);
      gauges.allocated->Set(totals.allocated);
      gauges.free->Set(totals.free);
      gauges.unhealthy->Set(totals.unhealthy);
      gauges.idle->Set(totals.idle);
      gauges.claimed->Set(totals.claimed);
    }
    ShowPlaces(snapshot);
    ShowVendors(snapshot);
    ShowConditions(snapshot);
    ShowWatts(snapshot);
    std::ostringstream text;
    prometheus::TextSerializer().Serialize(text, registry_.Collect());
    return text.str();
  }

 private:
  void ShowPlaces(const Snapshot& snapshot) BERTH_REQUIRES(scrape_mutex_) {
    for (const auto& [family, gauge] : shown_once_) family->Remove(gauge);
    shown_once_.clear();
    for (const auto& [model, totals] : PlacesByModel(snapshot)) {
      Show(places_, "model", model, "taken", totals.taken);
      Show(places_, "model", model, "free", totals.free);
      Show(places_, "model", model, "unhealthy", totals.unhealthy);
      if (totals.taken_bytes + totals.free_bytes == 0) continue;  // not known
      Show(place_memory_, "model", model, "taken", totals.taken_bytes);
      Show(place_memory_, "model", model, "free", totals.free_bytes);
    }
  }

  void ShowConditions(const Snapshot& snapshot) BERTH_REQUIRES(scrape_mutex_) {
    std::map<std::string, int> nodes;
    for (NodeIndex node = 0; node < snapshot.size(); ++node) {
      const std::string& condition = snapshot.node(node).spec().gpu_condition;
      if (!condition.empty()) ++nodes[condition];
    }
    for (const auto& [condition, count] : nodes) {
      Show(conditions_, {{"condition", condition}}, count);
    }
  }

  void ShowWatts(const Snapshot& snapshot) BERTH_REQUIRES(scrape_mutex_) {
    std::map<std::string, double> by_model;
    for (NodeIndex node = 0; node < snapshot.size(); ++node) {
      const auto watts = EstimatedWatts(snapshot.node(node));
      if (watts) by_model[snapshot.node(node).spec().gpu_model] += *watts;
    }
    for (const auto& [model, watts] : by_model) Show(watts_, {{"model", model}}, watts);
  }

  void ShowVendors(const Snapshot& snapshot) BERTH_REQUIRES(scrape_mutex_) {
    for (const auto& [vendor, totals] : TotalsByVendor(snapshot)) {
      Show(vendor_gpus_, "vendor", vendor, "allocated", totals.gpus.allocated);
      Show(vendor_gpus_, "vendor", vendor, "free", totals.gpus.free);
      Show(vendor_gpus_, "vendor", vendor, "unhealthy", totals.gpus.unhealthy);
      Show(vendor_places_, "vendor", vendor, "taken", totals.places.taken);
      Show(vendor_places_, "vendor", vendor, "free", totals.places.free);
      Show(vendor_places_, "vendor", vendor, "unhealthy", totals.places.unhealthy);
    }
  }

  // Until the next scrape.
  void Show(prometheus::Family<prometheus::Gauge>& family, const char* label,
            const std::string& whose, const char* state, double value)
      BERTH_REQUIRES(scrape_mutex_) {
    Show(family, {{label, whose}, {"state", state}}, value);
  }
  void Show(prometheus::Family<prometheus::Gauge>& family, const prometheus::Labels& labels,
            double value) BERTH_REQUIRES(scrape_mutex_) {
    prometheus::Gauge& gauge = family.Add(labels);
    gauge.Set(value);
    shown_once_.emplace_back(&family, &gauge);
  }

  struct ModelGauges {
    prometheus::Gauge *allocated, *free, *unhealthy, *idle, *claimed;
  };

  // A model that is gone disappears; otherwise its last numbers would be shown for ever.
  void Hide(const ModelGauges& gauges) {
    for (prometheus::Gauge* gauge : {gauges.allocated, gauges.free, gauges.unhealthy}) {
      gpus_.Remove(gauge);
    }
    idle_.Remove(gauges.idle);
    claimed_.Remove(gauges.claimed);
  }

  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& calls_;
  prometheus::Family<prometheus::Counter>& refusals_;
  prometheus::Family<prometheus::Gauge>& gpus_;
  prometheus::Family<prometheus::Gauge>& idle_;
  prometheus::Family<prometheus::Gauge>& claimed_;
  prometheus::Family<prometheus::Gauge>& places_;
  prometheus::Family<prometheus::Gauge>& place_memory_;
  prometheus::Family<prometheus::Gauge>& vendor_gpus_;
  prometheus::Family<prometheus::Gauge>& vendor_places_;
  prometheus::Gauge& nodes_;
  prometheus::Gauge& reservations_;
  prometheus::Gauge& without_devices_;
  prometheus::Gauge& unguarded_;
  prometheus::Family<prometheus::Gauge>& conditions_;
  prometheus::Family<prometheus::Gauge>& watts_;
  std::array<prometheus::Histogram*, kVerbs.size()> seconds_{};
  std::array<prometheus::Histogram*, kVerbs.size()> arrival_{};
  std::array<prometheus::Histogram*, kAsks.size()> waits_{};
  std::array<prometheus::Histogram*, kSizes.size()> link_quality_{};
  std::array<std::array<prometheus::Counter*, kResults.size()>, kVerbs.size()> count_{};
  std::array<prometheus::Counter*, static_cast<std::size_t>(Reason::kCount)> refusal_{};
  prometheus::Family<prometheus::Gauge>& config_;
  prometheus::Gauge& reload_failed_;
  prometheus::Gauge& needs_restart_;
  prometheus::Gauge& decisions_changed_;
  prometheus::Family<prometheus::Counter>& gang_aborts_;
  prometheus::Histogram& gang_hold_;
  prometheus::Counter* gang_planned_ = nullptr;
  prometheus::Counter* gang_without_room_ = nullptr;
  std::array<prometheus::Counter*, kReloadResults.size()> reloads_{};
  Mutex scrape_mutex_;  // gauges of one scrape are of one snapshot
  std::map<std::string, ModelGauges> shown_ BERTH_GUARDED_BY(scrape_mutex_);
  std::vector<std::pair<prometheus::Family<prometheus::Gauge>*, prometheus::Gauge*>> shown_once_
      BERTH_GUARDED_BY(scrape_mutex_);
  prometheus::Gauge* config_shown_ BERTH_GUARDED_BY(scrape_mutex_) = nullptr;
};

Metrics::Metrics() : impl_(std::make_unique<Impl>()) {}

Metrics::~Metrics() = default;

void Metrics::CountCall(Verb verb, CallResult result, std::chrono::duration<double> taken) {
  impl_->CountCall(verb, result, taken.count());
}

void Metrics::CountUnavailable(Verb verb) { impl_->CountUnavailable(verb); }

void Metrics::CountRefusal(Reason reason) { impl_->CountRefusal(reason); }

void Metrics::ObserveWait(const Placement& placement, std::chrono::duration<double> waited) {
  impl_->ObserveWait(placement, waited.count());
}

void Metrics::ObserveArrival(Verb verb, std::chrono::duration<double> taken) {
  impl_->ObserveArrival(verb, taken.count());
}

void Metrics::Count(const GangNews& news) { impl_->Count(news); }

void Metrics::ObserveLinkQuality(std::size_t gpus, double ratio) {
  impl_->ObserveLinkQuality(gpus, ratio);
}

void Metrics::ShowConfig(std::string_view hash, bool needs_restart) {
  impl_->ShowConfig(hash, needs_restart);
}

void Metrics::CountReload(ReloadResult result, bool failed) { impl_->CountReload(result, failed); }

void Metrics::ShowDecisionsChanged(double ratio) { impl_->ShowDecisionsChanged(ratio); }

std::string Metrics::Text(const Snapshot& snapshot) { return impl_->Text(snapshot); }

}  // namespace berth
