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

	"github.com/lazo-ml/lazo/loop"
)

// Difference is one difference between a resumed run and the saved one. What is "go", "lazo", "gomlx", a name of the
// [State]'s Versions or Settings, or "newest checkpoint" if that was damaged and an older one is restored.
type Difference struct {
	// Now is "not known" if the saved run knew a setting and the resumed one cannot.
	What, Saved, Now string
	// Kept means that the saved value is in force, not the program's; see [Setting].Saved.
	Kept bool
	// Err is why the newest checkpoint was skipped.
	Err error
}

// String returns a text such as "batch was 32 and is 64".
func (d Difference) String() string {
	if d.Err != nil {
		return fmt.Sprintf("the %s was passed over for %s: %v", d.What, d.Now, d.Err)
	}
	s := fmt.Sprintf("%s was %s and is %s", d.What, d.Saved, d.Now)
	if d.Kept {
		s += "; the saved one counts"
	}
	return s
}

// differences returns the settings that differ and those that the resumed run cannot know.
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
	if s, ok := state.(configured); ok {
		return s.Settings()
	}
	return nil
}

// noted returns settings in the form in which they are saved.
func noted(settings []Setting) map[string]string {
	m := map[string]string{}
	for _, s := range settings {
		if s.Value != "" {
			m[s.Name] = s.Value
		}
	}
	return m
}

// inForce replaces a setting by the saved value where that is in force ([Setting].Saved), except where the value has
// changed during the run, for example by another optimizer.
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

// textsOf reads a section of texts by name. It is empty if an older version of lazo did not save it.
func textsOf(c *Checkpoint, section string) (texts map[string]string, err error) {
	if err := c.Section(section, &texts); err != nil && !errors.Is(err, ErrNoSection) {
		return nil, err
	}
	return texts, nil
}

// reporting finds differences before the first step and after it.
type reporting struct {
	*resumption
	folder   *Folder
	reported map[string]bool
	changed  func(Difference) error // may be nil
}

// watch reports differences that were not known before the first step.
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

// look reports differences.
func (t *reporting) look(list []Difference) error {
	for _, d := range list {
		t.reported[d.What] = true
		if t.changed == nil {
			continue
		}
		if err := t.changed(d); err != nil {
			return fmt.Errorf("checkpoint: the run is resumed from step %d: %w", t.step, err)
		}
	}
	return nil
}

// logDifference logs a warning. A skipped checkpoint is already logged.
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

// versions returns the versions that a state runs with.
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
	if s, ok := state.(versioned); ok {
		maps.Copy(v, s.Versions())
	}
	return v
}

// versionDifferences compares versions with the saved ones. Early versions of lazo did not save GoMLX's.
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
