package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
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

func (f *Folder) markEnd(ctx context.Context, e loop.Ending) error {
	line := fmt.Sprintf("%s after %s", e.Reason, loop.Steps(e.Elapsed.Steps))
	if e.Stop != nil {
		line += ": " + strings.ReplaceAll(e.Stop.Error(), "\n", "; ")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(true)
	if err == nil {
		err = f.medium.note(ctx, endName, line+"\n")
	}
	return f.wrap(err, "mark the end of the run")
}

func (f *Folder) unmarkEnd(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.use(true)
	var text string
	if err == nil {
		text, err = readNote(f.opener(ctx), endName)
	}
	if err == nil && text != "" {
		err = f.medium.forget(ctx, endName)
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
