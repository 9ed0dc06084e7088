package callbacks

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
)

func checkStages(stages []iter.Seq2[string, time.Duration]) error {
	for i, s := range stages {
		if s == nil {
			return fmt.Errorf("stages %d of %d are nil", i+1, len(stages))
		}
	}
	return nil
}

type work struct {
	stages []iter.Seq2[string, time.Duration]
	before []Part
}

func startWork(stages []iter.Seq2[string, time.Duration]) work {
	w := work{stages: stages}
	w.before = w.total()
	return w
}

func (w work) total() (all []Part) {
	for _, s := range w.stages {
		for name, total := range s {
			all = append(all, Part{Kind: "stage", Name: name, Total: total})
		}
	}
	return all
}

func (w work) done() (all []Part) {
	for _, s := range w.total() {
		for _, b := range w.before {
			if b.Name == s.Name {
				s.Total -= b.Total
			}
		}
		if s.Total > 0 {
			all = append(all, s)
		}
	}
	return all
}

func waitedFor(waited, total time.Duration, stages []Part) string {
	if total <= 0 {
		return "0%"
	}
	share, sum := 100*waited.Seconds()/total.Seconds(), 0.0
	for _, s := range stages {
		sum += s.Total.Seconds()
	}
	var parts []string
	byTime := slices.SortedStableFunc(slices.Values(stages), func(a, b Part) int { return cmp.Compare(b.Total, a.Total) })
	for _, s := range byTime {
		if part := share * s.Total.Seconds() / sum; part >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f%%", printable(s.Name), part))
		}
	}
	text := fmt.Sprintf("%.0f%%", share)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

type waits struct {
	stages []iter.Seq2[string, time.Duration]

	mu     sync.Mutex
	work   work
	began  time.Time
	since  time.Time
	waited time.Duration
}

func (w *waits) begin() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.work, w.waited, w.began = startWork(w.stages), 0, time.Now()
	if !w.since.IsZero() {
		w.since = w.began
	}
}

func (w *waits) at(what abilities.Activity) {
	if w == nil {
		return
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.since.IsZero() {
		w.waited += now.Sub(w.since)
	}
	w.since = time.Time{}
	if what.Kind == "" && what.Name == "data" {
		w.since = now
	}
}

func (w *waits) text() string {
	if w == nil {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		return ""
	}
	now, waited := time.Now(), w.waited
	if !w.since.IsZero() {
		waited += now.Sub(w.since)
	}
	return "data " + waitedFor(waited, now.Sub(w.began), w.work.done())
}

func (w *waits) items() []item {
	if text := w.text(); text != "" {
		return []item{{text: text, rank: rankRate - 1}}
	}
	return nil
}

type observingBar struct{ *bar }

func (b observingBar) At(_ int64, what abilities.Activity) { b.waits.at(what) }
