package callbacks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

// Watchdog writes a report, once, when one activity of the loop (step, task, callback, data, whole evaluation) takes
// longer than limit, which must be positive: the activity and the stacks of all goroutines. Errors of w are ignored.
func Watchdog(limit time.Duration, w io.Writer) loop.Callback {
	c := loop.Callback{Name: "watchdog", When: loop.Never, Order: -1}
	switch {
	case limit <= 0:
		return refused(c, fmt.Errorf("limit must be positive, got %s", limit))
	case w == nil:
		return refused(c, errors.New("no writer given"))
	}
	c.Start = func(loop.Beginning) (loop.Attendant, error) {
		d := &watchdog{limit: limit, out: w, since: time.Now(), stop: make(chan struct{}), stopped: make(chan struct{})}
		go d.work()
		return d, nil
	}
	return c
}

type watchdog struct {
	limit    time.Duration
	out      io.Writer
	mu       sync.Mutex
	step     int64
	activity abilities.Activity
	since    time.Time
	reported bool
	stop     chan struct{}
	stopped  chan struct{}
}

func (d *watchdog) At(step int64, what abilities.Activity) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step, d.activity, d.since, d.reported = step, what, time.Now(), false
}

func (d *watchdog) Watch(context.Context, loop.Report) error { return nil }

func (d *watchdog) End(context.Context, loop.Ending) error {
	close(d.stop)
	<-d.stopped
	return nil
}

func (d *watchdog) work() {
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

func (d *watchdog) look() {
	d.mu.Lock()
	step, what, waited := d.step, d.activity, time.Since(d.since)
	hangs := !d.reported && waited >= d.limit
	d.reported = d.reported || hangs
	d.mu.Unlock()
	if hangs {
		report := fmt.Sprintf("loop: step %d: %s: no end after %s\n\n%s\n", step, what, waited.Round(time.Millisecond), stacks())
		_ = shield.Run(func() error { _, err := io.WriteString(d.out, report); return err }) // a panic would end the process
	}
}

func stacks() []byte {
	buffer := make([]byte, 1<<20)
	return buffer[:runtime.Stack(buffer, true)]
}
