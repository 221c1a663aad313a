// C with POSIX threads: a bank with a mutex for each account.
//
// usage: stm bank THREADS EVERY TOTAL
// A transfer locks its two accounts in the order of their numbers. Each EVERY-th operation (none if
// EVERY is 0) is an audit, which locks all accounts in that order and adds them up. Prints
// `name value` lines: the answers that are checked (audits, wrong, total), and nanoseconds of CPU
// time (ns) and of the wall's clock (wall_ns) for one operation.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ACCOUNTS 1024
#define BALANCE 1000

struct account {
    pthread_mutex_t mutex;
    uint64_t balance;
};

static struct account accounts[ACCOUNTS];
static uint64_t every, each, audits, wrong;
static pthread_barrier_t ready, start;

static double now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void need(int yes, const char *what) {
    if (!yes) {
        perror(what);
        exit(1);
    }
}

static uint64_t next(uint64_t x) {
    x ^= x << 13;
    x ^= x >> 7;
    return x ^ (x << 17);
}

static uint64_t audit(void) {
    uint64_t sum = 0;
    for (int i = 0; i < ACCOUNTS; i++) {
        pthread_mutex_lock(&accounts[i].mutex);
        sum += accounts[i].balance;
    }
    for (int i = 0; i < ACCOUNTS; i++) pthread_mutex_unlock(&accounts[i].mutex);
    return sum;
}

static void transfer(struct account *from, struct account *to) {
    struct account *first = from < to ? from : to, *second = from < to ? to : from;
    pthread_mutex_lock(&first->mutex);
    pthread_mutex_lock(&second->mutex);
    if (from->balance > 0) {
        from->balance--;
        to->balance++;
    }
    pthread_mutex_unlock(&second->mutex);
    pthread_mutex_unlock(&first->mutex);
}

static void *banking(void *thread) {
    uint64_t x = (uint64_t)(uintptr_t)thread + 1, all = 0, bad = 0;
    for (int i = 0; i < 16; i++) x = next(x);
    // No thread passes the second barrier before the clock is read.
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&start);
    for (uint64_t operation = 1; operation <= each; operation++) {
        if (every != 0 && operation % every == 0) {
            all++;
            bad += audit() != ACCOUNTS * BALANCE;
            continue;
        }
        x = next(x);
        const uint64_t from = x % ACCOUNTS, there = (x >> 20) % ACCOUNTS;
        transfer(&accounts[from], &accounts[there == from ? (there + 1) % ACCOUNTS : there]);
    }
    __atomic_fetch_add(&audits, all, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, bad, __ATOMIC_RELAXED);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t all[16];
    if (argc != 5 || strcmp(argv[1], "bank")) return 2;
    const uint64_t threads = strtoull(argv[2], NULL, 10), total = strtoull(argv[4], NULL, 10);
    every = strtoull(argv[3], NULL, 10);
    if (threads == 0 || threads > 16) return 2;
    each = total / threads;
    for (int i = 0; i < ACCOUNTS; i++) {
        need(!pthread_mutex_init(&accounts[i].mutex, NULL), "pthread_mutex_init");
        accounts[i].balance = BALANCE;
    }
    pthread_barrier_init(&ready, NULL, threads + 1);
    pthread_barrier_init(&start, NULL, threads + 1);
    for (uint64_t i = 0; i < threads; i++) {
        need(!pthread_create(&all[i], NULL, banking, (void *)(uintptr_t)i), "pthread_create");
    }
    pthread_barrier_wait(&ready);
    const double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
    pthread_barrier_wait(&start);
    for (uint64_t i = 0; i < threads; i++) pthread_join(all[i], NULL);
    printf("ns %.4f\n", (now(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (each * threads));
    printf("wall_ns %.4f\n", (now(CLOCK_MONOTONIC) - wall) / (each * threads));
    printf("audits %lu\nwrong %lu\ntotal %lu\n", audits, wrong, audit());
    return 0;
}
