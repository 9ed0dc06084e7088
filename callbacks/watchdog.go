package callbacks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Watchdog writes a report when the loop is at one thing for longer than a limit: which step, task, callback or data it
// waits for, and the stacks of all goroutines. Each such wait is reported once; the run itself is left alone, because
// nobody can end a function of Go from outside. An evaluation counts as one thing. Where the writer fails, the report is
// lost and the run goes on.
func Watchdog(limit time.Duration, w io.Writer) loop.Callback {
	c := loop.Callback{Name: "watchdog", When: loop.Never, Place: loop.BeforeAll}
	switch {
	case limit <= 0:
		return refused(c, fmt.Errorf("limit must be positive, got %s", limit))
	case w == nil:
		return refused(c, errors.New("no writer given"))
	}
	c.Start = func(loop.Beginning) (loop.Attendant, error) {
		d := &dog{limit: limit, out: w, since: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
		go d.guard()
		return d, nil
	}
	return c
}

// dog is the watchdog of one run.
type dog struct {
	limit    time.Duration
	out      io.Writer
	mu       sync.Mutex
	step     int64
	activity loop.Activity
	since    time.Time
	reported bool
	stop     chan struct{}
	stopped  chan struct{}
}

func (d *dog) At(step int64, what loop.Activity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.activity, d.since, d.reported = step, what, time.Now(), false
}

func (d *dog) Watch(context.Context, loop.Report) error { return nil }

// End ends the goroutine.
func (d *dog) End(context.Context, loop.Ending) error {
	close(d.stop)
	<-d.stopped
	return nil
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
	step, what, waited := d.step, d.activity, time.Since(d.since)
	hangs := !d.reported && waited >= d.limit
	d.reported = d.reported || hangs
	d.mu.Unlock()
	if hangs {
		report := fmt.Sprintf("loop: step %d: %s: no end after %s\n\n%s\n", step, what, waited.Round(time.Millisecond), stacks())
		_ = loop.Shield(func() error { _, err := io.WriteString(d.out, report); return err }) // a panic here would end the process
	}
}

// stacks is those of all goroutines, up to 1 MiB.
func stacks() []byte {
	buffer := make([]byte, 1<<20)
	return buffer[:runtime.Stack(buffer, true)]
}
