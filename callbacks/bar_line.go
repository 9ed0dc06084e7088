package callbacks

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/loop"
)

const (
	cells     = 24
	usual     = 80
	clearLine = "\x1b[K"
)

func (b *bar) write(r loop.Report, end bool) {
	if b.screen.failed() {
		return
	}
	text := b.values(r)
	if rate := b.rate(measurePointOf(r), end); rate > 0 {
		text += fmt.Sprintf(" - %s examples/s", thousands(int64(rate)))
	}
	if waits := b.waits.text(); waits != "" {
		text += " - " + waits
	}
	line := b.progress(r, end, b.live) + text
	var again func() string
	if b.live {
		columns := b.room()
		if width(line) > columns {
			line = b.progress(r, end, false) + text
		}
		line = "\r" + cut(line, columns) + clearLine
		again = func() string { return line }
	}
	if end || !b.live {
		line, again = line+"\n", nil
	}
	b.show(line, again)
}

// room leaves one column free: some terminals wrap a full line, and \r then fails.
func (b *bar) room() int {
	columns, ok := b.terminal()
	if !ok || columns <= 0 {
		columns = usual
	}
	return columns - 1
}

// show shows a line, which again redraws below other output.
func (b *bar) show(line string, again func() string) {
	for _, l := range b.above {
		l.join(&b.screen)
	}
	b.screen.show(line, again)
}

func (b *bar) progress(r loop.Report, end, drawn bool) string {
	var s strings.Builder
	p := progressOf(r)
	if p.all > 0 {
		s.WriteString(p.text(r.Until))
		if drawn {
			full := int(cells * float64(p.done) / float64(p.all))
			fmt.Fprintf(&s, " [%s%s]", strings.Repeat("=", full), strings.Repeat(".", cells-full))
		}
	} else {
		s.WriteString(loop.Steps(r.Elapsed.Steps).String())
	}
	if end || p.all == 0 {
		fmt.Fprintf(&s, " - %s", short(r.Elapsed.Time))
	} else if left, ok := p.left(r.Elapsed.Time, b.first); ok {
		fmt.Fprintf(&s, " - ETA %s", short(left))
	}
	return s.String()
}

func (p progress) text(until loop.Period) string {
	if p.isTime {
		return fmt.Sprintf("%s/%s", short(time.Duration(p.done)), short(time.Duration(p.all)))
	}
	unit := ""
	if _, ok := until.(loop.Samples); ok {
		unit = " samples"
	}
	return fmt.Sprintf("%*d/%d%s", len(fmt.Sprint(p.all)), p.done, p.all, unit)
}

func (b *bar) values(r loop.Report) string {
	var s strings.Builder
	logs := r.Latest
	if logs.Len() == 0 {
		logs = b.latest
	}
	for e := range logs.All() {
		if !slices.Contains(b.shown, e.Collection) {
			continue
		}
		name := e.Name
		if b.ambiguous(logs, e) {
			name = e.Path()
		}
		text := "?"
		if v, err := e.Value.Float(); err == nil {
			text = figure(v)
		}
		fmt.Fprintf(&s, " - %s: %s", printable(name), text)
	}
	return s.String()
}

func (b *bar) ambiguous(logs loop.Logs, e loop.Entry) bool {
	for o := range logs.All() {
		if o.Name == e.Name && o.Collection != e.Collection && slices.Contains(b.shown, o.Collection) {
			return true
		}
	}
	return false
}

func figure(v float64) string {
	if a := math.Abs(v); a != 0 && a < 1e-3 || a >= 1e7 {
		return fmt.Sprintf("%.3e", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

func short(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

const day = 24 * time.Hour

func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// columnsOf counts two columns for non-Latin characters: a line never wraps.
func columnsOf(r rune) int {
	if r < 0x300 {
		return 1
	}
	return 2
}

func width(s string) (columns int) {
	for _, r := range s {
		columns += columnsOf(r)
	}
	return columns
}

func cut(s string, columns int) string {
	for i, r := range s {
		if columns -= columnsOf(r); columns < 0 {
			return s[:i]
		}
	}
	return s
}
