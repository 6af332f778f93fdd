// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/shares/share_workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "bench/replay/text.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kBytesPerGib = std::int64_t{1} << 30;
constexpr int kCoresPerGpu = 32;
constexpr int kMostGpusPerFleet = 1'000'000;

// gpus = 0: a share, of one of these amounts each.
struct ShareClass {
  double weight;
  int gpus;
  std::vector<int> milli;
  std::vector<int> gib;
};
struct ShareMix {
  std::string_view name;
  std::vector<ShareClass> classes;
};

const ShareClass kNotebook = {1, 0, {50, 100, 150, 200}, {4, 6, 8, 12, 16}};
const ShareClass kInference = {1, 0, {50, 100, 150, 200}, {16, 20, 24, 32, 40, 60}};
const ShareClass kTraining = {1, 0, {200, 300, 400, 500, 700}, {4, 6, 8, 12, 16}};

ShareClass Times(double weight, ShareClass of) {
  of.weight *= weight;
  return of;
}
ShareClass Whole(double weight, int gpus) { return {weight, gpus, {}, {}}; }

const std::vector<ShareMix>& Mixes() {
  static const std::vector<ShareMix> mixes = {
      {"notebooks", {kNotebook}},
      {"inference", {kInference}},
      {"training", {kTraining}},
      {"both", {Times(0.5, kInference), Times(0.5, kTraining)}},
      {"whole",
       {Times(0.4, kInference), Times(0.4, kTraining), Whole(0.12, 1), Whole(0.04, 2),
        Whole(0.025, 4), Whole(0.015, 8)}},
  };
  return mixes;
}

std::vector<NodeSpec> NodesOf(const std::vector<ShareNodes>& fleet) {
  std::size_t all = 0;
  for (const ShareNodes& part : fleet) all += static_cast<std::size_t>(part.nodes);
  std::vector<NodeSpec> nodes;
  for (const ShareNodes& part : fleet) {
    for (int i = 0; i < part.nodes; ++i) {
      NodeSpec node;
      node.name = "node-" + Padded(nodes.size(), all);
      node.cpu_milli = std::int64_t{1000} * kCoresPerGpu * part.gpus;
      node.memory_bytes = 4 * kBytesPerGib * kCoresPerGpu * part.gpus;
      node.gpu_model = "gpu-" + std::to_string(part.memory_mib);
      node.gpus.assign(static_cast<std::size_t>(part.gpus), GpuSpec{"", part.memory_mib, true});
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

RequestShape ShapeOf(const ShareClass& entry, Random& random) {
  RequestShape shape;
  const int cores = std::max(1, 4 * entry.gpus);
  shape.cpu_milli = 1000 * cores;
  shape.memory_bytes = 2 * kBytesPerGib * cores;
  if (entry.gpus > 0) {
    shape.gpus = WholeGpus{entry.gpus};
    return shape;
  }
  GpuShare share;
  share.milli = entry.milli[random.Below(entry.milli.size())];
  share.memory_mib = std::int64_t{1024} * entry.gib[random.Below(entry.gib.size())];
  shape.gpus = share;
  return shape;
}

// Gives every shape its number as it comes.
class Draws {
 public:
  Draws(const ShareMix& mix, ShareWorkload& workload, double mean_card_mib)
      : mix_(mix), workload_(workload), mean_card_mib_(mean_card_mib) {
    for (const ShareClass& entry : mix.classes) weights_ += entry.weight;
  }

  std::size_t Kind(Random& random) {
    double left = random.Unit() * weights_;
    std::size_t c = 0;
    for (; c + 1 < mix_.classes.size() && left >= mix_.classes[c].weight; ++c) {
      left -= mix_.classes[c].weight;
    }
    RequestShape shape = ShapeOf(mix_.classes[c], random);
    const auto [entry, is_new] = numbers_.try_emplace(shape, workload_.kinds.size());
    if (is_new) {
      workload_.gpus.push_back(GpusOf(shape, mean_card_mib_));
      workload_.kinds.push_back(std::move(shape));
    }
    return entry->second;
  }

  // The mean request of a pod, in the scarcer of compute and memory.
  [[nodiscard]] double MeanAsk() const {
    const auto mean = [](const std::vector<int>& values) {
      double sum = 0;
      for (const int value : values) sum += value;
      return sum / static_cast<double>(values.size());
    };
    double compute = 0, memory = 0;
    for (const ShareClass& entry : mix_.classes) {
      const double part = entry.weight / weights_;
      compute += part * (entry.gpus > 0 ? entry.gpus : mean(entry.milli) / kMilliPerGpu);
      memory += part * (entry.gpus > 0 ? entry.gpus : mean(entry.gib) * 1024 / mean_card_mib_);
    }
    return std::max(compute, memory);
  }

 private:
  const ShareMix& mix_;
  ShareWorkload& workload_;
  const double mean_card_mib_;
  double weights_ = 0;
  std::map<RequestShape, std::size_t> numbers_;
};

}  // namespace

std::vector<std::string_view> ShareMixNames() {
  std::vector<std::string_view> names;
  for (const ShareMix& mix : Mixes()) names.push_back(mix.name);
  return names;
}

double GpusOf(const RequestShape& shape, double mean_card_mib) {
  const auto* const share = std::get_if<GpuShare>(&shape.gpus);
  if (share == nullptr) return shape.gpu_count();
  return std::max(static_cast<double>(share->milli) / kMilliPerGpu,
                  static_cast<double>(share->memory_mib) / mean_card_mib);
}

Result<std::vector<ShareNodes>> ParseShareFleet(const std::string& text) {
  const auto bad = [&] {
    return Invalid("fleet: want NODESxCARDSxMIB,... with at most " +
                   std::to_string(kMaxGpusPerNode) + " cards, got \"" + text + "\"");
  };
  std::vector<ShareNodes> fleet;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    ShareNodes part;
    const auto number = [&](auto& value, char after) {
      const auto [next, problem] = std::from_chars(at, end, value);
      if (problem != std::errc() || value <= 0) return false;
      at = next;
      if (after == 0) return true;
      return at != end && *at++ == after;
    };
    const bool is_read = number(part.nodes, 'x') && number(part.gpus, 'x') &&
                         number(part.memory_mib, 0) && part.gpus <= kMaxGpusPerNode &&
                         part.nodes <= kMostGpusPerFleet / part.gpus;
    if (!is_read) return bad();
    fleet.push_back(part);
    if (at == end) return fleet;
    if (*at++ != ',') return bad();
  }
}

Result<ShareWorkload> DrawShareWorkload(const std::string& mix, const ShareOptions& options) {
  const auto found = std::ranges::find(Mixes(), mix, &ShareMix::name);
  if (found == Mixes().end()) {
    return Invalid("mixes: want some of " + Join(ShareMixNames(), ", ") + ", got \"" + mix + "\"");
  }
  ShareWorkload workload;
  workload.mix = mix;
  workload.nodes = NodesOf(options.fleet);
  workload.horizon = Millis(std::llround(options.hours * 3'600'000));
  double cards = 0, memory_mib = 0;
  for (const ShareNodes& part : options.fleet) {
    cards += double(part.nodes) * part.gpus;
    memory_mib += double(part.nodes) * part.gpus * double(part.memory_mib);
  }
  Draws draws(*found, workload, memory_mib / cards);
  const double running = options.load * cards / draws.MeanAsk();
  const double per_ms = running / (options.mean_lifetime_s * 1000);
  const double expected = running + per_ms * static_cast<double>(workload.horizon.count());
  if (expected > kMostArrivals) {
    return Invalid("load, hours, mean lifetime: want at most " +
                   std::to_string(static_cast<std::int64_t>(kMostArrivals)) + " pods");
  }
  Random random(options.seed);
  const LifetimeLaw law(Lifetimes::kLogNormal, Millis(std::llround(options.mean_lifetime_s * 1e3)));
  for (; static_cast<double>(workload.pods.size()) < running; ++workload.primed) {
    const std::size_t kind = draws.Kind(random);
    workload.pods.push_back({kind, Millis(0), law.DrawResidual(random)});
  }
  PoissonTimes times(per_ms, workload.horizon);
  while (const auto at = times.Next(random)) {
    const std::size_t kind = draws.Kind(random);
    workload.pods.push_back({kind, *at, law.Draw(random)});
  }
  return workload;
}

}  // namespace berth::replay
