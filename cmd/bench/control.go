package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/dist"
)

const controlRank = "control-rank"

var controlSizes = []int{16, 64, 256}

const (
	agreements = 50
	// watched is rank 0's time for heartbeats only.
	watched = 3 * time.Second
)

// Jobs with control connections only: joining, an agreement, heartbeats at rank 0, and survival after a killed rank.
// Variants are numbers of processes.
func control(ctx context.Context, b *bench) error {
	for _, n := range controlSizes {
		if b.wants(strconv.Itoa(n)) {
			if err := b.controlOf(ctx, n); err != nil {
				return fmt.Errorf("%d processes: %w", n, err)
			}
		}
	}
	return nil
}

func (b *bench) controlOf(ctx context.Context, n int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	secret := rand.Text()
	ranks := make([]*exec.Cmd, n)
	defer func() {
		for _, c := range ranks {
			if c != nil && c.ProcessState == nil {
				_ = c.Process.Kill() // it may have ended
				_ = c.Wait()
			}
		}
	}()
	start := func(r int) (io.Reader, error) {
		c := exec.CommandContext(ctx, self, controlRank)
		c.Env = append(os.Environ(), "LAZO_RANK="+strconv.Itoa(r), "LAZO_SIZE="+strconv.Itoa(n), "LAZO_COORDINATOR="+address,
			"LAZO_SECRET="+secret, "LAZO_MPI=none", "GOMAXPROCS=1")
		out, err := c.StdoutPipe()
		if err != nil {
			return nil, err
		}
		ranks[r] = c
		return out, c.Start()
	}
	for r := 1; r < n; r++ {
		if _, err := start(r); err != nil {
			return err
		}
	}
	// Rank 0 starts last: elsewhere ranks prepare (process start, digest of the executable) on their own hosts.
	if err := idle(ctx, ranks[1:]); err != nil {
		return err
	}
	out, err := start(0)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			break
		}
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return fmt.Errorf("rank 0 said %q: %w", lines.Text(), err)
		}
		values := l.Values
		l.Values = nil
		if err := b.emitControl(n, l, values); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	killed := ranks[n/2]
	begin := time.Now()
	if err := killed.Process.Kill(); err != nil {
		return err
	}
	for r, c := range ranks {
		err := c.Wait()
		if code := c.ProcessState.ExitCode(); c != killed && code != dist.ExitLost {
			return fmt.Errorf("rank %d ended with %d (%w), expected %d, since rank %d was killed", r, code, err, dist.ExitLost, n/2)
		}
	}
	return b.emitControl(n, line{Variant: "end", Unit: "s"}, []float64{time.Since(begin).Seconds()})
}

func (b *bench) emitControl(n int, l line, values []float64) error {
	l.Workload, l.Ranks, l.CPUs, l.Over, l.Load = "control", n, runtime.NumCPU(), "loopback", b.load
	return b.emit(l, values)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// idle: less than a tenth of the processors.
func idle(ctx context.Context, list []*exec.Cmd) error {
	const between = 500 * time.Millisecond
	for last := time.Duration(-1); ; {
		var sum time.Duration
		for _, c := range list {
			took, err := processorTime(c.Process.Pid)
			if err != nil {
				return err
			}
			sum += took
		}
		if last >= 0 && sum-last < between*time.Duration(runtime.NumCPU())/10 {
			return nil
		}
		last = sum
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(between):
		}
	}
}

// Its resolution is 10 ms.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, behind, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behind)
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, text)
	}
	var ticks int
	for _, f := range []string{fields[user], fields[system]} {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func controlProcess(ctx context.Context, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	begin, cpu := time.Now(), cpuSeconds()
	job, err := dist.Join(ctx, dist.OnFailure(func(*dist.Failure) {}))
	if err != nil {
		return err
	}
	joined := time.Since(begin).Seconds()
	say := func(variant, unit string, processor float64, values ...float64) error {
		if job.Rank() > 0 {
			return nil
		}
		return out.Encode(line{Variant: variant, Unit: unit, CPU: []float64{processor}, Values: values, RSSMB: rssMB()})
	}
	if err := say("join", "s", cpuSeconds()-cpu, joined); err != nil {
		return err
	}
	var each []float64
	cpu = cpuSeconds()
	for range agreements {
		begin := time.Now()
		if err := job.Agree([]int64{1, 2, 3}); err != nil {
			return err
		}
		each = append(each, 1e6*time.Since(begin).Seconds())
	}
	if err := say("agree", "us", (cpuSeconds()-cpu)/agreements, each...); err != nil {
		return err
	}
	if job.Rank() == 0 {
		before, err := transferred()
		if err != nil {
			return err
		}
		cpu = cpuSeconds()
		time.Sleep(watched)
		spent := cpuSeconds() - cpu
		after, err := transferred()
		if err != nil {
			return err
		}
		seconds := watched.Seconds()
		if err := errors.Join(say("watch", "% of a processor", spent, 100*spent/seconds), say("watch traffic", "KB/s", spent, (after-before)/1e3/seconds)); err != nil {
			return err
		}
	}
	if err := job.Barrier("ready"); err != nil {
		return err
	}
	if job.Rank() == 0 {
		time.Sleep(300 * time.Millisecond) // the others have left the barrier
		fmt.Fprintln(stdout, "ready")
	}
	<-ctx.Done() // the job ends this process
	return context.Cause(ctx)
}

func transferred() (bytes float64, err error) {
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0, err
	}
	for l := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ": ")
		if name == "rchar" || name == "wchar" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			bytes += n
		}
	}
	return bytes, nil
}
