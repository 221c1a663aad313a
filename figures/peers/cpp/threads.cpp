// C++20 coroutines on one queue: the compiler's own frames, resumed in FIFO order by a loop over a
// std::deque. It is the floor a stackless thread can be compared with; it is not a thread library
// (no wake-up, no joining).
//
// usage: threads memory N | switch N TOTAL | spawn TOTAL
// Prints `name value` lines; times are nanoseconds of this process's CPU (ns) and of the wall clock
// (wall_ns).
#include <coroutine>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <exception>
#include <unistd.h>

static std::deque<std::coroutine_handle<>> ready;
static uint64_t started = 0, yields = 0, stop = 0, finished = 0;

struct Task {
    struct promise_type {
        Task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() noexcept {}
        void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<> handle;
};

struct Yield {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> h) const { ready.push_back(h); }
    void await_resume() const noexcept {}
};

static double clock_ns(clockid_t id) {
    timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

struct Times {
    double cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), wall = clock_ns(CLOCK_MONOTONIC);
};

static void print_times(const Times &first, const Times &last, double operations) {
    printf("ns %.4f\nwall_ns %.4f\n", (last.cpu - first.cpu) / operations, (last.wall - first.wall) / operations);
}

// A coroutine in a yield loop, which counts its yields until there are `stop` of all together.
static Task yielding() {
    started++;
    while (yields < stop) {
        yields++;
        co_await Yield{};
    }
    finished++;
}

static Task one() {
    finished++;
    co_return;
}

static void step() {
    auto handle = ready.front();
    ready.pop_front();
    handle.resume();
}

// The anonymous memory that is resident, counted for the question.
static uint64_t rss_bytes() {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    unsigned long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Anonymous: %lu kB", &kib) == 1) break;
    if (!kib) abort();
    fclose(file);
    return uint64_t(kib) * 1024;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    const char *measure = argv[1];
    const uint64_t n = strtoull(argv[2], nullptr, 10);
    if (!strcmp(measure, "memory")) {
        stop = UINT64_MAX;
        const uint64_t before = rss_bytes();
        for (uint64_t i = 0; i < n; i++) ready.push_back(yielding().handle);
        while (started < n) step();
        printf("bytes %.3f\nlive %zu\n", double(rss_bytes() - before) / n, ready.size());
        fflush(stdout);
        _exit(0);
    }
    if (!strcmp(measure, "switch") && argc == 4) {
        const uint64_t total = strtoull(argv[3], nullptr, 10);
        stop = UINT64_MAX;
        for (uint64_t i = 0; i < n; i++) ready.push_back(yielding().handle);
        while (started < n) step();
        yields = 0;
        stop = total;
        const Times first;
        while (yields < stop) step();
        print_times(first, Times{}, total);
        printf("yields %lu\n", yields);
        while (!ready.empty()) step();
        printf("finished %lu\n", finished);
        return 0;
    }
    if (!strcmp(measure, "spawn")) {
        const Times first;
        for (uint64_t made = 0; made < n; made += 1000) {
            for (int i = 0; i < 1000; i++) ready.push_back(one().handle);
            while (!ready.empty()) step();
        }
        print_times(first, Times{}, n);
        printf("finished %lu\n", finished);
        return 0;
    }
    return 2;
}
