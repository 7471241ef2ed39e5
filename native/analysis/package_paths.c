/* The Android packages that paths of files belong to. */
#include <string.h>

#include "deobfuscation.h"

/* System apps whose path doesn't have the name of the package.  Sources: the
 * list of Perfetto's trace processor. */
static const struct {
  const char *path, *package;
} kPrefixes[] = {
    {"/system_ext/priv-app/SystemUIGoogle/SystemUIGoogle.apk",
     "com.android.systemui"},
    {"/product/priv-app/Phonesky/Phonesky.apk", "com.android.vending"},
    {"/product/app/Maps/Maps.apk", "com.google.android.apps.maps"},
    {"/system_ext/priv-app/NexusLauncherRelease/NexusLauncherRelease.apk",
     "com.google.android.apps.nexuslauncher"},
    {"/product/app/Photos/Photos.apk", "com.google.android.apps.photos"},
    {"/product/priv-app/WellbeingPrebuilt/WellbeingPrebuilt.apk",
     "com.google.android.apps.wellbeing"},
    {"/product/app/PrebuiltGmail/PrebuiltGmail.apk", "com.google.android.gm"},
    {"/product/priv-app/Velvet/Velvet.apk",
     "com.google.android.googlequicksearchbox"},
    {"/product/app/LatinIMEGooglePrebuilt/LatinIMEGooglePrebuilt.apk",
     "com.google.android.inputmethod.latin"},
    {"/product/app/PrebuiltBugle/PrebuiltBugle.apk",
     "com.google.android.apps.messaging"},
};

static const struct {
  const char *part, *package;
} kParts[] = {
    {"DevicePersonalizationPrebuilt", "com.google.android.as"},
    {"MatchMaker", "com.google.android.as"},
    {"DeviceIntelligenceNetworkPrebuilt", "com.google.android.as.oss"},
    {"SettingsIntelligenceGooglePrebuilt",
     "com.google.android.settings.intelligence"},
    {"PrebuiltGmsCore", "com.google.android.gms"},
    {"com.google.android.gms", "com.google.android.gms"},
};

static bool starts_with(const char* text, size_t size, const char* prefix) {
  size_t n = strlen(prefix);
  return size >= n && memcmp(text, prefix, n) == 0;
}

/* Returns the position of a part; NULL if the text doesn't have it. */
static const char* find(const char* text, size_t size, const char* part) {
  for (; size >= strlen(part); text++, size--) {
    if (starts_with(text, size, part))
      return text;
  }
  return NULL;
}

/* Returns the package of an installed app; `path` begins after /data/app/:
 *
 *   com.example-random/base.apk      ~~random/com.example-random/base.apk
 */
static st_string installed(struct st_storage* s, const char* path,
                           size_t size) {
  const char* slash = size && *path == '~' ? memchr(path, '/', size) : NULL;
  if (size && *path == '~' && !slash)
    return 0;
  if (slash) {
    size -= (size_t)(slash + 1 - path);
    path = slash + 1;
  }
  const char* end = size ? memchr(path, '/', size) : NULL;
  const char* minus = end ? memchr(path, '-', (size_t)(end - path)) : NULL;
  return minus ? st_string_add(&s->strings, path, (size_t)(minus - path)) : 0;
}

st_string st_package_of_path(struct st_storage* s, const char* path,
                             size_t size) {
  static const char kApp[] = "/data/app/";
  static const char kMemory[] = "dex extracted in memory from /data/app/";
  for (size_t i = 0; i < sizeof kPrefixes / sizeof *kPrefixes; i++) {
    if (starts_with(path, size, kPrefixes[i].path))
      return st_intern(s, kPrefixes[i].package);
  }
  for (size_t i = 0; i < sizeof kParts / sizeof *kParts; i++) {
    if (find(path, size, kParts[i].part))
      return st_intern(s, kParts[i].package);
  }
  const char* memory = find(path, size, kMemory);
  const char* app = starts_with(path, size, kApp) ? path + sizeof kApp - 1
                    : memory                      ? memory + sizeof kMemory - 1
                                                  : NULL;
  return app ? installed(s, app, size - (size_t)(app - path)) : 0;
}
