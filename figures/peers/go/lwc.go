// The three programs of light-weight concurrency over goroutines and channels of one place; run it
// with GOMAXPROCS=1.
//
// usage: lwc kpn N ROUNDS | sieve LAST | sorter N | built N
// Prints `name value` lines: nanoseconds of CPU time (ns), memory of a thread (bytes), threads, and the digest
// of the answer.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// A channel of one place is an MVar.
type mvar = chan uint64

func makeMVar() mvar { return make(mvar, 1) }

func sieve(last uint64) ([]uint64, int) {
	mi, mo, done := makeMVar(), makeMVar(), make(chan bool)
	threads := 3
	var found []uint64
	go func() {
		for i := uint64(2); ; i++ {
			mi <- i
		}
	}()
	filter := func(n uint64, inp, out mvar) {
		for {
			if v := <-inp; v%n != 0 {
				out <- v
			}
		}
	}
	go func() {
		inp := mi
		for {
			v := <-inp
			mo <- v
			mid := makeMVar()
			go filter(v, inp, mid)
			threads++
			inp = mid
		}
	}()
	go func() {
		for v := range mo {
			found = append(found, v)
			if v >= last {
				break
			}
		}
		done <- true
	}()
	<-done
	return found, threads
}

func kpn(n int) ([]uint64, int) {
	// No more than n numbers are ever in a queue.
	fifos := []chan uint64{make(chan uint64, n), make(chan uint64, n), make(chan uint64, n)}
	m2, m3, m5, m23, m235 := makeMVar(), makeMVar(), makeMVar(), makeMVar(), makeMVar()
	done := make(chan bool)
	var found []uint64
	go func() {
		for {
			v := <-m235
			found = append(found, v)
			if len(found) == n {
				break
			}
			for _, fifo := range fifos {
				fifo <- v
			}
		}
		done <- true
	}()
	times := func(a uint64, inp chan uint64, out mvar) {
		for {
			out <- a * <-inp
		}
	}
	merge := func(inp1, inp2, out mvar) {
		v1, v2 := <-inp1, <-inp2
		for {
			out <- min(v1, v2)
			take1, take2 := v1 <= v2, v2 <= v1
			if take1 {
				v1 = <-inp1
			}
			if take2 {
				v2 = <-inp2
			}
		}
	}
	go times(2, fifos[0], m2)
	go times(3, fifos[1], m3)
	go times(5, fifos[2], m5)
	go func() { m235 <- 1 }()
	go merge(m2, m3, m23)
	go merge(m23, m5, m235)
	<-done
	return found, 7
}

func shuffled(n int) []uint64 {
	state := uint64(0x2545f4914f6cdd1d)
	numbers := make([]uint64, n)
	for i := range numbers {
		state ^= state << 13
		state ^= state >> 7
		state ^= state << 17
		numbers[i] = state % 1000000
	}
	return numbers
}

func sorter(n int, onlyBuild bool) ([]uint64, int) {
	wires := make([]mvar, n)
	for i := range wires {
		wires[i] = makeMVar()
	}
	inputs := append([]mvar(nil), wires...)
	comparator := func(x, y, lo, hi mvar) {
		a, b := <-x, <-y
		lo <- min(a, b)
		hi <- max(a, b)
	}
	for last := 1; last < n; last++ {
		for at := last - 1; at >= 0; at-- {
			lo, hi := makeMVar(), makeMVar()
			go comparator(wires[at], wires[at+1], lo, hi)
			wires[at], wires[at+1] = lo, hi
		}
	}
	threads := n * (n - 1) / 2
	if onlyBuild {
		return nil, threads
	}
	done := make(chan bool)
	var found []uint64
	go func() {
		for _, wire := range wires {
			found = append(found, <-wire)
		}
		done <- true
	}()
	go func() {
		for i, number := range shuffled(n) {
			inputs[i] <- number
		}
	}()
	<-done
	return found, threads + 2
}

// Nanoseconds of this process's CPU.
func cpu() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return float64(usage.Utime.Sec+usage.Stime.Sec)*1e9 + float64(usage.Utime.Usec+usage.Stime.Usec)*1e3
}

// A line of the process's status, in bytes.
func memory(name string) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, rest, _ := strings.Cut(string(text), name+":")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		panic(err)
	}
	return kib * 1024
}

func main() {
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	program := os.Args[1]
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		os.Exit(2)
	}
	rounds := 1
	if len(os.Args) > 3 {
		if rounds, err = strconv.Atoi(os.Args[3]); err != nil {
			os.Exit(2)
		}
	}
	before, start := memory("VmRSS"), cpu()
	var found []uint64
	var threads int
	for range rounds {
		switch program {
		case "kpn":
			found, threads = kpn(n)
		case "sieve":
			found, threads = sieve(uint64(n))
		case "sorter":
			found, threads = sorter(n, false)
		case "built":
			found, threads = sorter(n, true)
		default:
			os.Exit(2)
		}
	}
	spent := cpu() - start
	digest := uint64(0)
	for _, number := range found {
		digest = (digest*31 + number%1000003) % 1000003
	}
	fmt.Printf("ns %.1f\n", spent/float64(rounds))
	fmt.Printf("bytes %.3f\nthreads %d\ndigest %d\n", max(0, memory("VmHWM")-before)/float64(threads), threads, digest)
}
