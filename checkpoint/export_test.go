package checkpoint

import (
	"time"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// OpenFS opens a folder that fs is.
func OpenFS(fs vfs.FS, options Options) (*Folder, error) { return openFS(fs, "folder", options) }

// SetClock gives the folder another clock.
func (f *Folder) SetClock(now func() time.Time) { f.now = now }

// Commit is the right content of COMMIT for a manifest.
func Commit(manifest []byte) string { return commit(manifest) }

// CheckManifest tells whether a manifest is taken, and gives it written anew.
func CheckManifest(text []byte) ([]byte, error) {
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	return m.encode()
}

// Kept gives the steps that rules keep.
func Kept(rules []Retention, list []Info) []Step {
	var steps []Step
	for i, k := range kept(rules, list) {
		if k {
			steps = append(steps, list[i].Step)
		}
	}
	return steps
}

const ManifestLimit = manifestLimit

// SaveHasFailed tells whether a save in the background has failed and the run does not know yet.
func (f *Folder) SaveHasFailed() bool {
	a := f.saver.Load()
	return a != nil && a.failing.Load()
}
