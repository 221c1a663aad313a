// The six programs of the paper with TBB and with OpenMP's tasks, beside the graphs of steps.
//
// usage: cnc-six ENGINE-mandel WORKERS SIDE DEPTH | ENGINE-cholesky WORKERS TILES BLOCK
//        cnc-six ENGINE-primes|ENGINE-nbody|ENGINE-blackscholes|ENGINE-queens WORKERS N
// ENGINE is tbb or omp.
// The kernels are those of figures/src/child/cnc/kernels.rs, operation by operation, and this file
// is compiled for any x86-64 and without contraction, as those are. So the answers have the same
// bits. Prints `name value` lines: ms, and the answer.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <omp.h>
#include <tbb/blocked_range.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "cholesky.hpp"

static bool with_tbb;

template <class Work>
static void timed(Work work) {
    auto first = std::chrono::steady_clock::now();
    work();
    auto time = std::chrono::steady_clock::now() - first;
    std::printf("ms %.4f\n", std::chrono::duration<double, std::milli>(time).count());
}

static void print_answer(uint64_t answer) { std::printf("answer %llu\n", (unsigned long long)answer); }

// Calls a kernel with all numbers below n, so many of them in a task.
template <class Kernel>
static void for_each(uint32_t n, uint32_t grain, Kernel kernel) {
    if (with_tbb) {
        tbb::parallel_for(tbb::blocked_range<uint32_t>(0, n, grain), [&](const tbb::blocked_range<uint32_t>& part) {
            for (uint32_t i = part.begin(); i < part.end(); ++i) kernel(i);
        });
        return;
    }
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(grain)
    for (uint32_t i = 0; i < n; ++i) kernel(i);
}

struct Numbers {
    uint64_t state;
    double unit() {
        uint64_t word = state += 0x9E3779B97F4A7C15;
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
        return double((word ^ (word >> 31)) >> 11) / double(1ull << 53);
    }
};

struct Mixed {
    uint64_t sum = 1;
    template <class Word, class Number>
    void add(Number number) {
        Word word;
        std::memcpy(&word, &number, sizeof word);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15;
        sum = sum << 29 | sum >> 35;
    }
    uint64_t answer() const { return sum >> 16 | 1; }
};

static void mandel(uint32_t side, uint32_t depth) {
    std::vector<uint32_t> turns;
    timed([&] {
        turns.resize(side * side);
        for_each(side * side, 16, [&](uint32_t pixel) {
            double a = 4.0 / side * (pixel % side) - 2.0, b = 4.0 / side * (pixel / side) - 2.0;
            double x = 0, y = 0;
            uint32_t turn = 0;
            for (; turn < depth; ++turn) {
                double xx = x * x, yy = y * y;
                if (xx + yy >= 4.0) break;
                y = 2.0 * x * y + b;
                x = xx - yy + a;
            }
            turns[pixel] = turn;
        });
    });
    uint64_t sum = 0;
    for (uint64_t pixel = 0; pixel < turns.size(); ++pixel)
        if (turns[pixel] == depth) sum += pixel;
    print_answer(sum);
}

static void primes(uint32_t n) {
    std::vector<char> are;
    timed([&] {
        are.resize((n - 2) / 2);
        for_each((n - 2) / 2, 8, [&](uint32_t at) {
            uint32_t number = 2 * at + 3, divisor = 3;
            while (divisor < number && number % divisor != 0) divisor += 2;
            are[at] = divisor >= number;
        });
    });
    uint64_t count = 1;
    for (char is : are) count += is;
    print_answer(count);
}

struct Body {
    double place[3], mass;
};

static void nbody(uint32_t n) {
    Numbers numbers{n};
    std::vector<Body> bodies(n);
    for (Body& body : bodies) {
        for (double& x : body.place) x = numbers.unit() * 10.0;
        body.mass = 1.0 + numbers.unit();
    }
    struct Pull {
        double of[3];
    };
    std::vector<Pull> pulls;
    timed([&] {
        pulls.resize(n);
        for_each(n, 4, [&](uint32_t at) {
            double here[3] = {bodies[at].place[0], bodies[at].place[1], bodies[at].place[2]};
            double sum[3] = {0, 0, 0};
            for (const Body& body : bodies) {
                double away[3];
                for (int axis = 0; axis < 3; ++axis) away[axis] = body.place[axis] - here[axis];
                double square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2] + 1e-9;
                double pull = body.mass / (square * std::sqrt(square));
                for (int axis = 0; axis < 3; ++axis) sum[axis] += away[axis] * pull;
            }
            for (int axis = 0; axis < 3; ++axis) pulls[at].of[axis] = sum[axis];
        });
    });
    Mixed mixed;
    for (const Pull& pull : pulls)
        for (double x : pull.of) mixed.add<uint64_t>(x);
    print_answer(mixed.answer());
}

struct StockOption {
    float spot, strike, rate, volatility, years;
    bool is_put;
};

static float normal(float x) {
    float k = 1.0f / (1.0f + 0.2316419f * std::fabs(x));
    float polynomial =
        k * (0.31938154f + k * (-0.35656378f + k * (1.7814779f + k * (-1.8212559f + k * 1.3302745f))));
    float tail = std::exp(-0.5f * x * x) * 0.3989423f * polynomial;
    return x < 0.0f ? tail : 1.0f - tail;
}

static float price(const StockOption& o) {
    float root = o.volatility * std::sqrt(o.years);
    float d1 = (std::log(o.spot / o.strike) + (o.rate + 0.5f * o.volatility * o.volatility) * o.years) / root;
    float d2 = d1 - root;
    float paid = o.strike * std::exp(-o.rate * o.years);
    return o.is_put ? paid * normal(-d2) - o.spot * normal(-d1) : o.spot * normal(d1) - paid * normal(d2);
}

static void blackscholes(uint32_t n) {
    const uint32_t block = 1000;
    Numbers numbers{n};
    auto between = [&](float low, float high) { return low + (high - low) * float(numbers.unit()); };
    std::vector<StockOption> options(n);
    for (uint32_t at = 0; at < n; ++at) {
        StockOption& o = options[at];
        o.spot = between(20.0f, 180.0f);
        o.strike = between(20.0f, 180.0f);
        o.rate = between(0.02f, 0.1f);
        o.volatility = between(0.1f, 0.6f);
        o.years = between(0.1f, 2.0f);
        o.is_put = at % 2 == 1;
    }
    std::vector<float> prices;
    timed([&] {
        prices.resize(n);
        for_each((n + block - 1) / block, 1, [&](uint32_t part) {
            for (uint32_t at = part * block; at < n && at < (part + 1) * block; ++at) prices[at] = price(options[at]);
        });
    });
    Mixed mixed;
    for (float x : prices) mixed.add<uint32_t>(x);
    print_answer(mixed.answer());
}

struct Placed {
    uint32_t columns = 0, left = 0, right = 0;
    uint32_t free(uint32_t size) const { return ~(columns | left | right) & ((1u << size) - 1); }
    Placed with(uint32_t queen) const { return {columns | queen, (left | queen) << 1, (right | queen) >> 1}; }
};

static uint64_t queens_of(Placed board, uint32_t size) {
    if (uint32_t(__builtin_popcount(board.columns)) == size) return 1;
    uint64_t sum = 0;
    for (uint32_t left = board.free(size); left != 0; left &= left - 1)
        sum += queens_of(board.with(left & -left), size);
    return sum;
}

static std::atomic<uint64_t> ways;

// A task for each board with queens in the first rows.
static void place(tbb::task_group* group, Placed board, uint32_t size, uint32_t rows) {
    if (rows == 0) {
        ways += queens_of(board, size);
        return;
    }
    for (uint32_t left = board.free(size); left != 0; left &= left - 1) {
        Placed next = board.with(left & -left);
        if (group) {
            group->run([=] { place(group, next, size, rows - 1); });
        } else {
#pragma omp task firstprivate(next, size, rows)
            place(nullptr, next, size, rows - 1);
        }
    }
}

static void queens(uint32_t size) {
    timed([&] {
        if (with_tbb) {
            tbb::task_group group;
            place(&group, Placed(), size, 3);
            group.wait();
        } else {
#pragma omp parallel
#pragma omp single
            place(nullptr, Placed(), size, 3);
        }
    });
    print_answer(ways);
}

// A node for each tile and round, with an edge from each node whose tile it needs.
static void cholesky_tbb(double** p, int tiles, int b) {
    using node = tbb::flow::continue_node<tbb::flow::continue_msg>;
    using message = tbb::flow::continue_msg;
    tbb::flow::graph graph;
    std::vector<std::unique_ptr<node>> nodes;
    // The last node that has changed a tile.
    std::vector<node*> last(number(tiles, 0), nullptr);
    std::vector<node*> first;
    auto add = [&](auto work, std::vector<node*> needs) {
        nodes.push_back(std::make_unique<node>(graph, [work](const message&) {
            work();
            return message();
        }));
        bool waits = false;
        for (node* need : needs)
            if (need) {
                tbb::flow::make_edge(*need, *nodes.back());
                waits = true;
            }
        if (!waits) first.push_back(nodes.back().get());
        return nodes.back().get();
    };
    for (int k = 0; k < tiles; ++k) {
        int d = number(k, k);
        double* diagonal = p[d];
        last[d] = add([=] { factor(diagonal, b); }, {last[d]});
        for (int i = k + 1; i < tiles; ++i) {
            int at = number(i, k);
            double* tile = p[at];
            last[at] = add([=] { solve(tile, diagonal, b); }, {last[at], last[d]});
        }
        for (int i = k + 1; i < tiles; ++i)
            for (int j = k + 1; j <= i; ++j) {
                int at = number(i, j), l = number(i, k), r = number(j, k);
                double *tile = p[at], *left = p[l], *right = p[r];
                std::vector<node*> needs{last[at], last[l]};
                if (r != l) needs.push_back(last[r]);
                last[at] = add([=] { update(tile, left, right, b); }, needs);
            }
    }
    for (node* node : first) node->try_put(message());
    graph.wait_for_all();
}

static void cholesky(int tiles, int b) {
    auto all = matrix(tiles, b);
    auto at = places(all);
    timed([&] {
        if (with_tbb) cholesky_tbb(at.data(), tiles, b);
        else cholesky_omp(at.data(), tiles, b);
    });
    Mixed mixed;
    for (const auto& tile : all)
        for (double x : tile) mixed.add<uint64_t>(x);
    print_answer(mixed.answer());
}

int main(int argc, char** argv) {
    if (argc < 4 || std::strlen(argv[1]) < 5) return 2;
    std::string engine(argv[1], 4), name(argv[1] + 4);
    if (engine != "tbb-" && engine != "omp-") return 2;
    with_tbb = engine == "tbb-";
    int workers = std::atoi(argv[2]);
    uint32_t n = uint32_t(std::strtoul(argv[3], nullptr, 10));
    uint32_t other = argc > 4 ? uint32_t(std::strtoul(argv[4], nullptr, 10)) : 0;
    omp_set_num_threads(workers);
    tbb::global_control control(tbb::global_control::max_allowed_parallelism, workers);
    tbb::task_arena arena(workers);
    int status = 0;
    arena.execute([&] {
        if (name == "mandel" && argc == 5) mandel(n, other);
        else if (name == "primes") primes(n);
        else if (name == "nbody") nbody(n);
        else if (name == "blackscholes") blackscholes(n);
        else if (name == "queens") queens(n);
        else if (name == "cholesky" && argc == 5) cholesky(int(n), int(other));
        else status = 2;
    });
    return status;
}
