package runs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

// Difference is something that differs between the run that was saved and the one that goes on: "go", "lazo", "gomlx",
// what a [checkpoint.Versioned] state names, as a managed.State "plugin" and "devices", and the settings of a
// [checkpoint.Configured] one.
type Difference struct {
	What, Saved, Now string
	// Kept tells that the run goes on with what was saved, and not with what the program says: see
	// [checkpoint.Setting].Saved.
	Kept bool
}

// String is "batch was 32 and is 64".
func (d Difference) String() string {
	s := fmt.Sprintf("%s was %s and is %s", d.What, d.Saved, d.Now)
	if d.Kept {
		s += "; what was saved goes on"
	}
	return s
}

// differences are what two runs know of both and is not the same.
func differences(saved map[string]string, now []checkpoint.Setting) (all []Difference) {
	for _, s := range now {
		if was, ok := saved[s.Name]; ok && was != s.Value {
			all = append(all, Difference{What: s.Name, Saved: was, Now: s.Value, Kept: s.Saved})
		}
	}
	slices.SortStableFunc(all, func(a, b Difference) int { return strings.Compare(a.What, b.What) })
	return all
}

func settingsOf(state any) []checkpoint.Setting {
	if s, ok := state.(checkpoint.Configured); ok {
		return s.Settings()
	}
	return nil
}

// noted are settings as they are saved.
func noted(settings []checkpoint.Setting) map[string]string {
	m := map[string]string{}
	for _, s := range settings {
		m[s.Name] = s.Value
	}
	return m
}

// textsOf reads a section of texts by name; one that an older lazo did not save is empty.
func textsOf(c *checkpoint.Checkpoint, section string) (texts map[string]string, err error) {
	if err := c.Section(section, &texts); err != nil && !errors.Is(err, checkpoint.ErrNoSection) {
		return nil, err
	}
	return texts, nil
}

// reporting looks before the first step and behind it.
type reporting struct {
	start    Start
	reported map[string]bool
	report   []func(Difference) error
}

// look reports each difference once.
func (t *reporting) look(_ context.Context, r loop.Report) error {
	for _, d := range append(slices.Clone(t.start.Differences), differences(t.start.settings, settingsOf(r.State()))...) {
		if t.reported[d.What] {
			continue
		}
		t.reported[d.What] = true
		if !slices.Contains(t.start.Differences, d) {
			t.start.log(d)
		}
		for _, report := range t.report {
			if err := report(d); err != nil {
				return fmt.Errorf("checkpoint: the run goes on from step %d: %w", t.start.saved.Step, err)
			}
		}
	}
	return nil
}

// log tells the folder's log.
func (s Start) log(d Difference) {
	inForce := "now"
	if d.Kept {
		inForce = "saved"
	}
	s.folder.Options().Log.Warn("checkpoint: the run goes on with something else than it was saved with",
		"folder", s.folder.Dir(), "step", int64(s.saved.Step), "what", d.What, "saved", d.Saved, "now", d.Now, "in_force", inForce)
}

// Ended is how a run was stopped that was to go on otherwise: somebody asked for its end ([loop.ErrStop]). As an error
// it wraps that.
type Ended struct {
	// Step is the last one.
	Step checkpoint.Step `json:"-"`
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

// versions are what a state runs with.
func versions(state any) map[string]string {
	v := map[string]string{"go": runtime.Version(), "lazo": "unknown"}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(b.Deps, &b.Main) {
			switch m.Path {
			case "github.com/lazo-ml/lazo":
				v["lazo"] = m.Version
			case "github.com/gomlx/gomlx":
				v["gomlx"] = m.Version
			}
		}
	}
	if s, ok := state.(checkpoint.Versioned); ok {
		maps.Copy(v, s.Versions())
	}
	return v
}

// versionDifferences are those of what a checkpoint was saved with. A lazo that did not note GoMLX's stood on that one.
func versionDifferences(c *checkpoint.Checkpoint, state any) ([]Difference, error) {
	saved, err := textsOf(c, versionsSection)
	if err != nil || saved == nil {
		return nil, err
	}
	if _, ok := saved["gomlx"]; !ok {
		saved["gomlx"] = "v0.26.0 or none"
	}
	var now []checkpoint.Setting
	for name, value := range versions(state) {
		now = append(now, checkpoint.Setting{Name: name, Value: value})
	}
	return differences(saved, now), nil
}
