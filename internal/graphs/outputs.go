package graphs

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// ErrOutdated is wrapped by an error about what was fitted to weights that a model has no more; see
// flaxlike.ErrOutdated.
var ErrOutdated = errors.New("outdated")

// OutputErrors are errors by the names of the outputs that a predictor could not answer; it gives the others beside
// them.
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

// Unwrap gives the errors in the order of the outputs' names.
func (o OutputErrors) Unwrap() (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		errs = append(errs, o[name])
	}
	return errs
}

// OfAnyInput reports whether the errors are those of the model as it is, whatever its input.
func (o OutputErrors) OfAnyInput() bool {
	for _, err := range o {
		if !errors.Is(err, ErrOutdated) {
			return false
		}
	}
	return true
}
