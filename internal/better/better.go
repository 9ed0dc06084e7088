// Package better decides whether lower or higher values of an entry are better, by a mode or the entry's name.
package better

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/lazo-ml/lazo/internal/edits"
)

// A loop.Mode; 0 decides by the name.
const (
	Lowest  = 1
	Highest = 2
)

type mode interface {
	~int
	fmt.Stringer
}

func Of[M mode](m M, entry string) (M, error) {
	switch m {
	case Lowest, Highest:
		return m, nil
	case 0:
		if known, ok := known(entry); ok {
			return M(known), nil
		}
		return 0, fmt.Errorf("it is not known whether a lower or a higher %q is better%s", entry, hint(entry))
	}
	return m, fmt.Errorf("mode must be Lowest or Highest, got %s", m)
}

var (
	endings = map[int][]string{
		Lowest:  {"loss", "error", "mse", "mae", "mape", "msle", "crossentropy", "perplexity", "divergence", "hinge"},
		Highest: {"acc", "accuracy", "auc", "precision", "recall", "specificity", "sensitivity", "similarity", "correlation"},
	}
	words = map[int][]string{Lowest: {"cosh", "poisson"}, Highest: {"f1", "r2", "iou"}}
)

func known(entry string) (mode int, ok bool) {
	for word := range strings.FieldsFuncSeq(strings.ToLower(entry), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		for _, m := range []int{Lowest, Highest} {
			if slices.Contains(words[m], word) || slices.ContainsFunc(endings[m], func(e string) bool { return strings.HasSuffix(word, e) }) {
				mode, ok = m, true
			}
		}
	}
	return mode, ok
}

func hint(entry string) string {
	at := 1 + strings.LastIndexFunc(entry, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	word := strings.ToLower(entry[at:])
	for _, m := range []int{Lowest, Highest} {
		for _, e := range endings[m] {
			if (e == "loss" || len(e) > 4) && edits.Distance(word, e, 1) == 1 {
				return fmt.Sprintf(" (did you mean %q?)", entry[:at]+e)
			}
		}
	}
	return ""
}

// Against returns an error if the entry's name implies the opposite mode.
func Against[M mode](m M, entry string) error {
	known, ok := known(entry)
	if !ok || m == M(known) || m != Lowest && m != Highest {
		return nil
	}
	which, take := "lower", "Lowest"
	if known == Highest {
		which, take = "higher", "Highest"
	}
	return fmt.Errorf("the mode is %s, but by its name %q is better when %s: use %s, or no mode", m, entry, which, take)
}

// Than reports whether v is better than best by more than delta. NaN and infinities are never better.
func Than[M mode](m M, v, best, delta float64) bool {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return false
	case m == Highest:
		return v > best+delta
	}
	return v < best-delta
}

func Worst[M mode](m M) float64 {
	if m == Highest {
		return math.Inf(-1)
	}
	return math.Inf(1)
}
