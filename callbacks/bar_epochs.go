package callbacks

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

func newEpochs(b *bar, s Bar) *epochs {
	_, counted := s.Epoch.(loop.Epochs)
	return &epochs{bar: b, length: s.Epoch, each: loop.Every(s.Epoch), counted: counted, steps: int64(s.EpochSteps)}
}

type epochs struct {
	bar      *bar
	length   loop.Period
	each     loop.Schedule
	counted  bool
	steps    int64
	from     int64
	compiler abilities.Compiler
	began    measurePoint
	ended    int64
	ofSteps  map[string]bool

	mu       sync.Mutex
	line     []item
	waitsFor string
	columns  int
	drawn    bool
	doing    abilities.Activity
	changes  int
	tested   time.Time
}

func (e *epochs) begin(from loop.Elapsed, history *loop.History) {
	if !e.counted {
		return
	}
	if e.from = from.Steps; e.steps > 0 {
		e.from -= from.Steps % e.steps
	}
	if history == nil || from.Epochs == 0 {
		return
	}
	for at := range history.Rows() {
		if at.Steps <= from.Steps && at.Epochs == from.Epochs {
			e.from = at.Steps
			return
		}
	}
}

func (e *epochs) at(now loop.Elapsed) (whole, part int64) {
	whole, part = e.length.Of(now)/e.length.Length(), e.length.Of(now)%e.length.Length()
	if e.counted {
		part = max(now.Steps-e.from, 0)
	}
	return whole, part
}

func (e *epochs) size() int64 {
	if e.counted {
		return e.steps
	}
	return e.length.Length()
}

func (e *epochs) progress(r loop.Report) progress {
	until, isEpochs := r.Until.(loop.Epochs)
	if !e.counted || !isEpochs || e.steps == 0 {
		return progressOf(r)
	}
	part := min(max(r.Elapsed.Steps-e.from, 0), e.steps)
	all := int64(until) * e.steps
	return progress{done: min(r.Elapsed.Epochs*e.steps+part, all), all: all}
}

func (e *epochs) measure(r loop.Report) measurePoint {
	m := measurePointOf(r)
	m.done = e.progress(r).done
	return m
}

func (e *epochs) watch(before loop.Elapsed, r loop.Report) {
	switch {
	case e.each.Due(before, r.Elapsed):
		whole, _ := e.at(r.Elapsed)
		e.writeEpoch(r, r.Logs, whole, true)
	case e.bar.live && e.bar.when.Due(before, r.Elapsed):
		e.noteSteps(r.Logs)
		whole, part := e.at(r.Elapsed)
		line := e.lineOf(r, whole+1, part)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.line = line
		e.draw("")
	}
}

func (e *epochs) writeEpoch(r loop.Report, logs loop.Logs, n int64, whole bool) {
	if e.bar.screen.failed() {
		return
	}
	now := measurePointOf(r)
	items := []item{{text: e.title(n, r.Until), style: bold}}
	if _, part := e.at(r.Elapsed); !whole {
		items = append(items, item{text: e.done(part)})
	} else {
		e.from = r.Elapsed.Steps
	}
	items = append(items, item{text: spent(now.time - e.began.time)})
	items = append(items, e.figures(logs)...)
	waits := e.bar.waits.items()
	e.bar.waits.begin()
	next := e.lineOf(r, n+1, 0)
	e.mu.Lock()
	defer e.mu.Unlock()
	took, from := now.time, e.began
	if !e.tested.IsZero() {
		took -= time.Since(e.tested)
	}
	if from.time < e.bar.first.time { // may have compiled
		from = e.bar.first
	}
	if took > from.time && now.samples > from.samples {
		items = append(items, rateItem(r, float64(now.samples-from.samples)/(took-from.time).Seconds()))
	}
	items = append(items, waits...)
	e.began, e.ended, e.tested, e.line = now, r.Elapsed.Steps, time.Time{}, next
	e.write(items)
}

func (e *epochs) write(items []item) {
	b := e.bar
	text := ""
	if b.live {
		text = clearBelow + wrapped(items, b.room(), b.coloured)
	} else {
		text = wrapped(items, math.MaxInt, false)
	}
	e.drawn, e.waitsFor = false, ""
	b.show(text+"\n", nil)
}

func (e *epochs) draw(waitsFor string) {
	b, line := e.bar, e.line
	if waitsFor != "" {
		line = slices.DeleteFunc(slices.Clone(line), func(i item) bool { return i.rank == rankLeft })
		at := 1
		for at < len(line) && line[at].tight {
			at++
		}
		line = slices.Insert(line, at, item{text: waitsFor, style: yellow})
	}
	text := func() string { return drawn(line, b.room(), b.coloured) }
	e.columns, e.waitsFor, e.drawn = b.room(), waitsFor, true
	b.show(text(), text)
}

func (e *epochs) end(ending loop.Ending) {
	r, some := ending.Report, ending.Elapsed.Steps > ending.From.Steps
	if some && e.ended != r.Elapsed.Steps {
		logs := r.Latest
		if logs.Len() == 0 {
			logs = e.bar.latest
		}
		var ofEpoch loop.Logs
		for entry := range logs.All() {
			if len(e.ofSteps) == 0 || e.ofSteps[entry.Path()] {
				ofEpoch.Set(entry.Collection, entry.Name, entry.Value)
			}
		}
		e.writeEpoch(r, ofEpoch, e.number(r.Elapsed), false)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	why, style := e.why(ending, some)
	switch {
	case why != "" && (e.bar.live || style != green):
		var words []item
		for word := range strings.FieldsSeq(why) {
			words = append(words, item{text: printable(word), style: style, tight: true})
		}
		e.write(words)
	case e.drawn:
		e.bar.show(clearBelow, nil)
	}
}

func (e *epochs) why(ending loop.Ending, some bool) (why string, style string) {
	at := e.place(ending.Elapsed, ending.Until)
	if !some {
		at = "before the first step"
	}
	var early *EarlyStopError
	switch {
	case ending.Reason == loop.Cancelled:
		return "interrupted " + at, yellow
	case ending.Err != nil || ending.Reason == loop.Failed:
		return "failed " + at, red
	case !some:
		return "", ""
	case ending.Reason == loop.Stopped && errors.As(ending.Stop, &early):
		return fmt.Sprintf("stopped early %s: %s", at, e.early(early, ending.Elapsed)), yellow
	case ending.Reason == loop.Stopped:
		return fmt.Sprintf("stopped %s: %s", at, strings.TrimPrefix(fmt.Sprint(ending.Stop), "loop: ")), yellow
	case ending.Reason == loop.DataEnded && ending.Until != nil:
		return "the data ended " + at, yellow
	}
	return fmt.Sprintf("finished %s, in %s", at, spent(ending.Elapsed.Time-ending.From.Time)), green
}

func (e *epochs) early(stop *EarlyStopError, now loop.Elapsed) string {
	if stop.Best == better.Worst(stop.Mode) || stop.At == (loop.Elapsed{}) {
		return strings.TrimSuffix(stop.Error(), ": "+loop.ErrStop.Error())
	}
	by, best := "", e.number(stop.At)
	if best == 0 { // the saved history lacks epochs
		return strings.TrimSuffix(stop.Error(), ": "+loop.ErrStop.Error())
	}
	if stop.MinDelta > 0 {
		by = fmt.Sprintf(" by more than %g", stop.MinDelta)
	}
	waited := fmt.Sprintf("%d epochs", e.number(now)-best)
	switch e.number(now) - best {
	case 0:
		waited = stop.Patience.String()
	case 1:
		waited = "1 epoch"
	}
	return fmt.Sprintf("%s has not improved%s for %s; best %s at epoch %d", stop.Entry, by, waited, figure(stop.Best), best)
}

func (e *epochs) place(at loop.Elapsed, until loop.Period) string {
	whole, part := e.at(at)
	if part == 0 {
		return fmt.Sprintf("at epoch %d", whole)
	}
	return fmt.Sprintf("in epoch %d, %s", whole+1, strings.TrimSpace(e.done(part)))
}

func (e *epochs) number(at loop.Elapsed) int64 {
	whole, part := e.at(at)
	if part > 0 {
		whole++
	}
	return whole
}

func (e *epochs) title(n int64, until loop.Period) string {
	var of int64
	switch steps, isSteps := until.(loop.Steps); {
	case until != nil && reflect.TypeOf(until) == reflect.TypeOf(e.length):
		of = (until.Length()-1)/e.length.Length() + 1
	case isSteps && e.counted && e.steps > 0:
		of = n + (int64(steps)-e.from-1)/e.steps
	}
	if of < n {
		return fmt.Sprintf("epoch %d", n)
	}
	return fmt.Sprintf("epoch %*d/%d", len(fmt.Sprint(of)), n, of)
}

func (e *epochs) done(part int64) string {
	if e.size() == 0 {
		return loop.Steps(part).String()
	}
	_, isTime := e.length.(loop.Time)
	return progress{part, e.size(), isTime}.text(e.length)
}

func (e *epochs) noteSteps(logs loop.Logs) {
	if e.ofSteps == nil {
		e.ofSteps = map[string]bool{}
	}
	for entry := range logs.All() {
		e.ofSteps[entry.Path()] = true
	}
}

func (e *epochs) lineOf(r loop.Report, n, part int64) []item {
	b, items := e.bar, []item{{text: e.title(n, r.Until), style: bold}}
	if size := e.size(); size > 0 {
		share := min(float64(part)/float64(size), 1)
		items = append(items, item{text: drawing(share, fewestCells), share: share, style: green, rank: rankDrawing, tight: true})
	}
	items = append(items, item{text: e.done(part), rank: rankDone, tight: true})
	if left, ok := e.progress(r).left(r.Elapsed.Time, b.first); ok {
		items = append(items, item{text: "ETA " + short(left), rank: rankLeft})
	}
	logs := r.Latest
	if logs.Len() == 0 {
		logs = b.latest
	}
	items = append(items, e.figures(logs)...)
	if rate := b.rate(measurePointOf(r), false); rate > 0 {
		items = append(items, rateItem(r, rate))
	}
	return append(items, b.waits.items()...)
}

// figures takes the first value of steps as the loss, the first of ends of epochs alone as the validation loss.
func (e *epochs) figures(logs loop.Logs) (items []item) {
	b := e.bar
	ranks := map[bool]int{true: rankFirst, false: rankFirst + 1}
	for entry := range logs.All() {
		if !slices.Contains(b.shown, entry.Collection) {
			continue
		}
		if of, isMean := strings.CutPrefix(entry.Name, "avg_"); isMean && entry.Collection == loop.Stateful {
			if _, err := logs.Get(of); err == nil {
				continue
			}
		}
		value := entry.Value
		if mean, err := logs.Get(loop.Entry{Collection: loop.Stateful, Name: "avg_" + entry.Name}.Path()); err == nil {
			value = mean.Value
		}
		v, err := value.Float()
		if err != nil {
			continue
		}
		name := entry.Name
		if b.ambiguous(logs, entry) {
			name = entry.Path()
		}
		ofSteps := len(e.ofSteps) == 0 || e.ofSteps[entry.Path()]
		i := item{text: printable(name) + ": " + figure(v), rank: ranks[ofSteps]}
		if !ofSteps {
			i.style = cyan
		}
		if ranks[ofSteps] < rankOthers {
			ranks[ofSteps] += rankOthers - rankFirst
		} else {
			ranks[ofSteps] += 2
		}
		items = append(items, i)
	}
	return items
}

func spent(d time.Duration) string {
	if d < time.Second {
		return max(d, 0).Round(time.Millisecond).String()
	}
	return short(d)
}

func rateItem(r loop.Report, rate float64) item {
	unit, text := "examples", thousands(int64(rate))
	if ran := r.Elapsed.Since(r.From); ran.Samples == ran.Steps {
		unit = "steps"
	}
	if rate < 10 {
		text = fmt.Sprintf("%.1f", rate)
	}
	return item{text: text + " " + unit + "/s", rank: rankRate}
}
