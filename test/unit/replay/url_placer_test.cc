// SPDX-License-Identifier: Apache-2.0
//
// A trace replayed against an extender of this process: it is asked as kube-scheduler asks, and
// what it chose is in the books.
#include "bench/replay/url_placer.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/session.h"
#include "server/http/http_server.h"
#include "test/support/http_fixture.h"

namespace berth::replay::url_placer_test {
namespace {

using Json = nlohmann::json;

// Node "b.x" is preferred; "c" is never passed.
class Extender {
 public:
  // The verb is answered with `body` whatever is asked.
  explicit Extender(std::string verb = "", std::string body = "")
      : verb_(std::move(verb)),
        body_(std::move(body)),
        server_(test::StartServer(test::LocalOptions(), [this](http::HttpRequest& request) {
          return Answer(std::string(request.path.substr(1)), std::string(request.body.view()));
        })) {}

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_->port());
  }
  // "VERB NODES": those that were sent.
  std::vector<std::string> calls;
  Json last_node;  // the last full node that came

 private:
  http::HttpResponse Answer(const std::string& verb, const std::string& body) {
    const Json sent = Json::parse(body);
    http::HttpResponse response;
    std::string& call = calls.emplace_back(verb);
    if (verb == "bind") call += " " + sent["Node"].get<std::string>();
    Json names = Json::array(), items = Json::array(), scores = Json::array();
    const auto see = [&](const std::string& name, const Json& item) {
      call += " " + name;
      if (name == "c") return;
      names.push_back(name);
      items.push_back(item);
      scores.push_back({{"Host", name}, {"Score", name == "b.x" ? 9 : 3}});
    };
    if (sent.contains("NodeNames") && sent["NodeNames"].is_array()) {
      for (const Json& name : sent["NodeNames"]) see(name, nullptr);
    } else if (sent.contains("Nodes")) {
      for (const Json& node : sent["Nodes"]["items"]) {
        last_node = node;
        see(node["metadata"]["name"], node);
      }
    }
    if (verb == verb_) {
      response.body = body_;
      if (body_.empty()) response.status = 404;
    } else if (verb == "prioritize") {
      response.body = scores.dump();
    } else if (verb == "filter") {
      const bool full = sent["NodeNames"].is_null();
      response.body = Json{{"NodeNames", full ? Json() : names},
                           {"Nodes", full ? Json{{"items", items}} : Json()}}
                          .dump();
    } else {
      response.body = R"({"Error":""})";
    }
    return response;
  }

  const std::string verb_, body_;
  std::unique_ptr<http::HttpServer> server_;
};

const Workload kWorkload = {"three",
                            {{"a", 64'000, 65'536, 2, "T4"},
                             {"b.x", 64'000, 65'536, 2, "T4"},
                             {"c", 64'000, 65'536, 8, "T4"}},
                            {{"one", 1000, 1, 1, 1000, ""}}};
const Arrivals kFive = {{0, 0, 0, 0, 0}, {0, 1, 2}};

Result<SessionResult> Replay(const UrlOptions& extender, PodStarts* starts = nullptr) {
  SessionOptions options;
  options.through = Through::kUrl;
  options.starts = starts;
  options.extender = extender;
  return RunSession(kWorkload, kFive, options, {});
}

TEST(UrlPlacer, AsksAsKubeSchedulerDoesAndKeepsTheBooks) {
  Extender extender;
  PodStarts starts;
  const auto result = Replay({extender.url()}, &starts);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(extender.calls,
            (std::vector<std::string>{
                "filter a b.x c", "prioritize a b.x", "bind b.x",  //
                "filter a b.x c", "prioritize a b.x", "bind b.x",  //
                "filter a c", "bind a",  // b.x is full by the books; one node needs no Scores
                "filter a c", "bind a",  //
                "filter c"}));
  EXPECT_EQ(result->replay.placed, 4);
  EXPECT_EQ(result->replay.refused, 1);
  EXPECT_EQ(result->replay.allocated_milli, 4000);
  EXPECT_TRUE(result->replay.gpus_without_watts.has_value()) << "the books know the GPUs";
  ASSERT_EQ(starts.size(), 5U);
  EXPECT_EQ(starts[1].node, "b.x");
  EXPECT_EQ(starts[1].gpus, std::vector<int>{1}) << "the first that is free";
  EXPECT_EQ(starts[4].node, "");
  EXPECT_GT(result->filter_us.max, 0);
  EXPECT_GT(result->bind_us.max, 0);
}

TEST(UrlPlacer, SendsFullNodesAndOnlyTheVerbsThatItIsTold) {
  Extender extender;
  UrlOptions options{extender.url(), true, {"filter", "prioritize"}};
  const auto result = Replay(options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(extender.calls[0], "filter a b.x c");
  EXPECT_EQ(extender.calls[1], "prioritize a b.x");
  EXPECT_EQ(extender.calls[2], "filter a b.x c") << "no bind";
  EXPECT_EQ(extender.last_node["status"]["allocatable"]["nvidia.com/gpu"], "8");
  EXPECT_EQ(extender.last_node["status"]["capacity"]["cpu"], "64000m");
  EXPECT_EQ(result->replay.placed, 4);
}

TEST(UrlPlacer, AsksNoFurtherForVerbsThatAreNotThere) {
  const Extender extender("bind");
  EXPECT_EQ(Replay({extender.url()})->replay.placed, 4);
  EXPECT_EQ(std::ranges::count(extender.calls, "bind b.x"), 1);
  const Extender nowhere("filter");
  EXPECT_EQ(Replay({nowhere.url()}).error().message, "filter: status 404");
}

TEST(UrlPlacer, AnErrorOfFilterRefusesThePodAndWhatCannotBeUsedEndsTheReplay) {
  const Extender refusing("filter", R"({"Error":"not now"})");
  EXPECT_EQ(Replay({refusing.url()})->replay.refused, 5);
  const std::pair<std::pair<std::string, std::string>, std::string> wrong[] = {
      {{"filter", R"({"NodeNames":["z"]})"}, "filter: \"z\" passed, was not sent"},
      {{"filter", "[]"}, "filter: no object"},
      {{"filter", "{"}, "filter: no JSON: {"},
      {{"prioritize", "{}"}, "prioritize: no array"},
      {{"prioritize", R"([{"Host":"a","Score":1.5}])"}, "prioritize: a Score that is no integer"},
      {{"bind", R"({"Error":"pod not found"})"},
       "bind: pod not found. Leave bind out of --verbs if it needs an API server"},
  };
  for (const auto& [answer, message] : wrong) {
    const Extender extender(answer.first, answer.second);
    EXPECT_EQ(Replay({extender.url()}).error().message, message);
  }
  EXPECT_EQ(Replay({"http://127.0.0.1:1"}).error().message,
            "http://127.0.0.1:1: Connection refused");
}

}  // namespace
}  // namespace berth::replay::url_placer_test
