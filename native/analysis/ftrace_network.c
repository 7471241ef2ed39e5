/* Parses kernel events of the network. */
#include "ftrace_events.h"
#include "importer.h"

enum {
  NETIF_RECEIVE_SKB = 360,
  NET_DEV_XMIT = 361,
  INET_SOCK_SET_STATE = 362,
  TCP_RETRANSMIT_SKB = 363,
  NAPI_GRO_RECEIVE_ENTRY = 365,
  NAPI_GRO_RECEIVE_EXIT = 366,
  KFREE_SKB = 367,

  AF_INET4 = 2,
  AF_INET6 = 10,
  PROTOCOL_TCP = 6,
  ETHERNET_IP = 0x0800,
  ETHERNET_IPV6 = 0x86DD,
  TCP_ESTABLISHED = 1,
  TCP_SYN_SENT = 2,
};

static const char* const kStates[] = {
    "TCP_UNKNOWN",     "TCP_ESTABLISHED", "TCP_SYN_SENT",  "TCP_SYN_RECV",
    "TCP_FIN_WAIT1",   "TCP_FIN_WAIT2",   "TCP_TIME_WAIT", "TCP_CLOSE",
    "TCP_CLOSE_WAIT",  "TCP_LAST_ACK",    "TCP_LISTEN",    "TCP_CLOSING",
    "TCP_NEW_SYN_RECV"};
enum { STATES = sizeof kStates / sizeof *kStates };

/* Adds the bytes of a packet to the sum of its device. */
static void count_bytes(struct st_importer* m, const struct st_kernel_event* e,
                        const struct st_field* f, bool is_sent) {
  struct st_kernel_kinds* k = &m->machine->kinds;
  uint32_t length = (uint32_t)f[1].value;
  st_string device = st_field_text(&m->storage, f[2]);
  uint32_t* number = st_map_at(&k->devices[is_sent], device);
  if (!*number) {
    *ST_PUSH(&k->bytes) = 0;
    *number = k->bytes.size;
  }
  uint64_t sum = k->bytes.data[*number - 1] += length;
  struct st_fixed_track track = {
      .type = is_sent ? "net_transmit" : "net_receive",
      .name = st_kernel_name(m, f[2], "",
                             is_sent ? " Transmitted KB" : " Received KB"),
      .is_counter = true,
      .dimensions = {{"network_interface", .text = device, .is_text = true}}};
  struct st_kernel_arg args[] = {{"cpu", ST_ARG_UINT, e->cpu},
                                 {"len", ST_ARG_UINT, length}};
  st_kernel_counter(m, e->ts, &track, (double)(sum / 1024), args, 2);
}

static void set_socket_state(struct st_importer* m,
                             const struct st_kernel_event* e,
                             const struct st_field* f) {
  struct st_map* streams = &m->machine->kinds.tcp_streams;
  uint64_t state = f[4].value;
  if ((uint32_t)f[6].value != PROTOCOL_TCP ||
      (f[3].value != AF_INET4 && f[3].value != AF_INET6) || state >= STATES ||
      f[5].value >= STATES)
    return;
  uint32_t* stream = st_map_at(streams, f[8].value);
  if (!*stream)
    *stream = streams->size;
  st_string name = st_intern(&m->storage, kStates[state]);
  if (state == TCP_SYN_SENT)
    name = st_kernel_text(m, "%s(pid=%u)", kStates[state], e->pid);
  else if (state == TCP_ESTABLISHED)
    name = st_kernel_text(m, "%s(sport=%u,dport=%u)", kStates[state],
                          (uint32_t)f[9].value, (uint32_t)f[2].value);
  struct st_fixed_track track = {
      .type = "net_socket_set_state",
      .name = st_kernel_text(m, "TCP stream#%u", *stream),
      .dimensions = {{"tcp_stream_idx", .number = *stream}}};
  uint32_t row = st_tracks_fixed_row(&m->tracks, &track);
  st_kernel_end(m, e->ts, row, NULL, 0, NULL, 0);
  st_kernel_begin(m, e->ts, -1, row, "tcp_state", name, NULL, 0);
}

static void add_retransmit(struct st_importer* m,
                           const struct st_kernel_event* e,
                           const struct st_field* f) {
  struct st_fixed_track track = {
      .type = "net_tcp_retransmit_skb",
      .name = st_intern(&m->storage, "TCP Retransmit Skb")};
  st_kernel_begin(m, e->ts, 0, st_tracks_fixed_row(&m->tracks, &track),
                  "tcp_event",
                  st_kernel_text(m, "sport=%u,dport=%u", (uint32_t)f[6].value,
                                 (uint32_t)f[2].value),
                  NULL, 0);
}

static void parse_gro(struct st_importer* m, const struct st_kernel_event* e,
                      const struct st_field* f) {
  struct st_fixed_track track = {
      .type = "cpu_napi_gro",
      .name = st_kernel_text(m, "Napi Gro Cpu %u", e->cpu),
      .dimensions = {{"cpu", .number = e->cpu}}};
  uint32_t row = st_tracks_fixed_row(&m->tracks, &track);
  struct st_kernel_arg length = {"len", ST_ARG_INT, (uint32_t)f[7].value};
  struct st_kernel_arg result = {"ret", ST_ARG_INT, (int32_t)f[1].value};
  if (e->field == NAPI_GRO_RECEIVE_ENTRY)
    st_kernel_begin(m, e->ts, -1, row, "napi_gro",
                    st_field_text(&m->storage, f[10]), &length, 1);
  else
    st_kernel_end(m, e->ts, row, "napi_gro", 0, &result, 1);
}

static void count_freed(struct st_importer* m, const struct st_kernel_event* e,
                        const struct st_field* f) {
  uint32_t protocol = (uint32_t)f[2].value;
  if (protocol != ETHERNET_IP && protocol != ETHERNET_IPV6)
    return;
  struct st_fixed_track track = {
      .type = "net_kfree_skb",
      .name = st_intern(&m->storage, "Kfree Skb IP Prot"),
      .is_counter = true};
  struct st_kernel_arg arg = {
      "protocol", ST_ARG_STRING,
      st_intern(&m->storage, protocol == ETHERNET_IP ? "IP" : "IPV6")};
  st_kernel_counter(m, e->ts, &track, (double)++m->machine->kinds.freed_packets,
                    &arg, 1);
}

bool st_parse_network_event(struct st_importer* m,
                            const struct st_kernel_event* e,
                            const struct st_field* f) {
  switch (e->field) {
    case NETIF_RECEIVE_SKB:
      count_bytes(m, e, f, false);
      return true;
    case NET_DEV_XMIT:
      if (!(int32_t)f[3].value) /* The driver has taken the packet. */
        count_bytes(m, e, f, true);
      return true;
    case INET_SOCK_SET_STATE:
      set_socket_state(m, e, f);
      return true;
    case TCP_RETRANSMIT_SKB:
      add_retransmit(m, e, f);
      return true;
    case NAPI_GRO_RECEIVE_ENTRY:
    case NAPI_GRO_RECEIVE_EXIT:
      parse_gro(m, e, f);
      return true;
    case KFREE_SKB:
      count_freed(m, e, f);
      return true;
    default:
      return false;
  }
}
