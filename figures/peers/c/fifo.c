// Pairs of POSIX threads that talk over pipes of 4 KB, beside threads that wait on pipes where
// nothing comes.
//
// usage: fifo pipes PAIRS IDLE CONVERSATIONS
// One thread of a pair sends 32 KB and receives 32 KB, the other receives and sends, over and over.
// Stacks are 32 KB. Prints `name value` lines: the bytes received, how many messages were not as
// sent, how many idle threads woke, and MB a second.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 32 * 1024, PIPE = 4096 };

struct side {
    int in, out;
    uint64_t pair, received, wrong;
    char *message;
    int speaks_first;
};

static uint64_t conversations;
// How many idle threads did not stay idle.
static _Atomic uint64_t woken;
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

static void make_pipe(int ends[2]) {
    need(!pipe(ends), "pipe");
    need(fcntl(ends[1], F_SETPIPE_SZ, PIPE) == PIPE, "F_SETPIPE_SZ");
}

// A message is filled with its pair's number; its first and last words name the conversation.
static void fill(struct side *side) {
    memset(side->message, (int)(side->pair % 251), MESSAGE);
}

static void label(char *message, uint64_t number) {
    memcpy(message, &number, 8);
    memcpy(message + MESSAGE - 8, &number, 8);
}

static void send_message(struct side *side, uint64_t number) {
    label(side->message, number);
    for (size_t sent = 0; sent < MESSAGE;) {
        const ssize_t n = write(side->out, side->message + sent, MESSAGE - sent);
        need(n > 0, "write");
        sent += n;
    }
}

// Every message's labels are looked at, and every byte of the last.
static void receive_message(struct side *side, uint64_t number) {
    for (size_t got = 0; got < MESSAGE;) {
        const ssize_t n = read(side->in, side->message + got, MESSAGE - got);
        need(n > 0, "read");
        got += n;
    }
    side->received += MESSAGE;
    uint64_t first, last;
    memcpy(&first, side->message, 8);
    memcpy(&last, side->message + MESSAGE - 8, 8);
    int right = first == number && last == number;
    if (number == conversations - 1) {
        for (size_t i = 8; i < MESSAGE - 8; i++) right &= (unsigned char)side->message[i] == side->pair % 251;
    }
    side->wrong += !right;
}

static void *talk(void *argument) {
    struct side *side = argument;
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&start);
    for (uint64_t number = 0; number < conversations; number++) {
        if (side->speaks_first) {
            send_message(side, number);
            receive_message(side, number);
        } else {
            receive_message(side, number);
            send_message(side, number);
        }
    }
    return NULL;
}

static void *idle(void *argument) {
    char byte;
    need(read((int)(intptr_t)argument, &byte, 1) >= 0, "read");
    woken++;
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 5 || strcmp(argv[1], "pipes")) return 2;
    const uint64_t pairs = strtoull(argv[2], NULL, 10), idlers = strtoull(argv[3], NULL, 10);
    conversations = strtoull(argv[4], NULL, 10);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 32 * 1024);
    pthread_t thread;
    for (uint64_t i = 0; i < idlers; i++) {
        int ends[2];
        make_pipe(ends);
        need(!pthread_create(&thread, &attributes, idle, (void *)(intptr_t)ends[0]), "pthread_create");
    }
    struct side *sides = calloc(2 * pairs, sizeof *sides);
    pthread_t *talkers = calloc(2 * pairs, sizeof *talkers);
    pthread_barrier_init(&ready, NULL, 2 * pairs + 1);
    pthread_barrier_init(&start, NULL, 2 * pairs + 1);
    for (uint64_t pair = 0; pair < pairs; pair++) {
        int there[2], back[2];
        make_pipe(there);
        make_pipe(back);
        sides[2 * pair] = (struct side){.in = back[0], .out = there[1], .pair = pair, .speaks_first = 1};
        sides[2 * pair + 1] = (struct side){.in = there[0], .out = back[1], .pair = pair};
    }
    for (uint64_t i = 0; i < 2 * pairs; i++) {
        sides[i].message = malloc(MESSAGE);
        fill(&sides[i]);
        need(!pthread_create(&talkers[i], &attributes, talk, &sides[i]), "pthread_create");
    }
    // Nobody passes the second barrier before the clock is read.
    pthread_barrier_wait(&ready);
    const double first = now();
    pthread_barrier_wait(&start);
    uint64_t bytes = 0, wrong = 0;
    for (uint64_t i = 0; i < 2 * pairs; i++) {
        pthread_join(talkers[i], NULL);
        bytes += sides[i].received;
        wrong += sides[i].wrong;
    }
    const double seconds = now() - first;
    printf("bytes %lu\nwrong %lu\nwoken %lu\nrate %.3f\n", bytes, wrong, (unsigned long)woken, bytes / seconds / 1e6);
    fflush(stdout);
    _exit(0);
}
