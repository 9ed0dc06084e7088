package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// Setting is one of the settings that a run trains with, in words.
type Setting struct {
	// Name tells it from the others: "batch", "optimizer.rate".
	Name, Value string
	// Saved tells that a restored state goes on with what was saved, whatever the program says: what is in the variables, as
	// the learning rate and the random numbers of a seed are. All else is as the program says now.
	Saved bool
}

// Configured is a [State] that says its settings; a managed.State is one. [Save] saves them, and [Resume] tells which are others
// now. One that is not known yet, as the data before the first step, is left out.
type Configured interface {
	Settings() []Setting
}

// Change is something that differs between the run that was saved and the one that goes on: "go", "lazo", "gomlx", what a
// [Versioned] state names, as a managed.State "plugin" and "devices", and the settings of a [Configured] one.
type Change struct {
	What, Saved, Now string
	// Kept tells that the run goes on with what was saved, and not with what the program says: see [Setting].Saved.
	Kept bool
}

// String is "batch was 32 and is 64".
func (c Change) String() string {
	s := fmt.Sprintf("%s was %s and is %s", c.What, c.Saved, c.Now)
	if c.Kept {
		s += "; what was saved goes on"
	}
	return s
}

// changes are what two runs know of both and is not the same.
func changes(saved map[string]string, now []Setting) (all []Change) {
	for _, s := range now {
		if was, ok := saved[s.Name]; ok && was != s.Value {
			all = append(all, Change{What: s.Name, Saved: was, Now: s.Value, Kept: s.Saved})
		}
	}
	slices.SortStableFunc(all, func(a, b Change) int { return sign(a.What < b.What) })
	return all
}

func settingsOf(state any) []Setting {
	if s, ok := state.(Configured); ok {
		return s.Settings()
	}
	return nil
}

// noted are settings as they are saved.
func noted(settings []Setting) map[string]string {
	m := map[string]string{}
	for _, s := range settings {
		m[s.Name] = s.Value
	}
	return m
}

// textsOf reads a section of texts by name; one that an older lazo did not save is empty.
func textsOf(c *Checkpoint, section string) (texts map[string]string, err error) {
	if err := c.Section(section, &texts); err != nil && !errors.Is(err, ErrNoSection) {
		return nil, err
	}
	return texts, nil
}

// telling looks before the first step and behind it.
type telling struct {
	start Start
	told  map[string]bool
	tell  []func(Change) error
}

// Watch tells each change once.
func (t *telling) Watch(_ context.Context, r loop.Report) error {
	for _, c := range append(slices.Clone(t.start.Changes), changes(t.start.settings, settingsOf(r.State()))...) {
		if t.told[c.What] {
			continue
		}
		t.told[c.What] = true
		if !slices.Contains(t.start.Changes, c) {
			t.start.log(c)
		}
		for _, tell := range t.tell {
			if err := tell(c); err != nil {
				return fmt.Errorf("checkpoint: the run goes on from step %d: %w", t.start.step, err)
			}
		}
	}
	return nil
}

// End does nothing.
func (*telling) End(context.Context, loop.Ending) error { return nil }

// log tells the folder's log.
func (s Start) log(c Change) {
	inForce := "now"
	if c.Kept {
		inForce = "saved"
	}
	s.folder.log.Warn("checkpoint: the run goes on with something else than it was saved with",
		"folder", s.folder.dir, "step", int64(s.step), "what", c.What, "saved", c.Saved, "now", c.Now, "in_force", inForce)
}

// Ended is how a run was stopped that was to go on otherwise: somebody asked for its end ([loop.ErrStop]). As an error it wraps
// that.
type Ended struct {
	// Step is the last one.
	Step Step `json:"-"`
	// By says who asked, and why.
	By string `json:"by"`
	// Until is the end that the run was to have, "" if it had none.
	Until string `json:"until"`
	// Early tells that it was a [callbacks.StopEarly], which the history decides anew.
	Early bool `json:"early,omitempty"`
}

func (e *Ended) Error() string {
	return fmt.Sprintf("the run had ended at step %d: %s", e.Step, e.By)
}

// Unwrap gives [loop.ErrStop].
func (e *Ended) Unwrap() error { return loop.ErrStop }

// endedOf is how a run was stopped, nil if it was not, or is only to pause.
func endedOf(r loop.Report) *Ended {
	if r.Stop == nil || errors.Is(r.Stop, loop.ErrPause) {
		return nil
	}
	e := &Ended{By: r.Stop.Error()}
	if r.Until != nil {
		e.Until = r.Until.String()
	}
	e.Early = errors.As(r.Stop, new(*callbacks.EarlyStopError))
	return e
}
