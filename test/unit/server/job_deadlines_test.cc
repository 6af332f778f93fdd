// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/gang_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::job_deadlines_test {
namespace {

// What it hears, in order.
class Recorder final : public kube::ObjectSink {
 public:
  void ListBegins() override { told.emplace_back("begins"); }
  void Listed(const PaddedText& object) override { Tell("listed ", object); }
  void ListEnds() override { told.emplace_back("ends"); }
  void NotServed() override { told.emplace_back("not served"); }
  void Changed(const PaddedText& object) override { Tell("changed ", object); }
  void Deleted(const PaddedText& object) override { Tell("deleted ", object); }

  std::vector<std::string> told;

 private:
  void Tell(const std::string& what, const PaddedText& object) {
    const auto meta = wire::DecodeObjectMeta(object);
    told.push_back(what + (meta ? meta->name : "what cannot be read"));
  }
};

class JobDeadlineSinkTest : public testing::Test {
 protected:
  static PaddedText Job(const std::string& name) {
    const Json job = {{"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "uid-" + name}}},
                      {"spec", {{"activeDeadlineSeconds", 60}}}};
    return Padded(job.dump());
  }
  [[nodiscard]] bool Knows(const std::string& name) const {
    const APod pod = APod("p").Namespace("ns").Controller("uid-" + name);
    return jobs_.Of(pod.Request(), {}).has_value();
  }

  JobEndTable jobs_;
  Recorder next_;
  kube::JobDeadlineSink sink_{jobs_, next_};
};

TEST_F(JobDeadlineSinkTest, KnowsTheJobsThatThereAreAndPassesThemOn) {
  sink_.ListBegins();
  sink_.Listed(Job("a"));
  sink_.Listed(Job("b"));
  sink_.ListEnds();
  sink_.Changed(Job("c"));
  EXPECT_TRUE(Knows("a") && Knows("b") && Knows("c"));
  sink_.Deleted(Job("a"));
  EXPECT_FALSE(Knows("a"));
  sink_.ListBegins();
  sink_.Listed(Job("c"));
  sink_.ListEnds();
  EXPECT_FALSE(Knows("b")) << "it went while nobody watched";
  EXPECT_TRUE(Knows("c"));
  sink_.ListBegins();
  sink_.NotServed();
  EXPECT_FALSE(Knows("c"));
  EXPECT_EQ(next_.told, (std::vector<std::string>{"begins", "listed a", "listed b", "ends",
                                                  "changed c", "deleted a", "begins", "listed c",
                                                  "ends", "begins", "not served"}));
}

TEST_F(JobDeadlineSinkTest, WhatCannotBeReadIsPassedOnToo) {
  for (const char* const text : {"{}", "no json", R"({"metadata": {"name": "a"}})"}) {
    sink_.Listed(Padded(text));
    sink_.Changed(Padded(text));
    sink_.Deleted(Padded(text));
  }
  EXPECT_EQ(jobs_.jobs(), 0u);
  EXPECT_EQ(next_.told.size(), 9u);
}

}  // namespace
}  // namespace berth::test::job_deadlines_test
