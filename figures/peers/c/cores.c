// C with POSIX threads, on as many CPUs as the process may use.
//
// usage: cores compute THREADS BURSTS STEPS | ceiling PROCESSES THREADS BURSTS STEPS
//        cores counter-mutex THREADS TOTAL | counter-atomic THREADS TOTAL
// Prints `name value` lines: the answer that is checked (sum, count), and wall seconds or millions
// of increments a second.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t threads, bursts, steps, each;
static pthread_barrier_t ready, start;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void need(int yes, const char *what) {
    if (!yes) {
        perror(what);
        exit(1);
    }
}

// Nobody passes the second barrier before the clock is read.
static void await_start(void) {
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&start);
}

// A xorshift generator: every step needs the one before.
static uint64_t burst(uint64_t x) {
    for (uint64_t i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

static void *computing(void *seed) {
    uint64_t x = (uint64_t)(uintptr_t)seed;
    await_start();
    for (uint64_t i = 0; i < bursts; i++) {
        x = burst(x);
        sched_yield();
    }
    return (void *)(uintptr_t)(x & 0xffffffff);
}

// Starts the threads behind a barrier and waits for them; returns the sum of their results.
static uint64_t run(void *(*body)(void *), uint64_t n, double *seconds) {
    pthread_attr_t attributes;
    pthread_t *all = calloc(n, sizeof *all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32 * 1024);
    pthread_barrier_init(&ready, NULL, n + 1);
    pthread_barrier_init(&start, NULL, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        need(!pthread_create(&all[i], &attributes, body, (void *)(uintptr_t)(i + 1)), "pthread_create");
    }
    pthread_barrier_wait(&ready);
    const double first = now();
    pthread_barrier_wait(&start);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        void *result;
        pthread_join(all[i], &result);
        sum += (uint64_t)(uintptr_t)result;
    }
    *seconds = now() - first;
    return sum;
}

// What the machine gives to independent processes, one on each CPU: the whole work in each, with
// nothing shared.
static uint64_t ceiling(uint64_t processes, double *seconds) {
    int results[2];
    need(!pipe(results), "pipe");
    const double first = now();
    for (uint64_t i = 0; i < processes; i++) {
        const pid_t child = fork();
        need(child >= 0, "fork");
        if (child == 0) {
            cpu_set_t set;
            CPU_ZERO(&set);
            CPU_SET(i, &set);
            need(!sched_setaffinity(0, sizeof set, &set), "sched_setaffinity");
            uint64_t sum = 0;
            for (uint64_t seed = 1; seed <= threads; seed++) {
                uint64_t x = seed;
                for (uint64_t j = 0; j < bursts; j++) x = burst(x);
                sum += x & 0xffffffff;
            }
            _exit(write(results[1], &sum, sizeof sum) != sizeof sum);
        }
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < processes; i++) {
        uint64_t one;
        need(read(results[0], &one, sizeof one) == sizeof one, "read");
        sum += one;
    }
    *seconds = now() - first;
    while (wait(NULL) > 0) {
    }
    return sum;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
// The counter has its own cache line, as the mutex has.
static _Alignas(64) volatile uint64_t counter;

static void *counting_mutex(void *seed) {
    (void)seed;
    await_start();
    for (uint64_t i = 0; i < each; i++) {
        pthread_mutex_lock(&mutex);
        counter = counter + 1;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *counting_atomic(void *seed) {
    (void)seed;
    await_start();
    for (uint64_t i = 0; i < each; i++) __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t number[4] = {0};
    if (argc < 4 || argc > 6) return 2;
    for (int i = 2; i < argc; i++) number[i - 2] = strtoull(argv[i], NULL, 10);
    double seconds = 0;
    if (!strcmp(argv[1], "compute") && argc == 5) {
        threads = number[0], bursts = number[1], steps = number[2];
        printf("sum %lu\n", run(computing, threads, &seconds));
        printf("seconds %.6f\n", seconds);
        return 0;
    }
    if (!strcmp(argv[1], "ceiling") && argc == 6) {
        threads = number[1], bursts = number[2], steps = number[3];
        printf("sum %lu\n", ceiling(number[0], &seconds));
        printf("seconds %.6f\n", seconds);
        return 0;
    }
    const int with_mutex = !strcmp(argv[1], "counter-mutex");
    if (argc == 4 && (with_mutex || !strcmp(argv[1], "counter-atomic"))) {
        each = number[1] / number[0];
        run(with_mutex ? counting_mutex : counting_atomic, number[0], &seconds);
        printf("count %lu\n", counter);
        printf("rate %.4f\n", counter / seconds / 1e6);
        return 0;
    }
    return 2;
}
