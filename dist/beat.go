package dist

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// beat is a rank's report, four times per second. Times are durations: hosts' clocks differ.
type beat struct {
	Step     int64
	Doing    string        `json:",omitempty"`
	DoingFor time.Duration // since At
	Busy     string        `json:",omitempty"` // of Job.Busy
	BusyLeft time.Duration // 0: no limit
	Get      string        `json:",omitempty"`
	GetFor   time.Duration `json:",omitempty"`
	Note     string        `json:",omitempty"` // of Job.Note
	// Calls counts the Job's agreements; Call is the one waited in.
	Calls     uint64
	Call      string        `json:",omitempty"`
	CallFor   time.Duration `json:",omitempty"`
	CallLimit time.Duration `json:",omitempty"` // how late others may be
	// Begun counts the programs' exchanges; Waits: the rank waits in one.
	Begun       uint64
	Waits       bool          `json:",omitempty"`
	Kind        string        `json:",omitempty"`
	Site        int64         `json:",omitempty"`
	ExchangeFor time.Duration `json:",omitempty"`
	Bytes       int64         `json:",omitempty"`
}

func (b *beat) doing() string {
	switch {
	case b.Call != "":
		return b.Call
	case b.Waits:
		return fmt.Sprintf("%s (collective %d of its program, exchange %d of the job)", b.Kind, b.Site, b.Begun)
	case b.Busy != "":
		return b.Busy
	case b.Get != "":
		return b.Get
	}
	return b.Doing
}

// reached reports whether a rank has begun what another one waits in.
func (b *beat) reached(w *beat) bool {
	return w.Call != "" && b.Calls >= w.Calls || w.Call == "" && b.Begun >= w.Begun
}

// passed reports whether a rank has ended it: all ranks make the same ones in the same order.
func (b *beat) passed(w *beat) bool {
	return b.reached(w) && (w.Call != "" && (b.Calls > w.Calls || b.Call == "") || w.Call == "" && (b.Begun > w.Begun || !b.Waits))
}

func (b *beat) sentence(age time.Duration) string {
	since := b.DoingFor
	switch {
	case b.Call != "":
		since = b.CallFor
	case b.Waits:
		since = b.ExchangeFor
	case b.Busy == "" && b.Get != "":
		since = b.GetFor
	}
	text := fmt.Sprintf("at step %d", b.Step)
	if doing := b.doing(); doing != "" {
		text += ", in " + doing
	}
	text = fmt.Sprintf("%s for %v", text, round(since+age))
	if b.Note != "" {
		text += " (" + b.Note + ")"
	}
	return text
}

type activity struct {
	start time.Time
	step  atomic.Int64
	doing atomic.Pointer[string]
	note  atomic.Pointer[string]
	at    atomic.Int64 // nanoseconds after start

	mu    sync.Mutex
	busy  []*phase
	gets  []*phase
	calls uint64
	call  string
	since time.Time
	limit time.Duration
}

type phase struct {
	doing string
	until time.Time
}

func (a *activity) now() int64 { return int64(time.Since(a.start)) }

func (a *activity) set(step int64, doing string) {
	a.step.Store(step)
	if last := a.doing.Load(); doing != "" && (last == nil || *last != doing) {
		word := doing // doing itself would be allocated
		a.doing.Store(&word)
	}
	a.at.Store(a.now())
}

func (a *activity) begin(doing string, limit time.Duration) (done func()) {
	p := &phase{doing, time.Now().Add(limit)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = append(a.busy, p)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, other := range a.busy {
			if other == p {
				a.busy = append(a.busy[:i:i], a.busy[i+1:]...)
				a.at.Store(a.now()) // next activity
				return
			}
		}
	}
}

func (a *activity) await(what string) (done func()) {
	p := &phase{what, time.Now()}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gets = append(a.gets, p)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.gets = slices.DeleteFunc(a.gets, func(other *phase) bool { return other == p })
	}
}

func (a *activity) enter(call string, limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	a.call, a.since, a.limit = call, time.Now(), limit
}

func (a *activity) leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.call = ""
	a.at.Store(a.now())
}

func (a *activity) noted() string {
	if text := a.note.Load(); text != nil {
		return *text
	}
	return ""
}

func (a *activity) beat() beat {
	b := beat{Step: a.step.Load(), DoingFor: time.Duration(a.now() - a.at.Load())}
	if doing := a.doing.Load(); doing != nil {
		b.Doing = *doing
	}
	b.Note = a.noted()
	a.mu.Lock()
	defer a.mu.Unlock()
	b.Calls = a.calls
	if a.call != "" {
		b.Call, b.CallFor, b.CallLimit = a.call, time.Since(a.since), a.limit
	}
	if len(a.gets) > 0 {
		b.Get, b.GetFor = a.gets[0].doing, time.Since(a.gets[0].until)
	}
	for _, p := range a.busy {
		if left := time.Until(p.until); b.Busy == "" || left > b.BusyLeft {
			b.Busy, b.BusyLeft = p.doing, max(0, left)
		}
	}
	return b
}

const (
	mostGoroutines = 4
	mostFrames     = 8
)

// stacks has the innermost lines of a user's goroutines: the loop's, main's, and others outside Go's and lazo's code.
func stacks() string {
	buffer := make([]byte, 1<<20)
	return pick(string(buffer[:runtime.Stack(buffer, true)]))
}

const lazoModule = "github.com/lazo-ml/lazo/"

func pick(dump string) string {
	var loops, mains, others []string
	for _, trace := range strings.Split(dump, "\n\n") {
		lines := strings.Split(strings.TrimSpace(trace), "\n")
		var kept []string
		frames, loop, main, users := 0, false, false, false
		for i := 1; i+1 < len(lines); i += 2 {
			function, _, _ := strings.Cut(strings.TrimPrefix(lines[i], "created by "), "(0x")
			if strings.HasPrefix(lines[i], "created by ") || standard(function) {
				continue
			}
			users = users || !strings.HasPrefix(function, lazoModule) || strings.Contains(lines[i+1], "_test.go:")
			loop = loop || strings.HasPrefix(function, lazoModule+"loop.")
			main = main || strings.HasPrefix(function, "main.")
			where, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " +0x")
			if frames++; frames <= mostFrames {
				kept = append(kept, "    "+strings.TrimSuffix(function, "(...)")+"\n      "+where)
			}
		}
		if !loop && !users {
			continue // lazo's own
		}
		text := "  " + lines[0] + "\n" + strings.Join(kept, "\n")
		switch {
		case loop:
			loops = append(loops, text)
		case main:
			mains = append(mains, text)
		default:
			others = append(others, text)
		}
	}
	all := append(append(loops, mains...), others...)
	return strings.Join(all[:min(len(all), mostGoroutines)], "\n")
}

func standard(function string) bool {
	first, _, path := strings.Cut(function, "/")
	if path {
		return !strings.Contains(first, ".")
	}
	return !strings.HasPrefix(function, "main.")
}
