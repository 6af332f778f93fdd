// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/choice_policy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "bench/rules/nvidia_best_effort.h"
#include "topology/links/gpu_links.h"
#include "topology/links/wiring.h"

namespace berth::replay {
namespace {

constexpr std::array<ChoicePolicyName, 8> kChoicePolicies = {{
    {"berth", ChoicePolicy::kBerth},
    {"first-fit", ChoicePolicy::kFirstFit},
    {"nvidia-best-effort", ChoicePolicy::kNvidiaBestEffort},
    {"nvidia-simple", ChoicePolicy::kNvidiaSimple},
    {"nvidia-static-dgx1-pascal", ChoicePolicy::kNvidiaStaticDgx1Pascal},
    {"nvidia-static-dgx1-volta", ChoicePolicy::kNvidiaStaticDgx1Volta},
    {"nvidia-static-dgx2-volta", ChoicePolicy::kNvidiaStaticDgx2Volta},
    {"hami-topology", ChoicePolicy::kHamiTopology},
}};

GpuMask LowestOf(const ChoiceRequest& request) {
  GpuMask set = request.required;
  for (GpuMask rest = request.free & ~set; std::popcount(set) < request.size; rest &= rest - 1) {
    set |= rest & (~rest + 1);
  }
  return set;
}

// What LinkOfNvidiaScore reads back.
int NvidiaPairScore(const Link& link) {
  return 10 * static_cast<int>(link.pcie) + 100 * std::min(int{link.fabric_links}, 18);
}

std::vector<int> PairScores(const LinkMatrix& matrix) {
  std::vector<int> scores;
  for (int a = 0; a < matrix.gpu_count(); ++a) {
    for (int b = 0; b < matrix.gpu_count(); ++b) {
      scores.push_back(a == b ? 0 : NvidiaPairScore(matrix.link(a, b)));
    }
  }
  return scores;
}

// The fixed sets of a size, in the order in which they are tried.
std::vector<GpuMask> StaticSets(ChoicePolicy policy, int size) {
  std::vector<GpuMask> sets;
  const bool dgx2 = policy == ChoicePolicy::kNvidiaStaticDgx2Volta;
  if (size == 2 && policy == ChoicePolicy::kNvidiaStaticDgx1Pascal) {
    return {GpuBit(0) | GpuBit(2), GpuBit(1) | GpuBit(3), GpuBit(4) | GpuBit(6),
            GpuBit(5) | GpuBit(7)};
  }
  if (size == 2 && policy == ChoicePolicy::kNvidiaStaticDgx1Volta) {
    return {GpuBit(0) | GpuBit(3), GpuBit(1) | GpuBit(2), GpuBit(4) | GpuBit(7),
            GpuBit(5) | GpuBit(6)};
  }
  const int gpus = dgx2 ? 16 : 8;
  if (!std::has_single_bit(static_cast<unsigned>(size)) || size > gpus) return sets;
  for (int first = 0; first < gpus; first += size) sets.push_back(AllGpus(size) << first);
  return sets;
}

Choice ChooseStatic(ChoicePolicy policy, const ChoiceRequest& request) {
  const std::vector<GpuMask> sets = StaticSets(policy, request.size);
  if (sets.empty()) {
    return {0, "this policy has no sets of " + std::to_string(request.size) + " GPUs"};
  }
  for (const GpuMask set : sets) {
    if ((set & ~request.free) == 0 && (request.required & ~set) == 0) return {set, ""};
  }
  return {0, "none of this policy's sets of " + std::to_string(request.size) +
                 " GPUs is free and has the required ones"};
}

// HAMi: the combination of the highest score; the first one wins a tie, in lexicographic order.
class HamiSearch {
 public:
  HamiSearch(const LinkMatrix& matrix, const ChoiceRequest& request)
      : gpus_(matrix.gpu_count()), request_(request), scores_(PairScores(matrix)) {}

  GpuMask Run() {
    if (request_.size == 1) return Single();
    Visit(0, 0, 0);
    return best_;
  }

 private:
  [[nodiscard]] int ScoreWith(int gpu, GpuMask set) const {
    int score = 0;
    for (; set != 0; set &= set - 1) {
      score += scores_[static_cast<std::size_t>(gpu * gpus_ + std::countr_zero(set))];
    }
    return score;
  }

  [[nodiscard]] GpuMask Single() const {
    if (request_.required != 0) return request_.required;
    GpuMask best = 0;
    int lowest = 0;
    for (GpuMask rest = request_.free; rest != 0; rest &= rest - 1) {
      const int score = ScoreWith(std::countr_zero(rest), request_.free);
      if (best != 0 && score >= lowest) continue;
      best = rest & (~rest + 1);
      lowest = score;
    }
    return best;
  }

  void Visit(GpuMask set, int from, int score) {
    if (std::popcount(set) == request_.size) {
      if ((request_.required & ~set) != 0 || score <= best_score_) return;
      best_ = set;
      best_score_ = score;
      return;
    }
    for (int gpu = from; gpu < gpus_; ++gpu) {
      if ((request_.free & GpuBit(gpu)) == 0) continue;
      Visit(set | GpuBit(gpu), gpu + 1, score + ScoreWith(gpu, set));
    }
  }

  int gpus_;
  ChoiceRequest request_;
  std::vector<int> scores_;
  GpuMask best_ = 0;
  int best_score_ = -1;
};

std::string WhyImpossible(const ChoiceRequest& request) {
  const int free = std::popcount(request.free);
  const int required = std::popcount(request.required);
  if (request.size < 1) return "want at least 1 GPU, asked for " + std::to_string(request.size);
  if (request.size > free) {
    return "needs " + std::to_string(request.size) + " GPUs; " + std::to_string(free) + " free";
  }
  if (required > request.size) {
    return "needs " + std::to_string(request.size) + " GPUs; " + std::to_string(required) +
           " are required";
  }
  if ((request.required & ~request.free) != 0) {
    return "GPU " + std::to_string(std::countr_zero(request.required & ~request.free)) +
           " is required and not free";
  }
  return "";
}

}  // namespace

std::span<const ChoicePolicyName> ChoicePolicies() { return kChoicePolicies; }

Result<ChoicePolicy> ParseChoicePolicy(std::string_view name) {
  std::string wanted;
  for (const ChoicePolicyName& policy : kChoicePolicies) {
    if (policy.name == name) return policy.policy;
    wanted += std::string(policy.name) + ", ";
  }
  return Invalid("want one of " + wanted + "got \"" + std::string(name) + "\"");
}

Choice ChooseGpus(const LinkMatrix& matrix, const WiringSets& sets, ChoicePolicy policy,
                  const ChoiceRequest& request) {
  if (std::string reason = WhyImpossible(request); !reason.empty()) return {0, std::move(reason)};
  const bool bounded = std::popcount(request.free) <= kMaxPartitionGpus;
  const std::string too_many = "this policy enumerates: want at most " +
                               std::to_string(kMaxPartitionGpus) + " free GPUs, got " +
                               std::to_string(std::popcount(request.free));
  switch (policy) {
    case ChoicePolicy::kBerth:
      return {sets.Choose(request.free, request.size, request.required, request.tenants), ""};
    case ChoicePolicy::kFirstFit:
    case ChoicePolicy::kNvidiaSimple:
      return {LowestOf(request), ""};
    case ChoicePolicy::kNvidiaBestEffort: {
      if (!bounded) return {0, too_many};
      const GpuMask set = NvidiaBestEffort(PairScores(matrix), matrix.gpu_count(), request);
      return {set, set == 0 ? "no partition has a set with all required GPUs" : ""};
    }
    case ChoicePolicy::kHamiTopology:
      if (!bounded) return {0, too_many};
      return {HamiSearch(matrix, request).Run(), ""};
    default:
      return ChooseStatic(policy, request);
  }
}

}  // namespace berth::replay
