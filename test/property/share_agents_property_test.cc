// SPDX-License-Identifier: Apache-2.0
//
// Nodes of every agent that hands out parts of GPUs, pods in everybody's words, and the agents' own
// schedulers beside: what is written on pods never promises more of a GPU than it has. The sums are
// read from the annotations alone, as the agents read them. BERTH_SOAK_STEPS sets the steps.
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "test/support/agent_world.h"

namespace berth {
namespace {

using test::AgentWorld;
using test::Json;
using test::NodeWith;
using test::Texts;

constexpr int kGpusEach = 4;
constexpr std::int64_t kGpuMib = 40 * 1024;
constexpr int kMostUsers = 5;
constexpr std::size_t kMostPods = 40;

// The agents, by the index of their node: nodes are sorted by name.
enum Agent : NodeIndex { kBerth, kGpushare, kHami, kVolcano, kAgents };

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
  Json plain = NodeWith({{"nvidia.com/gpu", "4"}}, {{"berth.dev/gpu-uuids", uuids}}, "a-berth");
  plain["metadata"]["labels"] = {{"nvidia.com/gpu.memory", std::to_string(kGpuMib)}};
  return {
      plain,
      NodeWith({{"aliyun.com/gpu-mem", "160"}, {"aliyun.com/gpu-count", "4"}}, {}, "b-gpushare"),
      NodeWith({{"nvidia.com/gpu", "20"}}, {{"hami.io/node-nvidia-register", list.dump()}},
               "c-hami"),
      NodeWith({{"volcano.sh/vgpu-number", "20"}}, {{"volcano.sh/node-vgpu-register", registered}},
               "d-volcano")};
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
    promises.push_back(promise);
  }
  return promises;
}

std::vector<Promise> PromisesOf(Agent agent, const Texts& written) {
  switch (agent) {
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
  explicit AgentRun(std::uint64_t seed) : random_(seed), world_(Nodes(), Giving()) {}

  void Step() {
    const std::uint64_t choice = random_.Below(10);
    if (choice < 5) return Bind();
    if (choice < 7) return LetOtherBind();
    if (choice < 8 || shown_.size() > kMostPods) return Remove();
    ShowOther();
  }
  [[nodiscard]] int bound() const { return bound_; }
  [[nodiscard]] int others() const { return others_; }

 private:
  struct Pod {
    Agent agent;
    std::vector<Promise> promises;
    Texts annotations = {};  // of another scheduler's
    Json json = {};
  };

  static Config Giving() {
    Config config = DefaultConfig();
    config.hami.give_devices = true;
    return config;
  }

  Json Ask(Agent words, const std::string& uid, std::int64_t memory_mib, int cores) {
    const std::string memory = std::to_string(memory_mib), percent = std::to_string(cores);
    const bool whole = random_.Below(10) == 0;
    switch (words) {
      case kGpushare:
        return test::PodAsking(uid, {{"aliyun.com/gpu-mem", std::to_string(memory_mib / 1024)}});
      case kHami:
        if (whole) return test::PodAsking(uid, {{"nvidia.com/gpu", "2"}});
        return test::PodAsking(uid, {{"nvidia.com/gpu", "1"},
                                     {"nvidia.com/gpumem", memory},
                                     {"nvidia.com/gpucores", percent}});
      case kVolcano:
        if (whole) return test::PodAsking(uid, {{"volcano.sh/vgpu-number", "1"}});
        return test::PodAsking(uid, {{"volcano.sh/vgpu-number", "1"},
                                     {"volcano.sh/vgpu-memory", memory},
                                     {"volcano.sh/vgpu-cores", percent}});
      default:
        return test::PodAsking(uid, {{"berth.dev/gpu-memory-mib", memory}});
    }
  }

  std::int64_t SomeMemory() { return 1024 * (1 + static_cast<std::int64_t>(random_.Below(30))); }
  int SomeCores() { return 10 * static_cast<int>(random_.Below(8)); }
  Agent SomeAgent() { return static_cast<Agent>(random_.Below(kAgents)); }

  // A pod in anybody's words, on any of the nodes.
  void Bind() {
    const Agent words = SomeAgent(), agent = SomeAgent();
    const std::string uid = "p" + std::to_string(next_++);
    const Json pod = Ask(words, uid, SomeMemory(), SomeCores());
    const Texts written = world_.Bind(pod, agent);
    if (written.empty()) return;
    // nvidia.com/gpu alone is asked for in HAMi's words and in those of the device plugin.
    const bool plain =
        words == kHami && agent == kBerth && pod["spec"].dump().find("gpumem") == std::string::npos;
    ASSERT_TRUE(words == agent || plain) << "words " << words << " on " << agent;
    const Pod& added = shown_[uid] = {agent, PromisesOf(agent, written)};
    ++bound_;
    for (const Promise& promise : added.promises) Check(agent, promise.gpu);
  }

  // Its own books are what pods say: what is on its way to Berth, too.
  void LetOtherBind() {
    const Agent agent = SomeAgent();
    if (agent == kBerth) return;
    Promise promise{static_cast<int>(random_.Below(kGpusEach)), SomeMemory(), SomeCores()};
    if (agent == kGpushare) promise.cores = 0;
    Promise sum = SumOf(agent, promise.gpu);
    std::size_t users = UsersOf(agent, promise.gpu);
    for (const auto& [uid, pod] : coming_) {
      if (pod.agent != agent || pod.promises[0].gpu != promise.gpu) continue;
      sum.memory_mib += pod.promises[0].memory_mib;
      sum.cores += pod.promises[0].cores;
      ++users;
    }
    if (sum.memory_mib + promise.memory_mib > kGpuMib || sum.cores + promise.cores > 100) return;
    if (users >= kMostUsers) return;
    const std::string uid = "o" + std::to_string(next_++);
    const std::string text = UuidOf(promise.gpu) + ",NVIDIA," + std::to_string(promise.memory_mib) +
                             "," + std::to_string(promise.cores) + ":";
    const Texts written = agent == kGpushare
                              ? Texts{{"ALIYUN_COM_GPU_MEM_IDX", std::to_string(promise.gpu)}}
                          : agent == kHami ? Texts{{"hami.io/vgpu-devices-allocated", text + ";"}}
                                           : Texts{{"volcano.sh/vgpu-ids-new", text}};
    coming_.emplace_back(
        uid, Pod{agent, {promise}, written, PartOf(agent, uid, promise.memory_mib, promise.cores)});
  }

  // As Ask, and never a whole GPU.
  Json PartOf(Agent agent, const std::string& uid, std::int64_t memory_mib, int cores) {
    while (true) {
      Json pod = Ask(agent, uid, memory_mib, cores);
      const std::string text = pod.dump();
      if (text.find("mem") != std::string::npos) return pod;
    }
  }

  void ShowOther() {
    if (coming_.empty()) return;
    auto [uid, pod] = std::move(coming_.front());
    coming_.pop_front();
    const auto& [key, value] = *pod.annotations.begin();
    ASSERT_EQ(world_.Show(pod.json, key, value, pod.agent), "");
    shown_[uid] = std::move(pod);
    ++others_;
  }

  void Remove() {
    if (shown_.empty()) return;
    auto at = shown_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.Below(shown_.size())));
    world_.Remove(at->first);
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

  // Of a GPU of which Berth has just given a part.
  void Check(Agent agent, int gpu) {
    const Promise sum = SumOf(agent, gpu);
    ASSERT_LE(sum.memory_mib, kGpuMib) << "agent " << agent << " GPU " << gpu << Story(agent, gpu);
    ASSERT_LE(sum.cores, 100) << "agent " << agent << " GPU " << gpu;
    if (agent == kHami || agent == kVolcano) {
      ASSERT_LE(UsersOf(agent, gpu), std::size_t{kMostUsers}) << "agent " << agent;
    }
  }

  Random random_;
  AgentWorld world_;
  std::map<std::string, Pod> shown_;                // what Berth has heard of
  std::deque<std::pair<std::string, Pod>> coming_;  // bound by others, not heard of yet
  int next_ = 0, bound_ = 0, others_ = 0;
};

TEST(ShareAgents, ArePromisedNoMoreOfAGpuThanItHas) {
  const char* const wanted = std::getenv("BERTH_SOAK_STEPS");
  const int steps = wanted == nullptr ? 20'000 : std::atoi(wanted);
  AgentRun run(17);
  for (int i = 0; i < steps && !HasFatalFailure(); ++i) run.Step();
  EXPECT_GT(run.bound(), steps / 20);
  EXPECT_GT(run.others(), steps / 100);
  std::printf("%d steps: %d pods bound by Berth, %d by others\n", steps, run.bound(), run.others());
}

}  // namespace
}  // namespace berth
