package loop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Mode determines whether lower or higher values of an entry are better. The zero Mode decides by the last known word
// in its name: Lowest for losses and errors, Highest for accuracies and similar metrics. "accuracy_test" is an
// accuracy, "auc_loss" a loss. A name without a known word is an error.
type Mode int

const (
	// Lowest is for losses and errors.
	Lowest Mode = iota + 1
	// Highest is for accuracies.
	Highest
)

func (m Mode) String() string {
	switch m {
	case 0:
		return "by name"
	case Lowest:
		return "lowest"
	case Highest:
		return "highest"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Of returns the mode for an entry: Lowest or Highest.
func (m Mode) Of(entry string) (Mode, error) {
	switch m {
	case Lowest, Highest:
		return m, nil
	case 0:
		if known, ok := known(entry); ok {
			return known, nil
		}
		return 0, fmt.Errorf("it is not known whether a lower or a higher %q is better", entry)
	}
	return m, fmt.Errorf("mode must be Lowest or Highest, got %s", m)
}

var (
	endings = map[Mode][]string{
		Lowest:  {"loss", "error", "mse", "mae", "mape", "msle", "crossentropy", "perplexity", "divergence", "hinge"},
		Highest: {"acc", "accuracy", "auc", "precision", "recall", "specificity", "sensitivity", "similarity", "correlation"},
	}
	words = map[Mode][]string{Lowest: {"cosh", "poisson"}, Highest: {"f1", "r2", "iou"}}
)

func known(entry string) (mode Mode, ok bool) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(entry), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, m := range []Mode{Lowest, Highest} {
			if slices.Contains(words[m], word) || slices.ContainsFunc(endings[m], func(e string) bool { return strings.HasSuffix(word, e) }) {
				mode, ok = m, true
			}
		}
	}
	return mode, ok
}

// Against returns an error if the name of the entry implies the opposite mode.
func (m Mode) Against(entry string) error {
	known, ok := known(entry)
	if !ok || m == known || m != Lowest && m != Highest {
		return nil
	}
	which := map[Mode]string{Lowest: "lower", Highest: "higher"}
	return fmt.Errorf("the mode is %s, but by its name %q is better when %s: use %s, or no mode", m, entry, which[known], strings.ToUpper(known.String()[:1])+known.String()[1:])
}

// Better reports whether v is better than best by more than delta. NaN and infinities are never better.
func (m Mode) Better(v, best, delta float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return false
	case m == Highest:
		return v > best+delta
	}
	return v < best-delta
}

// Worst returns the infinity that every finite value is better than.
func (m Mode) Worst() float64 {
	if m == Highest {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// Best returns the best value under a name in the kept rows and its elapsed; of equal values, the first. It ignores NaN
// and infinities. If there are no others, the error wraps [ErrNonFinite].
func (h *History) Best(entry string, mode Mode) (value float64, at Elapsed, err error) {
	mode, err = mode.Of(entry)
	if err != nil {
		return 0, Elapsed{}, fmt.Errorf("loop: history: best of %q: %w", entry, err)
	}
	best, found := mode.Worst(), false
	err = h.each(entry, func(r row, v float64) {
		if mode.Better(v, best, 0) {
			best, at, found = v, r.elapsed, true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("loop: history: best of %q: no value is finite: %w", entry, ErrNonFinite)
	}
	if err != nil {
		return 0, Elapsed{}, err
	}
	return best, at, nil
}

// ErrNonFinite is wrapped by the error for a value that is NaN or infinite.
var ErrNonFinite = errors.New("not a finite number")
