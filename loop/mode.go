package loop

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/internal/better"
)

// Mode determines whether lower or higher values of an entry are better. The zero Mode decides by the last known word
// in its name: "accuracy_test" is an accuracy, "auc_loss" a loss. Lower is better for words that end in loss, error,
// mse, mae, mape, msle, crossentropy, perplexity, divergence or hinge, and for cosh and poisson; higher for those that
// end in acc, accuracy, auc, precision, recall, specificity, sensitivity, similarity or correlation, and for f1, r2 and
// iou. A name without such a word is an error.
type Mode int

const (
	Lowest Mode = better.Lowest
	// Highest is for accuracies.
	Highest Mode = better.Highest
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

// Best returns the best finite value under a name in the kept rows and its elapsed; of equal values, the first. None is
// an [ErrNonFinite].
func (h *History) Best(entry string, mode Mode) (value float64, at Elapsed, err error) {
	mode, err = better.Of(mode, entry)
	if err != nil {
		return 0, Elapsed{}, fmt.Errorf("loop: history: best of %q: %w", entry, err)
	}
	best, found := better.Worst(mode), false
	err = h.each(entry, func(r row, v float64) {
		if better.Than(mode, v, best, 0) {
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

// ErrNonFinite reports a value that is NaN or infinite.
var ErrNonFinite = errors.New("not a finite number")
