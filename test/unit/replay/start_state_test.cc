// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/start_state.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/session.h"
#include "bench/replay/workload.h"
#include "scoring/registry.h"
#include "test/support/test_certificates.h"

namespace berth::replay::start_state_test {
namespace {

// Two nodes of four GPUs, three of them taken by pods, and one that takes no task.
constexpr char kSnapshot[] = R"({"version":1,"nodes":[
  {"name":"b","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4},
  {"name":"a","gpu_model":"A100","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4},
  {"name":"c","gpu_model":"T4","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4,
   "taints":[{"key":"dedicated","value":"","effect":"NoSchedule"}]}],
 "pods":[
  {"uid":"1","namespace":"x","name":"p","node":"a","ask":{"gpus":2},
   "grants":[{"gpu":0,"milli":1000},{"gpu":3,"milli":1000}]},
  {"uid":"2","namespace":"x","name":"q","node":"b","ask":{"milli":500},
   "grants":[{"gpu":1,"milli":500}]}]})";

constexpr char kKubectl[] = R"({"kind":"List","items":[
  {"kind":"Node","metadata":{"name":"n1","labels":{"nvidia.com/gpu.product":"Tesla-T4"}},
   "status":{"allocatable":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":"4"}}},
  {"kind":"Node","metadata":{"name":"n2","labels":{"nvidia.com/gpu.product":"Tesla-T4"}},
   "status":{"allocatable":{"cpu":"8","memory":"32Gi","nvidia.com/gpu":"4"},
             "conditions":[{"type":"Ready","status":"False"}]}},
  {"kind":"Pod","metadata":{"name":"a","namespace":"x","uid":"1"},
   "spec":{"nodeName":"n1","containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
   "status":{"phase":"Running"}},
  {"kind":"Pod","metadata":{"name":"b","namespace":"x","uid":"2"},
   "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},
   "status":{"phase":"Pending"}}]})";

class StartStateTest : public testing::Test {
 protected:
  Workload Read(const std::string& text, std::vector<TraceTask> tasks = {}) {
    Workload workload{"w", {}, std::move(tasks)};
    const Status read = ReadCluster(folder_.WriteText("cluster", text), workload);
    EXPECT_TRUE(read) << read.error().message;
    return workload;
  }
  static ReplayPolicy BestFit() { return {"best-fit", *FindBuiltinProfile("best-fit")}; }
  static SessionOptions Options(Through through = Through::kEngine) {
    SessionOptions options;
    options.policy = BestFit();
    options.through = through;
    return options;
  }
  static TraceTask Task(const std::string& name, int gpus, std::int64_t from = 0,
                        std::int64_t until = 0) {
    return {name, 1000, 0, gpus, 1000, "", from, until};
  }

  const test::TemporaryFolder folder_;
};

TEST_F(StartStateTest, TheCapacityIsWhatIsFreeAtTheStart) {
  const Workload workload = Read(kSnapshot);
  ASSERT_NE(workload.start, nullptr);
  EXPECT_EQ(workload.start->pods(), 2u);
  ASSERT_EQ(workload.nodes.size(), 3u);
  EXPECT_EQ(workload.nodes[0].name, "a");
  EXPECT_EQ(workload.nodes[0].free_milli, 2000);
  EXPECT_EQ(workload.nodes[1].free_milli, 3500);
  EXPECT_EQ(workload.nodes[2].free_milli, 0) << "no task tolerates its taint";
  EXPECT_EQ(GpuCapacityMilli(workload.nodes), 5500);
}

TEST_F(StartStateTest, WhatKubectlPrintsIsAClusterToo) {
  const Workload workload = Read(kKubectl);
  ASSERT_NE(workload.start, nullptr);
  EXPECT_EQ(workload.start->pods(), 1u) << "a pod that waits is no part of it";
  EXPECT_EQ(GpuCapacityMilli(workload.nodes), 3000) << "a node that is not ready takes nothing";
}

TEST_F(StartStateTest, ATableOfNodesIsReadAsBefore) {
  const Workload workload = Read("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1000,2,T4\n");
  EXPECT_EQ(workload.start, nullptr);
  EXPECT_EQ(GpuCapacityMilli(workload.nodes), 2000);
}

TEST_F(StartStateTest, AFileThatIsNeitherIsNamed) {
  Workload workload;
  const std::string file = folder_.WriteText("cluster", R"({"version":2})");
  const Status read = ReadCluster(file, workload);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, file + ": version: want 1..1, got 2");
}

TEST_F(StartStateTest, ThatNoGpuIsFreeIsSaidWithTheReason) {
  const std::string path = folder_.WriteText("closed", R"({"version":1,"nodes":[
    {"name":"a","gpu_model":"T4","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":4,
     "taints":[{"key":"dedicated","value":"","effect":"NoSchedule"}]},
    {"name":"b","gpu_model":"T4","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":1},
    {"name":"c","cpu_milli":64000,"memory_bytes":1099511627776,"gpus":0}],"pods":[
    {"uid":"1","namespace":"x","name":"p","node":"b","ask":{"gpus":1},
     "grants":[{"gpu":0,"milli":1000}]}]})");
  Workload workload;
  const Status read = ReadCluster(path, workload);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message,
            path +
                ": want a GPU that tasks can take, got none: 1 GPU node with taints, which "
                "tasks do not tolerate; 1 GPU node with no GPU free");
}

TEST_F(StartStateTest, TasksGetWhatThePodsThatAreThereLeave) {
  const Workload workload =
      Read(kSnapshot, {Task("p0", 1), Task("p1", 1), Task("p2", 1), Task("p3", 1), Task("p4", 1)});
  const auto told = RunSession(workload, {{0, 1, 2, 3, 4, 0}, {2, 0, 1}}, Options(), {});
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->replay.gpus_total, 5);
  EXPECT_EQ(told->replay.placed, 5);
  EXPECT_EQ(told->replay.refused, 1) << "half of a GPU is left";
}

TEST_F(StartStateTest, ThePodsThatAreThereStayToTheEnd) {
  const Workload workload = Read(kSnapshot, {Task("fits", 3, 0, 100), Task("not", 4, 0, 1000)});
  const Stream stream = StreamOfTrace(workload.tasks);
  PodStarts starts;
  const auto told =
      RunTimedSession(workload, {{0, 1}, {0, 1, 2}}, stream, BestFit(), 1, {}, 0, &starts);
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->gpus_total, 5);
  const auto& all = told->service[static_cast<std::size_t>(SizeClass::kAll)];
  EXPECT_EQ(all.arrived, 2);
  EXPECT_EQ(all.never, 1);
}

TEST_F(StartStateTest, AServerIsNotAskedAboutIt) {
  const Workload workload = Read(kSnapshot, {Task("p", 1)});
  const auto told = RunSession(workload, {{0}, {0, 1, 2}}, Options(Through::kHttp), {});
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().message, "through: want engine with a cluster that has pods, got http");
}

}  // namespace
}  // namespace berth::replay::start_state_test
