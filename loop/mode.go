package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Mode says whether lower or higher values of an entry are better.
type Mode int

const (
	// Auto decides by the words in the name of the entry: Highest if one ends in acc, accuracy or auc, else Lowest. If
	// there are several such words, or words that end in loss or error, the last one decides: "accuracy_test" is an
	// accuracy, "auc_loss" a loss. It knows no other names: use Highest for a precision.
	Auto Mode = iota
	// Lowest is for losses and errors.
	Lowest
	// Highest is for accuracies.
	Highest
)

func (m Mode) String() string {
	switch m {
	case Auto:
		return "auto"
	case Lowest:
		return "lowest"
	case Highest:
		return "highest"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Of is the mode for an entry: Lowest or Highest. A mode other than the three is an error.
func (m Mode) Of(entry string) (Mode, error) {
	switch m {
	case Lowest, Highest:
		return m, nil
	case Auto:
		return autoMode(entry), nil
	}
	return m, fmt.Errorf("mode must be Lowest, Highest or Auto, got %s", m)
}

func autoMode(entry string) Mode {
	mode := Lowest
	words := strings.FieldsFunc(strings.ToLower(entry), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, word := range words {
		switch {
		case endsIn(word, "acc", "accuracy", "auc"):
			mode = Highest
		case endsIn(word, "loss", "error"):
			mode = Lowest
		}
	}
	return mode
}

func endsIn(word string, endings ...string) bool {
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(word, e) })
}

// Better reports whether v is better than best by more than delta. NaN and infinities are never better: a loss of -Inf
// is a fault, and nothing could be better than it.
func (m Mode) Better(v, best, delta float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return false
	case m == Highest:
		return v > best+delta
	}
	return v < best-delta
}

// Worst is the infinity that every finite value is better than.
func (m Mode) Worst() float64 {
	if m == Highest {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// Best is the best value of an entry, and when it was.
type Best struct {
	Value   float64
	Elapsed Elapsed
}

// Best finds the best value that was logged under a name in the rows that were kept; of equal ones, the first. NaN and
// infinities are left out; if there are no others, the error wraps [ErrNonFinite].
func (h *History) Best(entry string, mode Mode) (Best, error) {
	mode, err := mode.Of(entry)
	if err != nil {
		return Best{}, fmt.Errorf("loop: history: best of %q: %w", entry, err)
	}
	best, found := Best{Value: mode.Worst()}, false
	err = h.each(entry, func(r row, v float64) {
		if mode.Better(v, best.Value, 0) {
			best, found = Best{v, r.elapsed}, true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("loop: history: best of %q: no value is finite: %w", entry, ErrNonFinite)
	}
	if err != nil {
		return Best{}, err
	}
	return best, nil
}

// ErrNonFinite is wrapped by the error about a value that is NaN or infinite.
var ErrNonFinite = errors.New("not a finite number")
