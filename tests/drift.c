/* Lets the clocks of a process run faster or slower by SHAREPROOF_DRIFT parts in a million. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int (*real)(clockid_t, struct timespec *);
static long long began, ppm;

static long long whole(const struct timespec *at) { return at->tv_sec * SECOND + at->tv_nsec; }

static int ask(clockid_t which, struct timespec *at) {
    return real ? real(which, at) : (int)syscall(SYS_clock_gettime, which, at);
}

__attribute__((constructor)) static void begin(void) {
    struct timespec at;
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *said = getenv("SHAREPROOF_DRIFT");
    ask(CLOCK_MONOTONIC, &at);
    began = whole(&at);
    ppm = said ? atoll(said) : 0;
}

int clock_gettime(clockid_t which, struct timespec *at) {
    struct timespec now;
    int failed = ask(which, at);
    if (failed || !ppm || (which != CLOCK_MONOTONIC && which != CLOCK_REALTIME)) return failed;
    ask(CLOCK_MONOTONIC, &now);
    long long total = whole(at) + (whole(&now) - began) * ppm / 1000000;
    at->tv_sec = total / SECOND;
    at->tv_nsec = total % SECOND;
    return 0;
}
