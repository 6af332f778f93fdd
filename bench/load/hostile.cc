// SPDX-License-Identifier: Apache-2.0
#include "bench/load/hostile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "bench/http/http_client.h"
#include "bench/load/berth_server.h"
#include "bench/replay/http_calls.h"

namespace berth::load {
namespace {

using http::HttpClient;

constexpr char kPlainGpu[] = R"("cpu":"8","memory":"32Gi","nvidia.com/gpu":"1")";

std::string Joined(std::size_t count, std::string_view between,
                   const std::function<std::string(std::size_t)>& item) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.append(i == 0 ? "" : between).append(item(i));
  return text;
}

std::string Word(std::size_t number) { return std::to_string(number); }

// A pod with one GPU; metadata and spec: more fields of these, each with a comma before it.
std::string Pod(const std::string& uid, const std::string& metadata, const std::string& spec) {
  return R"({"metadata":{"name":"p-)" + uid + R"(","namespace":"default","uid":")" + uid + "\"" +
         metadata +
         R"(},"spec":{"containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"1"}}}])" +
         spec + "}}";
}

std::string OfModels(const std::string& uid, std::size_t first, std::size_t count) {
  return Pod(uid,
             R"(,"annotations":{"berth.dev/gpu-model":"A100|)" +
                 Joined(count, "|", [first](std::size_t i) { return "m" + Word(first + i); }) +
                 "\"}",
             "");
}

std::string WithAmounts(const std::string& uid, std::size_t count) {
  const auto list = [count](const char* prefix) {
    return "{" +
           Joined(count, ",",
                  [prefix](std::size_t i) {
                    return std::string("\"") + prefix + Word(i) + "\":\"1\"";
                  }) +
           R"(,"nvidia.com/gpu":"1"})";
  };
  return R"({"metadata":{"uid":")" + uid +
         R"("},"spec":{"containers":[{"name":"main","resources":{"limits":)" + list("a/") +
         R"(,"requests":)" + list("b/") + "}}]}}";
}

std::string WithAffinity(const std::string& uid, std::size_t terms, std::size_t expressions,
                         std::size_t values) {
  const std::string list =
      Joined(values, ",", [](std::size_t i) { return "\"v" + Word(i) + "\""; });
  const std::string term =
      R"({"matchExpressions":[)" +
      Joined(expressions, ",",
             [&](std::size_t) {
               return R"({"key":"k","operator":"NotIn","values":[)" + list + "]}";
             }) +
      R"(,{"key":"k","operator":"Exists"}]})";
  return Pod(uid, "",
             R"(,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":)"
             R"({"nodeSelectorTerms":[)" +
                 Joined(terms, ",", [&](std::size_t) { return term; }) + "]}}}");
}

std::string WithTolerations(const std::string& uid, std::size_t count) {
  return Pod(uid, "", R"(,"tolerations":[)" + Joined(count, ",", [](std::size_t i) {
                        return R"({"key":"t)" + Word(i) + R"(","operator":"Exists"})";
                      }) + "]");
}

std::string WithContainers(const std::string& uid, std::size_t count) {
  return R"({"metadata":{"uid":")" + uid + R"("},"spec":{"containers":[)" +
         Joined(count, ",",
                [](std::size_t i) {
                  return R"({"name":"c)" + Word(i) +
                         R"(","resources":{"limits":{"berth.dev/gpu-milli":"0"}}})";
                }) +
         "]}}";
}

class Hostile {
 public:
  explicit Hostile(std::size_t nodes)
      : server_(nodes, true),
        client_(HttpClient::Connect(server_.address()).value()),
        names_(server_.NameList()) {}

  // One request, and what comes after it.
  void Try(const char* what, const std::vector<std::string>& bodies) {
    double worst = 0;
    for (const std::string& body : bodies) worst = std::max(worst, Milliseconds(body));
    const double next = Milliseconds(Plain());
    const double metrics = Of([this] { return http::Get(client_, "/metrics").has_value(); });
    std::printf("%-52s %9.1f ms   next pod %9.1f ms   /metrics %9.1f ms\n", what, worst, next,
                metrics);
    std::fflush(stdout);
  }

  [[nodiscard]] std::string Uid() { return "uid-" + std::to_string(next_++); }
  [[nodiscard]] const std::string& names() const { return names_; }

 private:
  std::string Plain() { return FilterBody(PodJson(Uid(), kPlainGpu), names_); }
  double Milliseconds(const std::string& body) {
    return Of([&] { return http::Post(client_, "/extender/filter", body).has_value(); });
  }
  static double Of(const std::function<bool()>& exchange) {
    const auto start = std::chrono::steady_clock::now();
    (void)exchange();  // a refusal is an answer too
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
        .count();
  }

  BerthServer server_;
  HttpClient client_;
  const std::string names_;
  std::size_t next_ = 0;
};

}  // namespace

void MeasureHostile(std::size_t nodes) {
  Hostile hostile(nodes);
  const auto one = [&](const char* what, const std::string& pod) {
    hostile.Try(what, {FilterBody(pod, hostile.names())});
  };
  std::printf("%zu nodes of %d GPUs; the time of the request itself, and of what comes after it\n",
              nodes, kGpusPerNode);
  one("a plain pod", PodJson(hostile.Uid(), kPlainGpu));
  one("30,000 limits beside 30,000 requests", WithAmounts(hostile.Uid(), 30'000));
  one("1,000 affinity terms x 10 x NotIn of 100", WithAffinity(hostile.Uid(), 1'000, 10, 100));
  one("1 affinity term x 1 x NotIn of 100,000", WithAffinity(hostile.Uid(), 1, 1, 100'000));
  one("30,000 tolerations", WithTolerations(hostile.Uid(), 30'000));
  one("30,000 containers", WithContainers(hostile.Uid(), 30'000));
  hostile.Try(
      "8,000,000 unknown names",
      {FilterBody(PodJson(hostile.Uid(), kPlainGpu),
                  Joined(8'000'000, ",", [](std::size_t i) { return "\"n" + Word(i) + "\""; }))});
  std::vector<std::string> pods;
  for (std::size_t i = 0; i < 400; ++i) {
    pods.push_back(FilterBody(OfModels(hostile.Uid(), i * 60, 60), hostile.names()));
  }
  hostile.Try("400 pods with 60 models each (worst of them)", pods);
  pods.clear();
  for (std::size_t i = 0; i < 400; ++i) {
    pods.push_back(FilterBody(OfModels(hostile.Uid(), 100'000 + i * 100, 100), hostile.names()));
  }
  hostile.Try("400 pods with 100 models each (worst of them)", pods);
  one("one pod with 40,000 models (260 kB)", OfModels(hostile.Uid(), 200'000, 40'000));
}

}  // namespace berth::load
