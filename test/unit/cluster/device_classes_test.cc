// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <gtest/gtest.h>

#include "test/support/mig_nodes.h"

namespace berth::test::device_classes_test {
namespace {

DeviceClass Class(const std::string& name, const std::string& resource, const std::string& created,
                  std::optional<MigProfile> profile = {}) {
  return {"", name, resource, created, profile};
}
std::string NameOfClass(const DeviceClasses& classes, const std::string& resource) {
  const auto found = classes.ClassOf(resource);
  return found ? found->name : "";
}

TEST(DeviceClasses, AResourceIsThatOfTheNewestClassThatHasItsName) {
  DeviceClasses classes;
  classes.Put(Class("b", "x/y", "2026-01-02T00:00:00Z"));
  EXPECT_EQ(NameOfClass(classes, "x/y"), "b");
  classes.Put(Class("a", "x/y", "2026-01-01T00:00:00Z"));
  EXPECT_EQ(NameOfClass(classes, "x/y"), "b");
  classes.Put(Class("c", "x/y", "2026-01-02T00:00:00Z"));
  EXPECT_EQ(NameOfClass(classes, "x/y"), "b") << "as old: the first by name";
  classes.Put(Class("d", "x/y", "2026-01-03T00:00:00Z"));
  EXPECT_EQ(NameOfClass(classes, "x/y"), "d");
  classes.Put(Class("d", "x/z", "2026-01-03T00:00:00Z"));
  EXPECT_EQ(NameOfClass(classes, "x/y"), "b") << "another name now";
  classes.Remove("b");
  classes.Remove("nobody");
  EXPECT_EQ(NameOfClass(classes, "x/y"), "c");
  classes.Reset({Class("e", "x/y", "")});
  EXPECT_EQ(NameOfClass(classes, "x/y"), "e");
  EXPECT_EQ(NameOfClass(classes, "x/z"), "");
}

TEST(DeviceClasses, EveryClassIsAResourceByItsOwnName) {
  DeviceClasses classes;
  classes.Put(Class("a", "", ""));
  classes.Put(Class("b", "x/y", ""));
  EXPECT_EQ(NameOfClass(classes, "deviceclass.resource.kubernetes.io/a"), "a");
  EXPECT_EQ(NameOfClass(classes, "deviceclass.resource.kubernetes.io/b"), "b");
  EXPECT_EQ(NameOfClass(classes, "deviceclass.resource.kubernetes.io/c"), "");
  EXPECT_EQ(NameOfClass(classes, ""), "");
  EXPECT_EQ(NameOfClass(classes, "cpu"), "");
}

TEST(DeviceClasses, TheProfilesAreThoseOfAllClassesOnce) {
  DeviceClasses classes;
  EXPECT_TRUE(classes.Profiles().empty());
  classes.Put(Class("a", "", "", ProfileOf("3g.20gb")));
  classes.Put(Class("b", "", "", ProfileOf("1g.5gb")));
  classes.Put(Class("c", "x/y", "", ProfileOf("1g.5gb")));
  classes.Put(Class("d", "x/z", ""));
  EXPECT_EQ(classes.Profiles(),
            (std::vector<MigProfile>{ProfileOf("1g.5gb"), ProfileOf("3g.20gb")}));
}

TEST(DeviceClasses, OfWholeGpusAreFoundByTheResourcesThatTheyAreTheClassOf) {
  DeviceClasses classes;
  DeviceClass old = Class("a", "x/gpu", "2026-01-01T00:00:00Z"),
              other = Class("b", "x/gpu", "2026-01-02T00:00:00Z");
  old.whole = true;
  classes.Put(old);
  EXPECT_EQ(classes.WholeByName().size(), 2U);
  EXPECT_EQ(classes.WholeByName().count("x/gpu"), 1U);
  classes.Put(other);
  EXPECT_EQ(classes.WholeByName().count("x/gpu"), 0U) << "it stands for a newer class";
  EXPECT_EQ(classes.WholeByName().begin()->first, "deviceclass.resource.kubernetes.io/a");
}

TEST(DeviceClasses, ResourcesOfWholeGpusAreBounded) {
  DeviceClasses classes;
  for (int i = 0; i < 200; ++i) {
    DeviceClass each = Class("c" + std::to_string(i), "x/gpu-" + std::to_string(i), "");
    each.whole = true;
    classes.Put(each);
  }
  EXPECT_EQ(classes.WholeByName().size(), 64U);
}

}  // namespace
}  // namespace berth::test::device_classes_test
