// SPDX-License-Identifier: Apache-2.0
//
// Nodes of every agent that hands out parts of GPUs, pods in everybody's words, and beside them the
// agents' own schedulers, KAI's pods that reserve a GPU, and ResourceClaims with GPUs or parts of
// them: what is written on pods never promises more of a GPU than it has. The sums are read from
// the annotations alone, as the agents read them. What others decide reaches Berth late, and KAI
// says later still which GPU it is. BERTH_SOAK_STEPS sets the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/support/agent_world.h"

namespace berth::test::share_agents_property_test {
namespace {

constexpr int kGpusEach = 4;
constexpr std::int64_t kGpuMib = 40 * 1024;
constexpr int kMostUsers = 5;
constexpr std::size_t kMostPods = 40;

// The agents, by the index of their node: nodes are sorted by name.
enum Agent : NodeIndex { kBerth, kGpushare, kHami, kVolcano, kKoordinator, kAgents };

constexpr std::array kNames = {"a-berth", "b-gpushare", "c-hami", "d-volcano", "e-koordinator"};
constexpr const char* kAllocatedKey = "scheduling.koordinator.sh/device-allocated";

std::string UuidOf(int gpu) { return "GPU-" + std::to_string(gpu); }

std::vector<Json> Nodes() {
  std::string uuids, registered;
  Json list = Json::array();
  for (int gpu = 0; gpu < kGpusEach; ++gpu) {
    uuids += (gpu > 0 ? "," : "") + UuidOf(gpu);
    registered += UuidOf(gpu) + ",5," + std::to_string(kGpuMib) + ",NVIDIA-A100,true,hami-core:";
    list.push_back({{"id", UuidOf(gpu)},
                    {"index", gpu},
                    {"count", kMostUsers},
                    {"devmem", kGpuMib},
                    {"mode", "hami-core"},
                    {"health", true}});
  }
  Json plain =
      NodeWith({{"nvidia.com/gpu", "4"}}, {{"berth.dev/gpu-uuids", uuids}}, kNames[kBerth]);
  plain["metadata"]["labels"] = {{"nvidia.com/gpu.memory", std::to_string(kGpuMib)}};
  const Json beside = {{"nvidia.com/gpu", "4"},
                       {"koordinator.sh/gpu-core", "400"},
                       {"koordinator.sh/gpu-memory", std::to_string(4 * kGpuMib) + "Mi"}};
  return {plain,
          NodeWith({{"aliyun.com/gpu-mem", "160"}, {"aliyun.com/gpu-count", "4"}}, {},
                   kNames[kGpushare]),
          NodeWith({{"nvidia.com/gpu", "20"}}, {{"hami.io/node-nvidia-register", list.dump()}},
                   kNames[kHami]),
          NodeWith({{"volcano.sh/vgpu-number", "20"}},
                   {{"volcano.sh/node-vgpu-register", registered}}, kNames[kVolcano]),
          NodeWith(beside, {{"berth.dev/gpu-uuids", uuids}}, kNames[kKoordinator])};
}

// koordlet's Device, with a GPU that is not healthy (-1: none).
Json DeviceWithout(int sick) {
  Json devices = Json::array();
  for (int gpu = 0; gpu < kGpusEach; ++gpu) {
    devices.push_back(
        {{"type", "gpu"},
         {"id", UuidOf(gpu)},
         {"minor", gpu},
         {"health", gpu != sick},
         {"resources", {{"koordinator.sh/gpu-memory", std::to_string(kGpuMib) + "Mi"}}}});
  }
  return {{"kind", "Device"},
          {"metadata", {{"name", kNames[kKoordinator]}}},
          {"spec", {{"devices", devices}}}};
}

// What a pod has of one GPU by its annotations.
struct Promise {
  int gpu = 0;
  std::int64_t memory_mib = 0;
  int cores = 0;  // percent; 0 = none of its own
};

std::vector<Promise> VgpuPromises(const std::string& text) {
  std::vector<Promise> promises;
  for (std::size_t at = text.find("GPU-"); at != std::string::npos;
       at = text.find("GPU-", at + 1)) {
    Promise promise;
    long long memory = 0;
    const int read = std::sscanf(text.c_str() + at, "GPU-%d,NVIDIA,%lld,%d:", &promise.gpu, &memory,
                                 &promise.cores);
    EXPECT_EQ(read, 3) << text;
    promise.memory_mib = memory;
    // Of several containers that have parts of one GPU.
    const auto same = std::ranges::find(promises, promise.gpu, &Promise::gpu);
    if (same == promises.end()) {
      promises.push_back(promise);
    } else {
      same->memory_mib += promise.memory_mib;
      same->cores += promise.cores;
    }
  }
  return promises;
}

std::vector<Promise> KoordinatorPromises(const std::string& text) {
  std::vector<Promise> promises;
  const Json allocated = Json::parse(text);
  for (const Json& gpu : allocated["gpu"]) {
    const Json& has = gpu["resources"];
    EXPECT_EQ(gpu["id"], UuidOf(gpu["minor"]));
    promises.push_back({gpu["minor"], std::stoll(std::string(has["koordinator.sh/gpu-memory"])),
                        std::stoi(has.value("koordinator.sh/gpu-core", std::string("0")))});
  }
  return promises;
}

std::vector<Promise> PromisesOf(Agent agent, const Texts& written) {
  switch (agent) {
    case kKoordinator:
      if (!written.contains(kAllocatedKey)) break;  // koordlet is away
      return KoordinatorPromises(written.at(kAllocatedKey));
    case kHami:
      return VgpuPromises(written.at("hami.io/vgpu-devices-allocated"));
    case kVolcano:
      return VgpuPromises(written.at("volcano.sh/vgpu-ids-new"));
    case kGpushare:
      return {{std::stoi(written.at("ALIYUN_COM_GPU_MEM_IDX")),
               std::stoll(written.at("ALIYUN_COM_GPU_MEM_POD")) * 1024, 0}};
    default:
      break;
  }
  std::vector<Promise> promises;
  const Json devices = Json::parse(written.at("berth.dev/devices"));
  for (const Json& gpu : devices["containers"]["main"]["gpus"]) {
    promises.push_back({gpu["index"], gpu["memory_mib"], gpu["milli"].get<int>() / 10});
  }
  return promises;
}

class AgentRun {
 public:
  explicit AgentRun(std::uint64_t seed) : random_(seed), world_(Nodes(), Giving()) {
    world_.PutDevice(DeviceWithout(-1));
  }

  void Step() {
    const std::uint64_t choice = random_.Below(20);
    if (choice < 9) return Bind();
    if (choice < 12) return LetOtherBind();
    if (choice < 13) return LetReserve();
    if (choice < 14) return LetClaim();
    if (random_.Below(50) == 0) return ChangeDevice();
    if (choice < 16 || shown_.size() > kMostPods) return Remove();
    ShowOther();
  }
  // How often it happened.
  std::map<std::string, int> counts = {};

 private:
  enum class Kind { kPod, kReservation, kClaim };
  struct Pod {
    Agent agent;
    std::vector<Promise> promises;
    Texts annotations = {};  // of another scheduler's
    Json json = {};
    Kind kind = Kind::kPod;
  };

  static Config Giving() {
    Config config = DefaultConfig();
    config.hami.give_devices = true;
    return config;
  }

  Json Ask(Agent words, const std::string& uid, std::int64_t memory_mib, int cores) {
    const std::string memory = std::to_string(memory_mib), percent = std::to_string(cores);
    const bool whole = random_.Below(10) == 0;
    const int each = random_.Below(4) == 0 ? 2 : 1;  // of so many GPUs
    const std::string gpus = std::to_string(each);
    switch (words) {
      case kGpushare:
        return PodAsking(uid, {{"aliyun.com/gpu-mem", std::to_string(memory_mib / 1024)}});
      case kHami:
        if (whole) return PodAsking(uid, {{"nvidia.com/gpu", "2"}});
        if (random_.Below(4) == 0) {
          return PodAsking(uid, {{"nvidia.com/gpu", gpus},
                                 {"nvidia.com/gpumem-percentage", PercentOf(memory_mib)},
                                 {"nvidia.com/gpucores", percent}});
        }
        return PodAsking(uid, {{"nvidia.com/gpu", gpus},
                               {"nvidia.com/gpumem", memory},
                               {"nvidia.com/gpucores", percent}});
      case kVolcano:
        if (whole) return PodAsking(uid, {{"volcano.sh/vgpu-number", "1"}});
        return PodAsking(uid, {{"volcano.sh/vgpu-number", gpus},
                               {"volcano.sh/vgpu-memory", memory},
                               {"volcano.sh/vgpu-cores", percent}});
      case kKoordinator:
        if (whole) return PodAsking(uid, {{"koordinator.sh/gpu", "200"}});
        if (random_.Below(2) == 0) {
          return PodAsking(uid, {{"koordinator.sh/gpu", std::to_string(cores + 10)}});
        }
        if (random_.Below(4) == 0) {
          return PodAsking(uid, {{"koordinator.sh/gpu-memory-ratio", PercentOf(memory_mib)},
                                 {"koordinator.sh/gpu-core", percent}});
        }
        return PodAsking(uid,
                         {{"koordinator.sh/gpu.shared", gpus},
                          {"koordinator.sh/gpu-memory", std::to_string(each * memory_mib) + "Mi"},
                          {"koordinator.sh/gpu-core", std::to_string(each * cores)}});
      default:
        return PodAsking(uid, {{"berth.dev/gpu-memory-mib", memory}});
    }
  }

  static std::string PercentOf(std::int64_t memory_mib) {
    return std::to_string(memory_mib * 100 / kGpuMib);
  }
  std::int64_t SomeMemory() { return 1024 * (1 + static_cast<std::int64_t>(random_.Below(30))); }
  int SomeCores() { return 10 * static_cast<int>(random_.Below(8)); }
  Agent SomeAgent() { return static_cast<Agent>(random_.Below(kAgents)); }

  // A pod in anybody's words, on any of the nodes.
  void Bind() {
    const Agent words = SomeAgent(), agent = SomeAgent();
    const std::string uid = "p" + std::to_string(next_++);
    Json pod = Ask(words, uid, SomeMemory(), SomeCores());
    const bool is_part = pod.dump().find("mem") != std::string::npos;
    if (is_part && (words == kHami || words == kVolcano) && random_.Below(3) == 0) {
      Json second = Ask(words, uid, SomeMemory(), SomeCores())["spec"]["containers"][0];
      second["name"] = "second";
      pod["spec"]["containers"].push_back(second);
      if (!world_.Decode(pod).refusal.empty()) return;
      ++counts["several containers"];
    }
    const int refused = random_.Below(8) == 0 ? static_cast<int>(random_.Below(kGpusEach)) : -1;
    if (refused >= 0) {
      const char* const key =
          words == kVolcano ? "volcano.sh/vgpu-nouse-gpuuuid" : "nvidia.com/nouse-gpuuuid";
      pod["metadata"]["annotations"][key] = UuidOf(refused);
    }
    const Texts written = world_.Bind(pod, agent);
    if (written.empty()) return;
    // nvidia.com/gpu alone is asked for in HAMi's words and in those of the device plugin.
    const bool plain = words == kHami && pod["spec"].dump().find("gpumem") == std::string::npos;
    const bool anyones =
        agent == kKoordinator && words == kBerth;  // koordlet serves all bound pods
    ASSERT_TRUE(words == agent || anyones || (plain && (agent == kBerth || agent == kKoordinator)))
        << "words " << words << " on " << agent;
    if (words == kKoordinator) {
      ASSERT_TRUE(served_);
    }
    const Pod& added = shown_[uid] = {agent, PromisesOf(agent, written)};
    ++counts[std::string("bound on ") + kNames[agent]];
    ++counts["bound by Berth"];
    ASSERT_FALSE(added.promises.empty());
    counts["bound to parts of several GPUs"] +=
        added.promises.size() > 1 && added.promises[0].memory_mib < kGpuMib ? 1 : 0;
    const bool is_apart = std::ranges::any_of(added.promises, [&](const Promise& promise) {
      return promise.memory_mib != added.promises[0].memory_mib;
    });
    counts["bound to unequal parts"] += is_apart ? 1 : 0;
    counts["bound off a GPU that the pod refuses"] += refused >= 0 ? 1 : 0;
    for (const Promise& promise : added.promises) {
      Check(agent, promise.gpu);
      ASSERT_NE(promise.gpu, refused);
    }
  }

  // Its own books are what pods say: what is on its way to Berth, too.
  void LetOtherBind() {
    const Agent agent = SomeAgent();
    if (agent == kBerth) return;
    Promise promise{static_cast<int>(random_.Below(kGpusEach)), SomeMemory(), SomeCores()};
    if (agent == kGpushare) promise.cores = 0;
    const auto [sum, users] = WithComing(agent, promise.gpu);
    if (sum.memory_mib + promise.memory_mib > kGpuMib || sum.cores + promise.cores > 100) return;
    if (users >= kMostUsers) return;
    const std::string uid = "o" + std::to_string(next_++);
    const std::string text = UuidOf(promise.gpu) + ",NVIDIA," + std::to_string(promise.memory_mib) +
                             "," + std::to_string(promise.cores) + ":";
    const Texts written = agent == kKoordinator ? KoordinatorTexts(promise)
                          : agent == kGpushare
                              ? Texts{{"ALIYUN_COM_GPU_MEM_IDX", std::to_string(promise.gpu)}}
                          : agent == kHami ? Texts{{"hami.io/vgpu-devices-allocated", text + ";"}}
                                           : Texts{{"volcano.sh/vgpu-ids-new", text}};
    coming_.emplace_back(uid, Pod{agent, {promise}, written, AskFor(agent, uid, promise)});
  }

  static Texts KoordinatorTexts(const Promise& promise) {
    Json has = {
        {"koordinator.sh/gpu-memory", std::to_string(promise.memory_mib) + "Mi"},
        {"koordinator.sh/gpu-memory-ratio", std::to_string(promise.memory_mib * 100 / kGpuMib)}};
    if (promise.cores > 0) has["koordinator.sh/gpu-core"] = std::to_string(promise.cores);
    const Json gpu = {{"minor", promise.gpu}, {"id", UuidOf(promise.gpu)}, {"resources", has}};
    return {{kAllocatedKey, Json{{"gpu", Json::array({gpu})}}.dump()}};
  }

  // What all have of the GPU, also who is on the way to Berth, and how many they are.
  std::pair<Promise, std::size_t> WithComing(Agent agent, int gpu) {
    Promise sum = SumOf(agent, gpu);
    std::size_t users = UsersOf(agent, gpu);
    for (const auto& [uid, pod] : coming_) {
      if (pod.agent != agent || pod.promises[0].gpu != gpu) continue;
      sum.memory_mib += pod.promises[0].memory_mib;
      sum.cores += pod.promises[0].cores;
      ++users;
    }
    return {sum, users};
  }

  // One of the nodes with whole GPUs, whose UUIDs are known.
  Agent SomeWhole() { return random_.Below(2) == 0 ? kBerth : kKoordinator; }

  // KAI puts a pod on a GPU that it shares.
  void LetReserve() {
    const Agent agent = SomeWhole();
    const auto gpu = static_cast<int>(random_.Below(kGpusEach));
    if (WithComing(agent, gpu).second > 0) return;
    const std::string uid = "r" + std::to_string(next_++);
    coming_.emplace_back(uid, Pod{agent,
                                  {{gpu, kGpuMib, 100}},
                                  {{"run.ai/reserve_for_gpu_index", UuidOf(gpu)}},
                                  PodAsking(uid, {{"nvidia.com/gpu", "1"}}),
                                  Kind::kReservation});
  }

  // kube-scheduler allocates a claim: a whole GPU, or one more part of a GPU by capacity.
  void LetClaim() {
    const Agent agent = SomeWhole();
    const auto gpu = static_cast<int>(random_.Below(kGpusEach));
    const bool shared = random_.Below(2) == 0;
    const auto of_claims = [&](const auto& entry) {
      const Pod& pod = entry.second;
      return pod.agent == agent && pod.kind == Kind::kClaim && pod.promises[0].gpu == gpu &&
             pod.json.dump().find("shareID") != std::string::npos;
    };
    const auto parts = static_cast<std::size_t>(std::ranges::count_if(shown_, of_claims) +
                                                std::ranges::count_if(coming_, of_claims));
    if (WithComing(agent, gpu).second > (shared ? parts : 0)) return;
    const std::string uid = "c" + std::to_string(next_++);
    Json result = {{"request", "gpu"},
                   {"driver", "gpu.nvidia.com"},
                   {"pool", kNames[agent]},
                   {"device", "gpu-" + std::to_string(gpu)}};
    if (shared) {
      result["shareID"] = uid;
      result["consumedCapacity"] = {{"memory", "4Gi"}};
    }
    Json claim = {{"kind", "ResourceClaim"}, {"metadata", {{"name", uid}, {"namespace", "ns"}}}};
    claim["status"]["allocation"]["devices"]["results"] = Json::array({result});
    coming_.emplace_back(uid, Pod{agent, {{gpu, kGpuMib, 100}}, {}, claim, Kind::kClaim});
  }

  // koordlet finds a GPU out of order, or in order again, or goes and comes.
  void ChangeDevice() {
    const std::uint64_t what = random_.Below(4);
    served_ = what != 0;
    sick_ = what == 1 ? static_cast<int>(random_.Below(kGpusEach)) : -1;
    if (served_) {
      world_.PutDevice(DeviceWithout(sick_));
    } else {
      world_.RemoveDevice(kNames[kKoordinator]);
    }
    ++counts["Devices changed"];
  }

  // A pod that asks the agent for just that.
  static Json AskFor(Agent agent, const std::string& uid, const Promise& promise) {
    const std::string memory = std::to_string(promise.memory_mib);
    const std::string cores = std::to_string(promise.cores);
    switch (agent) {
      case kGpushare:
        return PodAsking(uid, {{"aliyun.com/gpu-mem", std::to_string(promise.memory_mib / 1024)}});
      case kHami:
        return PodAsking(uid, {{"nvidia.com/gpu", "1"},
                               {"nvidia.com/gpumem", memory},
                               {"nvidia.com/gpucores", cores}});
      case kVolcano:
        return PodAsking(uid, {{"volcano.sh/vgpu-number", "1"},
                               {"volcano.sh/vgpu-memory", memory},
                               {"volcano.sh/vgpu-cores", cores}});
      default:
        return PodAsking(uid, {{"koordinator.sh/gpu-memory", memory + "Mi"},
                               {"koordinator.sh/gpu-core", cores}});
    }
  }

  void ShowOther() {
    if (coming_.empty()) return;
    auto [uid, pod] = std::move(coming_.front());
    coming_.pop_front();
    if (pod.kind == Kind::kClaim) {
      world_.PutClaim(pod.json);
      ++counts["claims"];
    } else {
      const auto& [key, value] = *pod.annotations.begin();
      if (pod.kind == Kind::kReservation && !unnamed_.contains(uid)) {
        // It does not run yet, so that it has some GPU.
        ASSERT_EQ(world_.Show(pod.json, key, "-1", pod.agent), "");
        unnamed_.insert(uid);
        coming_.emplace_back(uid, std::move(pod));
        return;
      }
      unnamed_.erase(uid);
      ASSERT_EQ(world_.Show(pod.json, key, value, pod.agent), "");
      ++counts[pod.kind == Kind::kReservation ? "reservations" : "bound by others"];
    }
    shown_[uid] = std::move(pod);
  }

  void Remove() {
    if (shown_.empty()) return;
    auto at = shown_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.Below(shown_.size())));
    if (at->second.kind == Kind::kClaim) {
      world_.RemoveClaim(at->first);
    } else {
      world_.Remove(at->first);
    }
    shown_.erase(at);
  }

  Promise SumOf(Agent agent, int gpu) {
    Promise sum{gpu};
    for (const auto& [uid, pod] : shown_) {
      if (pod.agent != agent) continue;
      for (const Promise& promise : pod.promises) {
        if (promise.gpu != gpu) continue;
        sum.memory_mib += promise.memory_mib;
        sum.cores += promise.cores;
      }
    }
    return sum;
  }
  std::size_t UsersOf(Agent agent, int gpu) {
    std::size_t users = 0;
    for (const auto& [uid, pod] : shown_) {
      for (const Promise& promise : pod.promises) {
        users += pod.agent == agent && promise.gpu == gpu ? 1 : 0;
      }
    }
    return users;
  }

  std::string Story(Agent agent, int gpu) {
    std::string text;
    for (const auto& [uid, pod] : shown_) {
      for (const Promise& promise : pod.promises) {
        if (pod.agent != agent || promise.gpu != gpu) continue;
        text += "\n" + uid + ": " + std::to_string(promise.memory_mib) + " MiB";
      }
    }
    for (const DeviceDispute& dispute : world_.Disputes()) {
      text += "\n" + dispute.pod.uid + " " + dispute.problem;
    }
    return text;
  }

  // Of a GPU that Berth has just given a part of.
  void Check(Agent agent, int gpu) {
    const Promise sum = SumOf(agent, gpu);
    ASSERT_LE(sum.memory_mib, kGpuMib) << "agent " << agent << " GPU " << gpu << Story(agent, gpu);
    ASSERT_LE(sum.cores, 100) << "agent " << agent << " GPU " << gpu;
    for (const auto& [uid, pod] : shown_) {
      if (pod.kind != Kind::kClaim || pod.agent != agent || pod.promises[0].gpu != gpu) continue;
      FAIL() << "agent " << agent << " GPU " << gpu << " is held by claim " << uid;
    }
    if (agent == kKoordinator) {
      ASSERT_NE(gpu, sick_);
    }
    if (agent == kHami || agent == kVolcano) {
      ASSERT_LE(UsersOf(agent, gpu), std::size_t{kMostUsers}) << "agent " << agent;
    }
  }

  Random random_;
  AgentWorld world_;
  std::map<std::string, Pod> shown_;                // what Berth has heard of
  std::deque<std::pair<std::string, Pod>> coming_;  // bound by others, not heard of yet
  std::set<std::string> unnamed_;                   // reservations without a named GPU yet
  int next_ = 0;
  bool served_ = true;  // by koordlet
  int sick_ = -1;       // the GPU that it has found out of order
};

TEST(ShareAgents, ArePromisedNoMoreOfAGpuThanItHas) {
  const char* const wanted = std::getenv("BERTH_SOAK_STEPS");
  const int steps = wanted == nullptr ? 20'000 : std::atoi(wanted);
  AgentRun run(17);
  for (int i = 0; i < steps && !HasFatalFailure(); ++i) run.Step();
  for (const char* node : kNames)
    EXPECT_GT(run.counts[std::string("bound on ") + node], steps / 1000);
  EXPECT_GT(run.counts["bound by others"], steps / 100);
  EXPECT_GT(run.counts["bound to parts of several GPUs"], steps / 1000);
  EXPECT_GT(run.counts["bound to unequal parts"], steps / 1000);
  EXPECT_GT(run.counts["bound off a GPU that the pod refuses"], steps / 1000);
  EXPECT_GT(run.counts["reservations"], steps / 1000);
  EXPECT_GT(run.counts["claims"], steps / 1000);
  std::printf("%d steps:", steps);
  for (const auto& [what, count] : run.counts) std::printf(" %s %d;", what.c_str(), count);
  std::printf("\n");
}

}  // namespace
}  // namespace berth::test::share_agents_property_test
