// Random reads of 4 KB by POSIX threads, each with pread(2) on a file opened with O_DIRECT.
//
//   disk-pthread FILE THREADS MILLISECONDS
//
// Every block of the file is filled with its number, which is checked. Prints `name value` lines.
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

enum { BLOCK = 4096, WARM_UP_MS = 200, STACK = 32 << 10 };

static int file;
static uint64_t blocks;
// Held until all threads are there.
static pthread_rwlock_t gate = PTHREAD_RWLOCK_INITIALIZER;

// A counter of its own cache line for each thread.
struct reader {
    _Alignas(64) _Atomic uint64_t reads;
    uint64_t wrong;
    uint64_t random;
};

static void *reader(void *argument) {
    struct reader *self = argument;
    _Alignas(BLOCK) uint64_t buffer[BLOCK / sizeof(uint64_t)];
    pthread_rwlock_rdlock(&gate);
    pthread_rwlock_unlock(&gate);
    for (;;) {
        self->random ^= self->random << 13;
        self->random ^= self->random >> 7;
        self->random ^= self->random << 17;
        uint64_t block = self->random % blocks;
        if (pread(file, buffer, BLOCK, (off_t)(block * BLOCK)) != BLOCK || buffer[0] != block ||
            buffer[BLOCK / sizeof(uint64_t) - 1] != block)
            self->wrong++;
        atomic_store_explicit(&self->reads, self->reads + 1, memory_order_relaxed);
    }
    return NULL;
}

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void rest(long ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static uint64_t all_reads(struct reader *readers, int threads) {
    uint64_t sum = 0;
    for (int i = 0; i < threads; i++) sum += atomic_load_explicit(&readers[i].reads, memory_order_relaxed);
    return sum;
}

int main(int count, char **words) {
    if (count != 4) return 2;
    int threads = atoi(words[2]);
    file = open(words[1], O_RDONLY | O_DIRECT);
    if (file < 0) {
        perror(words[1]);
        return 1;
    }
    blocks = (uint64_t)lseek(file, 0, SEEK_END) / BLOCK;
    struct reader *readers = aligned_alloc(64, sizeof(struct reader) * threads);
    memset(readers, 0, sizeof(struct reader) * threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_rwlock_wrlock(&gate);
    for (int i = 0; i < threads; i++) {
        readers[i].random = 0x9e3779b97f4a7c15u * (i + 1);
        pthread_t thread;
        int error = pthread_create(&thread, &attributes, reader, &readers[i]);
        if (error) {
            fprintf(stderr, "thread %d: %s\n", i, strerror(error));
            return 1;
        }
    }
    pthread_rwlock_unlock(&gate);
    rest(WARM_UP_MS);
    double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t before = all_reads(readers, threads);
    rest(atol(words[3]));
    double reads = (double)(all_reads(readers, threads) - before);
    wall = seconds(CLOCK_MONOTONIC) - wall;
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    uint64_t wrong = 0;
    for (int i = 0; i < threads; i++) wrong += readers[i].wrong;
    printf("rate %f\ncpu_us %f\nwrong %lu\n", reads / wall, cpu * 1e6 / reads, (unsigned long)wrong);
    fflush(stdout);
    _exit(0);
}
