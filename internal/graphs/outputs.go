package graphs

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// ErrOutdated is wrapped by errors about values fitted to a model's earlier weights; see flaxlike.ErrOutdated.
var ErrOutdated = errors.New("outdated")

// OutputErrors has the errors of some of a predictor's outputs, by name.
type OutputErrors map[string]error

func (o OutputErrors) Error() string {
	var lines []string
	for _, err := range o.Unwrap() {
		if line := err.Error(); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func (o OutputErrors) Unwrap() (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		errs = append(errs, o[name])
	}
	return errs
}

func (o OutputErrors) OfAnyInput() bool {
	for _, err := range o {
		if !errors.Is(err, ErrOutdated) {
			return false
		}
	}
	return true
}
