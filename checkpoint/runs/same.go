package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/shield"
)

// ErrChanged: a run was to go on with other settings than those that it was saved with.
var ErrChanged = errors.New("the run was saved with other settings")

// Same refuses to go on with other settings than the run was saved with: those that [Also] saved as a section, such as
// the batch size, the data and the seed, against those of now. The error wraps [ErrChanged] and names each difference.
// It is nil at the beginning of a run. What is equal is equal as JSON.
//
//	settings := struct{ Data string; Batch int }{path, 32}
//	start, err := runs.Resume(ctx, folder, state)
//	…
//	if err := start.Same("settings", settings); err != nil { … }
//	… runs.Save(folder, when, runs.Also("settings", func() (any, error) { return settings, nil }))
func (s Start) Same(section string, now any) error {
	if !s.Found {
		return nil
	}
	var saved json.RawMessage
	if err := s.Section(section, &saved); err != nil {
		return err
	}
	fail := func(err error) error {
		return fmt.Errorf("checkpoint: step %d: section %q: %w", s.saved.Step, section, err)
	}
	var text json.RawMessage
	if err := shield.Do(func() (err error) { text, err = json.Marshal(now); return err }); err != nil {
		return fail(err)
	}
	if differences := different(saved, text); len(differences) > 0 {
		return fail(fmt.Errorf("%w: %s; give it the same ones, or begin in another folder", ErrChanged, strings.Join(differences, ", ")))
	}
	return nil
}

// different names what two texts of JSON do not have in common, by the names of an object's fields.
func different(saved, now json.RawMessage) (list []string) {
	before, after := fields(saved), fields(now)
	add := func(name string) {
		if a, b := textOf(before, name), textOf(after, name); a != b {
			list = append(list, strings.TrimPrefix(fmt.Sprintf("%s was %s and is %s", name, a, b), " "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		add(name)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, both := before[name]; !both {
			add(name)
		}
	}
	return list
}

// fields are those of an object; anything else is the only one, without a name.
func fields(text json.RawMessage) (all map[string]json.RawMessage) {
	if json.Unmarshal(text, &all) != nil || all == nil {
		return map[string]json.RawMessage{"": text}
	}
	return all
}

func textOf(fields map[string]json.RawMessage, name string) string {
	text, ok := fields[name]
	if !ok {
		return "not there"
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		return string(text)
	}
	return b.String()
}
