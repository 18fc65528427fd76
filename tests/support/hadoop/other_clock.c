// The date of a process, OTHER_CLOCK seconds before this machine's (below 0: behind it); preloaded on a host of
// hosts.py. libfaketime 0.9.10 also changes what threads wait for: Event.wait of Python fails or hangs with it.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead;

__attribute__((constructor)) static void read_environment(void) {
    const char *text = getenv("OTHER_CLOCK");
    ahead = text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += ahead;
    return (int)failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    long failed = syscall(SYS_gettimeofday, now, zone);
    if (!failed) now->tv_sec += ahead;
    return (int)failed;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
