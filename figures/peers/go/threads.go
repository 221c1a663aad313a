// Goroutines measured like every other contender of the thread figures; run it with GOMAXPROCS=1.
//
// usage: threads memory N | switch N TOTAL | spawn TOTAL | spawn-handle TOTAL | ring K HOPS
// Prints `name value` lines; times are nanoseconds of this process's CPU (ns) and of the wall clock
// (wall_ns).
package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
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

// The anonymous memory that is resident, counted for the question.
func rssBytes() float64 {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		panic(err)
	}
	_, rest, found := strings.Cut(string(text), "Anonymous:")
	var kib int
	if read, _ := fmt.Sscan(rest, &kib); !found || read != 1 {
		panic("Linux tells a process its size")
	}
	return float64(kib * 1024)
}

// The counters below are plain variables: with GOMAXPROCS=1 one goroutine runs at a time, and an
// asynchronous preemption between a load and a store (once in 10 ms) would be seen as a wrong
// answer.
var started, finished, yields, stop int

func memory(n int) {
	before := rssBytes()
	for step := 0; step < n; step++ {
		go func() {
			started++
			for {
				runtime.Gosched()
			}
		}()
	}
	for started < n {
		runtime.Gosched()
	}
	fmt.Printf("bytes %.3f\nlive %d\n", (rssBytes()-before)/float64(n), started)
}

// Timed from the moment the last goroutine is under way, for total yields; goroutines do not run
// strictly in turn, so the yields are counted. They wait at a gate until all are made, since the
// scheduler would otherwise take the processor from the maker again and again and let all that
// there are yield in between.
func switches(n, total int) {
	var first, last times
	var all sync.WaitGroup
	all.Add(n)
	gate := make(chan struct{})
	stop = math.MaxInt
	for step := 0; step < n; step++ {
		go func() {
			<-gate
			started++
			if started == n {
				yields = 0
				stop = total
				first = now()
			}
			for yields < stop {
				yields++
				runtime.Gosched()
			}
			if finished == 0 {
				last = now()
			}
			finished++
			all.Done()
		}()
	}
	close(gate)
	all.Wait()
	printTimes(first, last, total)
	fmt.Printf("yields %d\nfinished %d\n", yields, finished)
}

func spawn(total int) {
	first := now()
	for made := 0; made < total; made += 1000 {
		for step := 0; step < 1000; step++ {
			go func() { finished++ }()
		}
		for finished < made+1000 {
			runtime.Gosched()
		}
	}
	printTimes(first, now(), total)
	fmt.Printf("finished %d\n", finished)
}

func spawnHandle(total int) {
	first := now()
	for made := 0; made < total; made += 1000 {
		var batch sync.WaitGroup
		batch.Add(1000)
		for step := 0; step < 1000; step++ {
			go func() {
				finished++
				batch.Done()
			}()
		}
		batch.Wait()
	}
	printTimes(first, now(), total)
	fmt.Printf("finished %d\n", finished)
}

func ring(k, hops int) {
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
	channels[0] <- 0
	all.Wait()
	last := now()
	printTimes(first, last, hops/k*k)
	fmt.Printf("token %d\n", <-channels[0])
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
	case "memory":
		memory(number(2))
	case "switch":
		switches(number(2), number(3))
	case "spawn":
		spawn(number(2))
	case "spawn-handle":
		spawnHandle(number(2))
	case "ring":
		ring(number(2), number(3))
	default:
		os.Exit(2)
	}
}
