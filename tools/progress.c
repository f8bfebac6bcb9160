/* SPDX-License-Identifier: BSD-3-Clause */
/* A progress bar, redrawn at most ten times a second. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cowshed.h"
#include "size.h"

#define BAR_WIDTH 30
#define REDRAW_SECONDS 0.1

static double
now (void)
{
  struct timespec ts;

  clock_gettime (CLOCK_MONOTONIC, &ts);
  return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

void
progress_begin (struct progress *p, const char *label, bool bytes)
{
  p->label = label;
  p->on = isatty (STDERR_FILENO) == 1;
  p->bytes = bytes;
  p->started = now ();
  p->drawn = 0;
}

static void
draw_bar (double part)
{
  char bar[BAR_WIDTH + 1];
  int filled = (int) (part * BAR_WIDTH);

  memset (bar, ' ', BAR_WIDTH);
  memset (bar, '=', (size_t) filled);
  bar[BAR_WIDTH] = '\0';
  fprintf (stderr, " [%s] %3d%%", bar, (int) (part * 100));
}

static void
draw_speed (const struct progress *p, uint64_t done, uint64_t total,
            double seconds)
{
  double rate = (double) done / seconds;
  char buf[64];

  if (p->bytes)
    fprintf (stderr, "  %s/s",
             cow_size_format ((uint64_t) rate, buf, sizeof buf));
  if (total > done && rate > 0) {
    unsigned long left = (unsigned long) ((double) (total - done) / rate);

    fprintf (stderr, "  %lu:%02lu left", left / 60, left % 60);
  }
}

void
progress_update (struct progress *p, uint64_t done, uint64_t total)
{
  double t = now ();

  if (!p->on || t - p->drawn < REDRAW_SECONDS)
    return;
  p->drawn = t;
  fprintf (stderr, "\r\033[K%s", p->label);
  if (total)
    draw_bar (done >= total ? 1 : (double) done / (double) total);
  else
    fprintf (stderr, " ...");
  if (done && t - p->started > 0.5)
    draw_speed (p, done, total, t - p->started);
  fflush (stderr);
}

/* Wipe it: what remains on the screen is the result. */
void
progress_end (struct progress *p)
{
  if (p->on && p->drawn > 0)
    fputs ("\r\033[K", stderr);
  p->on = false;
}
