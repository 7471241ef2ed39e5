#include "probes/address_numbers.h"

enum { FIRST_SLOTS = 1 << 13 };

/* Returns the slot of an address, or the free slot where it belongs. */
static uint32_t* slot_of(const struct st_address_numbers* n, uint64_t address) {
  uint64_t hash = (address ^ (address >> 32)) * 0x9E3779B97F4A7C15u;
  for (size_t i = hash >> 20;; i++) {
    uint32_t* slot = &n->slots[i & (n->slot_count - 1)];
    if (!*slot || n->entries.data[*slot - 1].address == address)
      return slot;
  }
}

/* At most half of the slots are used. */
static bool reserve(struct st_address_numbers* n) {
  if (n->entries.size >= n->max || !ST_MAPPED_RESERVE(&n->entries))
    return false;
  if (n->entries.size < n->slot_count / 2)
    return true;
  size_t count = n->slot_count ? n->slot_count * 2 : FIRST_SLOTS;
  uint32_t* slots = st_mapped_new(count * sizeof *slots);
  if (!slots)
    return false;
  st_mapped_free(n->slots, n->slot_count * sizeof *slots);
  n->slots = slots;
  n->slot_count = count;
  for (size_t i = 0; i < n->entries.size; i++)
    *slot_of(n, n->entries.data[i].address) = (uint32_t)i + 1;
  return true;
}

uint32_t st_number_of(struct st_address_numbers* n, uint64_t address) {
  uint32_t known = st_number_known(n, address);
  if (!known) {
    if (!reserve(n))
      return 0;
    n->entries.data[n->entries.size++] = (struct st_numbered){address, 0};
    known = *slot_of(n, address) = (uint32_t)n->entries.size;
  }
  n->entries.data[known - 1].seen++;
  return known;
}

uint32_t st_number_known(const struct st_address_numbers* n, uint64_t address) {
  return n->slot_count ? *slot_of(n, address) : 0;
}

void st_address_numbers_clear(struct st_address_numbers* n) {
  st_mapped_free(n->entries.data,
                 n->entries.capacity * sizeof *n->entries.data);
  st_mapped_free(n->slots, n->slot_count * sizeof *n->slots);
  *n = (struct st_address_numbers){.max = n->max};
}
