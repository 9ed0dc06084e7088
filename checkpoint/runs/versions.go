package runs

import (
	"maps"
	"runtime"
	"runtime/debug"

	"github.com/lazo-ml/lazo/checkpoint"
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
