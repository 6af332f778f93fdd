// SPDX-License-Identifier: Apache-2.0
//
// The bounds that SECURITY.md states are those that are in use. That each is kept is for the tests
// of what it bounds, some of them with smaller numbers; test/arch/stated_bounds.txt names them all.
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/claims/device_claim.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/held_bytes.h"
#include "config/load.h"
#include "scoring/engine/profile_tables.h"
#include "scoring/explain/what_if.h"
#include "server/dialects/dra/device_claims.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/waiting/pending_pods.h"
#include "server/extender/waiting/refused_pods.h"
#include "server/http/http_server.h"
#include "server/kube/client/api_client.h"
#include "server/kube/watch/gang_history.h"
#include "server/kube/watch/kubelet_refusals.h"
#include "server/kube/watch/reflector.h"
#include "server/kube/write/pod_writes.h"
#include "server/pages/page_writer.h"
#include "server/pages/plan_page.h"
#include "server/planners/moves/room_maker.h"
#include "server/planners/preemption/device_preemption.h"
#include "server/settings/config_file.h"
#include "server/telemetry/log.h"
#include "server/why/plan_json.h"
#include "server/why/plan_request.h"
#include "server/wire/json/object_meta.h"
#include "test/support/build_paths.h"
#include "test/support/builders.h"
#include "test/support/fake_scorers.h"
#include "test/support/read_text.h"

namespace berth::test::stated_bounds_test {
namespace {

constexpr std::size_t kKiB = std::size_t{1} << 10, kMiB = std::size_t{1} << 20;

TEST(StatedBounds, OfTheServer) {
  Log log(LogLevel::kError);
  ServerConfig config = DefaultConfig().server;
  EXPECT_EQ(config.threads, 2);
  const http::HttpServerOptions service = ServiceOptions(config, log);
  EXPECT_EQ(service.max_header_bytes, 64 * kKiB);
  EXPECT_EQ(service.max_body_bytes, 128 * kMiB);
  EXPECT_EQ(service.max_request_bytes, 256 * kMiB);
  EXPECT_EQ(service.max_answer_bytes, 128 * kMiB);
  EXPECT_EQ(service.max_connections, 10'000);
  EXPECT_EQ(MostHeldBinds(config), 7'500);
  config.tls.certificate_file = "c";
  EXPECT_EQ(ServiceOptions(config, log).max_connections, 2'500);
  EXPECT_EQ(MostHeldBinds(config), 1'875);
  const http::HttpServerOptions debug = DebugOptions(config);
  EXPECT_EQ(debug.max_request_bytes, 16 * kMiB);
  EXPECT_EQ(debug.max_answer_bytes, 8 * kMiB);
  EXPECT_EQ(debug.max_body_bytes, 4 * kMiB);
}

TEST(StatedBounds, OfWhatIsKept) {
  EXPECT_EQ(PageWriter::kMostSentBytes, 64 * kMiB);
  EXPECT_EQ(PendingPods::kMostBytes, 32 * kMiB);
  EXPECT_EQ(Extender::kMaxPendingPods, 65'536u);
  EXPECT_EQ(WaitingPods::kMostBytes, 128 * kMiB);
  EXPECT_EQ(WaitingPods::kMostEnding, 4'096u);
  EXPECT_EQ(WaitingPods::kMostEndingOfNamespace, 512u);
  EXPECT_EQ(WaitingPods::kRemembersFor, std::chrono::minutes(10));
  EXPECT_EQ(WaitingPods::kSmallBytes, 4 * kKiB);
  EXPECT_EQ(RefusedPods::kMostBytes, 32 * kMiB);
  EXPECT_EQ(RefusedPods::kMostPods, 4'096u);
  EXPECT_EQ(Log::kMostHeldBytes, kMiB);
  EXPECT_EQ(GangTable::kMostGangs, 16'384u);
  EXPECT_EQ(OpenClaims::kMostBytes, 32 * kMiB);
  EXPECT_EQ(OpenClaims::kMostAwaited, 4096u);
  EXPECT_EQ(dialects::DeviceClaims::kMostPublished, 512 * kMiB);
  EXPECT_EQ(EarmarkLine::kMostPods, 16'384u);
  EXPECT_EQ(EarmarkLine::kMostVictims, 65'536u);
  EXPECT_EQ(EarmarkLine::kMostAgreed, 256u);
  EXPECT_EQ(EarmarkTable::kMostUnasked, 256u);
  EXPECT_EQ(EarmarkTable::kMostOfNamespace, 64u);
  EXPECT_EQ(EarmarkLine::kMostAwaited, 64u);
  EXPECT_EQ(EarmarkLine::kMostReserved, 256u);
  EXPECT_EQ(EarmarkLimits().reserve_within, std::chrono::hours(6));
  EXPECT_EQ(RunTimeTable::kMostKinds, 4'096u);
  EXPECT_EQ(RunTimeTable::kMostOfNamespace, 256u);
  EXPECT_EQ(RunTimes::kPerKind, 32u);
  EXPECT_EQ(JobEndTable::kMost, 32'768u);
  EXPECT_EQ(JobEndTable::kMostOfNamespace, 8'192u);
  EXPECT_EQ(kube::ApiGangHistory::kMostPods, 20'000);
  EXPECT_EQ(OwedWakes::kMost, 65'536u);
  EXPECT_EQ(kube::ApiPodWaker::kMostWaiting, 1'024u);
  EXPECT_EQ(kube::KubeletRefusals::kMostWaiting, 200u);
  EXPECT_EQ(kube::KubeletRefusals::kMostRunning, 4'096u);
  EXPECT_EQ(kube::KubeletRefusals::kForgotten, std::chrono::hours(24));
  EXPECT_EQ(DevicePreemption::kMostPerMinute, 64);
  EXPECT_EQ(DeviceRooms::kMost, 32u);
  EXPECT_EQ(DevicePreemption::kMostRemembered, 4'096u);
  EXPECT_EQ(RoomMaker::kMostRemembered, 4'096u);
  EXPECT_EQ(EvictionsUnderWay::kMost, 1'000u);
  EXPECT_EQ(kMostRequestBytes, 2 * kMiB);
  EXPECT_EQ(kMostRefusalBytes, 1'000u);
  EXPECT_EQ(kMostLabelBytes, 64 * kKiB);
  EXPECT_EQ(wire::kMostNameBytes, 253u);
  EXPECT_EQ(wire::kMostUidBytes, 507u);
}

TEST(StatedBounds, OfPlansAndLists) {
  EXPECT_EQ(wire::kMostPlanBytes, 4 * kMiB);
  EXPECT_EQ(wire::kMostPlannedPods, 10'000u);
  EXPECT_EQ(kMostWaitingPlans, 4u);
  EXPECT_EQ(kube::ListRequest().max_page_bytes, 32 * kMiB);
  EXPECT_EQ(kube::ListRequest().max_object_bytes, 64 * kMiB);
  EXPECT_EQ(kube::ReflectorOptions().max_page_bytes, 32 * kMiB);
  EXPECT_EQ(kube::ReflectorOptions().max_line_bytes, 64 * kMiB);
}

// All tables go when there are as many as may be.
TEST(StatedBounds, OfTheTablesOfAPlan) {
  int evaluations = 0;
  const auto count = [&evaluations](const Node&, const DeviceChoice&) { return ++evaluations % 2; };
  const Engine engine(ProfileOf(count));
  EngineApart apart(engine);
  const auto snapshot = SnapshotOf({ANode("a").Gpus(1)});
  const auto evaluated = [&](int i) {
    const int before = evaluations;
    const RequestShape shape = APod("p").Whole(1).CpuMilli(i).Shape();
    (void)apart.For(shape).Best(snapshot, shape);
    return evaluations - before;
  };
  for (int i = 0; i < 128; ++i) EXPECT_EQ(evaluated(i), 1) << i;
  EXPECT_EQ(evaluated(0), 0) << "all are still known";
  EXPECT_EQ(evaluated(128), 1);
  EXPECT_EQ(evaluated(127), 1) << "all were forgotten";
}

RequestShape LargeShape(int i, std::size_t bytes) {
  RequestShape shape = APod("p").Whole(1).CpuMilli(i).Shape();
  shape.model_rules = ModelRules({{true, std::string(bytes, 'x')}});
  return shape;
}

TEST(StatedBounds, OfTheShapesOfTables) {
  EXPECT_EQ(ProfileTables::kMaxShapes, 512u);
  EXPECT_EQ(ProfileTables::kMostShapeBytes, 16 * kMiB);
  ProfileTables tables(ProfileOf(CoresOf));
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1)});
  const std::vector<NodeIndex> nodes = {0};
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(tables.Filter(snapshot, LargeShape(i, 200'000), nodes).size(), 1u);
    EXPECT_LE(tables.shape_bytes(), 16 * kMiB);
  }
  EXPECT_GT(tables.shape_bytes(), 8 * kMiB);
}

TEST(StatedBounds, OfTheShapesOfRecentDecisions) {
  EXPECT_EQ(RecentDecisions::kCapacity, 64u);
  RecentDecisions decisions;
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1)});
  const std::vector<NodeIndex> nodes = {0};
  decisions.Remember(snapshot, LargeShape(1, 64 * kKiB), nodes);
  EXPECT_TRUE(decisions.All().empty());
  decisions.Remember(snapshot, LargeShape(1, 60 * kKiB), nodes);
  EXPECT_EQ(decisions.All().size(), 1u);
}

TEST(StatedBounds, OfTimeAndOfTheDeployment) {
  EXPECT_EQ(DefaultConfig().reservation_seconds, 30);
  const std::string deployment = ReadText(SourceDir() + "/manifests/base/deployment.yaml");
  EXPECT_NE(deployment.find("memory: 1Gi"), std::string::npos);
}

}  // namespace
}  // namespace berth::test::stated_bounds_test
