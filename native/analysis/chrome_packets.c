/* Parses packets of Chromium: its metadata, and the types of its processes. */
#include <stdio.h>
#include <string.h>

#include "core/fields.h"
#include "importer.h"
#include "messages.h"

enum {
  /* ChromeEventBundle, ChromeLegacyJsonTrace, ChromeMetadata */
  EVENTS_METADATA = 2,
  EVENTS_KERNEL_TEXT = 4,
  EVENTS_JSON = 5,
  JSON_TYPE = 1,
  JSON_DATA = 2,
  JSON_USER_TRACE = 0,
  METADATA_NAME = 1,
  METADATA_TEXT = 2,
  METADATA_BOOL = 3,
  METADATA_INT = 4,
  METADATA_JSON = 5,
  /* ChromeMetadataPacket */
  PACKET_VERSION = 2,
  PACKET_CATEGORIES = 3,
  /* ChromeProcessDescriptor */
  PROCESS_TYPE = 1,
  PROCESS_HOST_APP = 4,
  PROCESS_CRASH_TRACE = 5,
};

/* The names of processes by ChromeProcessDescriptor.ProcessType. */
static const char* const kProcesses[] = {
    NULL,
    "Browser",
    "Renderer",
    "Utility",
    "SandboxHelper",
    "PROCESS_SANDBOX_HELPER",
    "Gpu",
    "PpapiPlugin",
    "PpapiBroker",
    "Service: network.mojom.NetworkService",
    "Service: tracing.mojom.TracingService",
    "Service: storage.mojom.StorageService",
    "Service: audio.mojom.AudioService",
    "Service: data_decoder.mojom.DataDecoderService",
    "Service: chrome.mojom.UtilWin",
    "Service: proxy_resolver.mojom.ProxyResolverFactory",
    "Service: media.mojom.CdmServiceBroker",
    "Service: video_capture.mojom.VideoCaptureService",
    "Service: unzip.mojom.Unzipper",
    "Service: mirroring.mojom.MirroringService",
    "Service: patch.mojom.FilePatcher",
    "Service: chromeos.tts.mojom.TtsService",
    "Service: printing.mojom.PrintingService",
    "Service: quarantine.mojom.Quarantine",
    "Service: chromeos.local_search_service.mojom.LocalSearchService",
    "Service: chromeos.assistant.mojom.AssistantAudioDecoderFactory",
    "Service: chrome.mojom.FileUtilService",
    "Service: printing.mojom.PrintCompositor",
    "Service: paint_preview.mojom.PaintPreviewCompositorCollection",
    "Service: media.mojom.SpeechRecognitionService",
    "Service: device.mojom.XRDeviceService",
    "Service: chrome.mojom.UtilReadIcon",
    "Service: language_detection.mojom.LanguageDetectionService",
    "Service: sharing.mojom.Sharing",
    "Service: chrome.mojom.MediaParserFactory",
    "Service: qrcode_generator.mojom.QRCodeService",
    "Service: chrome.mojom.ProfileImport",
    "Service: chromeos.ime.mojom.ImeService",
    "Service: recording.mojom.RecordingService",
    "Service: shape_detection.mojom.ShapeDetectionService",
    "Extension Renderer",
    "Service: media.mojom.MediaFoundationServiceBroker",
};

st_string st_chrome_process_name(struct st_importer* m, uint64_t type) {
  bool is_known =
      type < sizeof kProcesses / sizeof *kProcesses && kProcesses[type];
  return is_known ? st_intern(&m->storage, kProcesses[type]) : 0;
}

void st_parse_chrome_process(struct st_importer* m, uint32_t upid,
                             struct st_field descriptor) {
  struct st_arg_list* args = &m->processes.processes.data[upid].args;
  struct st_field f[PROCESS_CRASH_TRACE + 1];
  st_message_read(descriptor, f, PROCESS_CRASH_TRACE + 1);
  st_string type = st_chrome_process_name(m, f[PROCESS_TYPE].value);
  st_process_set_name(&m->processes, upid, type, false);
  st_arg_add_text(args, st_intern(&m->storage, "chrome.process_type"), type);
  if (f[PROCESS_HOST_APP].number)
    st_arg_add_text(args,
                    st_intern(&m->storage, "chrome.host_app_package_name"),
                    st_field_text(&m->storage, f[PROCESS_HOST_APP]));
  if (f[PROCESS_CRASH_TRACE].number)
    st_arg_add_int(args, st_intern(&m->storage, "chrome.crash_trace_id"),
                   ST_ARG_UINT, (int64_t)f[PROCESS_CRASH_TRACE].value);
}

static void add_metadata(struct st_importer* m, const char* prefix,
                         struct st_field name, struct st_cell number,
                         st_string text) {
  char key[256];
  snprintf(key, sizeof key, "%s%.*s", prefix, (int)(name.size % 4096),
           name.size ? (const char*)name.data : "");
  st_add_own_metadata(m, key, number, text);
}

/* Adds a value to the arguments of the raw event of a bundle. */
static void add_raw_metadata(struct st_importer* m, const struct st_field* f,
                             struct st_field text, struct st_cell number) {
  st_string key = st_field_text(&m->storage, f[METADATA_NAME]);
  enum st_arg_type type = f[METADATA_TEXT].number ? ST_ARG_STRING : ST_ARG_JSON;
  if (text.number)
    st_arg_list_add(
        &m->raw.args,
        (struct st_arg){
            key, key, type, {.text = st_field_text(&m->storage, text)}});
  else if (number.valid)
    st_arg_add_int(&m->raw.args, key, ST_ARG_INT, number.i);
}

/* Adds a raw event with one argument. */
static void add_raw_text(struct st_importer* m, int64_t ts, const char* name,
                         const char* text, size_t size) {
  if (m->raw.is_kept)
    st_arg_add_text(&m->raw.args, st_intern(&m->storage, "data"),
                    st_string_add(&m->storage.strings, text, size));
  st_raw_chrome_event(m, ts, name, 0);
}

/* Adds the texts of the kernel's events, joined, as a raw event. */
static void add_kernel_text(struct st_importer* m, const struct st_event* e) {
  char* joined = m->raw.is_kept ? st_bytes_take(&m->arena, e->size) : NULL;
  size_t size = 0;
  struct st_decoder d;
  struct st_field f;
  bool has_text = false;
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != EVENTS_KERNEL_TEXT || !f.data)
      continue;
    has_text = true;
    if (joined)
      memcpy(joined + size, f.data, f.size), size += f.size;
  }
  if (has_text)
    add_raw_text(m, e->ts, "chrome_event.legacy_system_trace", joined, size);
}

/* Adds the texts in JSON as raw events. */
static void add_json_texts(struct st_importer* m, const struct st_event* e) {
  struct st_decoder d;
  struct st_field f, parts[JSON_DATA + 1];
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number != EVENTS_JSON || !f.data)
      continue;
    st_message_read(f, parts, JSON_DATA + 1);
    if (parts[JSON_TYPE].value == JSON_USER_TRACE)
      add_raw_text(m, e->ts, "chrome_event.legacy_user_trace",
                   (const char*)parts[JSON_DATA].data, parts[JSON_DATA].size);
  }
}

static void parse_metadata(struct st_importer* m, const char* prefix,
                           struct st_field metadata) {
  struct st_field f[METADATA_JSON + 1];
  st_message_read(metadata, f, METADATA_JSON + 1);
  struct st_field text =
      f[METADATA_TEXT].number ? f[METADATA_TEXT] : f[METADATA_JSON];
  struct st_cell number =
      f[METADATA_INT].number    ? st_int((int64_t)f[METADATA_INT].value)
      : f[METADATA_BOOL].number ? st_int(f[METADATA_BOOL].value != 0)
                                : ST_NULL;
  if (text.number)
    add_metadata(m, prefix, f[METADATA_NAME], ST_NULL,
                 st_field_text(&m->storage, text));
  else if (number.valid)
    add_metadata(m, prefix, f[METADATA_NAME], number, 0);
  else
    st_increment_stat(m, "empty_chrome_metadata", ST_NO_INDEX, "error", "trace",
                      1);
  if (m->raw.is_kept)
    add_raw_metadata(m, f, text, number);
}

static void parse_bundle_metadata(struct st_importer* m,
                                  const struct st_event* e) {
  struct st_field f;
  char prefix[24] = "cr-";
  struct st_decoder d;
  if (++m->chrome_bundles > 1)
    snprintf(prefix, sizeof prefix, "cr-%u-", m->chrome_bundles);
  st_decoder_init(&d, e->data, e->size);
  while (st_decoder_next(&d, &f)) {
    if (f.number == EVENTS_METADATA && f.data)
      parse_metadata(m, prefix, f);
  }
  st_raw_chrome_event(m, e->ts, "chrome_event.metadata", 0);
}

void st_parse_chrome_events(struct st_importer* m, const struct st_event* e) {
  struct st_field bundle = {.data = e->data, .size = e->size};
  if (st_message_find(bundle, EVENTS_METADATA).data)
    parse_bundle_metadata(m, e);
  add_kernel_text(m, e);
  add_json_texts(m, e);
}

void st_read_chrome_metadata(struct st_importer* m, struct st_field packet) {
  struct st_field f[PACKET_CATEGORIES + 1];
  char key[48];
  char letter = (char)('a' + m->chrome_metadata++ % 26);
  st_message_read(packet, f, PACKET_CATEGORIES + 1);
  if (f[PACKET_VERSION].number) {
    snprintf(key, sizeof key, "cr-%c-playstore_version_code", letter);
    st_add_own_metadata(m, key, st_int((int32_t)f[PACKET_VERSION].value), 0);
  }
  if (f[PACKET_CATEGORIES].number) {
    snprintf(key, sizeof key, "cr-%c-enabled_categories", letter);
    st_add_own_metadata(m, key, ST_NULL,
                        st_field_text(&m->storage, f[PACKET_CATEGORIES]));
  }
}
