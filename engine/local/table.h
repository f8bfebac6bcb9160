/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of volumes and snapshots: names, handles, and objects that are
 * gone by name but still held.
 *
 * A removed object is marked VOL_DELETED in the store at once; its root is
 * released when nobody holds it any more, or at the next open.  _locked: the
 * caller holds table_lock.
 */
#ifndef COW_TABLE_H
#define COW_TABLE_H

#include "local.h"
#include "names.h"

/* A new object with this row, in no list yet; NULL without memory. */
struct local_volume *cow_table_new (struct local_pool *p,
                                    const struct store_volume *row);
void cow_table_destroy (struct local_volume *v);

/* Into the list of all objects, which frees it in the end. */
int cow_table_add_locked (struct local_pool *p, struct local_volume *v);
/* A snapshot to the end of its volume's, and out of them. */
int cow_table_attach_locked (struct local_volume *parent,
                             struct local_volume *s);
void cow_table_detach_locked (struct local_volume *s);

/* By name; parent 0 for volumes. */
void cow_table_hash_locked (struct local_pool *p, struct local_volume *v);
void cow_table_unhash_locked (struct local_pool *p, struct local_volume *v);
struct local_volume *cow_table_find_locked (struct local_pool *p,
                                            uint64_t parent,
                                            const char *name);

/* "VOLUME" or "VOLUME@SNAP", without a pool part. */
int cow_table_parse (const char *name, struct cow_spec *spec,
                     struct cow_error *err);
int cow_table_find_spec_locked (struct local_pool *p,
                                const struct cow_spec *spec,
                                struct local_volume **v,
                                struct cow_error *err);
/* What they find stays while control_lock is held. */
int cow_table_find (struct local_pool *p, const char *name,
                    struct local_volume **v, struct cow_error *err);
int cow_table_find_volume (struct local_pool *p, const char *name,
                           struct local_volume **v, struct cow_error *err);

/* Drop the root of an object that is gone, the last step of its deletion.
 * Takes map_lock, blocks on loading; logs what fails.
 */
int cow_table_release (struct local_pool *p, struct local_volume *v);

/* Free objects that are gone and held by nobody.  control_lock held. */
void cow_table_sweep (struct local_pool *p);

#endif /* COW_TABLE_H */
