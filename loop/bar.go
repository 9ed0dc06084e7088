package loop

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Bar shows how a run goes: steps done, time left, the newest losses and metrics, examples a second. On a terminal it
// is one line that is redrawn at most 20 times a second; elsewhere it is plain lines: after the first turn, for each
// tenth of the run, and at the latest every 30 seconds. Values are read (and so fetched from a device) only when a line is written.
type Bar struct {
	out      io.Writer
	terminal func() (columns int, ok bool)
	columns  int
	live     bool
	next     time.Duration // when the next line is due
	tenth    int64
	// The rate and the time left are measured from recent, which moves on; it starts after the first turn, since that
	// one may compile, and a rate that counts it says nothing.
	first, recent, last mark
	logs                Logs // newest value of each entry shown
	err                 error
}

type mark struct {
	time    time.Duration
	samples int64
	done    int64 // in the unit of Until
}

const (
	redraw  = 50 * time.Millisecond
	plain   = 30 * time.Second
	cells   = 24 // width of the drawn bar
	rateFor = 2 * time.Second
)

// ProgressBar shows the run on a writer, as a rule [os.Stderr]. A writer that fails is not written to again and does
// not end the run; nil shows nothing.
func ProgressBar(w io.Writer) Option {
	if w == nil {
		return nil
	}
	return Attend("progress bar", EachStep, func() Attendant { return NewBar(w) })
}

// NewBar makes a bar to be used by hand; [ProgressBar] makes one for each run.
func NewBar(w io.Writer) *Bar {
	b := &Bar{out: w}
	if f, ok := w.(*os.File); ok {
		b.columns, b.live = terminalColumns(f)
		b.terminal = func() (int, bool) { return terminalColumns(f) }
	}
	return b
}

// Watch notes the report and writes a line if one is due.
func (b *Bar) Watch(_ context.Context, r Report) error {
	for _, e := range r.Logs.entries {
		if e.Collection != Outputs {
			b.logs.Set(e.Collection, e.Name, e.Value)
		}
	}
	if b.first.time == 0 {
		b.first = markOf(r)
		b.recent, b.last = b.first, b.first
	}
	if b.due(r) {
		b.write(r, false)
	}
	return nil
}

func markOf(r Report) mark {
	m := mark{time: max(r.Elapsed.Time, 1), samples: r.Elapsed.Samples}
	if r.Until != nil {
		m.done = r.Until.of(r.Elapsed)
	}
	return m
}

// End writes the last line and leaves the cursor below it.
func (b *Bar) End(_ context.Context, e Ending) error {
	if e.Elapsed.Steps > 0 {
		b.write(e.Report, true)
	}
	return nil
}

func (b *Bar) due(r Report) bool {
	now := r.Elapsed.Time
	if b.live {
		if now < b.next {
			return false
		}
		b.next = now + redraw
		return true
	}
	tenth := b.tenth
	if r.Until != nil && r.Until.length() > 0 {
		tenth = r.Until.of(r.Elapsed) * 10 / r.Until.length()
	}
	if tenth == b.tenth && now < b.next {
		return false
	}
	b.tenth, b.next = tenth, now+plain
	// The last line is written by End, with the same step: not twice.
	return r.Until == nil || !r.Elapsed.Reached(r.Until)
}

func (b *Bar) write(r Report, end bool) {
	if b.err != nil {
		return
	}
	rate := b.rate(markOf(r), end)
	line := b.line(r, end, rate, b.live)
	if b.live {
		if columns, ok := b.terminal(); ok {
			b.columns = columns
		}
		if b.columns > 0 && utf8.RuneCountInString(line) >= b.columns {
			line = b.line(r, end, rate, false) // numbers say more than a drawing
		}
		// One column stays free: a full line makes some terminals wrap, and then \r no longer reaches its start.
		line = "\r" + cut(line, b.columns-1) + "\x1b[K"
		if end {
			line += "\n"
		}
	} else {
		line += "\n"
	}
	_, b.err = io.WriteString(b.out, line)
}

func (b *Bar) line(r Report, end bool, rate float64, drawn bool) string {
	var s strings.Builder
	now := r.Elapsed.Time
	if r.Until == nil || r.Until.length() <= 0 {
		fmt.Fprintf(&s, "%s - %s", Steps(r.Elapsed.Steps), short(now))
	} else {
		done, all := min(r.Until.of(r.Elapsed), r.Until.length()), r.Until.length()
		if t, ok := r.Until.(Time); ok {
			fmt.Fprintf(&s, "%s/%s", short(now), short(time.Duration(t)))
		} else {
			fmt.Fprintf(&s, "%*d/%d", len(fmt.Sprint(all)), done, all)
		}
		if drawn {
			full := int(int64(cells) * done / all)
			fmt.Fprintf(&s, " [%s%s]", strings.Repeat("=", full), strings.Repeat(".", cells-full))
		}
		if end {
			fmt.Fprintf(&s, " - %s", short(now))
		} else if since := done - b.first.done; since > 0 {
			fmt.Fprintf(&s, " - ETA %s", short(time.Duration(float64(now-b.first.time)*float64(all-done)/float64(since))))
		}
	}
	for _, e := range b.logs.entries {
		v, err := e.Value.Float()
		if err != nil {
			fmt.Fprintf(&s, " - %s: ?", e.Name)
			continue
		}
		fmt.Fprintf(&s, " - %s: %.4f", e.Name, v)
	}
	if rate > 0 {
		fmt.Fprintf(&s, " - %s examples/s", thousands(int64(rate)))
	}
	return s.String()
}

// rate is the examples a second: over the last seconds while running, over all but the first turn at the end.
func (b *Bar) rate(now mark, end bool) float64 {
	from := b.recent
	if now.time-b.last.time >= rateFor {
		b.recent, b.last = b.last, now
	}
	if end {
		from = b.first
	}
	if now.time <= from.time {
		return 0
	}
	return float64(now.samples-from.samples) / (now.time - from.time).Seconds()
}

// short is a duration to be read at a glance: 0.4s, 12s, 3m05s, 2h07m.
func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func cut(s string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(s) <= columns {
		return s
	}
	return string([]rune(s)[:columns])
}
