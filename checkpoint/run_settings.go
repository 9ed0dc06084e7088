package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// Difference is one between a resumed run and the saved one: in "go", "lazo", "gomlx", a name of the [State]'s Versions
// or Settings, or "newest checkpoint" if that was damaged.
type Difference struct {
	// Now is "not known" if the run cannot know it.
	What, Saved, Now string
	// Kept: the saved value is in force; see [Setting].Saved.
	Kept bool
	// Err is why the newest checkpoint was skipped.
	Err error
}

// String returns a text like "batch was 32 and is 64".
func (d Difference) String() string {
	if d.Err != nil {
		return fmt.Sprintf("the %s was skipped in favor of %s: %v", d.What, d.Now, d.Err)
	}
	s := fmt.Sprintf("%s was %s and is %s", d.What, d.Saved, d.Now)
	if d.Kept {
		s += "; the saved value is used"
	}
	return s
}

func differences(saved map[string]string, now []Setting) (all []Difference) {
	for _, s := range now {
		if was, ok := saved[s.Name]; ok && was != s.Value {
			all = append(all, Difference{What: s.Name, Saved: was, Now: cmp.Or(s.Value, "not known"), Kept: s.Saved})
		}
	}
	slices.SortStableFunc(all, func(a, b Difference) int { return strings.Compare(a.What, b.What) })
	return all
}

func settingsOf(state any) []Setting {
	if s, ok := abilities.As[configured](state); ok {
		return s.Settings()
	}
	return nil
}

func noted(settings []Setting) map[string]string {
	m := map[string]string{}
	for _, s := range settings {
		if s.Value != "" {
			m[s.Name] = s.Value
		}
	}
	return m
}

func (s *saving) inForce(settings []Setting) []Setting {
	if s.resumed == nil {
		return settings
	}
	settings = slices.Clone(settings)
	for i := range settings {
		now := &settings[i]
		if !now.Saved {
			continue
		}
		if _, known := s.resumed.stated[now.Name]; !known {
			s.resumed.stated[now.Name] = now.Value
		}
		if was, ok := s.resumed.settings[now.Name]; ok && s.resumed.stated[now.Name] == now.Value {
			now.Value = was
		}
	}
	return settings
}

// An older lazo did not save some sections.
func textsOf(c *Checkpoint, section string) (texts map[string]string, err error) {
	if err := c.Section(section, &texts); err != nil && !errors.Is(err, ErrNoSection) {
		return nil, err
	}
	return texts, nil
}

type reporting struct {
	*resumption
	folder   *Folder
	reported map[string]bool
	changed  func(Difference) error
	found    []Difference
	watcher  func(fmt.Stringer)
}

func (t *reporting) watch(_ context.Context, r loop.Report) error {
	var fresh []Difference
	for _, d := range differences(t.settings, settingsOf(r.State())) {
		if !t.reported[d.What] {
			t.folder.logDifference(t.step, d)
			fresh = append(fresh, d)
		}
	}
	return t.look(fresh)
}

func (t *reporting) look(list []Difference) error {
	for _, d := range list {
		t.reported[d.What] = true
		t.found = append(t.found, d)
		if t.watcher != nil {
			t.watcher(d)
		}
		if t.changed == nil {
			continue
		}
		if err := t.changed(d); err != nil {
			return fmt.Errorf("checkpoint: the run is resumed from step %d: %w", t.step, err)
		}
	}
	return nil
}

func (f *Folder) logDifference(step Step, d Difference) {
	if d.Err != nil {
		return
	}
	inForce := "now"
	if d.Kept {
		inForce = "saved"
	}
	f.Options().Log.Warn("checkpoint: the resumed run differs from the saved one",
		"folder", f.Dir(), "step", int64(step), "what", d.What, "saved", d.Saved, "now", d.Now, "in_force", inForce)
}

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
	if s, ok := abilities.As[versioned](state); ok {
		maps.Copy(v, s.Versions())
	}
	return v
}

// An older lazo did not save GoMLX's version.
func versionDifferences(c *Checkpoint, state any) ([]Difference, error) {
	saved, err := textsOf(c, versionsSection)
	if err != nil || saved == nil {
		return nil, err
	}
	if _, ok := saved["gomlx"]; !ok {
		saved["gomlx"] = "v0.26.0 or none"
	}
	var now []Setting
	for name, value := range versions(state) {
		now = append(now, Setting{Name: name, Value: value})
	}
	return differences(saved, now), nil
}

const (
	loopSection     = "loop"
	versionsSection = "versions"
	settingsSection = "loop.settings"
	endedSection    = "loop.ended"
	sameSection     = "loop.same"
	// The rows may exceed the manifest's limit.
	historyTensor = "loop.history"
)
