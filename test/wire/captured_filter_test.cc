// SPDX-License-Identifier: Apache-2.0
//
// filter and prioritize on the bodies that kube-scheduler 1.20, 1.26 and 1.36 really sent.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "test/support/captured.h"
#include "test/support/data_dir.h"
#include "test/support/wire_fixture.h"

namespace berth::test::captured_filter_test {
namespace {

// A reading of quantities of its own: enough for what the captures hold.
double AmountOf(const std::string& text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"Ki", 1024.0}, {"Mi", 1048576.0}, {"Gi", 1073741824.0}, {"m", 1e-3}, {"", 1.0}};
  for (const auto& [suffix, factor] : kUnits) {
    if (text.ends_with(suffix)) return std::stod(text) * factor;
  }
  return 0;
}

double Requested(const Json& container, const std::string& resource) {
  const Json requests = container.value("resources", Json::object()).value("requests", Json());
  return requests.contains(resource) ? AmountOf(requests[resource]) : 0.0;
}

// Kubernetes' rule, read off its documentation: the containers and the sidecars together, or the
// most that any init container has beside the sidecars that run by then.
double Effective(const Json& spec, const std::string& resource) {
  double sidecars = 0, init_peak = 0, mains = 0;
  for (const Json& container : spec.value("initContainers", Json::array())) {
    const double own = Requested(container, resource);
    init_peak = std::max(init_peak, sidecars + own);
    if (container.value("restartPolicy", "") == "Always") sidecars += own;
  }
  for (const Json& container : spec["containers"]) mains += Requested(container, resource);
  return std::max(init_peak, mains + sidecars);
}

// A request or an answer: the items of its Nodes as bytes, and the rest of it as a document. (To
// parse thousands of nodes would take most of these tests' time.)
struct Message {
  explicit Message(std::string_view text) : items(RawItems(text)) {
    std::string shorter(text);
    if (!items.empty()) {
      const auto start = static_cast<std::size_t>(items.front().data() - text.data());
      const auto end =
          static_cast<std::size_t>(items.back().data() + items.back().size() - text.data());
      shorter.erase(start, end - start);
    }
    rest = Json::parse(shorter);
    if (!rest["NodeNames"].is_null()) names = rest["NodeNames"];
    for (const std::string_view item : items) names.push_back(NameOfItem(item));
  }

  std::vector<std::string_view> items;
  Json rest;
  std::vector<std::string> names;
};

class CapturedBodies : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    BERTH_NEEDS_DATA(CaptureDir());
    service_ = std::make_unique<TestService>(CapturedNodes(GetParam(), true));
  }

  std::unique_ptr<TestService> service_;
};

TEST_P(CapturedBodies, AskForWhatAnIndependentReadingFinds) {
  for (const std::string_view verb : {"filter", "prioritize"}) {
    for (const auto& file : Captures(GetParam(), verb)) {
      std::string text = ReadCapture(file);
      const Message body(text);
      const Json& pod = body.rest["Pod"];
      const Json& spec = pod["spec"];
      const auto snapshot = service_->state().Current();
      PaddedText padded(text);
      const auto args = wire::DecodeExtenderArgs(padded, service_->rules(), snapshot->names());
      ASSERT_TRUE(args && args->pod) << file;
      const RequestShape& shape = args->pod->shape;
      EXPECT_EQ(args->pod->refusal, "") << file;
      EXPECT_EQ(args->pod->id.uid, pod["metadata"]["uid"]) << file;
      EXPECT_EQ(args->pod->id.name, pod["metadata"]["name"]) << file;
      EXPECT_EQ(shape.cpu_milli, std::lround(Effective(spec, "cpu") * 1000)) << file;
      EXPECT_EQ(shape.memory_bytes, std::llround(Effective(spec, "memory"))) << file;
      EXPECT_EQ(shape.gpu_count(), std::lround(Effective(spec, "nvidia.com/gpu"))) << file;
      EXPECT_EQ(args->known.size() + args->unknown.size(), body.names.size()) << file;
      EXPECT_TRUE(args->unknown.empty()) << file << " " << args->unknown.front();
    }
  }
}

TEST_P(CapturedBodies, FilterAnswersASubsetOfTheNodesThatWereSent) {
  for (const auto& file : Captures(GetParam(), "filter")) {
    SCOPED_TRACE(file);
    const std::string text = ReadCapture(file);
    const Message sent(text);
    const http::HttpResponse response = service_->Call("POST", "/extender/filter", text);
    const Message answer(response.body);
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(answer.rest.size(), 5u);
    EXPECT_EQ(answer.rest["Error"], "");
    EXPECT_EQ(answer.rest["Nodes"].is_null(), sent.rest["Nodes"].is_null());
    EXPECT_EQ(answer.rest["NodeNames"].is_null(), sent.rest["NodeNames"].is_null());
    EXPECT_FALSE(answer.names.empty());
    // Every node has exactly one verdict.
    std::multiset<std::string> verdicts(answer.names.begin(), answer.names.end());
    for (const char* map : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
      for (const auto& [name, why] : answer.rest[map].items()) {
        verdicts.insert(name);
        EXPECT_NE(why, "");
      }
    }
    EXPECT_EQ(verdicts, std::multiset<std::string>(sent.names.begin(), sent.names.end()));
  }
}

TEST_P(CapturedBodies, FilterPassesExactlyTheNodesThatAreLargeEnough) {
  for (const auto& file : Captures(GetParam(), "filter")) {
    const std::string text = ReadCapture(file);
    const Message sent(text);
    if (sent.items.empty()) continue;
    constexpr std::string_view kHas = "\"allocatable\":";
    std::vector<std::string> enough;
    for (const std::string_view item : sent.items) {
      const std::size_t start = item.find(kHas) + kHas.size();
      const Json has = Json::parse(item.substr(start, item.find('}', start) + 1 - start));
      bool fits = true;
      for (const char* resource : {"cpu", "memory", "nvidia.com/gpu"}) {
        const double wanted = Effective(sent.rest["Pod"]["spec"], resource);
        fits = fits && wanted <= (has.contains(resource) ? AmountOf(has[resource]) : 0.0);
      }
      if (fits) enough.push_back(NameOfItem(item));
    }
    const http::HttpResponse response = service_->Call("POST", "/extender/filter", text);
    EXPECT_EQ(Message(response.body).names, enough) << file;
  }
}

TEST_P(CapturedBodies, FilterGivesFullNodesBackByteForByte) {
  for (const auto& file : Captures(GetParam(), "filter")) {
    const std::string text = ReadCapture(file);
    const std::vector<std::string_view> sent = RawItems(text);
    if (sent.empty()) continue;
    const http::HttpResponse response = service_->Call("POST", "/extender/filter", text);
    const std::vector<std::string_view> returned = RawItems(response.body);
    ASSERT_FALSE(returned.empty()) << file;
    auto next = sent.begin();
    for (const std::string_view item : returned) {
      next = std::find(next, sent.end(), item);  // in the order in which they came
      ASSERT_NE(next, sent.end()) << file << ": not as it was sent: " << item.substr(0, 200);
    }
  }
}

TEST_P(CapturedBodies, PrioritizeGivesOneIntegerFrom0To10PerNode) {
  for (const auto& file : Captures(GetParam(), "prioritize")) {
    const std::string text = ReadCapture(file);
    const Json list = service_->Ask("prioritize", text);
    std::multiset<std::string> hosts;
    std::int64_t highest = -1;
    for (const Json& entry : list) {
      ASSERT_EQ(entry.size(), 2u) << file;
      hosts.insert(entry["Host"].get<std::string>());
      ASSERT_TRUE(entry["Score"].is_number_integer()) << file;
      const auto score = entry["Score"].get<std::int64_t>();
      EXPECT_TRUE(score >= 0 && score <= 10) << file << " " << entry;
      highest = std::max(highest, score);
    }
    const std::vector<std::string> sent = Message(text).names;
    EXPECT_EQ(hosts, std::multiset<std::string>(sent.begin(), sent.end())) << file;
    EXPECT_EQ(highest, 10) << file;  // the best node has the best priority
  }
}

INSTANTIATE_TEST_SUITE_P(OfEverySchedulerVersion, CapturedBodies, testing::ValuesIn(kSchedulers),
                         [](const auto& tested) {
                           std::string name(tested.param);
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace berth::test::captured_filter_test
