package callbacks

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

type waitingBar struct {
	*bar
	stop, stopped chan struct{}
}

const (
	waitTick  = 100 * time.Millisecond
	waitShown = 300 * time.Millisecond
)

func startWaiting(b *bar, from loop.Beginning) *waitingBar {
	b.epochs.compiler, _ = abilities.StateAs[abilities.Compiler](from)
	b.epochs.begin(from.From, from.History)
	whole, _ := b.epochs.at(from.From)
	b.epochs.line = []item{{text: b.epochs.title(whole+1, from.Until), style: bold}}
	w := &waitingBar{b, make(chan struct{}), make(chan struct{})}
	if b.live {
		go w.work()
	} else {
		close(w.stopped)
	}
	return w
}

func (w *waitingBar) At(_ int64, what abilities.Activity) {
	w.waits.at(what)
	e := w.epochs
	e.mu.Lock()
	e.doing, e.changes = what, e.changes+1
	if tests(what) && e.tested.IsZero() {
		e.tested = time.Now()
	}
	e.mu.Unlock()
}

func (w *waitingBar) End(ctx context.Context, ending loop.Ending) error {
	close(w.stop)
	<-w.stopped
	return w.bar.End(ctx, ending)
}

func (w *waitingBar) work() {
	defer close(w.stopped)
	tick := time.NewTicker(waitTick)
	defer tick.Stop()
	changes, since := 0, time.Now()
	for {
		select {
		case <-w.stop:
			return
		case <-tick.C:
		}
		// A writer's panic would end the process here.
		err := shield.Run(func() error { changes, since = w.epochs.look(changes, since); return nil })
		if err != nil {
			return
		}
	}
}

func (e *epochs) look(changes int, since time.Time) (int, time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.changes != changes {
		changes, since = e.changes, now
	}
	waitsFor := e.wait(now, since)
	if waitsFor != e.waitsFor || e.drawn && e.columns != e.bar.room() {
		e.draw(waitsFor)
	}
	return changes, since
}

func (e *epochs) wait(now, since time.Time) string {
	if now.Sub(since) < waitShown {
		return "" // turns run, even if something compiles elsewhere
	}
	if e.compiler != nil {
		if began, ok := e.compiler.CompilingSince(); ok {
			return waited("compiling", now.Sub(began))
		}
	}
	switch {
	case tests(e.doing):
		return waited("validating", now.Sub(since))
	case e.doing.Name == "data":
		return waited("waiting for data", now.Sub(since))
	}
	return ""
}

func tests(what abilities.Activity) bool { return strings.HasPrefix(what.Name, "evaluation") }

func waited(what string, d time.Duration) string {
	if d < time.Second {
		return what + " …"
	}
	return fmt.Sprintf("%s … %d s", what, d/time.Second)
}
