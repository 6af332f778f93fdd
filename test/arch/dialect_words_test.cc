// SPDX-License-Identifier: Apache-2.0
//
// What one ecosystem is called is known to its dialect (server/dialects), to the configuration, and
// to documents and tests. The rest of the sources speaks of meanings.
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "test/support/build_paths.h"
#include "test/support/read_text.h"

namespace berth::test::dialect_words_test {
namespace {

namespace fs = std::filesystem;

// The folders, and Kueue, which has none of its own: server/dialects/groups reads it. Berth's own
// words are everybody's, and three folders have no ecosystem's name but what several share.
std::set<std::string> Ecosystems() {
  static const std::set<std::string> others = {"berth", "devices", "groups", "vgpu"};
  std::set<std::string> names = {"kueue"};
  const fs::path dialects = fs::path(SourceDir()) / "server/dialects";
  for (const auto& entry : fs::directory_iterator(dialects)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && !others.contains(name)) names.insert(name);
  }
  return names;
}

// Whether the text has the name at that position, in any case: "HAMi's", "kVolcano", "dra_gpus".
// Two words are not one (GpuShare), and a short name has to be a word (not "drain", "timestamps").
bool HasNameAt(std::string_view text, std::size_t at, std::string_view name) {
  const auto is = [text](std::size_t i, int (*kind)(int)) {
    return i < text.size() && kind(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[at + i])) != name[i]) return false;
    if (i > 0 && is(at + i, std::isupper) && is(at + i - 1, std::islower)) return false;
  }
  const std::string_view rest = text.substr(at + name.size());
  if (rest.starts_with("lton") && name == "hami") return false;  // Hamilton's
  constexpr std::size_t kShort = 3;
  if (name.size() > kShort) return true;
  const bool begins =
      at == 0 || !is(at - 1, std::isalpha) || (is(at, std::isupper) && is(at - 1, std::islower));
  return begins && !is(at + name.size(), std::islower);
}

// The ecosystems that the text names.
std::set<std::string> EcosystemsIn(std::string_view text) {
  static const std::set<std::string> all = Ecosystems();
  std::set<std::string> found;
  for (const std::string& name : all) {
    for (std::size_t at = 0; at + name.size() <= text.size(); ++at) {
      if (!HasNameAt(text, at, name)) continue;
      found.insert(name);
      break;
    }
  }
  return found;
}

// Not looked at: config, where an ecosystem is switched on by its name, and bench.
constexpr std::array<std::string_view, 5> kLookedAt = {"base", "topology", "cluster", "scoring",
                                                       "server"};

// By ecosystem: files that still name it. The lists may only become shorter.
const std::map<std::string, std::set<std::string>>& Remaining() {
  static const std::map<std::string, std::set<std::string>> files = {
      // A rule that Berth follows or compares itself with, or the words of a format.
      {"hami",
       {"server/wire/node/mig_json.cc", "topology/links/wiring.h", "topology/mig/mig_product.h"}},
      // A rule that Berth follows or compares itself with, or the words of a format.
      {"kueue", {"topology/domains/domain_tree.h", "topology/domains/domain_tree.h"}},
      // A vendor: its catalogues, resources and labels, the formats of its tools, its versions.
      {"nvidia",
       {"cluster/node/mig_spec.h",
        "cluster/node/node.h",
        "cluster/values/node_constraints.cc",
        "cluster/values/node_constraints.h",
        "scoring/filters/device_fit.cc",
        "scoring/mig/repartition_report.h",
        "server/wire/pod/devices_annotation.h",
        "server/wire/pod/dialect.h",
        "server/why/explain_json.cc",
        "server/wire/node/gpu_conditions.h",
        "server/wire/node/node_gpu_facts.cc",
        "server/wire/node/node_gpu_facts.h",
        "server/wire/node/template_node.h",
        "server/wire/pod/pod_parts.cc",
        "server/wire/pod/pod_parts.h",
        "server/wire/pod/pod_needs.cc",
        "server/wire/pod/pod_needs.h",
        "server/wire/node/template_node.cc",
        "server/wire/node/topology_json.h",
        "topology/domains/domain_tree.cc",
        "topology/gpu_vendor.cc",
        "topology/gpu_vendor.h",
        "topology/links/link_matrix.h",
        "topology/links/wiring.cc",
        "topology/links/wiring.h",
        "topology/machine_types.cc",
        "topology/machine_types.h",
        "topology/mig/mig_catalog.cc",
        "topology/mig/mig_product.h",
        "topology/mig/mig_product.cc",
        "topology/mig/mig_product.h",
        "topology/mig/mig_product.h"}},
      // A vendor: its row in the catalogue.
      {"intel", {"topology/gpu_vendor.cc"}},
      // An API of Kubernetes: ResourceClaims hold GPUs of any driver.
      {"dra",
       {"cluster/claims/device_offers.h", "cluster/values/pod_request.h", "scoring/admission.h",
        "scoring/explain/explain_pod.cc", "scoring/mig/repartition_report.cc",
        "scoring/mig/repartition_report.h", "server/pages/cluster_metrics.cc",
        "server/pages/plan_page.cc", "server/service/serve.cc", "server/why/explain_json.cc",
        "server/why/explain_text.cc", "server/wire/pod/pod_rules.cc", "server/wire/pod/pod_rules.h",
        "topology/machine_types.cc", "topology/mig/mig_catalog.cc", "topology/mig/mig_product.h"}},
      // A way to share GPUs, beside time slicing, which plugins of several make use of.
      {"mps",
       {"cluster/node/node.h", "scoring/filters/device_fit.cc", "server/pages/cluster_metrics.cc",
        "server/wire/file/value_json.cc"}},
  };
  return files;
}

TEST(DialectWords, AreOnlyWhereDialectsAre) {
  const fs::path root = SourceDir();
  std::size_t looked_at = 0;
  std::map<std::string, std::set<std::string>> found;
  for (const std::string_view room : kLookedAt) {
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".h" && path.extension() != ".cc") continue;
      const std::string file = path.lexically_relative(root).generic_string();
      if (file.starts_with("server/dialects/")) continue;
      ++looked_at;
      for (const std::string& name : EcosystemsIn(ReadText(path))) {
        found[name].insert(file);
        const auto remaining = Remaining().find(name);
        EXPECT_TRUE(remaining != Remaining().end() && remaining->second.contains(file))
            << file << " names " << name << ": such words belong into server/dialects";
      }
    }
  }
  EXPECT_GT(looked_at, 100U);
  for (const auto& [name, files] : Remaining()) {
    for (const std::string& file : files) {
      EXPECT_TRUE(found[name].contains(file))
          << file << " does not name " << name << " any more: take it off the list";
    }
  }
}

// A folder that is new here is guarded from then on.
TEST(DialectWords, AreThoseOfTheFolders) {
  const std::set<std::string> names = Ecosystems();
  for (const char* name : {"dra", "gpushare", "hami", "intel", "kai", "koordinator", "kueue", "mps",
                           "nvidia", "volcano"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("berth"));
}

TEST(DialectWords, AreFoundInAnyCase) {
  using Names = std::set<std::string>;
  EXPECT_EQ(EcosystemsIn("// HAMi's register"), Names{"hami"});
  EXPECT_EQ(EcosystemsIn("enum class GroupApi { kVolcano }"), Names{"volcano"});
  EXPECT_EQ(EcosystemsIn("WatchDra(kKai, mps_gpus), MPS, a Gpushare"),
            (Names{"dra", "kai", "mps", "gpushare"}));
  EXPECT_EQ(EcosystemsIn("a Hamiltonian cycle, GpuShare, kDrain, draft, timestamps"), Names{});
}

}  // namespace
}  // namespace berth::test::dialect_words_test
