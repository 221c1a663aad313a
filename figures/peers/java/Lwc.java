// The three programs of light-weight concurrency over virtual threads, which need Java 21. All run on one
// carrier, and it changes from one thread to another only where a thread parks, so an MVar needs no lock.
//
// usage: lwc kpn N ROUNDS | sieve LAST | sorter N | built N
// Prints `name value` lines: nanoseconds of CPU time (ns), memory of a thread (bytes), threads, and the digest
// of the answer. A smaller run comes before, so that the compiler has seen the program.

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

public class Lwc {
    /** One value or none, with one waiting reader and one waiting writer. 0 is no value. */
    static final class MVar {
        long value;
        Thread reader;
        Thread writer;

        void put(long next) {
            while (value != 0) {
                writer = Thread.currentThread();
                LockSupport.park(this);
            }
            writer = null;
            value = next + 1;
            if (reader != null) {
                LockSupport.unpark(reader);
            }
        }

        long take() {
            while (value == 0) {
                reader = Thread.currentThread();
                LockSupport.park(this);
            }
            reader = null;
            long taken = value - 1;
            value = 0;
            if (writer != null) {
                LockSupport.unpark(writer);
            }
            return taken;
        }
    }

    /** An unbounded queue with one reader. */
    static final class Fifo {
        final ArrayDeque<Long> values = new ArrayDeque<>();
        Thread reader;

        void put(long value) {
            values.add(value);
            if (reader != null) {
                LockSupport.unpark(reader);
            }
        }

        long take() {
            while (values.isEmpty()) {
                reader = Thread.currentThread();
                LockSupport.park(this);
            }
            reader = null;
            return values.poll();
        }
    }

    /** The threads of one program: they live until one of them says that it is over. */
    static final class Run {
        final List<Long> found = new ArrayList<>();
        final Thread main = Thread.currentThread();
        boolean over;
        int threads;

        void spawn(Runnable thread) {
            threads++;
            Thread.ofVirtual().start(thread);
        }

        void stop() {
            over = true;
            LockSupport.unpark(main);
        }

        Run start() {
            while (!over) {
                LockSupport.park(this);
            }
            return this;
        }
    }

    static Run sieve(long last) {
        Run run = new Run();
        MVar mi = new MVar(), mo = new MVar();
        run.spawn(() -> {
            for (long i = 2; !run.over; i++) {
                mi.put(i);
            }
        });
        run.spawn(() -> {
            MVar inp = mi;
            while (!run.over) {
                long v = inp.take();
                mo.put(v);
                MVar from = inp, mid = new MVar();
                run.spawn(() -> filter(run, v, from, mid));
                inp = mid;
            }
        });
        run.spawn(() -> {
            long v;
            do {
                v = mo.take();
                run.found.add(v);
            } while (v < last);
            run.stop();
        });
        return run.start();
    }

    static void filter(Run run, long n, MVar inp, MVar out) {
        while (!run.over) {
            long v = inp.take();
            if (v % n != 0) {
                out.put(v);
            }
        }
    }

    static Run kpn(int n) {
        Run run = new Run();
        Fifo[] fifos = {new Fifo(), new Fifo(), new Fifo()};
        MVar m2 = new MVar(), m3 = new MVar(), m5 = new MVar(), m23 = new MVar(), m235 = new MVar();
        run.spawn(() -> {
            while (true) {
                long v = m235.take();
                run.found.add(v);
                if (run.found.size() == n) {
                    run.stop();
                    return;
                }
                for (Fifo fifo : fifos) {
                    fifo.put(v);
                }
            }
        });
        run.spawn(() -> times(run, 2, fifos[0], m2));
        run.spawn(() -> times(run, 3, fifos[1], m3));
        run.spawn(() -> times(run, 5, fifos[2], m5));
        run.spawn(() -> m235.put(1));
        run.spawn(() -> merge(run, m2, m3, m23));
        run.spawn(() -> merge(run, m23, m5, m235));
        return run.start();
    }

    static void times(Run run, long a, Fifo inp, MVar out) {
        while (!run.over) {
            out.put(a * inp.take());
        }
    }

    static void merge(Run run, MVar inp1, MVar inp2, MVar out) {
        long v1 = inp1.take(), v2 = inp2.take();
        while (!run.over) {
            out.put(Math.min(v1, v2));
            boolean take1 = v1 <= v2, take2 = v2 <= v1;
            if (take1) {
                v1 = inp1.take();
            }
            if (take2) {
                v2 = inp2.take();
            }
        }
    }

    static long[] shuffled(int n) {
        long state = 0x2545f4914f6cdd1dL;
        long[] numbers = new long[n];
        for (int i = 0; i < n; i++) {
            state ^= state << 13;
            state ^= state >>> 7;
            state ^= state << 17;
            numbers[i] = Long.remainderUnsigned(state, 1_000_000);
        }
        return numbers;
    }

    static Run sorter(int n, boolean onlyBuild) {
        Run run = new Run();
        MVar[] wires = new MVar[n];
        for (int i = 0; i < n; i++) {
            wires[i] = new MVar();
        }
        MVar[] inputs = wires.clone();
        for (int last = 1; last < n; last++) {
            for (int at = last - 1; at >= 0; at--) {
                MVar x = wires[at], y = wires[at + 1], lo = new MVar(), hi = new MVar();
                run.spawn(() -> {
                    long a = x.take(), b = y.take();
                    lo.put(Math.min(a, b));
                    hi.put(Math.max(a, b));
                });
                wires[at] = lo;
                wires[at + 1] = hi;
            }
        }
        if (onlyBuild) {
            return run;
        }
        run.spawn(() -> {
            for (MVar wire : wires) {
                run.found.add(wire.take());
            }
            run.stop();
        });
        run.spawn(() -> {
            long[] numbers = shuffled(n);
            for (int i = 0; i < n; i++) {
                inputs[i].put(numbers[i]);
            }
        });
        return run.start();
    }

    static Run program(String name, int n) {
        return switch (name) {
            case "kpn" -> kpn(n);
            case "sieve" -> sieve(n);
            case "sorter" -> sorter(n, false);
            case "built" -> sorter(n, true);
            default -> throw new IllegalArgumentException(name);
        };
    }

    /** A line of the process's status, in bytes. */
    static double memory(String name) {
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
                if (line.startsWith(name + ":")) {
                    return Double.parseDouble(line.replaceAll("[^0-9]", "")) * 1024;
                }
            }
        } catch (IOException absent) {
            throw new IllegalStateException(absent);
        }
        return 0;
    }

    static double cpu() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime();
    }

    static void measure(String[] words) {
        int n = Integer.parseInt(words[1]), rounds = words.length > 2 ? Integer.parseInt(words[2]) : 1;
        boolean isNetwork = words[0].equals("sorter") || words[0].equals("built");
        program(words[0], isNetwork ? Math.min(n, 100) : Math.min(n, 1000));
        double before = memory("VmRSS"), start = cpu();
        Run run = null;
        for (int round = 0; round < rounds; round++) {
            run = program(words[0], n);
        }
        double spent = cpu() - start, bytes = Math.max(0, memory("VmHWM") - before);
        long digest = 0;
        for (long number : run.found) {
            digest = (digest * 31 + number % 1000003) % 1000003;
        }
        System.out.printf("ns %.1f%nbytes %.3f%nthreads %d%ndigest %d%n",
            spent / rounds, bytes / run.threads, run.threads, digest);
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    public static void main(String[] words) throws InterruptedException {
        Thread.ofVirtual().start(() -> measure(words)).join();
        // An exception has ended the thread.
        System.exit(1);
    }
}
