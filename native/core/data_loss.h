/* The reasons of a loss of data. */
#pragma once

/* The bits of TracePacket.previous_packet_dropped, the reasons of a loss. */
enum st_data_loss {
  /* This bit is set whenever another bit of the mask is set. */
  ST_LOSS_PRESENT = 1,
  ST_LOSS_READ_GAP = 2,
  ST_LOSS_CHUNK_CORRUPTED = 4,
  ST_LOSS_ORPHAN_CONTINUATION = 8,
  ST_LOSS_REASSEMBLY_GAP = 16,
  ST_LOSS_BROKEN_CHAIN = 32,
  ST_LOSS_OVERWRITE = 64,
  ST_LOSS_WRITER_ABORT = 128,
  ST_LOSS_SMB_FULL = 256,
};
