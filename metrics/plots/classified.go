package plots

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Classified is a classifier's scores for examples with known classes.
type Classified struct {
	// Classes are at least two distinct names.
	Classes []string
	// Labels are indices of the examples' classes. Positive takes their place if an example may have several: a row per
	// example, true for its classes.
	Labels   []int
	Positive [][]bool
	// Scores has one row per example and one number per class, probabilities or logits. The first greatest is the
	// prediction. With more than two classes, areas under curves differ between them.
	Scores [][]float64
}

func (c Classified) check() error {
	if err := checkClasses(c.Classes); err != nil {
		return err
	}
	if c.Positive != nil {
		return c.checkSeveral()
	}
	switch {
	case len(c.Labels) == 0:
		return errors.New("there are no examples")
	case len(c.Labels) != len(c.Scores):
		return fmt.Errorf("%d labels for the scores of %d examples", len(c.Labels), len(c.Scores))
	}
	for i, label := range c.Labels {
		if label < 0 || label >= len(c.Classes) {
			return fmt.Errorf("the label of example %d is %d, expected 0 to %d: there are %d classes", i, label,
				len(c.Classes)-1, len(c.Classes))
		}
		if err := c.checkScores(i); err != nil {
			return err
		}
	}
	return nil
}

func (c Classified) checkScores(i int) error {
	if len(c.Scores[i]) != len(c.Classes) {
		return fmt.Errorf("example %d has %d scores, expected one for each of %d classes", i, len(c.Scores[i]), len(c.Classes))
	}
	for k, s := range c.Scores[i] {
		if math.IsNaN(s) {
			return fmt.Errorf("the score of example %d for class %q is NaN", i, c.Classes[k])
		}
	}
	return nil
}

func (c Classified) checkSeveral() error {
	switch {
	case c.Labels != nil:
		return errors.New("it has Labels and Positive, expected one of them")
	case len(c.Positive) == 0:
		return errors.New("there are no examples")
	case len(c.Positive) != len(c.Scores):
		return fmt.Errorf("%d rows of Positive for the scores of %d examples", len(c.Positive), len(c.Scores))
	}
	for i, row := range c.Positive {
		if len(row) != len(c.Classes) {
			return fmt.Errorf("example %d has %d classes in Positive, expected %d", i, len(row), len(c.Classes))
		}
		if err := c.checkScores(i); err != nil {
			return err
		}
	}
	return nil
}

func (c Classified) is(i, class int) bool {
	if c.Positive != nil {
		return c.Positive[i][class]
	}
	return c.Labels[i] == class
}

func checkClasses(classes []string) error {
	if len(classes) < 2 {
		return fmt.Errorf("the names of two classes or more are expected, got %q", classes)
	}
	seen := map[string]bool{}
	for _, name := range classes {
		if seen[name] {
			return fmt.Errorf("the class %q is named twice", name)
		}
		seen[name] = true
	}
	return nil
}

// Predicted returns the indices of the predicted classes.
func (c Classified) Predicted() ([]int, error) {
	err := c.check()
	if err == nil && c.Positive != nil {
		err = errors.New("an example may have several classes: compare its scores with thresholds")
	}
	if err != nil {
		return nil, fmt.Errorf("plots: predicted: %w", err)
	}
	predicted := make([]int, len(c.Scores))
	for i, row := range c.Scores {
		for k, s := range row {
			if s > row[predicted[i]] {
				predicted[i] = k
			}
		}
	}
	return predicted, nil
}

// Counts returns the confusion matrix: rows are labels, columns predictions.
func (c Classified) Counts() ([][]int, error) {
	predicted, err := c.Predicted()
	if err != nil {
		return nil, err
	}
	counts := make([][]int, len(c.Classes))
	for i := range counts {
		counts[i] = make([]int, len(c.Classes))
	}
	for i, p := range predicted {
		counts[c.Labels[i]][p]++
	}
	return counts, nil
}

// Curve has a curve's points, x ascending, and the area under it.
type Curve struct {
	X, Y []float64
	Area float64
}

// ErrOneClass means that all examples are positive or all negative.
var ErrOneClass = errors.New("the examples are all of one class")

// ROCCurve returns the true positive rate over the false positive rate, with one point per distinct score, from (0, 0)
// to (1, 1). The area uses trapezoids: ties count one half.
func ROCCurve(positive []bool, scores []float64) (Curve, error) {
	c := Curve{X: []float64{0}, Y: []float64{0}}
	positives, err := descend(positive, scores, func(right, wrong int) {
		c.X, c.Y = append(c.X, float64(wrong)), append(c.Y, float64(right))
	})
	negatives := len(positive) - positives
	if err == nil && positives*negatives == 0 {
		err = fmt.Errorf("%w: %d positive, %d negative", ErrOneClass, positives, negatives)
	}
	if err != nil {
		return Curve{}, fmt.Errorf("plots: ROC curve: %w", err)
	}
	for i := range c.X {
		c.X[i] /= float64(negatives)
		c.Y[i] /= float64(positives)
		if i > 0 {
			c.Area += (c.X[i] - c.X[i-1]) * (c.Y[i] + c.Y[i-1]) / 2
		}
	}
	return c, nil
}

// PrecisionRecallCurve returns the precision over the recall, with one point per distinct score, from recall 0 with
// precision 1 until all positives are found. The area is the average precision, not interpolated.
func PrecisionRecallCurve(positive []bool, scores []float64) (Curve, error) {
	c := Curve{X: []float64{0}, Y: []float64{1}}
	positives, err := descend(positive, scores, func(right, wrong int) {
		c.X, c.Y = append(c.X, float64(right)), append(c.Y, float64(right)/float64(right+wrong))
	})
	if err == nil && positives == 0 {
		err = fmt.Errorf("%w: none is positive", ErrOneClass)
	}
	if err != nil {
		return Curve{}, fmt.Errorf("plots: precision and recall: %w", err)
	}
	for i := range c.X {
		c.X[i] /= float64(positives)
		if i > 0 {
			c.Area += (c.X[i] - c.X[i-1]) * c.Y[i]
		}
	}
	return c, nil
}

func descend(positive []bool, scores []float64, at func(right, wrong int)) (positives int, err error) {
	switch {
	case len(positive) != len(scores):
		return 0, fmt.Errorf("%d labels for %d scores", len(positive), len(scores))
	case len(scores) == 0:
		return 0, errors.New("there are no examples")
	}
	order := make([]int, len(scores))
	for i, s := range scores {
		if math.IsNaN(s) {
			return 0, fmt.Errorf("the score of example %d is NaN", i)
		}
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	wrong := 0
	for i, example := range order {
		if positive[example] {
			positives++
		} else {
			wrong++
		}
		if i+1 == len(order) || scores[order[i+1]] != scores[example] {
			at(positives, wrong)
		}
	}
	return positives, nil
}
