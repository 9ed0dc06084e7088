package checkpoint

import (
	"errors"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
)

// Change is something that a run goes on with and that is not what it was saved with: "go", "lazo", "gomlx", and what a
// [Versioned] state names, as a managed.State "plugin" and "devices".
type Change struct{ What, Saved, Now string }

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
	if s, ok := state.(Versioned); ok {
		maps.Copy(v, s.Versions())
	}
	return v
}

// changes compares what both know.
func changes(c *Checkpoint, state any) ([]Change, error) {
	var saved map[string]string
	switch err := c.Section(versionsSection, &saved); {
	case errors.Is(err, ErrNoSection):
		return nil, nil
	case err != nil:
		return nil, err
	}
	now := versions(state)
	var all []Change
	for _, what := range slices.Sorted(maps.Keys(now)) {
		was, ok := saved[what]
		if what == "gomlx" && !ok { // a lazo that did not note it stood on that one
			was, ok = "v0.26.0 or none", true
		}
		if ok && was != now[what] {
			all = append(all, Change{what, was, now[what]})
		}
	}
	return all, nil
}
