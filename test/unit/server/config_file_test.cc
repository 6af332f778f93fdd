// SPDX-License-Identifier: Apache-2.0
//
// Every way in which a configuration file changes is seen, and nothing else is taken for a change.
#include "server/settings/config_file.h"

#include <sys/stat.h>

#include <functional>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "config/config.h"
#include "config/load.h"
#include "test/support/config_places.h"

namespace berth::test::config_file_test {
namespace {

constexpr char kFirst[] = "profile: best-fit\n";
constexpr char kSecond[] = "profile: first-fit\n";

std::string HashOf(std::string_view text) { return Sha256Hex(text).substr(0, 12); }

ConfigFile Open(const std::string& path, const std::string& listen = "") {
  auto file = ConfigFile::Open(path, listen);
  EXPECT_TRUE(file) << file.error().message;
  return *std::move(file);
}

// The second look finds the file as the first one did, and reads it.
std::optional<ConfigReading> LookTwice(ConfigFile& file) {
  EXPECT_FALSE(file.Look().has_value());
  return file.Look();
}

void ExpectRead(ConfigFile& file, const std::string& text) {
  const auto reading = LookTwice(file);
  ASSERT_TRUE(reading);
  ASSERT_TRUE(reading->config) << reading->config.error().message;
  EXPECT_EQ(*reading->config, *LoadConfig(text, ""));
  EXPECT_EQ(reading->hash, HashOf(text));
  EXPECT_TRUE(reading->is_new);
  EXPECT_FALSE(file.Look());
}

std::string RefusalOf(ConfigFile& file) {
  const auto reading = LookTwice(file);
  EXPECT_TRUE(reading);
  if (!reading) return "";
  EXPECT_FALSE(reading->config);
  return reading->config ? "" : reading->config.error().message;
}

TEST(ConfigFile, AFileThatStaysAsItIsIsReadOnce) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  EXPECT_EQ(file.config().profile, "best-fit");
  EXPECT_EQ(file.hash(), HashOf(kFirst));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(file.Look());
}

TEST(ConfigFile, WithoutAFileTheDefaultsNeverChange) {
  ConfigFile file = Open("");
  EXPECT_EQ(file.config(), DefaultConfig());
  EXPECT_EQ(file.hash(), HashOf(PrintConfig(DefaultConfig())));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(file.Look());
}

TEST(ConfigFile, WhatCannotBeLoadedAtTheStartIsAnError) {
  const OrdinaryConfig config("profil: x\n");
  const auto bad = ConfigFile::Open(config.path(), "");
  ASSERT_FALSE(bad);
  EXPECT_TRUE(bad.error().message.starts_with(config.path() + ":1: profil: unknown key"));
  EXPECT_FALSE(ConfigFile::Open(config.At("missing"), ""));
}

TEST(ConfigFile, AMountedConfigMapThatIsSwappedIsRead) {
  MountedConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Publish(kSecond);
  ExpectRead(file, kSecond);
  config.Publish(kFirst);
  ExpectRead(file, kFirst);
}

TEST(ConfigFile, AnEditInPlaceIsReadAlsoWhenTheSizeStays) {
  const OrdinaryConfig config("reservationSeconds: 10\n");
  ConfigFile file = Open(config.path());
  config.Edit("reservationSeconds: 20\n");
  ExpectRead(file, "reservationSeconds: 20\n");
}

TEST(ConfigFile, AFileThatIsReplacedIsRead) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Replace(kSecond);
  ExpectRead(file, kSecond);
}

TEST(ConfigFile, AFileIsLeftAloneAsLongAsItChanges) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  std::string text;
  for (const char* part : {"profile:", " first-fit", "\n", "logLevel: warn\n"}) {
    text += part;
    config.Edit(text);
    EXPECT_FALSE(file.Look()) << text;
  }
  const auto reading = file.Look();
  ASSERT_TRUE(reading);
  EXPECT_EQ(reading->hash, HashOf(text));
}

TEST(ConfigFile, TheSameBytesInAnotherFileAreNothingNew) {
  MountedConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Publish(kFirst);
  const auto reading = LookTwice(file);
  ASSERT_TRUE(reading);
  EXPECT_FALSE(reading->is_new);
  EXPECT_EQ(reading->hash, HashOf(kFirst));
}

TEST(ConfigFile, AFileThatVanishesIsRefusedOnceAndReadWhenItIsBack) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Remove();
  EXPECT_EQ(RefusalOf(file), config.path() + ": cannot be read: No such file or directory");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(file.Look());
  config.Replace(kFirst);
  ExpectRead(file, kFirst);
}

TEST(ConfigFile, AGapBetweenTwoLooksIsNotSeen) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Remove();
  EXPECT_FALSE(file.Look());
  config.Replace(kSecond);
  ExpectRead(file, kSecond);
}

TEST(ConfigFile, RefusalsHaveLineAndPathAndAreNewOncePerContent) {
  MountedConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Publish("\nprofile: wurst\n");
  EXPECT_TRUE(RefusalOf(file).starts_with(config.path() + ":2: profile: want one of"));
  config.Publish("\nprofile: wurst\n");
  const auto again = LookTwice(file);
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->is_new);
  config.Publish("\nprofile: kaese\n");
  const auto other = LookTwice(file);
  ASSERT_TRUE(other);
  EXPECT_TRUE(other->is_new);
}

TEST(ConfigFile, AnEmptyFileIsRefused) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  for (const char* text : {"", "\n", " \n\t\r\n"}) {
    config.Edit(text);
    EXPECT_EQ(RefusalOf(file),
              config.path() + ":1: want a configuration, got an empty file; the settings stay");
  }
}

TEST(ConfigFile, AConfigMapThatBecomesACommaIsRefused) {
  MountedConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Publish(",");
  EXPECT_EQ(RefusalOf(file), config.path() + ":1: not YAML: want a value here, got none");
}

TEST(ConfigFile, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path());
  config.Remove();
  ASSERT_EQ(mkfifo(config.path().c_str(), 0600), 0);
  EXPECT_EQ(RefusalOf(file), config.path() + ": cannot be read: want a regular file");
  config.Remove();
  std::filesystem::create_directory(config.path());
  EXPECT_EQ(RefusalOf(file), config.path() + ": cannot be read: want a regular file");
}

TEST(ConfigFile, TheListenFlagHoldsForEveryReading) {
  const OrdinaryConfig config(kFirst);
  ConfigFile file = Open(config.path(), "127.0.0.1:0");
  EXPECT_EQ(file.config().server.listen, "127.0.0.1:0");
  config.Replace("server: {listen: \"0.0.0.0:1\"}\n");
  const auto reading = LookTwice(file);
  ASSERT_TRUE(reading && reading->config);
  EXPECT_EQ(reading->config->server.listen, "127.0.0.1:0");
}

}  // namespace
}  // namespace berth::test::config_file_test
