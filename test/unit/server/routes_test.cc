// SPDX-License-Identifier: Apache-2.0
#include "server/service/routes.h"

#include <filesystem>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "server/kube/kube_cluster.h"
#include "server/ui/page_files.h"
#include "server/why/plan_json.h"
#include "server/wire/file/cluster_file.h"
#include "test/support/build_paths.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::test::routes_test {
namespace {

TEST(Routes, HealthzIsFineEvenWhileNotReady) {
  TestService service({});
  service.readiness().Set("caches are cold");
  const http::HttpResponse response = service.Call("GET", "/healthz");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
}

TEST(Routes, ReadyzTellsTheReasonWhileNotReady) {
  TestService service({});
  EXPECT_EQ(service.Call("GET", "/readyz").status, 200);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "ok\n");
  service.readiness().Set("caches are cold");
  EXPECT_EQ(service.Call("GET", "/readyz").status, 503);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "caches are cold\n");
  service.readiness().Set(nullptr);
  EXPECT_EQ(service.Call("GET", "/readyz").status, 200);
}

// A client that kept its connection to a process that leads no longer would not find the next one.
TEST(Routes, AVerbThatCannotBeAnsweredEndsItsConnection) {
  TestService service({MachineWith("n1", 2)});
  for (const bool ready : {true, false}) {
    service.readiness().Set(ready ? nullptr : "caches are cold");
    const http::HttpResponse response = service.Call("POST", "/extender/filter", "{}");
    EXPECT_EQ(response.status == 503, !ready);
    EXPECT_EQ(response.ends_connection, !ready);
  }
}

TEST(Routes, ARefusalSaysWhoLeads) {
  EXPECT_EQ(
      NotReadyAnswer("standby: another replica is the leader", [] { return "berth-1_ab"; }).body,
      R"x({"error":"not ready: standby: another replica is the leader (leader: berth-1_ab)"})x");
  EXPECT_EQ(NotReadyAnswer("caches are cold", [] { return ""; }).body,
            R"({"error":"not ready: caches are cold"})");
  TestService service({MachineWith("n1", 2)});
  service.readiness().Set("caches are cold");
  EXPECT_EQ(service.Call("GET", "/debug/pods/ns/p").body,
            R"({"error":"not ready: caches are cold"})");
  EXPECT_EQ(service.Call("POST", "/plan", R"({"pods":[]})").body,
            R"({"error":"not ready: caches are cold"})");
}

TEST(Routes, AStandbyIsReadyAndAnswersNoVerb) {
  TestService service({MachineWith("n1", 2)});
  service.readiness().Set(kube::kStandby);
  EXPECT_EQ(service.Call("GET", "/readyz").status, 200);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "standby: another replica is the leader\n");
  EXPECT_EQ(service.Call("POST", "/extender/filter", "{}").status, 503);
  EXPECT_NE(service.Call("GET", "/metrics").body.find("berth_ready 0\n"), std::string::npos);
  service.readiness().BeginDrain();
  EXPECT_EQ(service.Call("GET", "/readyz").body, "draining\n");
}

TEST(Routes, WhoIsNotLedToIsNotReadyAndAnswersVerbs) {
  TestService service({MachineWith("n1", 2)});
  service.readiness().SetUnreachable("no label");
  EXPECT_EQ(service.Call("GET", "/readyz").status, 503);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "no label\n");
  EXPECT_NE(service.Call("GET", "/metrics").body.find("berth_ready 1\n"), std::string::npos);
  EXPECT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
  service.readiness().Set(kube::kStandby);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "no label\n");
  service.readiness().SetUnreachable(nullptr);
  EXPECT_EQ(service.Call("GET", "/readyz").status, 200);
}

TEST(Routes, WhileItDrainsReadyzSaysNoAndVerbsAreAnswered) {
  TestService service({MachineWith("n1", 2)});
  service.readiness().BeginDrain();
  service.readiness().Set(nullptr);
  EXPECT_EQ(service.Call("GET", "/readyz").status, 503);
  EXPECT_EQ(service.Call("GET", "/readyz").body, "draining\n");
  EXPECT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
}

// "METHOD PATH: HELP" for each; the docs say more behind it.
TEST(Routes, AreListedForPeopleAndInTheDocs) {
  const TestService service({});
  const std::string docs = ReadText(std::filesystem::path(SourceDir()) / "docs/commands.md");
  std::istringstream routes(service.Call("GET", "/debug").body);
  std::string line;
  for (std::istringstream rows(docs); std::getline(rows, line);) {
    if (!line.starts_with("| `GET /") && !line.starts_with("| `POST /")) continue;
    std::string route;
    std::getline(routes, route);
    const std::size_t path = route.find('/'), help = route.find(": ");
    ASSERT_NE(help, std::string::npos) << "there is no " << line;
    EXPECT_TRUE(line.starts_with("| `" + route.substr(0, help) + "` | " + route.substr(help + 2)))
        << route << "\n"
        << line;
    EXPECT_EQ(service.Call("TRACE", route.substr(path, help - path)).status, 405) << "answered";
  }
  EXPECT_FALSE(std::getline(routes, line)) << "the docs lack " << line;
}

TEST(Routes, VersionIsJson) {
  const TestService service({});
  const http::HttpResponse response = service.Call("GET", "/version");
  EXPECT_EQ(response.content_type, "application/json");
  const Json version = Json::parse(response.body);
  EXPECT_EQ(version.size(), 1u);
  EXPECT_FALSE(version["version"].get<std::string>().empty());
}

TEST(Routes, MetricsArePrometheusText) {
  const TestService service({MachineWith("n1", 2)});
  const http::HttpResponse response = service.Call("GET", "/metrics");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(response.body.find("\nberth_nodes 1\n"), std::string::npos);
}

TEST(Routes, TheSnapshotLoadsAgain) {
  TestService service({MachineWith("n1", 2), MachineWith("n2", 4)});
  ASSERT_EQ(service.Place(PodWithGpus("1", 3), "n2"), "");
  const http::HttpResponse response = service.Call("GET", "/debug/snapshot");
  EXPECT_EQ(response.content_type, "application/json");
  const auto file =
      wire::DecodeCluster(response.body, wire::NodeRules(DefaultConfig(), AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  ClusterState copy;
  ASSERT_TRUE(copy.Apply(file->events));
  EXPECT_EQ(*copy.Current(), *service.state().Current());
  EXPECT_EQ(wire::EncodeCluster(copy.Everything()), response.body);
}

TEST(Routes, TheSnapshotSaysForPeopleWhatIsTakenOfGpusThatAreCut) {
  NodeSpec cut = MachineWith("n1", 0), dynamic = MachineWith("n2", 0);
  cut.mig = NodeMig(StaticMig(1, kBalanced));
  dynamic.mig = NodeMig(DynamicMig(1));
  TestService service({cut, dynamic});
  ASSERT_EQ(service.Place(PodAsking("1", {{"nvidia.com/mig-2g.10gb", "1"}}), "n1"), "");
  ASSERT_EQ(service.Place(PodAsking("2", {{"nvidia.com/mig-3g.20gb", "1"}}), "n2"), "");
  const http::HttpResponse response = service.Call("GET", "/debug/snapshot");
  const Json nodes = Json::parse(response.body)["nodes"];
  const auto device = [](const std::string& profile, int start, int size) {
    return Json{{"profile", profile}, {"start", start}, {"size", size}};
  };
  ASSERT_EQ(nodes[0]["mig_use"].size(), 1u);
  const Json& use = nodes[0]["mig_use"][0];
  EXPECT_EQ(use["gpu"], 0);
  EXPECT_EQ(use["units"], 8);
  EXPECT_EQ(use["taken"], Json::array({device("2g.10gb", 0, 2)}));
  EXPECT_EQ(use["free"],
            Json::array({device("1g.5gb", 2, 1), device("1g.5gb", 3, 1), device("3g.20gb", 4, 4)}));
  EXPECT_EQ(nodes[1]["mig_use"][0]["taken"], Json::array({device("3g.20gb", 4, 4)}));
  EXPECT_EQ(nodes[1]["mig_use"][0]["free"], Json::array()) << "cut when a pod comes";
  EXPECT_TRUE(wire::DecodeCluster(response.body, wire::NodeRules(DefaultConfig(), AllDialects())));
  EXPECT_EQ(Json::parse(service.Call("GET", "/debug/live").body)["cells"], "[TtFFFfff] [....Tttt]");
}

TEST(Routes, PodsNodesAndModelsAreExplained) {
  TestService service({MachineWith("n1", 2)});
  ASSERT_EQ(service.Place(PodWithGpus("1", 1), "n1"), "");
  EXPECT_EQ(Json::parse(service.Call("GET", "/debug/pods/ns/pod-1").body)["node"], "n1");
  EXPECT_EQ(Json::parse(service.Call("GET", "/debug/nodes/n1").body)["idle_gpus"], 1);
  EXPECT_EQ(Json::parse(service.Call("GET", "/debug/top").body)["models"][0]["gpus"], 2);
  EXPECT_EQ(service.Call("GET", "/debug/top?text").content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(service.Call("GET", "/debug/pods/ns/none").status, 404);
  EXPECT_EQ(service.Call("GET", "/debug/gangs").status, 200) << "the list is another page";
  EXPECT_EQ(service.Call("POST", "/debug/pods/ns/pod-1").status, 405);
  service.readiness().Set("caches are cold");
  EXPECT_EQ(service.Call("GET", "/debug/pods/ns/pod-1").status, 503);
}

TEST(Routes, APlanIsMadeAndChangesNothing) {
  TestService service({MachineWith("n1", 2), MachineWith("n2", 4)});
  Json body;
  body["pods"] = Json::array({PodWithGpus("1", 4), PodWithGpus("2", 4)});
  const std::string request = body.dump();
  const auto before = service.state().Current();
  const Json told = Json::parse(service.Call("POST", "/plan", request).body);
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["fitting"], 1);
  EXPECT_EQ(told["pods"][0]["node"], "n2");
  EXPECT_EQ(told["pods"][0]["devices"]["gpus"].size(), 4u);
  EXPECT_EQ(told["pods"][1]["fits"], false);
  EXPECT_EQ(told["whys"][0]["pods"], 1);
  EXPECT_FALSE(told["whys"][0]["nearest"][0]["fits"].empty());
  EXPECT_EQ(told["after"][0]["idle"], 2);
  EXPECT_EQ(service.state().Current(), before);
  EXPECT_EQ(service.Call("POST", "/plan?text", request).content_type, "text/plain; charset=utf-8");
}

TEST(Routes, APlanThatCannotBeMadeSaysWhy) {
  TestService service({MachineWith("n1", 2)});
  const auto status = [&service](const std::string& body) {
    return service.Call("POST", "/plan", body).status;
  };
  EXPECT_EQ(service.Call("GET", "/plan").status, 405);
  EXPECT_EQ(status(""), 400);
  EXPECT_EQ(status(R"({"pods":[],"remove":["n9"]})"), 404);
  EXPECT_EQ(status(std::string(wire::kMostPlanBytes + 1, ' ')), 413);
  EXPECT_EQ(service.Call("POST", "/plan", R"({"pods":7})").body,
            R"({"error":"pods: want a list, got number"})");
  service.readiness().Set("caches are cold");
  EXPECT_EQ(status(R"({"pods":[]})"), 503);
}

TEST(Routes, TheLivePageLoadsNothingFromElsewhere) {
  const TestService service({});
  const http::HttpResponse page = service.Call("GET", "/");
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_NE(page.body.find("<html"), std::string::npos);
  EXPECT_EQ(page.policy, kPagePolicy);
  EXPECT_EQ(service.Call("GET", "/page.css").content_type, "text/css; charset=utf-8");
  EXPECT_EQ(service.Call("GET", "/page.js").content_type, "text/javascript; charset=utf-8");
}

TEST(Routes, TheLivePageSaysWhyAStandbyShowsNothing) {
  TestService service({MachineWith("n1", 2)});
  EXPECT_EQ(Json::parse(service.Call("GET", "/debug/live").body)["cells"], "..");
  service.readiness().Set(kube::kStandby);
  const http::HttpResponse response = service.Call("GET", "/debug/live");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(Json::parse(response.body)["not_ready"], kube::kStandby);
  EXPECT_EQ(Json::parse(response.body)["cells"], "");
}

TEST(Routes, TheSetOfNodesIsLeftOutForWhoHasIt) {
  const TestService service({MachineWith("n1", 2)});
  const std::string set = Json::parse(service.Call("GET", "/debug/live").body)["set"];
  EXPECT_FALSE(Json::parse(service.Call("GET", "/debug/live?set=" + set).body).contains("names"));
  EXPECT_TRUE(Json::parse(service.Call("GET", "/debug/live?set=1").body).contains("names"));
}

TEST(Routes, DebugRoutesCanBeLeftOut) {
  TestService service({MachineWith("n1", 2)});
  const RouteParts parts{service.verbs(), service.live(), service.metrics()};
  http::Router only_service, only_debug;
  AddServiceRoutes(only_service, parts);
  AddDebugRoutes(only_debug, parts);
  const auto status = [](const http::Router& router, std::string_view path) {
    http::HttpRequest request{"GET", path, "", {}};
    return router(request).status;
  };
  for (const char* path : {"/debug/snapshot", "/debug/live", "/", "/page.js"}) {
    EXPECT_EQ(status(only_service, path), 404) << path;
    EXPECT_EQ(status(only_debug, path), 200) << path;
  }
  for (const char* path : {"/metrics", "/readyz", "/version"}) {
    EXPECT_EQ(status(only_service, path), 200) << path;
    EXPECT_EQ(status(only_debug, path), 404) << path;
  }
}

TEST(Routes, TheAdviceToCutNodesOtherwiseIsThatOfThisMoment) {
  TestService service({ANode("n1").Mig(StaticMig(2, kSevenSmall)).Spec()});
  WaitingPods& waiting = service.waiting();
  const APod pod = APod("p").Mig("3g.20gb");
  waiting.Put({.pod = std::make_shared<const PodRequest>(pod.Request()), .unschedulable = true});
  const auto get = [&service](std::string_view path) { return service.Call("GET", path).body; };
  const std::string line =
      "berth_mig_repartition_pods{product=\"A100-40GB\",config=\"all-3g.20gb\"} ";
  EXPECT_EQ(Json::parse(get("/debug/repartition")),
            Json::parse(R"([{"node": "n1", "product": "A100-40GB", "gpus": 2,
                             "config": "all-3g.20gb", "fits": 1, "fits_now": 0,
                             "fits_cut_at_will": 1}])"));
  EXPECT_NE(get("/metrics").find(line + "1\n"), std::string::npos);
  service.readiness().Set("another process leads");
  EXPECT_EQ(get("/debug/repartition"), "[]");
  service.readiness().Set(nullptr);
  waiting.Remove(pod.Request().id.uid);
  EXPECT_EQ(get("/debug/repartition"), "[]");
  EXPECT_NE(get("/metrics").find(line + "0\n"), std::string::npos);
}

TEST(Routes, ASchedulingCycleWorksThroughTheRouter) {
  TestService service({MachineWith("n1", 1), MachineWith("n2", 4)});
  const Json names = {"n1", "n2"};
  for (int i = 0; i < 5; ++i) {
    const Json pod = PodWithGpus(std::to_string(i), 1);
    const Json passed = service.Ask("filter", ArgsWithNames(pod, names))["NodeNames"];
    ASSERT_FALSE(passed.empty());
    const Json scores = service.Ask("prioritize", ArgsWithNames(pod, passed));
    Json best = scores[0];
    for (const Json& score : scores) {
      if (score["Score"] > best["Score"]) best = score;
    }
    EXPECT_EQ(service.Ask("bind", BindingArgs(std::to_string(i), best["Host"]))["Error"], "");
  }
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(PodWithGpus("6", 1), names))["NodeNames"],
            Json::array());
}

}  // namespace
}  // namespace berth::test::routes_test
