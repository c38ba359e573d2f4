// Prints how fast this machine's time stamp counter counts, in kHz: the guest's kernel reads the same counter, and finds
// its rate out wrongly where the host is busy.
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static double ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// The counter, and the time at which it was read: the closest of many pairs of readings.
static double sample(double *at) {
  double closest = 1e18, count = 0;
  for (int i = 0; i < 100; i++) {
    const double before = ns();
    const uint64_t now = __rdtsc();
    const double took = ns() - before;
    if (took >= closest) continue;
    closest = took;
    count = (double)now;
    *at = before + took / 2;
  }
  return count;
}

int main(void) {
  double start, end;
  const double first = sample(&start);
  nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
  const double last = sample(&end);
  printf("%.0f\n", (last - first) * 1e6 / (end - start));
  return 0;
}
