// Goroutines on GOMAXPROCS processors, measured like every other contender of the figures about
// several CPUs.
//
// usage: cores compute THREADS BURSTS STEPS | switch N PER | spawn-handle TOTAL | ring K TOKENS HOPS | skynet LEAVES
//        cores timers-cancel N | timers-fire N MILLIS | echo
// Prints `name value` lines; times are nanoseconds of this process's CPU (ns) and of the wall clock
// (wall_ns).
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type times struct {
	cpu  float64
	wall time.Time
}

func now() times {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	seconds := usage.Utime.Sec + usage.Stime.Sec
	micros := usage.Utime.Usec + usage.Stime.Usec
	return times{float64(seconds)*1e9 + float64(micros)*1e3, time.Now()}
}

func printTimes(first, last times, operations int) {
	n := float64(operations)
	fmt.Printf("ns %.4f\nwall_ns %.4f\n", (last.cpu-first.cpu)/n, float64(last.wall.Sub(first.wall).Nanoseconds())/n)
}

// A xorshift generator: every step needs the one before.
func burst(x uint64, steps int) uint64 {
	for i := 0; i < steps; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

func compute(threads, bursts, steps int) {
	results := make([]uint64, threads)
	var all sync.WaitGroup
	all.Add(threads)
	first := time.Now()
	for i := range results {
		go func() {
			x := uint64(i + 1)
			for b := 0; b < bursts; b++ {
				x = burst(x, steps)
				runtime.Gosched()
			}
			results[i] = x & 0xffffffff
			all.Done()
		}()
	}
	all.Wait()
	seconds := time.Since(first).Seconds()
	sum := uint64(0)
	for _, result := range results {
		sum += result
	}
	fmt.Printf("sum %d\nseconds %.6f\n", sum, seconds)
}

// Timed from the moment the last goroutine is under way. They wait at a gate until all are made,
// since the scheduler would otherwise take the processor from the maker again and again and let all
// that there are yield in between.
func switches(n, per int) {
	var started, yields, finished atomic.Int64
	var first times
	var all sync.WaitGroup
	all.Add(n)
	gate := make(chan struct{})
	for i := 0; i < n; i++ {
		go func() {
			<-gate
			if started.Add(1) == int64(n) {
				first = now()
			}
			for started.Load() < int64(n) {
				runtime.Gosched()
			}
			made := 0
			for made < per {
				made++
				runtime.Gosched()
			}
			yields.Add(int64(made))
			finished.Add(1)
			all.Done()
		}()
	}
	close(gate)
	all.Wait()
	printTimes(first, now(), n*per)
	fmt.Printf("yields %d\nfinished %d\n", yields.Load(), finished.Load())
}

func spawnHandle(total int) {
	var finished atomic.Int64
	first := now()
	for made := 0; made < total; made += 1000 {
		var batch sync.WaitGroup
		batch.Add(1000)
		for step := 0; step < 1000; step++ {
			go func() {
				finished.Add(1)
				batch.Done()
			}()
		}
		batch.Wait()
	}
	printTimes(first, now(), total)
	fmt.Printf("finished %d\n", finished.Load())
}

func ring(k, tokens, hops int) {
	channels := make([]chan uint64, k)
	for i := range channels {
		channels[i] = make(chan uint64, 1)
	}
	var all sync.WaitGroup
	all.Add(k)
	for i := 0; i < k; i++ {
		from, to := channels[i], channels[(i+1)%k]
		go func() {
			for step := 0; step < hops/k; step++ {
				to <- <-from + 1
			}
			all.Done()
		}()
	}
	first := now()
	for i := 0; i < tokens; i++ {
		channels[i*k/tokens] <- 0
	}
	all.Wait()
	last := now()
	printTimes(first, last, hops/k*k)
	sum := uint64(0)
	for i := 0; i < tokens; i++ {
		sum += <-channels[i*k/tokens]
	}
	fmt.Printf("token %d\n", sum)
}

func skynet(parent chan<- int, number, size int) {
	if size == 1 {
		parent <- number
		return
	}
	children := make(chan int)
	for i := 0; i < 10; i++ {
		go skynet(children, number+i*(size/10), size/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-children
	}
	parent <- sum
}

func skynets(leaves int) {
	root := make(chan int)
	first := time.Now()
	go skynet(root, 0, leaves)
	sum := <-root
	fmt.Printf("ms %.4f\nsum %d\n", float64(time.Since(first).Nanoseconds())/1e6, sum)
}

// The delay of the timer with the given number: spread over a second, in no order.
func delay(i int, base time.Duration) time.Duration {
	return base + time.Duration(uint64(i)*2654435761%1_000_000)*time.Microsecond
}

// A timer that is allocated and not set: what the allocator does is no part of the figure.
func stopped(action func()) *time.Timer {
	timer := time.AfterFunc(time.Hour, action)
	timer.Stop()
	return timer
}

func timersCancel(n int) {
	var fired atomic.Int64
	timers := make([]*time.Timer, n)
	for i := range timers {
		timers[i] = stopped(func() { fired.Add(1) })
	}
	first := now()
	for i, timer := range timers {
		timer.Reset(delay(i, time.Hour))
	}
	set := now()
	for _, timer := range timers {
		timer.Stop()
	}
	last := now()
	fmt.Printf("set_ns %.4f\ncancel_ns %.4f\nfired %d\n", (set.cpu-first.cpu)/float64(n), (last.cpu-set.cpu)/float64(n), fired.Load())
}

func timersFire(n, millis int) {
	var fired atomic.Int64
	timers := make([]*time.Timer, n)
	start := time.Now()
	base := time.Duration(millis) * time.Millisecond
	for i := range timers {
		due := start.Add(delay(i, base))
		timers[i] = time.AfterFunc(time.Until(due), func() { fired.Add(1) })
	}
	set := now()
	// None is due before all are set.
	early := fired.Load()
	time.Sleep(time.Until(start.Add(base + time.Second)))
	for fired.Load() < int64(n) {
		time.Sleep(time.Millisecond)
	}
	last := now()
	fmt.Printf("fire_ns %.4f\nfired %d\nearly %d\n", (last.cpu-set.cpu)/float64(n), fired.Load(), early)
}

// Answers every connection with what it sends, until standard input ends.
func echo() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				buffer := make([]byte, 1024)
				for {
					n, err := connection.Read(buffer)
					if err != nil {
						return
					}
					if _, err := connection.Write(buffer[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	fmt.Printf("port %d\n", listener.Addr().(*net.TCPAddr).Port)
	io.Copy(io.Discard, os.Stdin)
}

func main() {
	number := func(i int) int {
		n, err := strconv.Atoi(os.Args[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	switch os.Args[1] {
	case "compute":
		compute(number(2), number(3), number(4))
	case "switch":
		switches(number(2), number(3))
	case "spawn-handle":
		spawnHandle(number(2))
	case "ring":
		ring(number(2), number(3), number(4))
	case "skynet":
		skynets(number(2))
	case "timers-cancel":
		timersCancel(number(2))
	case "timers-fire":
		timersFire(number(2), number(3))
	case "echo":
		echo()
	default:
		os.Exit(2)
	}
}
