// SPDX-License-Identifier: Apache-2.0
//
// `berth snapshot`: a file that can be shown to others, about which Berth answers the same.
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/data_dir.h"
#include "test/support/running_berth.h"

namespace berth::test::snapshot_cli_test {
namespace {

// Each text with "secret" in it is one that nobody else should see.
constexpr char kSecrets[] = R"({"kind":"List","apiVersion":"v1","items":[
  {"kind":"Node","apiVersion":"v1","metadata":{"name":"n1","note":{"x":"secret-37"},"note2":"secret-38","managedFields":[{"manager":"secret-1"}],
     "labels":{"nvidia.com/gpu.product":"Tesla-T4","images":"stay-1"},
     "annotations":{"berth.dev/gpu-uuids":"GPU-a,GPU-b,GPU-c,GPU-d","company/note":"secret-2"}},
   "spec":{"providerID":"secret-34","taints":[{"key":"gpu","value":"yes","effect":"NoSchedule"}]},
   "status":{"addresses":[{"address":"secret-35"}],"nodeInfo":{"machineID":"secret-36"},"allocatable":{"cpu":"8","memory":"32Gi","pods":"110","nvidia.com/gpu":"4"},
             "daemonEndpoints":{"x":"secret-39"},"config":"secret-40",
             "images":[{"names":["secret-3"]}],"conditions":[{"type":"Ready","status":"True","message":"secret-41"},
               {"type":"XIDErrors","status":"True","message":"GPU_UUID:GPU-455d8f70-2051-db6c-0430-ffc457bff834 secret-42;"}]}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"team","uid":"1","labels":{"env":"stay-2"},
     "annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"env\":\"secret-4\"}",
       "berth.dev/devices":"{\"version\":1,\"node\":\"n1\",\"containers\":{\"c\":{\"gpus\":[{\"index\":3,\"milli\":1000}]}}}"}},
   "spec":{"nodeName":"n1","imagePullSecrets":[{"name":"secret-5"}],"serviceAccountName":"secret-29",
     "hostAliases":[{"hostnames":["secret-30"]}],"dnsConfig":{"searches":["secret-31"]},"hostname":"secret-32",
     "securityContext":{"windowsOptions":{"gmsaCredentialSpec":"secret-33"}},
     "tolerations":[{"key":"gpu","operator":"Exists","why":"secret-43"}],"vendor":{"token":"secret-44"},"note":"secret-45",
     "affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"x":"secret-46"}]}},
     "volumes":[{"name":"secret-6","secret":{"secretName":"secret-7"}},{"name":"d","hostPath":{"path":"/secret-8"}},
                {"name":"e","persistentVolumeClaim":{"claimName":"secret-9"}}],
     "initContainers":[{"name":"i","command":["secret-10"],"args":["secret-11"]}],
     "containers":[{"name":"c","image":"secret-12","command":["secret-13"],"args":["--key=secret-14"],
       "env":[{"name":"PASSWORD","value":"secret-15"}],"envFrom":[{"secretRef":{"name":"secret-16"}}],
       "lifecycle":{"preStop":{"exec":{"command":["secret-17"]}}},
       "livenessProbe":{"exec":{"command":["secret-18"]}},
       "ports":[{"hostPort":80,"containerPort":80}],
       "resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"2"}}}],
     "ephemeralContainers":[{"name":"debug","command":["secret-19"]}]},
   "status":{"phase":"Running","message":"secret-47","conditions":[{"type":"Ready","status":"False","message":"secret-48"}],"containerStatuses":[{"name":"c","image":"secret-20",
      "state":{"waiting":{"message":"secret-21"}},"lastState":{"terminated":{"message":"secret-22"}},
      "allocatedResources":{"cpu":"3"}}]}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"b","namespace":"team","uid":"2",
     "creationTimestamp":"2026-01-01T00:00:00Z"},
   "spec":{"priority":7,"containers":[{"name":"c","args":["secret-23"],"resources":{"limits":{"nvidia.com/gpu":"4"}}}],
     "tolerations":[{"key":"gpu","operator":"Exists"}]},
   "status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
             "message":"0/1 nodes are available: 1 Insufficient nvidia.com/gpu."}]}},
  {"kind":"Pod","apiVersion":"v1","metadata":{"name":"w-0","namespace":"team","uid":"3","creationTimestamp":"2026-01-01T00:00:00Z",
     "annotations":{"berth.dev/gang-by":"owner","berth.dev/gang-min":"2"},
     "ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"w","uid":"9","controller":true}]},
   "spec":{"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]},"status":{"phase":"Pending"}},
  {"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"w","namespace":"team","uid":"9"},
   "spec":{"parallelism":2,"completions":2,"template":{"metadata":{"annotations":{"note":"secret-24"}},
     "spec":{"containers":[{"name":"c","env":[{"name":"K","value":"secret-25"}]}]}}}},
  {"kind":"PodDisruptionBudget","apiVersion":"policy/v1","metadata":{"name":"p","namespace":"team"},
   "spec":{"selector":{"matchLabels":{"env":"stay-2"}}},"status":{"disruptionsAllowed":1}},
  {"kind":"Secret","apiVersion":"v1","metadata":{"name":"secret-26","namespace":"team"},"data":{"k":"secret-27"}},
  {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"m","namespace":"team"},"data":{"k":"secret-28"}}]})";

std::string TextOf(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Outcome Berth(std::vector<std::string> words, const std::string& cluster) {
  words.insert(words.end(), {"--cluster", cluster});
  return RunProgram("berth", words);
}

// The seconds that a pod has waited go on between two answers.
std::string Still(const std::string& answer) {
  static const std::regex kWaited(R"((_seconds": )\d+|\b(\d+(d|h|m|s|min))+\b)");
  return std::regex_replace(answer, kWaited, "$1N");
}

class Snapshot : public testing::Test {
 protected:
  // Slims the file, and compares all answers about both.
  std::string SlimOf(const std::string& file) {
    const Outcome made = Berth({"snapshot"}, file);
    EXPECT_EQ(made.code, 0) << made.err;
    const std::string slim = folder_.WriteText("slim.json", made.out);
    std::vector<std::vector<std::string>> asked = {
        {"top"},
        {"top", "--json"},
        {"explain", "waiting"},
        {"explain", "nodes"},
        {"plan", "--grow", "2"},
        {"plan", "--make-room"},
        {"plan", "-f", folder_.WriteText("new.yaml", kNew)}};
    // By kind one of each sort of answer: the first nodes and pods, and all that wait.
    int nodes = 0, pods = 0;
    for (const Json& item : Json::parse(TextOf(file))["items"]) {
      const Json& meta = item["metadata"];
      const std::string name = meta["name"];
      if (item["kind"] == "Node" && ++nodes <= 4) asked.push_back({"explain", "node", name});
      if (item["kind"] != "Pod") continue;
      if (++pods > 4 && item["spec"].contains("nodeName")) continue;
      asked.push_back({"explain", "pod", meta["namespace"].get<std::string>() + "/" + name});
    }
    for (const std::vector<std::string>& words : asked) {
      const Outcome whole = Berth(words, file), same = Berth(words, slim);
      EXPECT_EQ(Still(same.out), Still(whole.out)) << words.back();
      EXPECT_EQ(same.code, whole.code) << words.back();
    }
    EXPECT_EQ(Berth({"snapshot"}, slim).out, made.out) << "nothing is left to take out";
    return made.out;
  }

  static constexpr char kNew[] =
      "{kind: Pod, apiVersion: v1, metadata: {name: new}, spec: {containers: [{name: c, resources: "
      "{limits: {nvidia.com/gpu: 1}}}]}}";
  const TemporaryFolder folder_;
};

// Values of environment, commands and arguments, wherever they are.
void Collect(const Json& json, const std::string& key, std::set<std::string>& found) {
  if (json.is_string() && (key == "command" || key == "args" || key == "value")) {
    found.insert(json.get<std::string>());
  }
  if (json.is_array()) {
    for (const Json& item : json) Collect(item, key, found);
  }
  if (!json.is_object()) return;
  for (const auto& [name, value] : json.items()) {
    const bool is_env = key == "env" || name == "command" || name == "args";
    Collect(value, is_env || name != "value" ? name : "", found);
  }
}

TEST_F(Snapshot, HasNoSecretAndGivesTheSameAnswers) {
  const std::string slim = SlimOf(folder_.WriteText("c.json", kSecrets));
  const std::size_t at = slim.find("secret-");
  EXPECT_EQ(at, std::string::npos) << slim.substr(at, 12);
  for (const char* stays : {"stay-1", "stay-2", "\"Job\"", "\"PodDisruptionBudget\"", "hostPort",
                            "hostPath", "persistentVolumeClaim", "allocatedResources"}) {
    EXPECT_NE(slim.find(stays), std::string::npos) << stays;
  }
  EXPECT_EQ(slim.find("ConfigMap"), std::string::npos);
}

TEST_F(Snapshot, OfPublishedClustersGivesTheSameAnswers) {
  const std::filesystem::path clusters = DataDir() / "clusters";
  BERTH_NEEDS_DATA(clusters);
  for (const auto& file : std::filesystem::directory_iterator(clusters)) {
    if (file.path().extension() != ".json") continue;
    SCOPED_TRACE(file.path());
    const std::string slim = SlimOf(file.path());
    std::set<std::string> hidden;
    Collect(Json::parse(TextOf(file.path())), "", hidden);
    for (const std::string& text : hidden)
      EXPECT_EQ(slim.find('"' + text + '"'), slim.npos) << text;
  }
}

TEST_F(Snapshot, OfADumpIsTheDump) {
  EXPECT_EQ(Berth({"snapshot"}, folder_.WriteText("d.json", kCluster)).out, kCluster);
}

TEST_F(Snapshot, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(RunProgram("berth", {"snapshot"}).code, 2);
  const Outcome none = Berth({"snapshot"}, "/no/file");
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_EQ(Berth({"snapshot"}, folder_.WriteText("x.json", "{\"kind\":")).code, 1);
}

}  // namespace
}  // namespace berth::test::snapshot_cli_test
