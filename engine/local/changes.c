/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "changes.h"
#include "counts.h"

/* Make room for one more element of an array. */
static int
make_room (void **array, size_t nr, size_t *room, size_t element)
{
  size_t more;
  void *bigger;

  if (nr < *room)
    return 0;
  more = *room ? *room * 2 : 64;
  bigger = realloc (*array, more * element);
  if (bigger == NULL)
    return -ENOMEM;
  *array = bigger;
  *room = more;
  return 0;
}

#define ROOM(array, nr, room) \
  make_room ((void **) &(array), nr, &(room), sizeof *(array))

int
cow_chunk_list_add (struct chunk_list *l, chunk_t c)
{
  if (ROOM (l->chunk, l->nr, l->room) < 0)
    return -ENOMEM;
  l->chunk[l->nr++] = c.n;
  return 0;
}

void
cow_chunk_list_clear (struct chunk_list *l)
{
  free (l->chunk);
  memset (l, 0, sizeof *l);
}

static int
add_queue_op (struct changes *c, uint64_t id, unsigned level, bool add)
{
  if (ROOM (c->queue, c->nr_queue, c->room_queue) < 0)
    return -ENOMEM;
  c->queue[c->nr_queue++] = (struct queue_op) { id, level, add };
  c->any = true;
  return 0;
}

/* Also read without the lock, as a hint that there is work. */
static void
set_nr_queue (struct local_pool *p, size_t nr)
{
  __atomic_store_n (&p->nr_queue, nr, __ATOMIC_RELAXED);
}

int
cow_changes_enqueue (struct local_pool *p, uint64_t id, unsigned level)
{
  if (ROOM (p->queue, p->nr_queue, p->room_queue) < 0 ||
      add_queue_op (&p->open, id, level, true) < 0)
    return -ENOMEM;
  p->queue[p->nr_queue] = (struct queued) { id, level };
  set_nr_queue (p, p->nr_queue + 1);
  return 0;
}

bool
cow_changes_peek (struct local_pool *p, struct queued *q)
{
  if (p->nr_queue <= p->nr_stuck)
    return false;
  *q = p->queue[p->nr_queue - 1];
  return true;
}

void
cow_changes_stuck (struct local_pool *p, const struct queued *q)
{
  size_t i;

  for (i = p->nr_stuck; i < p->nr_queue; i++)
    if (p->queue[i].id == q->id) {
      p->queue[i] = p->queue[p->nr_stuck];
      p->queue[p->nr_stuck++] = *q;
      return;
    }
}

int
cow_changes_dequeue (struct local_pool *p, const struct queued *q)
{
  struct changes *c = &p->open;
  size_t i = p->nr_queue;

  if (ROOM (c->dropped, c->nr_dropped, c->room_dropped) < 0)
    return -ENOMEM;
  /* Queued in this very generation: both records cancel out. */
  if (c->nr_queue > 0 && c->queue[c->nr_queue - 1].add &&
      c->queue[c->nr_queue - 1].id == q->id)
    c->nr_queue--;
  else if (add_queue_op (c, q->id, q->level, false) < 0)
    return -ENOMEM;
  c->dropped[c->nr_dropped++] = q->id;
  c->any = true;
  while (i-- > 0)
    if (p->queue[i].id == q->id) {
      memmove (&p->queue[i], &p->queue[i + 1],
               (p->nr_queue - i - 1) * sizeof p->queue[0]);
      set_nr_queue (p, p->nr_queue - 1);
      break;
    }
  return 0;
}

int
cow_changes_gone_volume (struct local_pool *p, uint64_t id)
{
  struct changes *c = &p->open;

  if (ROOM (c->gone_volumes, c->nr_gone, c->room_gone) < 0)
    return -ENOMEM;
  c->gone_volumes[c->nr_gone++] = id;
  c->any = true;
  return 0;
}

/* Put the elements of b behind those of a; the result is a's. */
static int
concat (void **a, size_t *nr_a, size_t *room_a, const void *b, size_t nr_b,
        size_t element)
{
  if (nr_b == 0)
    return 0;
  if (*nr_a + nr_b > *room_a) {
    void *bigger = realloc (*a, (*nr_a + nr_b) * element);

    if (bigger == NULL)
      return -ENOMEM;
    *a = bigger;
    *room_a = *nr_a + nr_b;
  }
  memcpy ((char *) *a + *nr_a * element, b, nr_b * element);
  *nr_a += nr_b;
  return 0;
}

#define CONCAT(a, nr_a, room_a, b, nr_b) \
  concat ((void **) &(a), &(nr_a), &(room_a), b, nr_b, sizeof *(a))

int
cow_changes_merge_under (struct changes *to, struct changes *from)
{
  struct changes newer = *to;

  if (CONCAT (from->queue, from->nr_queue, from->room_queue, newer.queue,
              newer.nr_queue) < 0 ||
      CONCAT (from->dropped, from->nr_dropped, from->room_dropped,
              newer.dropped, newer.nr_dropped) < 0 ||
      CONCAT (from->gone_volumes, from->nr_gone, from->room_gone,
              newer.gone_volumes, newer.nr_gone) < 0 ||
      CONCAT (from->freed.chunk, from->freed.nr, from->freed.room,
              newer.freed.chunk, newer.freed.nr) < 0 ||
      cow_idset_merge (&from->unshared, &newer.unshared) < 0)
    return -ENOMEM;
  from->any = from->any || newer.any;
  *to = *from;
  memset (from, 0, sizeof *from);
  free (newer.queue);
  free (newer.dropped);
  free (newer.gone_volumes);
  free (newer.freed.chunk);
  return 0;
}

void
cow_changes_clear (struct changes *c)
{
  free (c->queue);
  free (c->dropped);
  free (c->gone_volumes);
  cow_chunk_list_clear (&c->freed);
  cow_idset_clear (&c->unshared);
  memset (c, 0, sizeof *c);
}

void
cow_pool_set_read_only (struct local_pool *p, int errnum)
{
  __atomic_store_n (&p->read_only, errnum, __ATOMIC_RELEASE);
}
