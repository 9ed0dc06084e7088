package loop

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"
)

// Watchdog writes a report when the loop is at one thing for longer than a limit: which step, task, watcher or data it
// waits for, and the stacks of all goroutines. Each such wait is reported once; the run itself is left alone, because
// nobody can end a function of Go from outside. An evaluation counts as one thing. Where the writer fails, the report is
// lost and the run goes on.
func Watchdog(limit time.Duration, w io.Writer) Option {
	return func(s *settings) {
		switch {
		case limit <= 0:
			s.errs = append(s.errs, fmt.Errorf("watchdog: limit must be positive, got %s", limit))
		case w == nil:
			s.errs = append(s.errs, errors.New("watchdog: no writer given"))
		default:
			s.watchdog = &watchdog{limit, w}
		}
	}
}

type watchdog struct {
	limit time.Duration
	out   io.Writer
}

// dog is the watchdog of one run. A nil one does nothing.
type dog struct {
	watchdog
	mu       sync.Mutex
	step     int64
	doing    doing
	since    time.Time
	reported bool
	stop     chan struct{}
	stopped  chan struct{}
}

func (w *watchdog) start() *dog {
	d := &dog{watchdog: *w, since: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
	go d.guard()
	return d
}

func (d *dog) note(step int64, what doing) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.doing, d.since, d.reported = step, what, time.Now(), false
}

func (d *dog) guard() {
	defer close(d.stopped)
	tick := time.NewTicker(max(d.limit/10, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
			d.look()
		}
	}
}

func (d *dog) look() {
	d.mu.Lock()
	step, what, waited := d.step, d.doing, time.Since(d.since)
	hangs := !d.reported && waited >= d.limit
	d.reported = d.reported || hangs
	d.mu.Unlock()
	if what == doingData {
		step++ // the one that could not be made, as errors have it
	}
	if hangs {
		report := fmt.Sprintf("loop: step %d: %s: no end after %s\n\n%s\n", step, what, waited.Round(time.Millisecond), stacks())
		_ = shielded(func() error { _, err := io.WriteString(d.out, report); return err }) // a panic here would end the process
	}
}

// stacks is those of all goroutines, up to 1 MiB.
func stacks() []byte {
	buffer := make([]byte, 1<<20)
	return buffer[:runtime.Stack(buffer, true)]
}

func (d *dog) end() {
	if d != nil {
		close(d.stop)
		<-d.stopped
	}
}
