// Random reads of 4 KB by POSIX threads, each with pread(2) on a file opened with O_DIRECT.
//
//   disk-pthread FILE THREADS MILLISECONDS
//
// Every block of the file is filled with its number, which is checked. Prints `name value` lines.
//
// The threads look at the clock themselves: a main thread that has created thousands of others
// would, for the sake of fairness, not be run again before each of them has had as much of the CPU.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, STACK = 32 << 10 };
static const double WARM_UP = 0.2;

static int file;
static uint64_t blocks;
// Held until all threads are there.
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;
static double start, length;
static _Atomic uint64_t reads, wrong;
// 0: warming up; 1: measuring; 2: done. Whoever moves it on does what is to be done then.
static _Atomic int phase;
static uint64_t reads_before;
static double wall_before, cpu_before;

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void look_at_the_clock(void) {
    double now = seconds(CLOCK_MONOTONIC);
    int warming = 0, measuring = 1;
    if (phase == 0 && now >= start + WARM_UP && atomic_compare_exchange_strong(&phase, &warming, -1)) {
        reads_before = reads;
        wall_before = now;
        cpu_before = seconds(CLOCK_PROCESS_CPUTIME_ID);
        phase = 1;
    } else if (phase == 1 && now >= wall_before + length && atomic_compare_exchange_strong(&phase, &measuring, 2)) {
        double done = (double)(reads - reads_before);
        double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
        printf("rate %f\ncpu_us %f\nwrong %lu\n", done / (now - wall_before), cpu * 1e6 / done, (unsigned long)wrong);
        fflush(stdout);
        _exit(0);
    }
}

static void *reader(void *argument) {
    uint64_t random = 0x9e3779b97f4a7c15u * ((uintptr_t)argument + 1);
    _Alignas(BLOCK) uint64_t buffer[BLOCK / sizeof(uint64_t)];
    pthread_rwlock_rdlock(&gate);
    pthread_rwlock_unlock(&gate);
    for (;;) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uint64_t block = random % blocks;
        if (pread(file, buffer, BLOCK, (off_t)(block * BLOCK)) != BLOCK || buffer[0] != block ||
            buffer[BLOCK / sizeof(uint64_t) - 1] != block)
            wrong++;
        // Every sixteenth: the clock is not what is measured.
        if ((atomic_fetch_add_explicit(&reads, 1, memory_order_relaxed) & 15) == 0) look_at_the_clock();
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    long threads = atol(words[2]);
    length = atol(words[3]) / 1e3;
    file = open(words[1], O_RDONLY | O_DIRECT);
    if (file < 0) {
        perror(words[1]);
        return 1;
    }
    blocks = (uint64_t)lseek(file, 0, SEEK_END) / BLOCK;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_rwlock_wrlock(&gate);
    for (long i = 0; i < threads; i++) {
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, reader, (void *)i);
        if (error) {
            fprintf(stderr, "thread %ld: %s\n", i, strerror(error));
            return 1;
        }
    }
    start = seconds(CLOCK_MONOTONIC);
    pthread_rwlock_unlock(&gate);
    pause();
    return 1;
}
