// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_class_json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "server/dialects/dra/dra_json.h"
#include "server/dialects/dra/slice_json.h"
#include "topology/gpu_vendor.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::TextOf;

// What is true of every MIG device of NVIDIA's driver; blanks left out, quotes of one kind.
constexpr std::array<std::string_view, 2> kOfEveryMigDevice = {
    "device.driver=='gpu.nvidia.com'", "device.attributes['gpu.nvidia.com'].type=='mig'"};

std::string WithoutBlanks(std::string_view expression) {
  std::string dense(expression);
  std::erase_if(dense, [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; });
  return dense;
}

class ClassReader {
 public:
  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "extendedResourceName") class_.extended_resource = TextOf(content);
      if (key == "selectors") {
        class_.selectors = ReadSelectors(content.get_array(), [this] {
          class_.readable = false;
          Unread("a selector without cel");
        });
        for (const std::string& expression : class_.selectors) ReadExpression(expression);
      }
      if (key == "config") {
        for (auto config : content.get_array()) {
          class_.configs.push_back(ReadDeviceConfig(config.get_object()));
        }
      }
    });
  }

  DeviceClass Finish(wire::ObjectMeta meta) {
    class_.name = std::move(meta.name);
    class_.created = std::move(meta.created);
    const auto profile = ParseMigProfile(profile_);
    if (unread_.empty() && profile) class_.profile = *profile;
    return std::move(class_);
  }
  // The first expression that is none of those that are read; empty = there is none.
  [[nodiscard]] const std::string& unread() const { return unread_; }

 private:
  void ReadExpression(std::string_view expression) {
    for (;;) {
      const std::size_t end = expression.find("&&");
      ReadTerm(expression.substr(0, end));
      if (end == std::string_view::npos) return;
      expression.remove_prefix(end + 2);
    }
  }

  void ReadTerm(std::string_view term) {
    std::string dense = WithoutBlanks(term);
    std::ranges::replace(dense, '"', '\'');
    if (std::ranges::find(kOfEveryMigDevice, dense) != kOfEveryMigDevice.end()) return;
    const std::string profile = ProfileIn(term);
    if (profile.empty() || (!profile_.empty() && profile != profile_)) return Unread(dense);
    profile_ = profile;
  }

  void Unread(std::string_view what) {
    if (unread_.empty()) unread_ = what;
  }

  DeviceClass class_;
  std::string profile_;
  std::string unread_;
};

// `device.driver == 'TEXT'`, or `device.attributes['DOMAIN'].ID == 'TEXT'`.
struct DemandedText {
  std::string domain;  // empty: the driver is demanded
  std::string id;
  std::string text;
  friend bool operator==(const DemandedText&, const DemandedText&) = default;
};

// The parts of an expression between the && that stand in no bracket and in no text. One alone
// where another operator of the top level may make them alternatives.
std::vector<std::string_view> TermsOf(std::string_view expression) {
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    if (quote != 0) {
      if (c == '\\') return {expression};
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (c == '?' || c == '/' || expression.substr(i, 2) == "||") return {expression};
    if (depth != 0 || expression.substr(i, 2) != "&&") continue;
    terms.push_back(expression.substr(begin, i - begin));
    begin = ++i + 1;
  }
  terms.push_back(expression.substr(begin));
  return terms;
}

// Reads a term from its beginning.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool Take(std::string_view word) {
    SkipSpaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool TakeText(std::string& text) {
    SkipSpaces();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return false;
    const std::size_t end = text_.find(text_.front(), 1);
    if (end == std::string_view::npos) return false;
    text = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return text.find('\\') == std::string::npos;
  }
  bool TakeName(std::string& name) {
    SkipSpaces();
    const auto end = std::ranges::find_if_not(
        text_, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
    name.assign(text_.begin(), end);
    text_.remove_prefix(name.size());
    return !name.empty();
  }
  bool AtEnd() {
    SkipSpaces();
    return text_.empty();
  }

 private:
  void SkipSpaces() {
    while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
      text_.remove_prefix(1);
    }
  }
  std::string_view text_;
};

std::optional<DemandedText> DemandOf(std::string_view term) {
  DemandedText demand;
  Reader reader(term);
  if (!reader.Take("device") || !reader.Take(".")) return std::nullopt;
  if (!reader.Take("driver")) {
    const bool is_attribute = reader.Take("attributes") && reader.Take("[") &&
                              reader.TakeText(demand.domain) && reader.Take("]") &&
                              reader.Take(".") && reader.TakeName(demand.id);
    if (!is_attribute || demand.domain.empty()) return std::nullopt;
  }
  if (!reader.Take("==") || !reader.TakeText(demand.text) || !reader.AtEnd()) return std::nullopt;
  return demand;
}

}  // namespace

Result<DeviceClass> DecodeDeviceClass(const PaddedText& text, std::string& problem) {
  ClassReader reader;
  BERTH_TRY(wire::ObjectMeta meta,
            wire::ReadNamed(text, "DeviceClass", [&reader](std::string_view key, value content) {
              if (key == "spec") reader.ReadSpec(content.get_object());
            }));
  DeviceClass read = reader.Finish(std::move(meta));
  std::string unread = reader.unread();
  if (read.readable && AcceptsOnlyWholeGpus(read.selectors)) {
    const auto match = ClassMatch::Of(read.selectors);
    read.whole = match.has_value();
    if (!match) unread = match.error().message;
  }
  if (!read.whole && !read.profile && FindGpuVendor(read.extended_resource) != nullptr) {
    problem = "spec.selectors: want what Berth reads as whole GPUs, or as one MIG profile, for " +
              read.extended_resource + ", got \"" + unread +
              "\"; kube-scheduler alone places pods that ask for it";
  }
  const auto named = ParseMigResource(read.extended_resource);
  if (!named || (read.profile && read.profile == named->profile && !named->shared)) return read;
  problem = "spec.selectors: want what Berth reads as the MIG profile of " +
            read.extended_resource + ", got " +
            (read.profile              ? MigProfileName(*read.profile)
             : reader.unread().empty() ? "no profile"
                                       : "\"" + reader.unread() + "\"") +
            "; kube-scheduler alone places pods that ask for it";
  read.profile.reset();
  return read;
}

std::string ProfileIn(std::string_view expression) {
  const std::string dense = WithoutBlanks(expression);
  const std::optional<DemandedText> demand = DemandOf(dense);
  const bool is_profile = demand && demand->domain == kGpuDriver && demand->id == "profile";
  return is_profile ? demand->text : "";
}

DeviceConfig ReadDeviceConfig(simdjson::ondemand::object fields) {
  DeviceConfig config;
  wire::ForEachField(fields, [&config](std::string_view key, simdjson::ondemand::value content) {
    if (key == "requests") {
      config.requests = ReadTexts(content.get_array());
      return;
    }
    config.content += config.content.empty() ? "{\"" : ",\"";
    config.content.append(key).append("\":").append(
        std::string_view(simdjson::to_json_string(content)));
  });
  config.content += config.content.empty() ? "{}" : "}";
  return config;
}

cel::Expected<ClassMatch> ClassMatch::Of(const std::vector<std::string>& selectors) {
  ClassMatch match;
  for (const std::string& selector : selectors) {
    auto program = cel::Program::Compile(selector);
    if (!program) return tl::unexpected(std::move(program).error());
    match.programs_.push_back(*std::move(program));
  }
  return match;
}

cel::Expected<bool> ClassMatch::Matches(const cel::Device& device, std::uint64_t& cost) const {
  for (const cel::Program& program : programs_) {
    cel::Program::Effort effort;
    cel::Expected<bool> accepts = program.Matches(device, &effort);
    cost += effort.cost;
    if (!accepts || !*accepts) return accepts;
  }
  return true;
}

bool AcceptsOnlyWholeGpus(const std::vector<std::string>& selectors) {
  const DemandedText driver{"", "", std::string(kGpuDriver)};
  const DemandedText gpu{std::string(kGpuDriver), "type", "gpu"};
  bool of_driver = false, whole = false;
  for (const std::string& selector : selectors) {
    for (const std::string_view term : TermsOf(selector)) {
      const std::optional<DemandedText> demand = DemandOf(term);
      of_driver = of_driver || demand == driver;
      whole = whole || demand == gpu;
    }
  }
  return of_driver && whole;
}

}  // namespace berth::dialects
