package checkpoint

import (
	"time"
)

// SetClock sets the folder's clock.
func (f *Folder) SetClock(now func() time.Time) { f.now = now }

// Commit is the right content of COMMIT for a manifest.
func Commit(manifest []byte) string { return commit(manifest) }

// CheckManifest returns an error unless a manifest is accepted, and returns it encoded again.
func CheckManifest(text []byte) ([]byte, error) {
	m, err := parseManifest(text)
	if err != nil {
		return nil, err
	}
	return m.encode()
}

// Kept returns the steps that rules keep.
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

// Errors that have only their text outside of this package.
var (
	ErrClosed   = errClosed
	ErrReadOnly = errReadOnly
	ErrReserved = errReserved
	ErrNoStep   = errNoStep
)

// Types that are not exported.
type (
	Float           = float
	LockedError     = lockedError
	BackgroundError = backgroundError
)

var OpenFS = openFS
