package checkpoint

import (
	"maps"
	"runtime"
	"runtime/debug"
)

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

// changedVersions are those of what a checkpoint was saved with. A lazo that did not note GoMLX's stood on that one.
func changedVersions(c *Checkpoint, state any) ([]Change, error) {
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
	return changes(saved, now), nil
}
