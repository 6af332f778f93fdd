// SPDX-License-Identifier: Apache-2.0
#include "bench/kube/api_pages.h"

#include <algorithm>

namespace berth::kube_bench {
namespace {

// What managedFields look like, up to that many bytes.
void AppendManagedFields(std::string& out, std::size_t bytes) {
  out += R"("managedFields":[{"manager":"kubelet","operation":"Update","apiVersion":"v1",)"
         R"("time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{)";
  const std::size_t begin = out.size();
  for (std::size_t i = 0; out.size() - begin < bytes; ++i) {
    if (i > 0) out += ',';
    out +=
        R"("f:field)" + std::to_string(i) + R"(":{".":{},"f:lastTransitionTime":{},"f:status":{}})";
  }
  out += "}}]";
}

// Pod n is on node n % kNodes. The first eight of a node have a GPU each, the others none.
constexpr std::size_t kNodes = 5000;
constexpr std::size_t kGpus = 8;

std::string DevicesOf(const std::string& node, std::size_t gpu) {
  return R"(,"annotations":{"berth.dev/devices":"{\"version\":1,\"node\":\")" + node +
         R"(\",\"containers\":{\"main\":{\"gpus\":[{\"index\":)" + std::to_string(gpu) +
         R"(,\"milli\":1000,\"memory_mib\":81920}]}}}"})";
}

void AppendPod(std::string& out, std::size_t number, std::size_t version) {
  const std::string id = std::to_string(number);
  const std::string node = "gpu-node-" + std::to_string(number % kNodes);
  const std::size_t gpu = number / kNodes;
  const std::string gpus = gpu < kGpus ? R"(,"nvidia.com/gpu":"1")" : "";
  out += R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"training-job-)" + id +
         R"(-worker-0","namespace":"team-)" + std::to_string(number % 40) +
         R"(","uid":"6f1c2d3e-0000-4000-8000-)" + std::to_string(100'000'000'000 + number) +
         R"(","resourceVersion":")" + std::to_string(version) +
         R"(","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"app":"training",)"
         R"("job-name":"training-job-)" +
         id + R"("})" + (gpu < kGpus ? DevicesOf(node, gpu) : "") + ",";
  AppendManagedFields(out, 1500);
  out += R"(},"spec":{"nodeName":")" + node +
         R"(","containers":[{"name":"main","image":"registry.example/team/training:1.2.3",)"
         R"("command":["python","train.py"],"resources":{"limits":{"cpu":"8")" +
         gpus + R"(},"requests":{"cpu":"8","memory":"64Gi")" + gpus +
         R"(}},"volumeMounts":[{"name":)"
         R"("data","mountPath":"/data"},{"name":"token","readOnly":true,"mountPath":)"
         R"("/var/run/secrets"}],"imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Never",)"
         R"("tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}],)"
         R"("schedulerName":"default-scheduler"},"status":{"phase":"Running","conditions":[)"
         R"({"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"},)"
         R"({"type":"PodScheduled","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}],)"
         R"("hostIP":"10.0.0.1","podIP":"10.1.2.3","startTime":"2026-01-01T00:00:00Z"}})";
}

void AppendNode(std::string& out, std::size_t number, std::size_t version) {
  out += R"({"kind":"Node","apiVersion":"v1","metadata":{"name":"gpu-node-)" +
         std::to_string(number) + R"(","uid":"node-uid-)" + std::to_string(number) +
         R"(","resourceVersion":")" + std::to_string(version) +
         R"(","labels":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB",)"
         R"("nvidia.com/gpu.memory":"81920"},)";
  AppendManagedFields(out, 4000);
  out += R"(},"spec":{},"status":{"allocatable":{"cpu":"128","memory":"1Ti","pods":"110",)"
         R"("nvidia.com/gpu":"8"},"conditions":[{"type":"Ready","status":"True"}],"images":[)";
  for (int i = 0; i < 10; ++i) {
    if (i > 0) out += ',';
    out += R"({"names":["registry.example/team/image)" + std::to_string(i) +
           R"(@sha256:0123456789abcdef0123456789abcdef"],"sizeBytes":123456789})";
  }
  out += "]}}";
}

}  // namespace

void AppendObject(std::string& out, Kind kind, std::size_t number, std::size_t version) {
  if (kind == Kind::kPod) {
    AppendPod(out, number, version);
  } else {
    AppendNode(out, number, version);
  }
}

std::string ListPageOf(Kind kind, std::size_t begin, std::size_t end, const std::string& next) {
  std::string page = kind == Kind::kPod ? R"({"kind":"PodList",)" : R"({"kind":"NodeList",)";
  page += R"("apiVersion":"v1","metadata":{"resourceVersion":"1000000","continue":")" + next +
          R"("},"items":[)";
  for (std::size_t i = begin; i < end; ++i) {
    if (i > begin) page += ',';
    AppendObject(page, kind, i, 1 + i);
  }
  return page + "]}";
}

std::string EventOf(std::size_t pod, std::size_t version) {
  std::string line = R"({"type":"MODIFIED","object":)";
  AppendObject(line, Kind::kPod, pod, version);
  return line + "}\n";
}

}  // namespace berth::kube_bench
