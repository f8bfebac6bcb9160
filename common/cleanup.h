/* SPDX-License-Identifier: BSD-3-Clause */
/* Scope-bound release of what has one owner. */
#ifndef COW_CLEANUP_H
#define COW_CLEANUP_H

#include <stdlib.h>
#include <unistd.h>

static inline void
cow_cleanup_free (void *p)
{
  free (*(void **) p);
}

static inline void
cow_cleanup_close (int *fd)
{
  if (*fd >= 0)
    close (*fd);
}

#define CLEANUP_FREE __attribute__ ((cleanup (cow_cleanup_free)))
#define CLEANUP_CLOSE __attribute__ ((cleanup (cow_cleanup_close)))

#endif /* COW_CLEANUP_H */
