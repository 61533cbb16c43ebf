/* A wall clock that jumps by up to 27 years, back and forth, sixty times a second. LD_PRELOAD replaces the clock of the C
   library by it, for one program and not for the machine. The monotonic clock is the kernel's. */
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int64_t offset(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    uint64_t n = ((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000) / 16;
    /* splitmix64 */
    n += 0x9e3779b97f4a7c15u;
    n = (n ^ n >> 30) * 0xbf58476d1ce4e5b9u;
    n = (n ^ n >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((n ^ n >> 31) % (20000 * 86400ull)) - 10000 * 86400ll;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    long failed = syscall(SYS_clock_gettime, clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        time->tv_sec += offset();
    return (int)failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    long failed = syscall(SYS_gettimeofday, time, zone);
    if (!failed && time)
        time->tv_sec += offset();
    return (int)failed;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}
