// SPDX-License-Identifier: Apache-2.0
//
// What is written on pods of kubelets that do not say what they gave.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "node/pods/given.h"
#include "test/support/eventually.h"

namespace berth::test::given_writer_test {
namespace {

class Api final : public kube::ApiClient {
 public:
  explicit Api(std::string version) : version_(std::move(version)) {}

  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    if (request.method == "GET") {
      return kube::ApiResponse{
          200, R"({"status":{"nodeInfo":{"kubeletVersion":")" + version_ + R"("}}})", {}};
    }
    const MutexLock lock(mutex_);
    writes_.push_back(request.path + " " + request.body);
    return kube::ApiResponse{status, "{}", {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams");
  }
  std::vector<std::string> writes() {
    const MutexLock lock(mutex_);
    return writes_;
  }
  std::atomic<int> status = 200;

 private:
  const std::string version_;
  Mutex mutex_;
  std::vector<std::string> writes_;
};

class Kubelet final : public node::PodResources {
 public:
  Result<std::vector<node::ListedPod>> List(Duration /*limit*/) override {
    ++lists;
    const std::string second = lies ? "g5" : "g1";
    return std::vector<node::ListedPod>{
        {"a", "p", {{"main", {{"nvidia.com/gpu", {"g5"}}}}}},
        {"a", "planned", {{"main", {{"nvidia.com/gpu", {second}}}}}}};
  }
  Result<node::DevicesByResource> Allocatable(Duration /*limit*/) override {
    return node::DevicesByResource{};
  }
  std::atomic<int> lists = 0;
  std::atomic<bool> lies = false;  // it has given one device to both
};

std::string Pod(const std::string& name) {
  return R"({"metadata":{"namespace":"a","name":")" + name + R"(","uid":"u-)" + name +
         R"(","annotations":{"berth.dev/decision":"0123","berth.dev/devices":"{\"version\":1,\"node\":\"n1\",\"containers\":)"
         R"({\"main\":{\"gpus\":[{\"index\":1,\"uuid\":\"g1\"}]}}}"}},"spec":{"containers":[)"
         R"({"name":"main","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}})";
}

class GivenWriterTest : public testing::Test {
 protected:
  void Start(const std::string& version, int status = 200, Duration start = Duration::zero()) {
    writer_.reset();
    api_ = std::make_unique<Api>(version);
    api_->status = status;
    writer_ = std::make_unique<node::GivenWriter>(node::GivenWriter::Parts{
        *api_, pods_, kubelet_, [] { return std::make_shared<const node::NodeFacts>(); }, "n1",
        log_, [this](bool keeps) { keeps_both_ = keeps; }, start,
        [this](const node::ClosedDevices& closed) {
          const MutexLock lock(mutex_);
          closed_ = closed;
        },
        std::chrono::milliseconds(100)});
    pods_.Changed(PaddedText(Pod("p")));
    pods_.Changed(PaddedText(Pod("planned")));
    writer_->Carries({"nvidia.com/gpu"});
  }
  void LookAgain() {
    const int before = kubelet_.lists;
    writer_->Look();
    ASSERT_TRUE(Eventually([&] { return kubelet_.lists > before; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }

  Log log_{LogLevel::kError};
  Kubelet kubelet_;
  node::OwnPods pods_{"n1", nullptr};
  // The Events among what was written.
  std::vector<std::string> Events() {
    std::vector<std::string> events = api_->writes();
    std::erase_if(events, [](const std::string& write) {
      return !write.starts_with("/api/v1/namespaces/a/events ");
    });
    return events;
  }
  node::ClosedDevices Closed() {
    const MutexLock lock(mutex_);
    return closed_;
  }

  std::atomic<bool> keeps_both_ = false;
  Mutex mutex_;
  node::ClosedDevices closed_ BERTH_GUARDED_BY(mutex_);
  std::unique_ptr<Api> api_;
  std::unique_ptr<node::GivenWriter> writer_;
};

TEST_F(GivenWriterTest, WritesOnceOnThePodThatHasOtherDevices) {
  Start("v1.35.1");
  ASSERT_TRUE(Eventually([this] { return !api_->writes().empty(); }));
  LookAgain();
  const std::vector<std::string> writes = api_->writes();
  ASSERT_EQ(writes.size(), 1U);
  EXPECT_TRUE(writes[0].starts_with("/api/v1/namespaces/a/pods/p ")) << writes[0];
  EXPECT_NE(writes[0].find(R"(\"main\":{\"nvidia.com/gpu\":[\"g5\"]})"), std::string::npos);
  EXPECT_NE(writes[0].find(R"("uid":"u-p")"), std::string::npos);
  EXPECT_FALSE(keeps_both_);
}

TEST_F(GivenWriterTest, TriesAgainWhatWasRefused) {
  Start("v1.35.1", 500);
  ASSERT_TRUE(Eventually([this] { return !api_->writes().empty(); }));
  api_->status = 200;
  LookAgain();
  const std::size_t so_far = api_->writes().size();
  EXPECT_GE(so_far, 2U);
  LookAgain();
  EXPECT_EQ(api_->writes().size(), so_far);
}

TEST_F(GivenWriterTest, TriesAgainByItselfWhatWasRefused) {
  Start("v1.35.1", 403);
  ASSERT_TRUE(Eventually([this] { return api_->writes().size() >= 3; }));
  api_->status = 200;
  const std::size_t so_far = api_->writes().size();
  ASSERT_TRUE(Eventually([&] { return api_->writes().size() > so_far; }));
  std::this_thread::sleep_for(node::GivenWriter::kFirstRetry * 2);
  EXPECT_LE(api_->writes().size(), so_far + 2);  // one may have been refused meanwhile
}

TEST_F(GivenWriterTest, LeavesItToKubeletsThatSayIt) {
  Start("v1.37.2");
  EXPECT_TRUE(Eventually([this] { return keeps_both_.load(); }));
  writer_->Look();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_TRUE(api_->writes().empty());
  EXPECT_EQ(kubelet_.lists, 0);
}

// Kubelets before 1.38 may. Its list lies here.
TEST_F(GivenWriterTest, ADeviceThatTwoPodsHaveIsClosedUntilOneHasEndedAndBothAreTold) {
  pods_.ListEnds();  // the API server's word is new
  Start("v1.37.2");
  kubelet_.lies = true;
  writer_->Admitted();
  const node::ClosedDevices closed = {{"nvidia.com/gpu", {"g5"}}};
  ASSERT_TRUE(Eventually([&] { return Closed() == closed; }));
  ASSERT_TRUE(Eventually([this] { return Events().size() == 2; }));
  for (const std::string& event : Events()) {
    EXPECT_NE(event.find(R"("reason":"DeviceGivenTwice")"), std::string::npos) << event;
    EXPECT_NE(event.find("nvidia.com/gpu g5: the kubelet gave it to this pod and to pod p"),
              std::string::npos)
        << event;
  }
  pods_.Deleted(PaddedText(Pod("p")));
  EXPECT_TRUE(Eventually([this] { return Closed().empty(); }));
  EXPECT_EQ(Events().size(), 2U);
}

TEST_F(GivenWriterTest, LooksForDevicesGivenTwiceAfterEachAdmissionOfAKubeletThatMay) {
  Start("v1.37.2");
  writer_->Admitted();
  EXPECT_TRUE(Eventually([this] { return kubelet_.lists == 1; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(kubelet_.lists, 1);
  Start("v1.38.0");
  writer_->Admitted();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(kubelet_.lists, 1);
}

TEST_F(GivenWriterTest, AtTheStartWritesWhatSuchAKubeletMaySayLater) {
  Start("v1.37.2", 200, std::chrono::minutes(1));
  ASSERT_TRUE(Eventually([this] { return api_->writes().size() == 1; }));
  EXPECT_NE(api_->writes().front().find("/pods/p "), std::string::npos) << api_->writes().front();
}

}  // namespace
}  // namespace berth::test::given_writer_test
