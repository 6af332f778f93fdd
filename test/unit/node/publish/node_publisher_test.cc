// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_publisher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/wire/json/strict_json.h"
#include "test/support/eventually.h"
#include "test/support/temp_file.h"

namespace berth::test::node_publisher_test {
namespace {

using node::NodePublisher;
using node::PublisherOptions;
using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Json;

// An API server with one Node, which it patches as a merge patch does.
class OneNode final : public kube::ApiClient {
 public:
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.path);
    if (failures_ > 0) {
      --failures_;
      if (status_ == 0) return Fail(Errc::kUnavailable, "connection refused");
      return kube::ApiResponse{status_, R"({"message":"no"})", {}};
    }
    if (request.method == "PATCH") {
      EXPECT_EQ(request.content_type, "application/merge-patch+json");
      node_.merge_patch(Json::parse(request.body));
      bodies_.push_back(request.body);
    }
    return kube::ApiResponse{200, node_.dump(), {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams");
  }

  // The next answers; status 0: none comes.
  void FailNext(int times, int status) {
    const std::lock_guard lock(mutex_);
    failures_ = times;
    status_ = status;
  }
  std::string Annotation(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const Json& annotations = node_["metadata"]["annotations"];
    return annotations.contains(key) ? annotations[key].get<std::string>() : "";
  }
  void Annotate(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    node_["metadata"]["annotations"][key] = value;
  }
  std::vector<std::string> Requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  std::size_t Patches() {
    const std::lock_guard lock(mutex_);
    return bodies_.size();
  }

 private:
  std::mutex mutex_;
  Json node_ = {{"metadata", {{"name", "n1"}, {"annotations", Json::object()}}}};
  std::vector<std::string> requests_, bodies_;
  int failures_ = 0, status_ = 0;
};

PublisherOptions At(Duration delay, const std::string& probe = "") {
  PublisherOptions options;
  options.most_start_delay = delay;
  if (!probe.empty()) options.probe = {"/bin/sh", "-c", probe};
  return options;
}

const std::string kFacts =
    R"(echo '{"gpus":[{"index":0,"id":"GPU-a"}],"annotations":{"berth.dev/gpu-uuids":"GPU-a"}}')";

TEST(NodePublisherTest, WritesWhatIsSaidAndNothingWhileNothingChanges) {
  OneNode api;
  NodePublisher publisher(api, "n1", At(seconds(0)));
  publisher.Carries({"nvidia.com/gpu"});
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Annotation("berth.dev/carries-out"), "nvidia.com/gpu");
  publisher.Carries({"nvidia.com/gpu"});
  publisher.Health("nvidia.com/gpu", {});
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Patches(), 1u);
  publisher.Health("nvidia.com/gpu", {"GPU-a::1"});
  publisher.Carries({});
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Annotation("berth.dev/carries-out"), "");
  EXPECT_EQ(api.Annotation("berth.dev/gpu-health"), "GPU-a");
  const auto requests = api.Requests();
  EXPECT_EQ(requests[0], "GET /api/v1/nodes/n1");
  EXPECT_EQ(requests[1], "PATCH /api/v1/nodes/n1?fieldManager=berth-node");
  EXPECT_EQ(std::count(requests.begin(), requests.end(), "GET /api/v1/nodes/n1"), 1);
}

TEST(NodePublisherTest, CorrectsWhatADeadAgentLeft) {
  OneNode api;
  api.Annotate("berth.dev/carries-out", "nvidia.com/gpu");
  api.Annotate("berth.dev/gpu-health", "GPU-b");
  NodePublisher publisher(api, "n1", At(seconds(0)));
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Annotation("berth.dev/carries-out"), "");
  EXPECT_EQ(api.Annotation("berth.dev/gpu-health"), "");
}

TEST(NodePublisherTest, WaitsWithItsFirstWriteUnlessItIsUrgent) {
  OneNode api;
  PublisherOptions options = At(seconds(3600));
  NodePublisher publisher(api, "n1", options);
  publisher.Carries({"nvidia.com/gpu"});
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(api.Requests().empty());
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Patches(), 1u);
}

TEST(NodePublisherTest, PublishesFactsAndHasThemBeforeItsFirstWrite) {
  OneNode api;
  NodePublisher publisher(api, "n1", At(seconds(3600), kFacts));
  EXPECT_TRUE(Eventually([&] { return publisher.Facts()->gpus.size() == 1; }));
  EXPECT_TRUE(api.Requests().empty());
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Annotation("berth.dev/gpu-uuids"), "GPU-a");
}

TEST(NodePublisherTest, ProbesAgainWhenAPluginRegisters) {
  OneNode api;
  const TempFile facts("{}");
  NodePublisher publisher(api, "n1", At(seconds(0), "cat " + facts.path()));
  EXPECT_TRUE(Eventually([&] { return !api.Requests().empty(); }));
  std::ofstream(facts.path()) << R"({"gpus":[{"index":0,"id":"GPU-z"}]})";
  publisher.PluginRegistered();
  EXPECT_TRUE(Eventually([&] { return publisher.Facts()->gpus.size() == 1; }));
}

TEST(NodePublisherTest, KeepsTheFactsOfAProbeThatWorkedWhenTheNextOneFails) {
  OneNode api;
  const TempFile facts(R"({"gpus":[{"index":0,"id":"GPU-z"}]})");
  std::mutex mutex;
  std::vector<std::string> lines;
  PublisherOptions options = At(seconds(0), "cat " + facts.path());
  options.log = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  };
  NodePublisher publisher(api, "n1", options);
  EXPECT_TRUE(Eventually([&] { return publisher.Facts()->gpus.size() == 1; }));
  std::ofstream(facts.path()) << "garbage";
  publisher.PluginRegistered();
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return !lines.empty();
  }));
  EXPECT_EQ(publisher.Facts()->gpus[0].id, "GPU-z");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(lines[0], "facts of the node: want the JSON object of the facts, got something else");
}

TEST(NodePublisherTest, AProbeThatHangsHoldsNoUrgentWriteUp) {
  OneNode api;
  PublisherOptions options = At(seconds(3600), "exec sleep 60");
  options.probe_limit = seconds(60);
  NodePublisher publisher(api, "n1", options);
  std::this_thread::sleep_for(milliseconds(50));
  publisher.Carries({"nvidia.com/gpu"});
  EXPECT_TRUE(publisher.Flush(seconds(10)));
  EXPECT_EQ(api.Annotation("berth.dev/carries-out"), "nvidia.com/gpu");
}

TEST(NodePublisherTest, TriesAgainWhileTheApiServerIsAwayOrRefuses) {
  for (const int status : {0, 403, 409, 500}) {
    OneNode api;
    api.FailNext(2, status);
    NodePublisher publisher(api, "n1", At(seconds(0)));
    publisher.Carries({"nvidia.com/gpu"});
    EXPECT_TRUE(publisher.Flush(seconds(20))) << status;
    EXPECT_EQ(api.Annotation("berth.dev/carries-out"), "nvidia.com/gpu");
  }
}

TEST(NodePublisherTest, GivesUpWaitingForAnApiServerThatStaysAway) {
  OneNode api;
  api.FailNext(1'000'000, 0);
  NodePublisher publisher(api, "n1", At(seconds(0)));
  publisher.Carries({"nvidia.com/gpu"});
  EXPECT_FALSE(publisher.Flush(milliseconds(100)));
}

TEST(NodePublisherTest, WritesDevicesThatFlapAtMostSixTimesAMinute) {
  OneNode api;
  NodePublisher publisher(api, "n1", At(seconds(0)));
  const auto end = std::chrono::steady_clock::now() + seconds(9);
  for (int i = 0; std::chrono::steady_clock::now() < end; ++i) {
    publisher.Health("nvidia.com/gpu", {"GPU-" + std::to_string(i)});
    std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_GE(api.Patches(), 2u);
  EXPECT_LE(api.Patches(), 6u);
}

TEST(NodePublisherTest, SaysThatNumaIsLiftedWhileNoPluginNamesNumaNodes) {
  OneNode api;
  const TempFile file("topologyManagerPolicy: restricted\n");
  PublisherOptions options = At(seconds(0));
  options.kubelet_config_file = file.path();
  NodePublisher publisher(api, "n1", options);
  const std::string policies =
      R"({"topologyManagerPolicy":"restricted","topologyManagerScope":"container",)"
      R"("cpuManagerPolicy":"none")";
  const auto says = [&](const char* rest) {
    return Eventually([&] { return api.Annotation("berth.dev/kubelet") == policies + rest; });
  };
  EXPECT_TRUE(says("}"));
  publisher.NumaNodes("nvidia.com/gpu", false);
  EXPECT_TRUE(says(R"(,"numa":"lifted"})"));
  publisher.NumaNodes("example.com/nic", true);
  EXPECT_TRUE(says("}"));
}

TEST(NodePublisherTest, ANameThatNoNodeHasIsNotAskedFor) {
  OneNode api;
  NodePublisher publisher(api, "../pods", At(seconds(0)));
  publisher.Carries({"nvidia.com/gpu"});
  EXPECT_FALSE(publisher.Flush(milliseconds(200)));
  EXPECT_TRUE(api.Requests().empty());
}

}  // namespace
}  // namespace berth::test::node_publisher_test
