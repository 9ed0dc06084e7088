package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

type ended struct {
	Step  Step   `json:"-"`
	By    string `json:"by"`
	Until string `json:"until"`
	// Early is set by [callbacks.StopEarly], which decides again from the history.
	Early bool `json:"early,omitempty"`
}

func (e *ended) Error() string {
	return fmt.Sprintf("the run had ended at step %d: %s", e.Step, e.By)
}

func (e *ended) Unwrap() error { return loop.ErrStop }

func endedOf(r loop.Report) *ended {
	if r.Stop == nil || errors.Is(r.Stop, loop.ErrPause) {
		return nil
	}
	e := &ended{By: r.Stop.Error()}
	if r.Until != nil {
		e.Until = r.Until.String()
	}
	e.Early = errors.As(r.Stop, new(*callbacks.EarlyStopError))
	return e
}

func (e *ended) holds(until loop.Period) bool {
	if e == nil || e.Early {
		return false
	}
	return until == nil && e.Until == "" || until != nil && until.String() == e.Until
}

func lineOf(e loop.Ending) string {
	line := fmt.Sprintf("%s after %s", e.Reason, loop.Steps(e.Elapsed.Steps))
	if cause := cmp.Or(e.Err, e.Stop); cause != nil {
		line += ": " + strings.ReplaceAll(cause.Error(), "\n", "; ")
	}
	return line + "\n"
}

func (f *Folder) markEnd(ctx context.Context, e loop.Ending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(true)
	if err == nil {
		err = f.medium.note(ctx, endName, lineOf(e))
	}
	return f.wrap(err, "mark the end of the run")
}

// markBroken marks an end that is not for good. It waits for no save, since the medium may hang.
func (f *Folder) markBroken(ctx context.Context, e loop.Ending) error {
	if !f.mu.TryLock() {
		return errors.New("a save has not ended")
	}
	err := f.use(true)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case err := <-shield.Start(func() error { return f.medium.note(ctx, brokenName, lineOf(e)) }):
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *Folder) unmarkEnd(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(true)
	for _, name := range []string{endName, brokenName} {
		var text string
		if err == nil {
			text, err = readNote(f.opener(ctx), name)
		}
		if err == nil && text != "" {
			err = f.medium.forget(ctx, name)
		}
	}
	return f.wrap(err, "remove the mark of an earlier end")
}

func (f *Folder) endMark(ctx context.Context) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(false)
	var text string
	if err == nil {
		text, err = readNote(f.opener(ctx), endName)
	}
	return text, f.wrap(err, "read whether the run has ended")
}
