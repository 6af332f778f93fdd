// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "bench/lab/classes/class_policies.h"
#include "bench/lab/classes/class_simulation.h"
#include "test/support/build_paths.h"
#include "test/support/builders.h"
#include "test/support/read_text.h"

namespace berth::replay::classes_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using test::ANode;
using test::APod;

constexpr std::size_t kTraining = 0, kInference = 1, kBatch = 2, kAll = 3;

ClassPolicy PolicyOf(std::string_view name) {
  return ClassPolicyNamed(name, BerthWithExample()).value();
}

// One node of every family, with so many GPUs each.
ClassWorkload OneNodeEach(int gpus) {
  ClassWorkload workload;
  const std::vector<std::vector<std::string>> traits = {
      {"family=rdma", "nvlink", "nvme", "rdma"}, {"family=plain"}, {"family=spot", "spot"}};
  const std::vector<double> prices = {4, 3, 1};
  for (std::size_t f = 0; f < kFamilies; ++f) {
    NodeSpec node = ANode("n" + std::to_string(f)).Gpus(gpus).Model("gpu").Spec();
    node.traits = traits[f];
    node.gpu_price = prices[f];
    workload.nodes.push_back(node);
    workload.families.push_back(f);
  }
  workload.kinds = {APod("one").Whole(1).Shape(), APod("two").Whole(2).Shape()};
  workload.horizon = hours(10);
  return workload;
}

TEST(ClassPolicies, TheExampleIsTheDocumentedOne) {
  std::string page;
  std::istringstream lines(test::ReadText(test::SourceDir() + "/docs/workload-classes.md"));
  for (std::string line; std::getline(lines, line);) {
    page += (line.starts_with("    ") ? line.substr(4) : line) + "\n";
  }
  EXPECT_NE(page.find(kClassExample), std::string::npos);
}

// The family of the node on which the only pod of the class ran.
std::string FamilyTakenBy(std::size_t work, const std::string& policy) {
  ClassWorkload workload = OneNodeEach(4);
  workload.pods = {{work, 0, Millis(0), hours(1)}};
  const ClassResult result = SimulateClasses(workload, PolicyOf(policy), 1).value();
  const auto& held = result[work].held_gpu_hours;
  const auto on = std::ranges::find(held, 1.0);
  return on == held.end() ? "" : std::string(kFamilyTraits[std::size_t(on - held.begin())]);
}

TEST(ClassPolicies, TakeTheNodesThatTheyAreMeantToTake) {
  for (const char* policy : {"classes", "affinity", "flavors", "flavors-packed"}) {
    EXPECT_EQ(FamilyTakenBy(kTraining, policy), "family=rdma") << policy;
    EXPECT_EQ(FamilyTakenBy(kBatch, policy), "family=spot") << policy;
  }
  EXPECT_EQ(FamilyTakenBy(kInference, "classes"), "family=spot");
  EXPECT_EQ(FamilyTakenBy(kInference, "flavors"), "family=spot");
  EXPECT_NE(FamilyTakenBy(kInference, "affinity"), "family=rdma");
}

// Three pods with a node's GPUs each: those of hard affinity wait, the others take what is left.
TEST(ClassPolicies, GiveWayWhereTheirNodesAreFull) {
  for (const std::string_view name : ClassPolicyNames()) {
    ClassWorkload workload = OneNodeEach(2);
    for (int i = 0; i < 3; ++i) workload.pods.push_back({kBatch, 1, Millis(0), hours(1)});
    const WorkService batch = SimulateClasses(workload, PolicyOf(name), 1).value()[kBatch];
    const bool hard = name == "affinity";
    EXPECT_NEAR(batch.mean_wait_s, hard ? 3600 : 0, 1) << name;
    EXPECT_NEAR(batch.served_pct(), 100, 1e-9) << name;
    EXPECT_NEAR(batch.paid, hard ? 6 : 2 + 6 + 8, 1e-9) << name;
  }
}

// By hand: two GPUs on the spot node from 0, reclaimed at 90 min, at once on again (the node is
// empty), the second time to the end.
TEST(ClassSimulation, CountsWhatAReclaimUndid) {
  struct Case {
    std::size_t work;
    double lost_hours;
  };
  for (const auto& [work, lost_hours] :
       {Case{kTraining, 0.5}, Case{kInference, 0}, Case{kBatch, 1.5}}) {
    ClassWorkload workload = OneNodeEach(2);
    workload.nodes = {workload.nodes[kSpotFamily]};
    workload.families = {kSpotFamily};
    workload.pods = {{work, 1, Millis(0), hours(3)}};
    workload.reclaims = {{0, minutes(90)}};
    const ClassResult result = SimulateClasses(workload, PolicyOf("classes"), 1).value();
    const WorkService& service = result[work];
    EXPECT_EQ(service.reclaimed, 1);
    EXPECT_NEAR(service.served_gpu_hours, 2 * 3, 1e-9) << work;
    EXPECT_NEAR(service.held(), 2 * (3 + lost_hours), 1e-9) << work;
    EXPECT_NEAR(service.paid, 2 * (3 + lost_hours), 1e-9) << work;
    EXPECT_NEAR(service.PctOn(kSpotFamily), 100, 1e-9);
    EXPECT_EQ(result[kAll].reclaimed, 1);
    EXPECT_EQ(service.mean_wait_s, 0) << "to the first start";
  }
}

TEST(ClassSimulation, CountsAPodThatNeverStarts) {
  ClassWorkload workload = OneNodeEach(2);
  workload.pods = {{kBatch, 1, Millis(0), hours(20)}, {kBatch, 1, minutes(30), hours(1)}};
  const WorkService batch = SimulateClasses(workload, PolicyOf("affinity"), 1).value()[kBatch];
  EXPECT_EQ(batch.arrived, 2);
  EXPECT_EQ(batch.never, 1);
  EXPECT_NEAR(batch.p99_wait_s, 9.5 * 3600, 1e-6);
  EXPECT_NEAR(batch.served_gpu_hours, 20, 1e-9) << "to the horizon";
  EXPECT_NEAR(batch.demand_gpu_hours, 22, 1e-9);
}

TEST(ClassSimulation, GivesTheSameForTheSameSeed) {
  ClassOptions options;
  options.hours = 6;
  const ClassWorkload workload = DrawClassWorkload(options).value();
  for (const std::string_view name : ClassPolicyNames()) {
    const ClassResult once = SimulateClasses(workload, PolicyOf(name), 1).value();
    const ClassResult twice = SimulateClasses(workload, PolicyOf(name), 1).value();
    EXPECT_EQ(once[kAll].served_gpu_hours, twice[kAll].served_gpu_hours) << name;
    EXPECT_EQ(once[kAll].paid, twice[kAll].paid) << name;
    EXPECT_EQ(once[kAll].mean_wait_s, twice[kAll].mean_wait_s) << name;
    EXPECT_GT(once[kAll].served_pct(), 50) << name;
    EXPECT_LE(once[kAll].served_gpu_hours, once[kAll].held() + 1e-9) << name;
  }
}

TEST(ClassWorkload, IsTheSameForTheSameSeedAndAsksForItsParts) {
  ClassOptions options;
  options.hours = 2000;
  options.load = 0.8;
  options.parts = {2, 1, 1};
  const ClassWorkload workload = DrawClassWorkload(options).value();
  const ClassWorkload again = DrawClassWorkload(options).value();
  ASSERT_EQ(workload.pods.size(), again.pods.size());
  EXPECT_EQ(workload.nodes, again.nodes);
  EXPECT_TRUE(std::ranges::is_sorted(workload.pods, {}, &ClassPod::at));
  PerWorkClass<double> gpu_hours{};
  for (std::size_t n = workload.primed; n < workload.pods.size(); ++n) {
    const ClassPod& pod = workload.pods[n];
    EXPECT_EQ(pod.runs, again.pods[n].runs);
    gpu_hours[pod.work] += GpusTaken(workload.kinds[pod.kind]) *
                           std::chrono::duration<double>(pod.runs).count() / 3600;
  }
  constexpr double kFleet = 16 * 8 + 24 * 4 + 16 * 4;
  for (std::size_t c = 0; c < kWorkClasses; ++c) {
    EXPECT_NEAR(gpu_hours[c] / (2000 * kFleet), 0.8 * options.parts[c] / 4, 0.03) << c;
  }
  // A reclaim in two days on each of 16 nodes.
  EXPECT_NEAR(static_cast<double>(workload.reclaims.size()), 16 * 2000.0 / 48, 100);
  EXPECT_TRUE(std::ranges::all_of(workload.reclaims, [&](const Reclaim& reclaim) {
    return workload.families[reclaim.node] == kSpotFamily;
  }));
}

TEST(ClassWorkload, RefusesWhatItCannotDraw) {
  ClassOptions options;
  options.parts = {0, 0, 0};
  EXPECT_FALSE(DrawClassWorkload(options));
  options = {};
  options.hours = 1e7;
  EXPECT_FALSE(DrawClassWorkload(options));
  EXPECT_NE(ClassPolicyNamed("best", BerthWithExample()).error().message.find("flavors"),
            std::string::npos);
  EXPECT_EQ(ClassPolicyNamed("classes", PolicyNamed("expected-waste").value()).error().message,
            "workloadClasses: want training, inference, batch, got no training");
}

}  // namespace
}  // namespace berth::replay::classes_test
