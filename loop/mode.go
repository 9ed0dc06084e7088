package loop

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Mode says which values of an entry are the better ones.
type Mode int

const (
	// Auto goes by the name of the entry: the higher the better if a word of it ends in acc, accuracy or auc, else the
	// lower. If there are several such words, or one that ends in loss or error, the last one decides, so that
	// "accuracy_test" is an accuracy and "auc_loss" a loss. It knows no other names: say Highest for a precision.
	//
	// Keras looks for "acc" anywhere in the name, Jaxloop at its end alone; we look at words because evaluations put
	// their own name behind.
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

// Of is the mode for an entry: Lowest or Highest.
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
	for _, e := range endings {
		if strings.HasSuffix(word, e) {
			return true
		}
	}
	return false
}

// Better tells whether v is better than best by more than delta. What is not finite beats nothing: a loss of -Inf is a
// fault, and nothing could ever beat it again.
func (m Mode) Better(v, best, delta float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return false
	case m == Highest:
		return v > best+delta
	}
	return v < best-delta
}

// Worst is what every finite value beats.
func (m Mode) Worst() float64 {
	if m == Highest {
		return math.Inf(-1)
	}
	return math.Inf(1)
}

// Best is the best value of an entry, and where in the run it was.
type Best struct {
	Value   float64
	Elapsed Elapsed
}

// Best finds the best value that was logged under a name; of equal ones, the first. It knows the rows that were kept
// only. NaN and infinities are passed over; where there is nothing else, the error wraps [ErrNonFinite].
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
